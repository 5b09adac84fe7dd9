//! Files of the fingerprints of a corpus.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use cluster::Stores;
use datasets::Content;
use operators::method::Spec;
use operators::search::Search;
use operators::search::bits::SimHash;
use operators::text::Cleaner;
use operators::text::cleaned::has_text;
use operators::text::document_frequencies::Statistics;
use operators::text::features::Lexicon;
use serde_json::json;

use crate::commands::repack::{PackFormat, Repack, RepackCounters, RepackUnit};
use batch::corpus_counts;
use runtime::Common;
use runtime::cli::configuration::Configuration;
use runtime::cli::exit::{Failure, WrongUse};
use runtime::cli::values::paths;
use runtime::corpus::input::InputOptions;
use runtime::corpus::run::Run;
use runtime::corpus::split::Split;
use runtime::corpus::splits::SplitReader;
use runtime::output::rejects::SplitRejectsWriter;
use runtime::output::{OutputArgs, OutputFolder, OutputJob};
use runtime::progress::{Stage, StageTimer};

/// Options of the files of fingerprints.
#[derive(clap::Args)]
pub(super) struct FileArgs {
    /// Write the fingerprints of the documents of an input into this folder
    ///
    /// fingerprints/ gets a record for each document with a text: its id and its fingerprint, as LongWritable or as an unsigned column
    /// fingerprint. `dedup --from-fingerprints` reads them.
    #[arg(long, value_name = "OUTPUT", value_parser = paths())]
    pub output: Option<String>,
    /// Format of the fingerprints
    #[arg(long, value_name = "FORMAT", default_value = "sequencefile", requires = "output")]
    to: PackFormat,
    /// Stop with exit code 4 before anything is committed if more records than this are rejected
    #[arg(long, value_name = "N", requires = "output")]
    max_rejects: Option<u64>,
    #[command(flatten)]
    pub input: InputOptions,
    #[command(flatten)]
    output_args: OutputArgs,
}

/// The job that makes the fingerprints of an input.
pub(super) struct FingerprintJob {
    pub inputs: Vec<String>,
    pub spec: Spec,
    pub lexicon: Lexicon,
    /// Statistics that the user has given.
    pub statistics: Option<Statistics>,
    pub files: FileArgs,
}

impl FingerprintJob {
    /// Runs the job. Returns the exit code.
    pub fn run(mut self, common: &Common, start: Instant) -> Result<u8> {
        self.files.input.limit_records(None);
        let stores = Stores::new();
        let FingerprintJob { inputs, spec, lexicon, statistics, files } = self;
        let plan = files.input.plan(&stores, &inputs)?;
        let reading = files.input.reading()?;
        let run = Run::alone(plan, reading, common.workers(), &Arc::default());
        let statistics = corpus_counts::count_unless_given(statistics, &spec, &lexicon, &run)?;
        let method = spec.method(&lexicon, &statistics, None)?;
        let simhash = match method.search {
            Search::Bits64(simhash) => simhash,
            Search::Bits128(_) => bail!(WrongUse("files have fingerprints of 64 bits at most".to_owned())),
            _ => bail!(no_simhash(&spec)),
        };
        let options = json!({"method": spec.to_string(), "to": files.to, "input": files.input});
        let job = OutputJob::alone(
            (common, &stores, start),
            run,
            "fingerprint",
            (files.output.as_deref().unwrap_or_default(), &files.output_args),
            serde_json::to_value(Configuration::here(options, common.workers(), &inputs)?)?,
        );
        let max_rejects = files.max_rejects;
        let unit = RepackUnit::Fingerprints;
        let repack = Repack { job: &job, max_rejects, stage: Stage::Map, unit };
        repack.run(|folder, at, number, split, rejects| {
            let fingerprints =
                FingerprintSplit { simhash: simhash.clone(), cleaner: method.cleaner.clone(), to: files.to };
            fingerprints.write((folder, at, &job.run), number, split, rejects)
        })
    }
}

/// Returns the error of a method without fingerprints.
pub(super) fn no_simhash(spec: &Spec) -> Failure {
    WrongUse(format!("the method \"{spec}\" has no SimHash: take simhash or manku2007"))
}

/// The fingerprints of a split.
struct FingerprintSplit {
    simhash: SimHash<u64>,
    cleaner: Cleaner,
    to: PackFormat,
}

impl FingerprintSplit {
    fn write(
        mut self,
        (folder, at, run): (&OutputFolder, &StageTimer, &Run),
        number: u32,
        split: &Split,
        rejects: &mut SplitRejectsWriter,
    ) -> Result<RepackCounters> {
        let container = self.to.container(None);
        let file = folder.file(&format!("fingerprints/part-{number:05}{}", container.extension()))?;
        let mut writer = container.create(file, Content::Fingerprint, &split.uri())?;
        let mut counters = RepackCounters::default();
        let mut reader = SplitReader::new(number, split, &run.reading, at);
        while let Some(mut batch) = reader.next_batch()? {
            rejects.take(&mut batch)?;
            counters.replaced += batch.replaced();
            for doc in batch.docs() {
                let text = self.cleaner.clean(doc.text);
                // A document without text is nobody's duplicate, so no fingerprint may make it one.
                if !has_text(text) {
                    continue;
                }
                writer.append(doc.id, &self.simhash.fingerprint(text).to_be_bytes())?;
                counters.records += 1;
                counters.bytes += size_of::<u64>() as u64;
            }
        }
        writer.finish()?;
        Ok(counters)
    }
}
