//! `chunk export`: writes the texts of files of a store as a corpus.
//!
//! `export_split.rs` divides the lists of files into splits, and `run.rs` writes a part for each, whose counts are in
//! `summary.rs`. A part is written from the store without the files ever lying in a folder. Only `chunk` uses this room.

mod export_split;
mod options;
mod run;
mod summary;

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use cluster::Stores;
use datasets::{Codec, Container, Extractors, Reading};

use self::export_split::splits;
use self::options::{ExportFormat, ExportOptions};
use self::run::{ExportRun, plan_of};
use super::store::{ChunkStore, SnapshotManifest};
use runtime::Common;
use runtime::cli::configuration::Configuration;
use runtime::cli::exit::WrongUse;
#[cfg(feature = "cli")]
use runtime::cli::values::paths;
use runtime::corpus::run::Run;
use runtime::output::{OutputArgs, OutputJob};
use runtime::progress::Stage;

/// Write the texts of files of a store as a corpus that dedup and nightly read
///
/// OUTPUT/exported gets a record for each file of a snapshot: its name as the id, and its text, which is that of the
/// paragraphs of a Word document, of the pages of a PDF, and otherwise the whole file. Files without text are rejected. The
/// hash of each file is checked before its text is taken.
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Args {
    #[cfg_attr(feature = "cli", arg(value_name = "STORE", value_parser = paths()))]
    store: String,
    /// Output folder
    #[cfg_attr(feature = "cli", arg(value_name = "OUTPUT", value_parser = paths()))]
    output: String,
    #[cfg_attr(feature = "cli", command(flatten))]
    options: ExportOptions,
    /// Stop with exit code 4 before anything is committed if more files than this are rejected
    #[cfg_attr(feature = "cli", arg(long, value_name = "N"))]
    max_rejects: Option<u64>,
    #[cfg_attr(feature = "cli", command(flatten))]
    output_args: OutputArgs,
}

/// Runs the job. Returns the exit code: 0, or 3 if files were rejected.
///
/// # Errors
/// Those of the store and of the output; [`WrongUse`] when there is no such snapshot or file, or one of the two folders lies
/// in the other.
pub(super) fn run(common: &Common, args: Args) -> Result<u8> {
    let Args { store: uri, output, options, max_rejects, output_args } = args;
    let container = match (options.to, options.codec) {
        (ExportFormat::SequenceFile, codec) => Container::SequenceFile(codec.unwrap_or(Codec::Zlib)),
        (_, Some(_)) => bail!(WrongUse("--codec is for SequenceFiles".to_owned())),
        (ExportFormat::Parquet, None) => Container::Parquet,
        (ExportFormat::Jsonl, None) => Container::JsonLines,
    };
    let start = Instant::now();
    let stores = Stores::new();
    let store = ChunkStore::open(&stores, &uri)?;
    refuse_nested(&stores, &uri, &output)?;
    let snapshots =
        if options.all { all_snapshots(&store)? } else { vec![store.snapshot(&options.snapshot)?] };
    let reading = Reading {
        encoding: options.encoding,
        bad_text: options.on_bad_text.into(),
        max_record_bytes: options.max_record_bytes as usize,
        extractors: Arc::new(Extractors::of_this_program()?),
        ..Reading::default()
    };
    let configuration = Configuration::here(&options, common.workers(), std::slice::from_ref(&uri))?;
    let configuration = serde_json::to_value(configuration)?;
    let splits = splits(&store, &snapshots, &options.names, options.part_size)?;
    let job = OutputJob::alone(
        (common, &stores, start),
        Run::alone(plan_of(&splits)?, reading, common.workers(), &Arc::default()),
        Stage::Export.name(),
        (&output, &output_args),
        configuration,
    );
    let run = ExportRun {
        job: &job,
        store: &store,
        snapshots: &snapshots,
        splits,
        options: &options,
        container,
        max_rejects,
    };
    let begun = job.begin_watched(run.watched()?)?;
    let result = begun.work(|folder| run.work(folder));
    job.end(begun, result)
}

fn all_snapshots(store: &ChunkStore) -> Result<Vec<SnapshotManifest>> {
    let snapshots = store.all_snapshots("the other snapshots can be exported by their names")?;
    if snapshots.is_empty() {
        bail!(WrongUse(format!("\"{}\" has no snapshot", store.uri)));
    }
    Ok(snapshots)
}

/// Returns an error if the output lies in the store, or the store in the output.
fn refuse_nested(stores: &Stores, store: &str, output: &str) -> Result<()> {
    if stores.lies_in(output, store)? {
        bail!(WrongUse(format!("the output \"{output}\" lies in the store \"{store}\"")));
    }
    if stores.lies_in(store, output)? {
        bail!(WrongUse(format!("the store \"{store}\" lies in the output \"{output}\"")));
    }
    Ok(())
}
