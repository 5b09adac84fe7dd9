//! `pack` and `unpack`, and the job that they share: copies splits one by one into an output folder, and
//! counts them.
//!
//! This room uses `cli`, `corpus`, `output` and `progress`; only `main.rs` uses it.

pub mod pack;
pub mod unpack;

use std::collections::BTreeMap;
use std::fmt;

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;

use crate::corpus::run::Run;
use crate::corpus::split::Split;
use crate::corpus::splits;
use crate::output::rejects::{RejectLimit, Rejects, SplitRejectsWriter};
use crate::output::summary::{InputCounters, write_plain_counters};
use crate::output::{FileList, JobEnd, OutputFolder, OutputJob};
use crate::progress::usage::ResourceUsage;
use crate::progress::{Stage, StageRow, StageTimer, seconds};

/// A job that copies each split of its input into an output.
pub(crate) struct Repack<'a> {
    pub job: &'a OutputJob<'a>,
    pub max_rejects: Option<u64>,
    pub stage: Stage,
}

#[derive(Debug, Serialize)]
struct RepackSummary {
    /// Participle that names the job in the printed counters: packed or unpacked.
    #[serde(skip)]
    done: &'static str,
    version: &'static str,
    configuration: Value,
    counters: RepackCounters,
    process: ResourceUsage,
    seconds: BTreeMap<&'static str, f64>,
    stages: Vec<StageRow>,
}

/// Counts of a job. Those of one split are only of what was copied.
#[derive(Debug, Default, Serialize)]
pub(crate) struct RepackCounters {
    #[serde(flatten)]
    input: InputCounters,
    /// Number of files that were packed or unpacked.
    pub files: u64,
    /// Bytes that were written of these files, before compression.
    pub bytes: u64,
    /// Files whose text is kept but not their bytes: they were not UTF-8, or began with a byte order mark.
    pub recoded: u64,
    /// Recoded files whose illegal bytes were read as U+FFFD.
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
        let Run { group, plan, reading, progress } = &self.job.run;
        let limit = RejectLimit::new(self.max_rejects, plan, reading);
        let outputs = folder.map_outputs();
        let copied = splits::each_split(plan, group, (progress, self.stage), |at, number, split| {
            let mut rejects = SplitRejectsWriter::new(&outputs, number);
            let copied = copy(folder, at, number, split, &mut rejects)?;
            let rejects = rejects.finish()?;
            limit.count(&rejects)?;
            Ok((copied, rejects))
        })?;
        let mut counters = RepackCounters { input: InputCounters::of(plan), ..RepackCounters::default() };
        let mut rejects = Rejects::default();
        for (copied, of_split) in copied {
            counters.files += copied.files;
            counters.bytes += copied.bytes;
            counters.recoded += copied.recoded;
            counters.replaced += copied.replaced;
            rejects.join(of_split);
        }
        counters.rejected = rejects.count();
        rejects.write(folder, 0, &outputs, plan, reading)?;
        let rejected = counters.rejected > 0;
        let summary = RepackSummary {
            done: if self.stage == Stage::Pack { "packed" } else { "unpacked" },
            version: env!("CARGO_PKG_VERSION"),
            configuration: self.job.configuration.clone(),
            counters,
            process: ResourceUsage::measure(),
            seconds: BTreeMap::from([("whole", seconds(self.job.start.elapsed()))]),
            stages: progress.rows(),
        };
        let at = progress.worker(0);
        at.enter(Stage::Commit);
        self.job.commit(folder, &summary, FileList::default())?;
        Ok(JobEnd { summary: Some(summary), others: Vec::new(), rejected })
    }
}

impl fmt::Display for RepackSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (counters, process) = (&self.counters, &self.process);
        let values = [
            ("Input files", counters.input.input_files),
            ("Input bytes", counters.input.input_bytes),
            (&format!("Files {}", self.done), counters.files),
            (&format!("Bytes {}", self.done), counters.bytes),
            ("Files that come back as other bytes", counters.recoded),
            ("Files with illegal bytes replaced", counters.replaced),
            ("Rejected", counters.rejected),
            ("CPU milliseconds", process.cpu_milliseconds),
            ("Peak bytes of memory", process.peak_memory_bytes),
        ];
        write_plain_counters(f, &values)
    }
}
