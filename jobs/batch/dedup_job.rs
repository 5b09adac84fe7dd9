//! A job that writes an output of `dedup`: checks what was decided, writes the records, and commits.
//!
//! The jobs `dedup`, `nightly` and `rethreshold` share it; they differ in where their pairs come from.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::Ordering;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::decide::Decided;
use super::guards::{Guards, SourceReading};
use super::options::DedupOptions;
use super::pipeline::SearchResult;
use super::tally::Tally;
use super::verdicts::Verdicts;
use super::write::{WrittenSplits, write};
use runtime::cli::terminal::say;
use runtime::corpus::output_layout::REPORT;
use runtime::corpus::run::Run;
use runtime::output::summary::{Counters, RemovedShare, Summary};
use runtime::output::tables::{PairsOf, write_no_clusters};
use runtime::output::{BegunJob, JobEnd, JobManifest, OutputFolder, OutputJob, Written};
use runtime::progress::usage::ResourceUsage;
use runtime::progress::{Stage, StageRow, StageTotals, merge, seconds};
use runtime::report::{ReportArgs, ReportSource, ShownTexts};

/// A job that writes an output of `dedup`, as one process of it sees it.
///
/// Process 0 checks and commits; all processes decide and write.
pub struct DedupJob<'a> {
    /// Job that claims the output, writes `_SUCCESS` and gives the output back.
    pub job: &'a OutputJob<'a>,
    /// Options that decide which documents stay and what is written of them.
    pub options: &'a DedupOptions,
    /// Limits of what may be removed, which are checked before any record is written.
    pub guards: &'a Guards,
    /// Number of records that may be rejected; `None` for any number.
    pub max_rejects: Option<u64>,
    /// Choice of the user to write `report.html` or not.
    pub report: ReportArgs,
    /// Version of a state that is committed after the output; `None` if the job is no night.
    pub companion: Option<&'a dyn Companion>,
}

/// A commit that becomes visible together with an output. `NightCommit` implements it, which `dedup` may not name.
pub trait Companion: Sync {
    /// Writes down that it is about to be committed with the output, and returns what `_SUCCESS` says of it. `counters`: those of
    /// the run, to which it adds its own.
    fn prepare(&self, counters: &mut Counters) -> Result<Value>;
    /// Commits it, after the output.
    fn commit(&self) -> Result<()>;
}

/// Work done before the commit, by one process or by all together.
#[derive(Deserialize, Serialize)]
struct Done {
    written: WrittenSplits,
    process: ResourceUsage,
    stages: Vec<StageTotals>,
}

impl Done {
    fn join(parts: Vec<Done>) -> Result<Self> {
        let written = WrittenSplits::default();
        let mut all = Done { written, process: ResourceUsage::default(), stages: Vec::new() };
        for mut part in parts {
            all.written.add(part.written)?;
            all.process.add(&part.process);
            all.stages.append(&mut part.stages);
        }
        all.stages = merge(all.stages);
        Ok(all)
    }
}

/// Part of the text of `_SUCCESS` that is read back when the commit of an earlier run is finished.
#[derive(Deserialize)]
struct EarlierDecision {
    counters: Counters,
}

impl DedupJob<'_> {
    /// Begins the job.
    ///
    /// # Errors
    /// [`WrongUse`](runtime::WrongUse) when a record would have a name in the output that readers skip; those of
    /// [`OutputJob::begin`].
    pub fn begin(&self) -> Result<BegunJob> {
        self.job.run.plan.refuse_hidden_names()?;
        self.job.begin()
    }

    /// Returns the end of the job if an earlier run whose commit was decided under the same guards leaves nothing else to do.
    pub fn decided_before(&self, folder: &OutputFolder) -> Option<Result<JobEnd<Summary>>> {
        folder.decided.as_ref().filter(|_| !folder.rehearsal).map(|job| self.finish_decided(folder, job))
    }

    /// Checks what all processes have found and decided, then writes and commits the output. `found`, `decided`:
    /// results of this process.
    pub fn write(
        &self,
        folder: &OutputFolder,
        found: SearchResult,
        decided: Decided,
    ) -> Result<JobEnd<Summary>> {
        let Run { group, plan, reading, progress } = &self.job.run;
        let searched = seconds(self.job.start.elapsed());
        let mut joined = None;
        let keeps_none = group.all_reduce((found, decided.tally), |all| -> Result<_> {
            let (found, tallies): (Vec<_>, Vec<_>) = all.into_iter().unzip();
            let found = self.check(SearchResult::join(found))?;
            let tally = Tally::join(tallies);
            let docs = found.input.docs;
            self.guards.check(docs, &tally)?;
            let kept = docs - tally.to_remove();
            joined = Some((found, tally));
            Ok(kept == 0)
        })?;
        let outputs = folder.map_outputs();
        let input = SourceReading { run: &self.job.run, outputs: &outputs };
        let known = joined.as_ref().map(|(found, tally)| (found.input.docs, tally.to_remove()));
        self.guards.check_sources(known, &decided.docs, &input)?;
        let mut draft = None;
        if let Some((found, tally)) = joined {
            found.rejects.write(folder, 0, &outputs, plan, reading)?;
            if tally.has_no_clusters() {
                write_no_clusters(folder, self.options.method.weight_of_sim())?;
            }
            draft = Some(tally.summary(plan, self.job.configuration.clone(), &found, searched));
        }
        let stands_for_all = (keeps_none && !self.options.write.annotate).then_some(plan.first_of_input());
        let write_options = &self.options.write;
        let verdicts = Verdicts { decided: decided.docs, annotates: write_options.annotate, stands_for_all };
        if folder.rehearsal {
            // The guards have passed, and the earlier run, which decided the same, has written the files.
            let earlier = folder.decided.as_ref();
            return earlier.map_or(Ok(JobEnd::default()), |job| self.finish_decided(folder, job));
        }
        let mut written = write(&self.job.run, &verdicts, folder, write_options)?;
        let page = draft.as_ref().filter(|_| !self.report.no_report);
        let texts = page.map(|draft| self.shown_texts(draft)).transpose()?;
        if group.index() > 0 {
            written.files.add(folder.files_of_no_split())?;
        }
        let spilled_bytes = progress.spilled_bytes.load(Ordering::Relaxed);
        let process = ResourceUsage { spilled_bytes, ..ResourceUsage::measure() };
        let done = Done { written, process, stages: progress.totals() };
        let mut summary = None;
        let mut others = Vec::new();
        let rejected = group.all_reduce(done, |all| -> Result<_> {
            others.extend(all[1..].iter().flat_map(|done| done.stages.clone()));
            let done = Done::join(all)?;
            summary = draft.map(|draft| self.commit(draft, done, folder, texts)).transpose()?;
            Ok(summary.as_ref().is_some_and(|summary| summary.counters.any_rejected()))
        })?;
        Ok(JobEnd { summary, others, rejected })
    }

    /// Returns an error if a file lacks a field that was asked for and no document of its side was read, or if too
    /// many records were rejected.
    fn check(&self, mut found: SearchResult) -> Result<SearchResult> {
        let Run { plan, reading, progress, .. } = &self.job.run;
        for side in [&mut found.reference, &mut found.input] {
            if let Some((_, missing)) = side.without_field.take().filter(|_| side.docs == 0) {
                bail!(datasets::Error::Field(missing)); // a field that no file has is misspelt
            }
        }
        if plan.reference_files > 0 && found.reference.docs == 0 {
            progress.warn("the reference has no document, so nothing is removed for its sake");
        }
        found.rejects.check(self.max_rejects, plan, reading)?;
        found.rejects.check_some_read(found.input.docs, plan, reading)?;
        Ok(found)
    }

    /// Finishes the commit of an earlier run, and prints its counters.
    fn finish_decided(&self, folder: &OutputFolder, job: &JobManifest) -> Result<JobEnd<Summary>> {
        // The other processes have nothing to do, so they may end from here on.
        self.job.run.group.settle();
        folder.finish_decided()?;
        self.job.write_summary(&job.success);
        let EarlierDecision { counters } = serde_json::from_str(&job.success)?;
        if !self.job.common.progress.quiet {
            let Counters { records_read, kept, removed, rejected, .. } = counters;
            say(format_args!(
                "committed what an earlier run had decided: of {records_read} records {kept} kept, {removed} removed, \
                 {rejected} rejected"
            ));
        }
        Ok(JobEnd { rejected: counters.any_rejected(), ..JobEnd::default() })
    }

    /// Returns what the page about the run is made of.
    fn report(&self, summary: &Summary) -> Result<ReportSource<'_>> {
        let threshold = self.options.threshold();
        Ok(ReportSource {
            output: self.job.output,
            removed_by_date: Vec::new(),
            summary: serde_json::to_value(summary)?,
            threshold: threshold.map(|least| u64::from(least.as_millionths() / 10_000)),
            lists_all: self.options.pairs != PairsOf::Deciding,
            measures: self.options.has_threshold(),
        })
    }

    /// Reads the texts that the page shows. Without them there is a page too.
    fn shown_texts(&self, draft: &Summary) -> Result<ShownTexts> {
        let Run { group, plan, reading, progress } = &self.job.run;
        let shown = self.report(draft)?.shown()?;
        let texts = ShownTexts::read((plan, reading), group.workers(), &shown, progress);
        Ok(texts.unwrap_or_else(|error| {
            progress.warn(&format!("the page of the run has no texts: {error:#}"));
            ShownTexts::default()
        }))
    }

    /// Commits the output once all processes have written their parts. `draft`: the summary as far as it
    /// was known before they wrote.
    fn commit(
        &self,
        draft: Summary,
        Done { written, process, stages }: Done,
        folder: &OutputFolder,
        texts: Option<ShownTexts>,
    ) -> Result<Summary> {
        let Run { group, progress, .. } = &self.job.run;
        let mut summary = Summary { process, ..draft };
        let WrittenSplits { all, by_source, files } = written;
        let Written { kept, removed, rejected } = all;
        check_ledger(&summary.counters, all)?;
        summary.removed_by_source = removed_by_source(by_source);
        summary.counters = Counters { kept, removed, rejected, ..summary.counters };
        progress.set_outcomes([kept, removed, rejected]);
        summary.stages = stages.iter().map(StageRow::of).collect();
        summary.seconds.insert("whole", seconds(self.job.start.elapsed()));
        let _at = progress.worker_at(0, Stage::Commit);
        // The other processes have finished their work, so they may end from here on.
        group.settle();
        if let Some(companion) = self.companion {
            summary.state = Some(companion.prepare(&mut summary.counters)?);
        }
        if let Some(texts) = texts {
            let mut file = folder.file(REPORT)?;
            file.write_all(self.report(&summary)?.page(&texts)?.as_bytes())?;
            file.finish(0)?;
        }
        let success = folder.commit(&summary, files, &self.job.limits)?;
        self.companion.map_or(Ok(()), Companion::commit)?;
        self.job.write_summary(&success);
        Ok(summary)
    }
}

/// Number of sources that are told apart.
const SOURCES: usize = 20;

/// Returns the numbers of documents and of removed ones of each source, the largest first. Those beyond [`SOURCES`] are one.
fn removed_by_source(by_source: BTreeMap<String, Written>) -> Vec<RemovedShare> {
    let share = |(name, Written { kept, removed, .. }): (String, Written)| RemovedShare {
        name,
        documents: kept + removed,
        removed,
    };
    let mut shares: Vec<RemovedShare> = by_source.into_iter().map(share).collect();
    shares.sort_by(|a, b| b.documents.cmp(&a.documents).then(a.name.cmp(&b.name)));
    let others = shares.split_off(SOURCES.min(shares.len()));
    if !others.is_empty() {
        shares.push(RemovedShare {
            name: format!("{} others", others.len()),
            documents: others.iter().map(|share| share.documents).sum(),
            removed: others.iter().map(|share| share.removed).sum(),
        });
    }
    shares
}

/// Checks the ledger: every record read was kept, removed or rejected, and the number of removed records is
/// the number that was decided.
fn check_ledger(decided: &Counters, Written { kept, removed, rejected }: Written) -> Result<()> {
    let records_read = decided.records_read;
    let to_remove = decided.to_remove();
    if records_read != kept + to_remove + rejected || removed != to_remove {
        bail!(
            "the ledger does not close: {records_read} records read, {kept} kept, {removed} of {to_remove} removed, \
             {rejected} rejected; did the input change meanwhile?"
        );
    }
    Ok(())
}
