//! `pack` and `unpack`, and the job that they share with `fingerprint`: works on splits one by one, writes what it makes of each into
//! an output folder, and counts.
//!
//! This room uses `cli`, `corpus`, `output` and `progress`; `main.rs` and `fingerprint` use it.

pub mod pack;
mod pack_options;
pub mod unpack;

use std::collections::BTreeMap;
use std::fmt;

use anyhow::Result;
use datasets::{Codec, Container};
use serde::Serialize;
use serde_json::Value;

use runtime::cli::terminal::grouped;
use runtime::corpus::run::Run;
use runtime::corpus::split::Split;
use runtime::output::rejects::SplitRejectsWriter;
use runtime::output::summary::{InputCounters, write_plain_counters};
use runtime::output::{FileList, JobEnd, JobSummary, OutputFolder, OutputJob, rejected_words};
use runtime::progress::usage::ResourceUsage;
use runtime::progress::{Stage, StageRow, StageTimer, seconds};

/// A job that writes something of each split of its input into an output.
pub(crate) struct Repack<'a> {
    pub job: &'a OutputJob<'a>,
    pub max_rejects: Option<u64>,
    pub stage: Stage,
    pub unit: RepackUnit,
}

/// Unit in which a job counts what it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RepackUnit {
    FilesPacked,
    FilesUnpacked,
    DocumentsPacked,
    Fingerprints,
}

impl RepackUnit {
    /// Returns the names of the counters of what was written, and of its bytes.
    fn names(self) -> [&'static str; 2] {
        match self {
            RepackUnit::FilesPacked => ["Files packed", "Bytes packed"],
            RepackUnit::FilesUnpacked => ["Files unpacked", "Bytes unpacked"],
            RepackUnit::DocumentsPacked => ["Documents packed", "Bytes packed"],
            RepackUnit::Fingerprints => ["Fingerprints", "Bytes of fingerprints"],
        }
    }

    /// Whether each record is a file.
    fn files(self) -> bool {
        matches!(self, RepackUnit::FilesPacked | RepackUnit::FilesUnpacked)
    }
}

/// Format of what is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PackFormat {
    /// Block-compressed SequenceFiles with keys of the class Text
    #[value(name = "sequencefile")]
    SequenceFile,
    /// Parquet with the column id and another one, compressed with zstd
    Parquet,
}

impl PackFormat {
    /// Returns the container in this format. A codec is for SequenceFiles alone.
    pub fn container(self, codec: Option<Codec>) -> Container {
        match self {
            PackFormat::SequenceFile => Container::SequenceFile(codec.unwrap_or(Codec::Zlib)),
            PackFormat::Parquet => Container::Parquet,
        }
    }
}

#[derive(Debug, Serialize)]
struct RepackSummary {
    #[serde(skip)]
    unit: RepackUnit,
    version: &'static str,
    configuration: Value,
    counters: RepackCounters,
    process: ResourceUsage,
    seconds: BTreeMap<&'static str, f64>,
    stages: Vec<StageRow>,
}

/// Counts of a job. Those of one split are only of what was written.
#[derive(Debug, Default, Serialize)]
pub(crate) struct RepackCounters {
    #[serde(flatten)]
    input: InputCounters,
    /// Number of files, documents or fingerprints that were written.
    #[serde(rename = "files")]
    pub records: u64,
    /// Bytes that were written of them, before compression.
    pub bytes: u64,
    /// Files whose text is kept but not their bytes: they were not UTF-8, or began with a byte order mark.
    pub recoded: u64,
    /// Files and documents whose illegal bytes were read as U+FFFD.
    pub replaced: u64,
    rejected: u64,
}

impl Repack<'_> {
    /// Begins the job, copies each split by `copy`, commits, and ends the job. Returns the exit code: 0, or 3 if files or records
    /// were rejected.
    pub fn run(
        self,
        copy: impl Fn(&OutputFolder, &StageTimer, u32, &Split, &mut SplitRejectsWriter) -> Result<RepackCounters>
        + Sync,
    ) -> Result<u8> {
        let begun = self.job.begin()?;
        let result = begun.work(|folder| self.work(folder, copy));
        self.job.end(begun, result)
    }

    fn work(
        &self,
        folder: &OutputFolder,
        copy: impl Fn(&OutputFolder, &StageTimer, u32, &Split, &mut SplitRejectsWriter) -> Result<RepackCounters>
        + Sync,
    ) -> Result<JobEnd<RepackSummary>> {
        let Run { plan, progress, .. } = &self.job.run;
        let (copied, rejected) =
            self.job.write_splits(folder, (self.stage, self.max_rejects), |at, number, split, rejects| {
                copy(folder, at, number, split, rejects)
            })?;
        let mut counters =
            RepackCounters { input: InputCounters::of(plan), rejected, ..RepackCounters::default() };
        for copied in copied {
            counters.records += copied.records;
            counters.bytes += copied.bytes;
            counters.recoded += copied.recoded;
            counters.replaced += copied.replaced;
        }
        let summary = RepackSummary {
            unit: self.unit,
            version: env!("CARGO_PKG_VERSION"),
            configuration: self.job.configuration.clone(),
            counters,
            process: ResourceUsage::measure(),
            seconds: BTreeMap::from([("whole", seconds(self.job.start.elapsed()))]),
            stages: progress.rows(),
        };
        let _at = progress.worker_at(0, Stage::Commit);
        self.job.commit(folder, &summary, FileList::default())?;
        Ok(JobEnd { summary: Some(summary), others: Vec::new(), rejected: rejected > 0 })
    }
}

impl JobSummary for RepackSummary {
    fn done(&self, rejects: &str) -> String {
        let RepackCounters { records, rejected, .. } = self.counters;
        let [unit, _] = self.unit.names();
        format!("{} {}{}", grouped(records), unit.to_lowercase(), rejected_words(rejected, rejects))
    }
}

impl fmt::Display for RepackSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (counters, process) = (&self.counters, &self.process);
        let ([records, bytes], files) = (self.unit.names(), self.unit.files());
        let mut values = vec![
            ("Input files", counters.input.input_files),
            ("Input bytes", counters.input.input_bytes),
            (records, counters.records),
            (bytes, counters.bytes),
        ];
        values.extend(files.then_some(("Files that come back as other bytes", counters.recoded)));
        let replaced =
            if files { "Files with illegal bytes replaced" } else { "Documents with illegal bytes replaced" };
        values.extend([
            (replaced, counters.replaced),
            ("Rejected", counters.rejected),
            ("CPU milliseconds", process.cpu_milliseconds),
            ("Peak bytes of memory", process.peak_memory_bytes),
        ]);
        write_plain_counters(f, &values)
    }
}
