//! A run that writes an output of `dedup`, from the claim of the folder to the commit.
//!
//! The jobs `dedup` and `rethreshold` share it; they differ in where their pairs come from.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Result, bail};
use cluster::{Stores, path_of_text};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::decide::Decided;
use super::guards::{Guards, SourceReading};
use super::options::DedupOptions;
use super::pipeline::SearchResult;
use super::tally::Tally;
use super::verdicts::Verdicts;
use super::write::write;
use crate::Common;
use crate::cli::exit::WrongUse;
use crate::cli::report_file::ReportFile;
use crate::cli::terminal::say;
use crate::corpus::run::Run;
use crate::output::pair_table::write_no_clusters;
use crate::output::summary::{Counters, Summary};
use crate::output::{Companion, FileList, JobManifest, Key, OutputFolder, Written};
use crate::progress::usage::ResourceUsage;
use crate::progress::{Stage, StageRow, StageTable, StageTotals, Watch, merge, seconds};

/// A run that writes an output of `dedup`, as one process of the job sees it.
///
/// Process 0 checks and commits; all processes decide and write. Example with two processes:
///
/// ```text
/// call     process 0                                    process 1
/// run      shows progress                               shows progress
/// claim    takes the lock of the output                 opens the claimed output
/// (the caller finds the pairs, by a search or in an earlier output, and decides)
/// write    adds the counts up, checks, writes, commits  sends its counts, writes
/// run      prints the counters                          ends
/// ```
pub(crate) struct DedupRun<'a> {
    pub common: &'a Common,
    pub stores: &'a Stores,
    pub run: Run,
    /// Name of the job.
    pub job: &'static str,
    pub start: Instant,
    pub options: &'a DedupOptions,
    pub guards: &'a Guards,
    /// Number of records that may be rejected; `None` for any number.
    pub max_rejects: Option<u64>,
    /// Configuration for `_SUCCESS`.
    pub configuration: Value,
    pub output: &'a str,
    pub overwrite: bool,
    pub summary_json: Option<&'a str>,
    /// Key by which the work of a killed run is recognised; `None` if this run cannot resume another one.
    pub key: Option<Key>,
    /// Text of the guards and limits that can stop the run once its verdicts are known.
    pub limits: String,
    /// State whose next version is committed together with the output.
    pub companion: Option<&'a dyn Companion>,
}

/// Work done before the commit, by one process or by all together.
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

/// Outcome of a run at one process.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Summary, at process 0 alone.
    summary: Option<Summary>,
    /// Stage totals of the other processes, at process 0 alone.
    others: Vec<StageTotals>,
    /// Whether records were rejected.
    rejected: bool,
}

/// Part of the text of `_SUCCESS` that is read back when the commit of an earlier run is finished.
#[derive(Deserialize)]
struct EarlierDecision {
    counters: Counters,
}

impl DedupRun<'_> {
    /// Claims the output, calls `work`, which finds the pairs and ends with [`DedupRun::write`], and prints the
    /// counters. `work` is not called where an earlier run has done it. Returns the exit code: 0, or 3 if
    /// records were rejected.
    ///
    /// # Errors
    /// When the file of the summary cannot be written or is an input; those of [`Watch::begin`].
    pub fn run(&self, work: impl FnOnce(&Arc<OutputFolder>) -> Result<Outcome>) -> Result<u8> {
        if let Some(file) = self.summary_json.filter(|file| self.run.plan.file_below("", file).is_some()) {
            bail!(WrongUse(format!("the summary would replace the input \"{file}\"")));
        }
        // A file in the output cannot be checked before the output exists.
        let elsewhere = |file: &&str| !path_of_text(file).starts_with(path_of_text(self.output));
        if let Some(file) = self.summary_json.filter(|_| self.run.group.index() == 0).filter(elsewhere) {
            ReportFile::check(file)?;
        }
        let (options, process) = (&self.common.progress, self.run.group.index());
        let watched = self.run.plan.watched(options, self.job, self.output, &self.configuration, process)?;
        let watch = Watch::begin(options, watched, &self.run.progress)?;
        let Outcome { summary, others, rejected } = watch.end(self.in_output(work))?;
        if let Some(summary) = summary.filter(|_| !options.quiet) {
            say(&summary);
            say(StageTable(&merge(others.into_iter().chain(self.run.progress.totals()))));
        }
        Ok(if rejected { 3 } else { 0 })
    }

    /// Claims the output, calls `work` unless an earlier run has done it, and closes the output.
    fn in_output(&self, work: impl FnOnce(&Arc<OutputFolder>) -> Result<Outcome>) -> Result<Outcome> {
        let Some(folder) = self.claim()?.map(Arc::new) else { return Ok(Outcome::default()) };
        // An earlier run whose commit was decided under the same guards leaves nothing else to do.
        let outcome = match folder.decided.as_ref().filter(|_| !folder.rehearsal) {
            Some(job) => self.finish_decided(&folder, job),
            None => work(&folder),
        };
        folder.close(outcome)
    }

    /// Claims the output folder at process 0, and opens it at the others. Returns `None` at the others if
    /// nothing is left for them to do.
    fn claim(&self) -> Result<Option<OutputFolder>> {
        let mut claimed = None;
        let (key, group) = (self.key.as_ref(), &self.run.group);
        let shared = group.all_reduce((), |_| -> Result<_> {
            self.run.plan.refuse_hidden_names()?;
            let mut folder =
                OutputFolder::claim(self.stores, self.output, self.overwrite, &self.run.plan, key, group)?;
            if self.overwrite && folder.decided.as_ref().is_some_and(|job| job.guards == self.limits) {
                folder.show_or_give_up(key)?;
            }
            let decided = folder.decided.as_ref().map(|job| job.guards == self.limits);
            if decided == Some(false) {
                // The earlier run passed other guards than those of this run.
                folder.rehearsal = true;
            }
            // A job without a key has one process.
            let shared = key.filter(|_| decided != Some(true)).map(|key| folder.shared(key));
            claimed = Some(folder);
            Ok(shared)
        })?;
        match (claimed, shared) {
            (Some(folder), _) => Ok(Some(folder)),
            (None, shared) => {
                shared.map(|shared| OutputFolder::of_shared(self.stores, &shared, &self.run.plan)).transpose()
            }
        }
    }

    /// Checks what all processes have found and decided, then writes and commits the output. `found`, `decided`:
    /// results of this process.
    pub fn write(&self, folder: &OutputFolder, found: SearchResult, decided: Decided) -> Result<Outcome> {
        let group = self.run.group.as_ref();
        let searched = seconds(self.start.elapsed());
        let mut joined = None;
        let keeps_none = group.all_reduce((found, decided.tally), |all| -> Result<_> {
            let (found, tallies): (Vec<_>, Vec<_>) = all.into_iter().unzip();
            let (found, tally) = (self.check(SearchResult::join(found))?, Tally::join(tallies));
            let docs = found.input.docs;
            self.guards.check(docs, &tally)?;
            let kept = docs - tally.to_remove();
            joined = Some((found, tally));
            Ok(kept == 0)
        })?;
        let outputs = folder.map_outputs();
        let input = SourceReading { run: &self.run, outputs: &outputs };
        let known = joined.as_ref().map(|(found, tally)| (found.input.docs, tally.to_remove()));
        self.guards.check_sources(known, &decided.removals, &input)?;
        let mut summary = None;
        if let Some((found, tally)) = joined {
            found.rejects.write(folder, 0, &outputs, &self.run.plan, &self.run.reading)?;
            if tally.has_no_clusters() {
                write_no_clusters(folder)?;
            }
            summary = Some(tally.summary(&self.run.plan, self.configuration.clone(), &found, searched));
        }
        let stands_for_all = keeps_none.then_some(self.run.plan.first_of_input());
        let verdicts = Verdicts { removals: decided.removals, stands_for_all };
        if folder.rehearsal {
            // The guards have passed, and the earlier run, which decided the same, has written the files.
            return folder
                .decided
                .as_ref()
                .map_or(Ok(Outcome::default()), |job| self.finish_decided(folder, job));
        }
        let (written, mut files) = write(&self.run, &verdicts, folder)?;
        if group.index() > 0 {
            files.add(folder.files_of_no_split())?;
        }
        let spilled_bytes = self.run.progress.spilled_bytes.load(Ordering::Relaxed);
        let process = ResourceUsage { spilled_bytes, ..ResourceUsage::measure() };
        let done = Done { written, files, process, stages: self.run.progress.totals() };
        let (decided, mut summary, mut others) = (summary, None, Vec::new());
        let rejected = group.all_reduce(done, |all| -> Result<_> {
            others.extend(all[1..].iter().flat_map(|done| done.stages.clone()));
            let done = Done::join(all)?;
            summary = decided.map(|decided| self.commit(decided, done, folder)).transpose()?;
            Ok(summary.as_ref().is_some_and(|summary| summary.counters.any_rejected()))
        })?;
        Ok(Outcome { summary, others, rejected })
    }

    /// Returns an error if a file lacks a field that was asked for and no document of its side was read, or if too
    /// many records were rejected.
    fn check(&self, mut found: SearchResult) -> Result<SearchResult> {
        for side in [&mut found.reference, &mut found.input] {
            if let Some((_, missing)) = side.without_field.take().filter(|_| side.docs == 0) {
                bail!(datasets::Error::Field(missing)); // a field that no file has is misspelt
            }
        }
        if self.run.plan.reference_files > 0 && found.reference.docs == 0 {
            self.run.progress.warn("the reference has no document, so nothing is removed for its sake");
        }
        found.rejects.check(self.max_rejects, &self.run.plan, &self.run.reading)?;
        found.rejects.check_some_read(found.input.docs, &self.run.plan, &self.run.reading)?;
        Ok(found)
    }

    /// Finishes the commit of an earlier run, and prints its counters.
    fn finish_decided(&self, folder: &OutputFolder, job: &JobManifest) -> Result<Outcome> {
        // The other processes have nothing to do, so they may end from here on.
        self.run.group.settle();
        folder.finish_decided()?;
        self.say_decided(&job.success)
    }

    /// Prints the counters of an earlier run, whose decision is now committed.
    fn say_decided(&self, success: &str) -> Result<Outcome> {
        self.write_summary(success);
        let EarlierDecision { counters } = serde_json::from_str(success)?;
        if !self.common.progress.quiet {
            let Counters { records_read, kept, removed, rejected, .. } = counters;
            say(format_args!(
                "committed what an earlier run had decided: of {records_read} records {kept} kept, {removed} removed, \
                 {rejected} rejected"
            ));
        }
        Ok(Outcome { rejected: counters.any_rejected(), ..Outcome::default() })
    }

    /// Writes the summary of a committed output to the file that the user named. A failure is only a warning,
    /// since the output is whole.
    fn write_summary(&self, json: &str) {
        let written = self.summary_json.map_or(Ok(()), |file| ReportFile::new(file).replace(json));
        if let Err(error) = written {
            self.run
                .progress
                .warn(&format!("{error:#}; the output is whole, and its _SUCCESS says the same"));
        }
    }

    /// Commits the output once all processes have written their parts. `decided`: the summary as far as it
    /// was known before they wrote.
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
        self.run.progress.set_outcomes([kept, removed, rejected]);
        summary.stages = stages.iter().map(StageRow::of).collect();
        summary.seconds.insert("whole", seconds(self.start.elapsed()));
        let at = self.run.progress.worker(0);
        at.enter(Stage::Commit);
        // The other processes have finished their work, so they may end from here on.
        self.run.group.settle();
        if let Some(companion) = self.companion {
            summary.state = Some(companion.prepare(&mut summary.counters)?);
        }
        let success = folder.commit(&summary, files, &self.limits)?;
        self.companion.map_or(Ok(()), Companion::commit)?;
        self.write_summary(&success);
        Ok(summary)
    }
}

/// Checks the ledger: every record read was kept, removed or rejected, and the number of removed records is
/// the number that was decided.
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
