//! `pack` and `unpack`, and the job that they share: copies splits one by one into an output folder, and
//! counts them.
//!
//! This room uses `cli`, `corpus`, `output` and `progress`; only `main.rs` uses it.

pub mod pack;
pub mod unpack;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use cluster::{Group, Stores};
use datasets::Reading;
use serde::Serialize;
use serde_json::Value;

use crate::Common;
use crate::cli::terminal::say;
use crate::corpus::plan::Plan;
use crate::corpus::split::Split;
use crate::corpus::splits;
use crate::output::rejects::{RejectLimit, Rejects, SplitRejectsWriter};
use crate::output::summary::write_plain_counters;
use crate::output::{FileList, OutputFolder};
use crate::progress::usage::ResourceUsage;
use crate::progress::{Progress, Stage, StageRow, StageTable, StageTimer, Watch, seconds};

/// Options of a copying job, as the user gave them.
pub(crate) struct Repack<'a> {
    pub common: &'a Common,
    pub output: &'a str,
    pub overwrite: bool,
    pub max_rejects: Option<u64>,
    pub stage: Stage,
    /// Configuration for `_SUCCESS`.
    pub configuration: Value,
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
    input_files: u64,
    input_bytes: u64,
    splits: u64,
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
    /// Copies each split by `copy` and commits. Returns the exit code: 0, or 3 if files or records were
    /// rejected.
    pub fn run(
        self,
        stores: &Stores,
        plan: &Plan,
        reading: &Reading,
        copy: impl Fn(&OutputFolder, &StageTimer, u32, &Split, &mut SplitRejectsWriter) -> Result<RepackCounters>
        + Sync,
    ) -> Result<u8> {
        let start = Instant::now();
        let (common, output) = (self.common, self.output);
        let (progress, group) = (Arc::<Progress>::default(), Group::alone(common.workers()));
        let work = |folder: &OutputFolder| {
            let limit = RejectLimit::new(self.max_rejects, plan, reading);
            let outputs = folder.map_outputs();
            let stage = (progress.as_ref(), self.stage);
            let copied = splits::each_split(plan, &group, stage, |at, number, split| {
                let mut rejects = SplitRejectsWriter::new(&outputs, number);
                let copied = copy(folder, at, number, split, &mut rejects)?;
                let rejects = rejects.finish()?;
                limit.count(&rejects)?;
                Ok((copied, rejects))
            })?;
            let mut counters = RepackCounters {
                input_files: plan.files.len() as u64,
                input_bytes: plan.bytes(),
                splits: plan.splits.len() as u64,
                ..RepackCounters::default()
            };
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
            let done = if self.stage == Stage::Pack { "packed" } else { "unpacked" };
            let summary = RepackSummary {
                done,
                version: env!("CARGO_PKG_VERSION"),
                configuration: self.configuration.clone(),
                counters,
                process: ResourceUsage::measure(),
                seconds: BTreeMap::from([("whole", seconds(start.elapsed()))]),
                stages: progress.rows(),
            };
            let at = progress.worker(0);
            at.enter(Stage::Commit);
            folder.commit(&summary, FileList::default(), "")?;
            Ok(summary)
        };
        let watched = plan.watched(&common.progress, self.stage.name(), output, &self.configuration, 0)?;
        let watch = Watch::begin(&common.progress, watched, &progress)?;
        let summary = watch.end(OutputFolder::alone(stores, output, self.overwrite, plan, work))?;
        if !common.progress.quiet {
            say(&summary);
            say(StageTable(&progress.totals()));
        }
        Ok(if summary.counters.rejected > 0 { 3 } else { 0 })
    }
}

impl fmt::Display for RepackSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (counters, process) = (&self.counters, &self.process);
        let values = [
            ("Input files", counters.input_files),
            ("Input bytes", counters.input_bytes),
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
