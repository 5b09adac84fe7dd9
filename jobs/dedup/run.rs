//! From what a search found to a committed output.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Result, bail};
use cluster::{Cluster, Stores, path_of_text};
use datasets::Reading;
use operators::method::Spec;
use operators::{Resolve, Similarity};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::guards::Guards;
use super::search::SearchResult;
use super::write::{Written, write};
use crate::Common;
use crate::cli::exit::WrongUse;
use crate::cli::report_file::ReportFile;
use crate::cli::terminal::say;
use crate::corpus::plan::Plan;
use crate::output::summary::{Counters, Summary};
use crate::output::tables::PairsOf;
use crate::output::{FileList, JobManifest, Key, OutputFolder};
use crate::progress::usage::ResourceUsage;
use crate::progress::{Progress, Stage, StageRow, StageTable, StageTotals, Watch, merge};

/// Which of two matching documents stays.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Keep {
    /// The first of the corpus.
    First,
    /// The one with the most characters, and of equal ones the first.
    Longest,
}

/// As in `--verify`.
pub(crate) fn verified_by(verify: Option<Similarity>) -> String {
    verify.map_or("none".to_owned(), |least| format!("jaccard:{least}"))
}

/// A run that writes an output of `dedup`: begun with [`DedupRun::start`], then [`DedupRun::claim`], the pairs from wherever
/// they come, [`DedupRun::write`], and [`DedupRun::end`].
pub(crate) struct DedupRun<'a> {
    pub common: &'a Common,
    pub stores: &'a Stores,
    pub cluster: Arc<Cluster>,
    /// The name of the job.
    pub job: &'static str,
    pub start: Instant,
    pub plan: Arc<Plan>,
    pub reading: Reading,
    pub progress: Arc<Progress>,
    pub method: &'a Spec,
    /// The least similarity of a pair of matching fingerprints; `None`: none.
    pub verify: Option<Similarity>,
    pub resolve: Resolve,
    pub keep: Keep,
    pub pairs: PairsOf,
    pub guards: &'a Guards,
    /// How many records may be rejected; `None`: any number.
    pub max_rejects: Option<u64>,
    pub configuration: BTreeMap<String, Value>,
    pub output: &'a str,
    pub overwrite: bool,
    pub summary_json: Option<&'a str>,
    /// Tells what a killed run may have left for this one.
    pub key: Option<Key>,
    /// All that can stop the run once it is known what it would do, as text.
    pub limits: String,
}

/// What a process, or all together, have done before the commit.
#[derive(Deserialize, Serialize)]
struct Done {
    written: Written,
    files: FileList,
    process: ResourceUsage,
    stages: Vec<StageTotals>,
}

impl Done {
    fn join(parts: Vec<Done>) -> Result<Self> {
        let (written, files) = (Written::default(), FileList::default());
        let mut all = Done { written, files, process: ResourceUsage::default(), stages: Vec::new() };
        for mut part in parts {
            all.written.add(part.written);
            all.files.add(part.files)?;
            all.process.add(&part.process);
            all.stages.append(&mut part.stages);
        }
        all.stages = merge(all.stages);
        Ok(all)
    }
}

/// What came of a run.
#[derive(Default)]
pub(crate) struct Outcome {
    /// At process 0.
    summary: Option<Summary>,
    /// What the other processes did, at process 0.
    others: Vec<StageTotals>,
    /// Whether records were rejected.
    rejected: bool,
}

/// What is read again of an output that an earlier run had decided.
#[derive(Deserialize)]
struct Decided {
    counters: Counters,
}

impl DedupRun<'_> {
    /// Begins to show the run.
    ///
    /// # Errors
    /// When the summary cannot be written where it is asked for, or would replace an input; those of [`Watch::start`].
    pub fn start(&self) -> Result<Watch> {
        if let Some(file) = self.summary_json.filter(|file| self.plan.file_below("", file).is_some()) {
            bail!(WrongUse(format!("the summary would replace the input \"{file}\"")));
        }
        // In the output it can only be written once that is there.
        let elsewhere = |file: &&str| !path_of_text(file).starts_with(path_of_text(self.output));
        if let Some(file) = self.summary_json.filter(|_| self.cluster.index() == 0).filter(elsewhere) {
            ReportFile::check(file)?;
        }
        let configuration = serde_json::to_value(&self.configuration)?;
        let (options, process) = (&self.common.progress, self.cluster.index());
        let watched = self.plan.watched(options, self.job, self.output, &configuration, process)?;
        Watch::start(&watched, &self.progress)
    }

    /// The output folder, which process 0 claims; `None` for others if nothing is left for them to do.
    pub fn claim(&self) -> Result<Option<OutputFolder>> {
        let mut claimed = None;
        let (key, cluster) = (self.key.as_ref(), &self.cluster);
        let shared = cluster.meet((), |_| -> Result<_> {
            self.plan.refuse_hidden_names()?;
            let mut folder =
                OutputFolder::claim(self.stores, self.output, self.overwrite, &self.plan, key, cluster)?;
            if self.overwrite && folder.decided().is_some_and(|job| job.guards == self.limits) {
                folder.show_or_give_up(key)?;
            }
            let decided = folder.decided().map(|job| job.guards == self.limits);
            if decided == Some(false) {
                // It passed other guards than those that are asked for now.
                folder.rehearse();
            }
            // A job without a key is of one process.
            let shared = key.filter(|_| decided != Some(true)).map(|key| folder.shared(key));
            claimed = Some(folder);
            Ok(shared)
        })?;
        match (claimed, shared) {
            (Some(folder), _) => Ok(Some(folder)),
            (None, shared) => {
                shared.map(|shared| OutputFolder::of_shared(self.stores, &shared, &self.plan)).transpose()
            }
        }
    }

    /// Finishes the commit of an earlier run that had decided it under the same guards, if there is one: then nothing else
    /// is to be done.
    pub fn finish_earlier(&self, folder: &OutputFolder) -> Result<Option<Outcome>> {
        let decided = folder.decided().filter(|_| !folder.is_rehearsal());
        decided.map(|job| self.finish_decided(folder, job)).transpose()
    }

    /// Decides, from what the processes have found, what becomes of every document; then writes and commits the output.
    pub fn write(&self, folder: &OutputFolder, found: SearchResult) -> Result<Outcome> {
        let cluster = self.cluster.as_ref();
        let mut decided = None;
        let fates = cluster.meet_apart(found, |found| -> Result<_> {
            let found = self.check(SearchResult::join(found))?;
            let (summary, fates) = self.decide(found, folder)?;
            decided = Some(summary);
            Ok(fates.parts(cluster))
        })?;
        if folder.is_rehearsal() {
            // The guards have passed; the files are those of the run that had decided the same.
            return folder.decided().map_or(Ok(Outcome::default()), |job| self.finish_decided(folder, job));
        }
        let (written, files) = write(&self.plan, &self.reading, &fates, folder, cluster, &self.progress)?;
        let spilled_bytes = self.progress.spilled_bytes.load(Ordering::Relaxed);
        let process = ResourceUsage { spilled_bytes, ..ResourceUsage::measure() };
        let done = Done { written, files, process, stages: self.progress.totals() };
        let (mut summary, mut others) = (None, Vec::new());
        let rejected = cluster.meet(done, |all| -> Result<_> {
            others.extend(all[1..].iter().flat_map(|done| done.stages.clone()));
            let done = Done::join(all)?;
            let rejected = done.written.rejected > 0;
            summary = decided.map(|decided| self.commit(decided, done, folder)).transpose()?;
            Ok(rejected)
        })?;
        Ok(Outcome { summary, others, rejected })
    }

    /// Says the counters; returns 0, or 3 if records were rejected.
    pub fn end(&self, watch: Watch, result: Result<Outcome>) -> Result<u8> {
        let Outcome { summary, others, rejected } = watch.end(result)?;
        if let Some(summary) = summary.filter(|_| !self.common.progress.quiet) {
            say(&summary);
            say(StageTable(&merge(others.into_iter().chain(self.progress.totals()))));
        }
        Ok(if rejected { 3 } else { 0 })
    }

    /// An error if no record has a field that was asked for, or too many were rejected.
    fn check(&self, mut found: SearchResult) -> Result<SearchResult> {
        if let Some(missing) = found.without_field.take().filter(|_| found.docs == 0) {
            bail!(missing.error()); // a name that no file knows is misspelt
        }
        found.rejects.check(self.max_rejects, &self.plan, &self.reading)?;
        Ok(found)
    }

    /// Finishes the commit of an earlier run, and says what it had decided.
    fn finish_decided(&self, folder: &OutputFolder, job: &JobManifest) -> Result<Outcome> {
        // The others have nothing to do.
        self.cluster.settle();
        folder.finish_decided()?;
        self.say_decided(&job.success)
    }

    /// Says what an earlier run had decided, which is now committed.
    fn say_decided(&self, success: &str) -> Result<Outcome> {
        self.write_summary(success);
        let Decided { counters } = serde_json::from_str(success)?;
        if !self.common.progress.quiet {
            let Counters { records_read, kept, removed, rejected, .. } = counters;
            say(format_args!(
                "committed what an earlier run had decided: of {records_read} records {kept} kept, {removed} removed, \
                 {rejected} rejected"
            ));
        }
        Ok(Outcome { rejected: counters.rejected > 0, ..Outcome::default() })
    }

    /// Writes the summary of a committed output. That it cannot be written does not make the output worse.
    fn write_summary(&self, json: &str) {
        let written = self.summary_json.map_or(Ok(()), |file| ReportFile::new(file).replace(json));
        if let Err(error) = written {
            self.progress.warn(&format!("{error:#}; the output is whole, and its _SUCCESS says the same"));
        }
    }

    /// Makes the output visible once all processes have written their part of it. `decided`: the summary as far as it
    /// was known before.
    fn commit(
        &self,
        decided: Summary,
        Done { written, files, process, stages }: Done,
        folder: &OutputFolder,
    ) -> Result<Summary> {
        let mut summary = Summary { process, ..decided };
        let Written { kept, removed, rejected } = written;
        check_ledger(&summary.counters, written)?;
        summary.counters = Counters { kept, removed, rejected, ..summary.counters };
        summary.stages = stages.iter().map(StageRow::of).collect();
        summary.seconds.add("whole", self.start.elapsed());
        let at = self.progress.worker(0);
        at.enter(Stage::Commit);
        // All that the others had to do is done.
        self.cluster.settle();
        let success = folder.commit(&summary, files, &self.limits)?;
        self.write_summary(&success);
        Ok(summary)
    }
}

/// Every record read is kept, removed or rejected, and as many are removed as were decided to be.
fn check_ledger(decided: &Counters, Written { kept, removed, rejected }: Written) -> Result<()> {
    let (records_read, to_remove) = (decided.records_read, decided.to_remove());
    if records_read != kept + to_remove + rejected || removed != to_remove {
        bail!(
            "the ledger does not close: {records_read} records read, {kept} kept, {removed} of {to_remove} removed, \
             {rejected} rejected; did the input change meanwhile?"
        );
    }
    Ok(())
}
