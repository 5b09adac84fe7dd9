//! External sort: sorts records of which more than fit into memory are spilled to disk as sorted runs.

use std::collections::VecDeque;
use std::ops::Range;

use super::budget::{FRAME_BYTES, FrameFile, SpillBudget};
use super::merge::{Merge, MergeCursor, Sorted};
use crate::Error;
use crate::record::Record;

/// Greatest number of runs that are merged at once.
const FAN_IN: usize = 64;
/// Number of records at which equal ones are dropped for the first time.
const FIRST_SORT: usize = 1 << 20;

/// Takes records in any order and gives them back sorted.
///
/// Records fill the budget, are sorted in place and written to disk as a *run*. At the end the runs are
/// merged: of each run one frame is in memory, and the least records of all runs are given first. More than
/// 64 runs are first merged to fewer in passes.
///
/// Example with a budget of three records:
///
/// ```text
/// add 5, 1, 4    memory is full: sorted and written as run 1    1 4 5
/// add 2, 6, 3    memory is full: sorted and written as run 2    2 3 6
/// add 7; finish  the rest is sorted and written as run 3        7
/// read           the three runs are merged                      1 2 3 4 5 6 7
/// ```
///
/// Memory, with a budget of `b` bytes: records fill all of it but two frames of `b / 320` bytes (64 KiB at
/// most) before they are written. While runs are merged, at most a fifth of `b` each is taken by the frames
/// of all runs, by the records that are merged at once, by sorting those, and by the records that wait to be
/// given; a group of records with the same key is given whole, however large it is. Mostly much less is taken. Without a budget: the records, and no more.
///
/// Disk: the records in their encoded form and 16 bytes for each frame. From 65 runs on, the records of runs
/// that are merged to fewer runs are on disk twice.
///
/// Adding cannot fail: the first error is kept, the records after it are dropped, and [`ExternalSort::check`]
/// and [`ExternalSort::finish`] return the error.
#[must_use = "only `finish` says whether all records are there"]
pub struct ExternalSort<R> {
    spill: SpillBudget,
    plan: SortPlan,
    once: bool,
    held: Vec<R>,
    /// Number of held records at which they are sorted.
    limit: usize,
    runs: VecDeque<Range<u64>>,
    frames: Option<FrameFile>,
    failed: Option<Error>,
}

/// Division of a budget, in records.
#[derive(Clone, Copy)]
pub(crate) struct SortPlan {
    /// Records in memory before they are spilled.
    held: usize,
    pub frame: usize,
}

impl SortPlan {
    fn new(budget: Option<usize>, record_bytes: usize) -> Self {
        let bytes = budget.unwrap_or(usize::MAX);
        let frame_bytes = (bytes / (5 * FAN_IN)).min(FRAME_BYTES);
        let records = |bytes: usize| (bytes / record_bytes).max(1);
        let held = budget.map_or(usize::MAX, |bytes| records(bytes - 2 * frame_bytes));
        SortPlan { held, frame: records(frame_bytes) }
    }
}

impl<R: Record + Ord> ExternalSort<R> {
    /// Makes a sort without records.
    pub fn new(spill: &SpillBudget) -> Self {
        let plan = SortPlan::new(spill.budget(), size_of::<R>());
        ExternalSort {
            spill: spill.clone(),
            plan,
            once: false,
            held: Vec::new(),
            limit: plan.held,
            runs: VecDeque::new(),
            frames: None,
            failed: None,
        }
    }

    /// Gives equal records back once. They are dropped as soon as they meet in memory.
    pub fn once(mut self) -> Self {
        self.once = true;
        self.limit = self.plan.held.min(FIRST_SORT);
        self
    }

    /// Returns the budget in bytes.
    pub fn budget(&self) -> Option<usize> {
        self.spill.budget()
    }

    /// Adds a record. Cost: 2 ns, and the record's share of sorting and writing.
    #[inline]
    pub fn push(&mut self, record: R) {
        if self.held.len() >= self.limit {
            self.full();
        }
        self.held.push(record);
    }

    /// Returns the first error so far.
    pub fn check(&self) -> Result<(), Error> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Returns all records, sorted.
    pub fn finish(mut self) -> Result<Sorted<R>, Error> {
        self.check()?;
        self.sort();
        if self.frames.is_some() {
            self.spill()?;
        }
        let ExternalSort { frames, held, mut runs, plan, once, .. } = self;
        let Some(mut frames) = frames else { return Ok(Sorted::InMemory(held)) };
        drop(held);
        while runs.len() > FAN_IN {
            // If there are 65 runs, two are merged and not 64, since 64 runs can be merged at the end.
            let some = FAN_IN.min(runs.len() - FAN_IN + 1);
            let mut merge = Merge::<R>::new(runs.drain(..some), once);
            let whole = merge.bytes();
            let start = frames.end();
            let mut merged = Vec::new();
            while merge.fill(&frames, &mut merged)? {
                let full = merged.len() - merged.len() % plan.frame;
                write(&mut frames, plan, &merged[..full], whole)?;
                merged.drain(..full);
            }
            write(&mut frames, plan, &merged, whole)?;
            runs.push_back(start..frames.end());
        }
        Ok(Sorted::spilled(frames, Merge::new(runs, once)))
    }

    #[cold]
    fn full(&mut self) {
        if self.failed.is_some() {
            return self.held.clear();
        }
        self.sort();
        // If few of the records are different, many more may fit.
        if self.once && self.held.len() <= self.plan.held / 2 {
            self.limit = (2 * self.held.len()).max(FIRST_SORT).min(self.plan.held);
            return;
        }
        self.failed = self.spill().err();
        self.held.clear();
    }

    fn sort(&mut self) {
        self.held.sort_unstable();
        if self.once {
            self.held.dedup();
        }
    }

    /// Writes the held records, which are sorted, as a run.
    fn spill(&mut self) -> Result<(), Error> {
        let frames = match &mut self.frames {
            Some(frames) => frames,
            none => none.insert(self.spill.frames()?),
        };
        let start = frames.end();
        write(frames, self.plan, &self.held, self.held.len() * R::BYTES)?;
        self.runs.push_back(start..frames.end());
        Ok(())
    }
}

impl<R: Record + Ord> Extend<R> for ExternalSort<R> {
    fn extend<I: IntoIterator<Item = R>>(&mut self, records: I) {
        let records = records.into_iter();
        let room = self.limit.saturating_sub(self.held.len());
        if records.size_hint().1.is_some_and(|most| most <= room) {
            self.held.extend(records);
        } else {
            records.for_each(|record| self.push(record));
        }
    }
}

/// Writes sorted records as frames. `whole`: the bytes of the run, which an error names.
fn write<R: Record>(
    frames: &mut FrameFile,
    plan: SortPlan,
    records: &[R],
    whole: usize,
) -> Result<(), Error> {
    for records in records.chunks(plan.frame) {
        frames.append(records.len() * R::BYTES, whole, |bytes| {
            bytes.chunks_exact_mut(R::BYTES).zip(records).for_each(|(to, record)| record.write(to));
        })?;
    }
    Ok(())
}

impl<R: Record + Ord> Sorted<R> {
    /// Keeps the records that are `wanted`, which is asked in their order. Memory: that of the records, or the budget.
    pub fn retain(
        self,
        spill: &SpillBudget,
        mut wanted: impl FnMut(&R) -> Result<bool, Error>,
    ) -> Result<Self, Error> {
        match self {
            Sorted::InMemory(mut records) => {
                let mut failed = None;
                records.retain(|record| {
                    let wanted = if failed.is_none() { wanted(record) } else { Ok(false) };
                    wanted.unwrap_or_else(|error| {
                        failed = Some(error);
                        false
                    })
                });
                failed.map_or(Ok(Sorted::InMemory(records)), Err)
            }
            spilled => {
                let (mut records, mut kept) = (MergeCursor::new(spilled), ExternalSort::new(spill));
                while let Some(record) = records.next_if(|_| true)? {
                    if wanted(&record)? {
                        kept.push(record);
                    }
                }
                kept.finish()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::budget::twins::Twin;
    use super::*;

    /// Sorts records and returns them in the groups of their keys, as they are given: whole, at least `least`
    /// at a time.
    fn groups(
        records: &[(u64, u64)],
        spill: &SpillBudget,
        once: bool,
        least: usize,
    ) -> Result<Vec<Vec<(u64, u64)>>, Error> {
        let mut runs = if once { ExternalSort::new(spill).once() } else { ExternalSort::new(spill) };
        let (first, rest) = records.split_at(records.len() / 2);
        first.iter().for_each(|&record| runs.push(record));
        runs.extend(rest.iter().copied());
        let mut given = Vec::new();
        runs.finish()?.each_group(least, |a, b| a.0 == b.0, |records| given.push(records.to_vec()))?;
        let keys = |records: &Vec<(u64, u64)>| (records[0].0, records[records.len() - 1].0);
        assert!(given.windows(2).all(|two| keys(&two[0]).1 < keys(&two[1]).0), "a group is given whole");
        assert!(given.iter().rev().skip(1).all(|records| records.len() >= least), "{least}");
        Ok(given)
    }

    fn sorted(records: &[(u64, u64)], spill: &SpillBudget, once: bool) -> Result<Vec<(u64, u64)>, Error> {
        groups(records, spill, once, 0).map(|groups| groups.concat())
    }

    fn record() -> impl Strategy<Value = (u64, u64)> {
        // Few keys and few documents make large groups and equal records.
        (prop_oneof![0..3_u64, 0..200_u64, any::<u64>()], 0..40_u64)
    }

    proptest! {
        #[test]
        fn runs_are_a_sort(
            mut records in proptest::collection::vec(record(), 0..1500),
            budget in prop_oneof![Just(None), (0_usize..200).prop_map(Some), (0_usize..30_000).prop_map(Some)],
            once in any::<bool>(),
            least in 0_usize..100,
        ) {
            let spill = Twin::default().budget(budget);
            let found = groups(&records, &spill, once, least).unwrap().concat();
            records.sort();
            if once {
                records.dedup();
            }
            prop_assert_eq!(found, records);
            prop_assert!(budget.is_some() || spill.spilled().files == 0);
        }
    }

    #[test]
    fn those_that_are_wanted_are_retained_in_memory_and_on_disk() {
        let all = records(2_000);
        for budget in [None, Some(3_000)] {
            let spill = Twin::default().budget(budget);
            let sort = || {
                let mut sort = ExternalSort::new(&spill);
                sort.extend(all.iter().copied());
                sort.finish().unwrap()
            };
            let mut asked = Vec::new();
            let kept = sort().retain(&spill, |record| {
                asked.push(*record);
                Ok(record.1 % 3 == 0)
            });
            let mut kept = kept.unwrap();
            let mut given = Vec::new();
            kept.each(|record| given.push(record)).unwrap();
            let mut expected = all.clone();
            expected.sort();
            assert_eq!(asked, expected, "records are asked for in their order");
            expected.retain(|record| record.1 % 3 == 0);
            assert_eq!(given, expected);
            let failed = sort().retain(&spill, |_| Err(Error::DocsMissing));
            assert!(matches!(failed.err(), Some(Error::DocsMissing)));
        }
    }

    /// Records with keys of a hash below 1000.
    fn records(count: u64) -> Vec<(u64, u64)> {
        (0..count).map(|i| (crate::hash::spread(i) % 1000, i)).collect()
    }

    #[test]
    fn more_runs_than_are_merged_at_once_are_merged_in_passes() {
        let mut all = records(20_000);
        for in_memory in [300, 100, 20, 1] {
            let spill = Twin::default().budget(in_memory * 16);
            let found = sorted(&all, &spill, false).unwrap();
            assert!(all.len() / in_memory > FAN_IN);
            all.sort();
            assert!(found == all, "{in_memory} records in memory");
            // Each record is a frame of its own here, with its head, and some frames were written again.
            assert!(spill.spilled().bytes > 20_000 * 32);
        }
    }

    #[test]
    fn few_different_records_never_spill() {
        let spill = Twin::full_after(0).budget(1600);
        let all: Vec<(u64, u64)> = (0..100_000).map(|i| (i % 40, 7)).collect();
        let found = sorted(&all, &spill, true).unwrap();
        assert_eq!(found, (0..40).map(|i| (i, 7)).collect::<Vec<_>>());
        assert_eq!(spill.spilled().files, 0);
    }

    #[test]
    fn without_a_budget_nothing_is_written() {
        let found = sorted(&records(5000), &SpillBudget::new("/no/such".as_ref(), None), false).unwrap();
        assert!(found.is_sorted() && found.len() == 5000);
    }

    #[test]
    fn a_disk_that_is_full_at_any_write_is_an_error() {
        let all = records(1000);
        let whole = Twin::default().budget(200);
        sorted(&all, &whole, false).unwrap();
        let needed = whole.spilled().bytes as usize;
        assert!(needed > 2 * 16_000, "runs are merged to runs too");
        for room in (0..needed).step_by(16) {
            let error = sorted(&all, &Twin::full_after(room).budget(200), false).unwrap_err();
            assert!(matches!(error, Error::DiskFull { .. }), "{room}: {error}");
        }
        sorted(&all, &Twin::full_after(needed).budget(200), false).unwrap();
    }

    #[test]
    fn a_sort_that_lost_records_fails_to_finish() {
        let mut runs = ExternalSort::new(&Twin::full_after(20).budget(200));
        runs.extend(records(100));
        assert!(runs.check().is_err());
        assert!(runs.check().is_err() && runs.finish().is_err());
    }

    #[test]
    fn a_damaged_or_short_file_is_an_error() {
        let all = records(200);
        let whole = Twin::default().budget(1000);
        sorted(&all, &whole, false).unwrap();
        for at in 0..whole.spilled().bytes as usize {
            for twin in [Twin { damaged: Some(at), ..Twin::default() }, Twin { cut: at, ..Twin::default() }] {
                let error = sorted(&all, &twin.budget(1000), false).unwrap_err();
                assert!(matches!(error, Error::SpillLost { .. }), "{at}: {error}");
            }
        }
    }
}
