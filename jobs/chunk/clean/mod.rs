//! `chunk clean`: cuts repeated lines, sentences or paragraphs out of the documents of a corpus.
//!
//! The job (`run.rs`) reads its input twice. `count.rs` reads it first, and sorts the units of all texts by their hashes
//! (`corpus/shared_sorts.rs`). With `--near`, `near.rs` reads it once more, and finds the units that count as others. The units
//! that go are sorted by their documents. The last reading copies the records without them (`split_cuts.rs`), and lists
//! them (`span_table.rs`). Only `chunk` uses this room.

mod count;
mod doc_names;
mod near;
mod options;
mod run;
mod span_table;
mod split_cuts;
mod summary;

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use cluster::{Group, Stores};
use operators::hash::Secret;
use operators::text::document_frequencies::Statistics;

use self::options::CleanOptions;
use self::run::CleanRun;
use batch::memory::MemoryOptions;
use runtime::Common;
use runtime::cli::configuration::Configuration;
use runtime::cli::exit::WrongUse;
use runtime::cli::values::output_and_inputs;
#[cfg(feature = "cli")]
use runtime::cli::values::paths;
use runtime::corpus::plan::Plan;
use runtime::corpus::run::Run;
use runtime::output::{OutputArgs, OutputJob};

/// Cut repeated lines, sentences or paragraphs out of documents
///
/// Run it on the output of `dedup`, so that whole documents have gone first. OUTPUT/kept has the records with shorter
/// texts and all else as it was, OUTPUT/removed those of which nothing would be left, and OUTPUT/spans a table of what
/// was cut. The input is read twice.
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[cfg_attr(feature = "cli", command(override_usage = "dedup-job chunk clean [OPTIONS] <INPUT>... <OUTPUT>"))]
pub struct Args {
    /// Files, folders, globs or comma lists of them, local, on HDFS or in an object store; the last one is
    /// the output folder
    #[cfg_attr(feature = "cli", arg(required = true, num_args = 1.., value_name = "INPUT> <OUTPUT", value_parser = paths()))]
    paths: Vec<String>,
    #[cfg_attr(feature = "cli", command(flatten))]
    options: CleanOptions,
    #[cfg_attr(feature = "cli", command(flatten))]
    memory: MemoryOptions,
    /// Stop with exit code 4 before anything is committed if more records than this are rejected
    #[cfg_attr(feature = "cli", arg(long, value_name = "N"))]
    max_rejects: Option<u64>,
    #[cfg_attr(feature = "cli", command(flatten))]
    output: OutputArgs,
}

/// Runs the job. Returns the exit code: 0, or 3 if records were rejected.
pub fn run(common: &Common, args: Args) -> Result<u8> {
    let start = Instant::now();
    let stores = Stores::new();
    let Args { paths, mut options, memory, max_rejects, output: output_args } = args;
    memory.give_back();
    let (output, inputs) = output_and_inputs(&paths)?;
    let workers = common.workers();
    options.input.limit_records(memory.of_records(workers));
    let lexicon = options.input.lexicon(options.near.as_ref().is_some_and(|near| near.cuts_words()))?;
    let plan = options.input.plan(&stores, inputs)?;
    let reading = options.input.reading()?;
    refuse_formats(&plan, reading.text())?;
    plan.refuse_hidden_names()?;
    let local = options.input.local_folder();
    let (spill, near) = match &options.near {
        None => (memory.sorting_budget(workers, &local)?, None),
        Some(spec) => {
            let group = Group::alone(workers);
            // One half is for what is sorted, and one for the search.
            let spill = memory.left_of(2, &group, spec, &lexicon, plan.text_bytes, &local)?;
            (spill, Some(spec.method(&lexicon, &Statistics::default(), None)?))
        }
    };
    let configuration = serde_json::to_value(Configuration::here(options.clone(), workers, inputs)?)?;
    let job = OutputJob::alone(
        (common, &stores, start),
        Run::alone(plan, reading, workers, &Arc::default()),
        "chunk clean",
        (output, &output_args),
        configuration,
    );
    let begun = job.begin()?;
    let run = CleanRun { job: &job, options: &options, secret: Secret::random(), spill, near, max_rejects };
    let result = begun.work(|folder| run.work(folder));
    job.end(begun, result)
}

/// Returns an error if the input has a file of a format whose texts cannot be cut. `field`: the field of the text.
fn refuse_formats(plan: &Plan, field: &str) -> Result<()> {
    match plan.splits.iter().find(|split| !split.format.cuts_texts(field)) {
        Some(split) if split.format.adds_fields() => bail!(WrongUse(format!(
            "a text in several fields or below others, such as \"{field}\", cannot be made again of a shorter one in \"{}\"",
            split.uri()
        ))),
        Some(split) => bail!(WrongUse(format!(
            "\"{}\" is of the format {}, whose documents cannot be made again of a shorter text: leave such files out",
            split.uri(),
            split.format.name()
        ))),
        None => Ok(()),
    }
}
