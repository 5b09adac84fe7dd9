//! The work of `chunk clean` in an output that is claimed.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use operators::hash::Secret;
use operators::method::Method;
use operators::{MergeCursor, RepeatedUnit, SpillBudget, UnitOccurrence, each_repeat};

use super::count::{UnitCensus, UnitCounter};
use super::doc_names::{DocNames, SplitGroups};
use super::near::{NearCounts, NearSearch};
use super::options::CleanOptions;
use super::span_table::SpanTable;
use super::split_cuts::{CutCounts, SplitCuts};
use super::summary::{CleanCounters, CleanSummary};
use batch::write::{keep_none, write_split};
use runtime::corpus::at_once::each_with;
use runtime::corpus::plan::PLACES;
use runtime::corpus::run::Run;
use runtime::corpus::shared_sorts::SharedSorts;
use runtime::corpus::splits;
use runtime::output::rejects::{RejectLimit, SplitRejectsWriter};
use runtime::output::summary::{InputCounters, InputEntry};
use runtime::output::{FileList, JobEnd, OutputFolder, OutputJob, SplitParts, TaskManifest, Written};
use runtime::progress::usage::ResourceUsage;
use runtime::progress::{Stage, seconds};

/// Most sorts that the units are divided between by their hashes, and the repeats by the groups of their splits. Each is
/// read by one worker.
const SORTS: usize = 64;
/// Least memory of a sort, unless that leaves workers without one, in bytes.
const SORT_BYTES: usize = 1 << 20;

/// A run of `chunk clean`. It reads from top to bottom: count, decide, write, commit.
pub(super) struct CleanRun<'a> {
    pub job: &'a OutputJob<'a>,
    pub options: &'a CleanOptions,
    /// Key of the hashes of units.
    pub secret: Secret,
    /// Memory of all workers together, for what they sort and for the search for near units.
    pub spill: SpillBudget,
    /// Method by which near units are found, if they are to be cut too.
    pub near: Option<Method>,
    pub max_rejects: Option<u64>,
}

/// Units that go, in sorts by the groups of their splits.
struct Repeats {
    by_group: SharedSorts<RepeatedUnit>,
    groups: SplitGroups,
    names: DocNames,
    /// Counts of the search for near units, if there was one.
    near: Option<NearCounts>,
}

impl CleanRun<'_> {
    /// Writes and commits the output.
    pub fn work(&self, folder: &OutputFolder) -> Result<JobEnd<CleanSummary>> {
        let Run { plan, reading, progress, .. } = &self.job.run;
        let (mut census, repeats) = self.find(folder)?;
        if let Some(missing) = census.without_field.take().filter(|_| census.docs == 0) {
            bail!(datasets::Error::Field(missing)); // a field that no file has is misspelt
        }
        let outputs = folder.map_outputs();
        census.rejects.check(self.max_rejects, plan, reading)?;
        census.rejects.check_some_read(census.docs, plan, reading)?;
        census.rejects.write(folder, 0, &outputs, plan, reading)?;
        let (written, files, counts) = self.write(folder, &census, &repeats)?;
        self.check_ledger(&census, written)?;
        progress.set_outcomes([written.kept, written.removed, written.rejected]);
        let summary = self.summary(&census, written, counts, repeats.near);
        progress.worker(0).enter(Stage::Commit);
        self.job.commit(folder, &summary, files)?;
        let rejected = census.rejects.faults() > 0;
        Ok(JobEnd { summary: Some(summary), others: Vec::new(), rejected })
    }

    /// Reads the corpus, and finds the units that go.
    fn find(&self, folder: &OutputFolder) -> Result<(UnitCensus, Repeats)> {
        let Run { group, plan, reading, progress } = &self.job.run;
        let workers = group.workers();
        // Units are still read while repeats are added, and a vector that grows takes up to twice what it holds.
        let sorting = self.spill.shared_by(1 + usize::from(self.near.is_some()));
        let third = sorting.shared_by(3);
        let sorts =
            third.budget().map_or(SORTS, |bytes| (bytes / SORT_BYTES).clamp(workers.min(SORTS), SORTS));
        let groups = SplitGroups::new(0..plan.splits.len() as u32, sorts);
        let names = DocNames::new(&groups, &self.spill)?;
        let units = SharedSorts::<UnitOccurrence>::new(sorts, &third);
        let counter = UnitCounter {
            reading,
            options: self.options,
            secret: &self.secret,
            units: &units,
            names: &names,
        };
        let outputs = folder.map_outputs();
        let limit = RejectLimit::new(self.max_rejects, plan, reading);
        let stage = (progress.as_ref(), Stage::Count);
        let read = splits::each_split(plan, group, stage, |at, number, split| {
            let census = counter.split(at, number, split, SplitRejectsWriter::new(&outputs, number))?;
            limit.count(&census.rejects)?;
            Ok(census)
        })?;
        let mut census = UnitCensus::default();
        read.into_iter().for_each(|of_split| census.join(of_split));
        let (units, near) = match &self.near {
            None => (units, None),
            Some(method) => {
                let search = NearSearch {
                    run: &self.job.run,
                    method: method.clone(),
                    sorting: third.clone(),
                    searching: sorting.shared_by(workers),
                    outputs: outputs.inside("units").of_input(plan.text_bytes),
                };
                let (units, counts) = search.rename(units, &groups)?;
                (units, Some(counts))
            }
        };
        let repeats = Repeats { by_group: SharedSorts::new(groups.count(), &third), groups, names, near };
        let sorts: Vec<usize> = (0..units.count()).collect();
        each_with(
            workers,
            &sorts,
            |index| progress.worker_at(index, Stage::Resolve),
            |_, &sort| {
                let mut writer = repeats.by_group.writer();
                let (least, keep) = (self.options.min_repeats, self.options.keep);
                each_repeat(units.take(sort)?, least, keep, |unit| {
                    writer.push(repeats.groups.of_split(unit.place.doc.split()), unit);
                })?;
                writer.finish();
                Ok(())
            },
        )?;
        Ok((census, repeats))
    }

    /// Writes the records of all splits.
    fn write(
        &self,
        folder: &OutputFolder,
        census: &UnitCensus,
        repeats: &Repeats,
    ) -> Result<(Written, FileList, CutCounts)> {
        let Run { group, plan, reading, progress } = &self.job.run;
        let groups: Vec<usize> = (0..repeats.groups.count()).collect();
        let outputs = folder.map_outputs();
        let results = each_with(
            group.workers(),
            &groups,
            |index| progress.worker_at(index, Stage::Write),
            |at, &group| {
                let mut cursor = MergeCursor::new(repeats.by_group.take(group)?);
                let (mut task, mut counts) = (TaskManifest::default(), CutCounts::default());
                for number in repeats.groups.splits(group) {
                    let split = plan.split(number);
                    at.split(number, split.uri(), || {
                        let rejected = census.rejects.any_of(number);
                        let mut cuts = SplitCuts {
                            repeats: &mut cursor,
                            names: &repeats.names,
                            rejected: rejected.then(|| outputs.open_rejects(number)).transpose()?,
                            spans: SpanTable::new(folder, number),
                            counts: CutCounts::default(),
                            failed: None,
                        };
                        let mut of_split = TaskManifest::default();
                        let parts = SplitParts::new(folder, number, split.partition());
                        write_split((split, number), reading, &mut cuts, &parts, at, &mut of_split)?;
                        counts.add(cuts.counts);
                        cuts.spans.finish(number == 0)?;
                        task.written.add(of_split.written);
                        task.files.add(parts.files())
                    })?;
                }
                Ok((task, counts))
            },
        )?;
        let (mut all, mut counts) = (TaskManifest::default(), CutCounts::default());
        for (task, of_group) in results {
            all.written.add(task.written);
            all.files.add(task.files)?;
            counts.add(of_group);
        }
        if let Some(split) = plan.splits.first().filter(|_| all.written.kept == 0) {
            let parts = SplitParts::new(folder, 0, split.partition());
            let mut writer = split.format.writer(&parts, &split.reading(reading));
            keep_none(split, &parts, writer.as_mut())?;
            writer.finish()?;
            all.files.add(parts.files())?;
        }
        Ok((all.written, all.files, counts))
    }

    /// Checks that every record read was kept, removed or rejected.
    fn check_ledger(&self, census: &UnitCensus, written: Written) -> Result<()> {
        let read = census.docs + census.rejects.count();
        let Written { kept, removed, rejected } = written;
        if read != kept + removed + rejected || rejected != census.rejects.count() {
            bail!(
                "the ledger does not close: {read} records read, {kept} kept, {removed} removed, {rejected} rejected; did \
                 the input change meanwhile?"
            );
        }
        Ok(())
    }

    fn summary(
        &self,
        census: &UnitCensus,
        written: Written,
        counts: CutCounts,
        near: Option<NearCounts>,
    ) -> CleanSummary {
        let plan = &self.job.run.plan;
        let counters = CleanCounters {
            input: InputCounters::of(plan),
            records_read: census.docs + census.rejects.count(),
            text_bytes: census.text_bytes,
            replaced: census.replaced,
            units: census.units,
            long_units: census.long_units,
            near,
            kept: written.kept,
            cut: counts.docs,
            cut_units: counts.units,
            cut_bytes: counts.bytes,
            removed: written.removed,
            removed_bytes: counts.removed_bytes,
            rejected: written.rejected,
            dropped: census.rejects.dropped(),
        };
        let process = ResourceUsage { spilled_bytes: self.spill.spilled().bytes, ..ResourceUsage::measure() };
        CleanSummary {
            version: env!("CARGO_PKG_VERSION"),
            configuration: self.job.configuration.clone(),
            counters,
            process,
            seconds: BTreeMap::from([("whole", seconds(self.job.start.elapsed()))]),
            stages: self.job.run.progress.rows(),
            input: plan.files.iter().map(InputEntry::of).collect(),
            places: PLACES,
        }
    }
}
