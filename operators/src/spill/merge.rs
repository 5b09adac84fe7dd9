//! The merge of an external sort: reads sorted runs on disk as one sorted sequence.

use std::ops::Range;

use super::budget::FrameFile;
use crate::Error;
use crate::record::Record;

/// Number of records in memory whose memory is given back at once, after they were read.
const FREED_AT_ONCE: usize = 1 << 18;

/// Sorted records, in memory or on disk.
pub enum Sorted<R> {
    /// All records, in memory.
    InMemory(Vec<R>),
    /// Records on disk, which are merged while they are read, once.
    Spilled(Box<Merging<R>>),
}

/// Sorted records that are on disk as runs.
pub struct Merging<R> {
    frames: FrameFile,
    merge: Merge<R>,
}

impl<R: Record + Ord> Sorted<R> {
    pub(crate) fn spilled(frames: FrameFile, merge: Merge<R>) -> Self {
        Sorted::Spilled(Box::new(Merging { frames, merge }))
    }

    /// Calls `each` with whole groups of records that have the `same` key, at least `least` records at a time
    /// if there are that many. The records are sorted by this key first. `each` may reorder and change them.
    ///
    /// Memory for records on disk: `least` of them, a frame of each run, and the largest group.
    pub fn each_group(
        &mut self,
        least: usize,
        same: impl Fn(&R, &R) -> bool,
        mut each: impl FnMut(&mut [R]),
    ) -> Result<(), Error> {
        let Merging { frames, merge } = match self {
            Sorted::InMemory(records) => {
                if !records.is_empty() {
                    each(records);
                }
                return Ok(());
            }
            Sorted::Spilled(spilled) => spilled.as_mut(),
        };
        let mut held = Vec::new();
        let mut more = true;
        while more {
            more = merge.fill(frames, &mut held)?;
            // More records of the last group may follow.
            let end = match held.last() {
                Some(last) if more => held.partition_point(|record| !same(record, last)),
                _ => held.len(),
            };
            if end > 0 && (end >= least || !more) {
                each(&mut held[..end]);
                held.drain(..end);
            }
        }
        Ok(())
    }

    /// Calls `each` with every record, in any order. The memory of those that were given is free meanwhile.
    pub fn drain(mut self, mut each: impl FnMut(R)) -> Result<(), Error> {
        let Sorted::InMemory(records) = &mut self else { return self.each(each) };
        while !records.is_empty() {
            records.drain(records.len().saturating_sub(FREED_AT_ONCE)..).for_each(&mut each);
            records.shrink_to_fit();
        }
        Ok(())
    }

    /// Calls `each` with every record.
    pub fn each(&mut self, mut each: impl FnMut(R)) -> Result<(), Error> {
        self.each_group(0, |a, b| a == b, |records| records.iter().for_each(|record| each(*record)))
    }
}

/// Reads a [`Sorted`] record by record. Records in memory give their memory back once half of those that are held were taken.
pub struct MergeCursor<R> {
    sorted: Sorted<R>,
    held: Vec<R>,
    /// Number of held records that were taken already.
    taken: usize,
}

impl<R: Record + Ord> MergeCursor<R> {
    /// Makes a cursor in front of the first record.
    pub fn new(sorted: Sorted<R>) -> Self {
        MergeCursor { sorted, held: Vec::new(), taken: 0 }
    }

    /// Returns the next record without taking it, or `None` after the last one.
    pub fn peek(&mut self) -> Result<Option<R>, Error> {
        let mut more = true;
        while more && self.taken == self.held.len() {
            self.taken = 0;
            self.held.clear();
            more = match &mut self.sorted {
                Sorted::InMemory(records) => {
                    std::mem::swap(&mut self.held, records);
                    !self.held.is_empty()
                }
                Sorted::Spilled(spilled) => spilled.merge.fill(&spilled.frames, &mut self.held)?,
            };
        }
        Ok(self.held.get(self.taken).copied())
    }

    /// Takes the next record if it is `wanted`.
    pub fn next_if(&mut self, wanted: impl FnOnce(&R) -> bool) -> Result<Option<R>, Error> {
        let next = self.peek()?.filter(wanted);
        self.taken += usize::from(next.is_some());
        if self.taken >= FREED_AT_ONCE && 2 * self.taken >= self.held.len() {
            self.held.drain(..self.taken);
            self.held.shrink_to_fit();
            self.taken = 0;
        }
        Ok(next)
    }
}

/// A merge of some runs.
pub(crate) struct Merge<R> {
    runs: Vec<SortedRun<R>>,
    once: bool,
    /// Records that were merged last, before they are appended to the others.
    fresh: Vec<R>,
    frame: Vec<u8>,
}

/// A run: one frame of it in memory, and the place of the others on disk.
struct SortedRun<R> {
    records: Vec<R>,
    /// Number of the records that were taken already.
    taken: usize,
    rest: Range<u64>,
}

impl<R: Record + Ord> Merge<R> {
    pub fn new(runs: impl IntoIterator<Item = Range<u64>>, once: bool) -> Self {
        let runs = runs.into_iter().map(|rest| SortedRun { records: Vec::new(), taken: 0, rest }).collect();
        Merge { runs, once, fresh: Vec::new(), frame: Vec::new() }
    }

    /// Returns the number of bytes that are not in memory yet.
    pub fn bytes(&self) -> usize {
        self.runs.iter().map(|run| (run.rest.end - run.rest.start) as usize).sum()
    }

    /// Appends the next records to `to`. Returns whether there were any.
    ///
    /// The bound is the least of the last records in memory of the runs that have more on disk, so that at
    /// least one frame is used up. Each run gives its records up to the bound. They are sorted pieces, which
    /// the standard library's sort finds and merges.
    pub fn fill(&mut self, frames: &FrameFile, to: &mut Vec<R>) -> Result<bool, Error> {
        for run in &mut self.runs {
            if run.taken == run.records.len() && !run.rest.is_empty() {
                run.rest.start = frames.read(run.rest.start, &mut self.frame)?;
                run.taken = 0;
                run.records.clear();
                run.records.extend(self.frame.chunks_exact(R::BYTES).map(R::read));
            }
        }
        self.runs.retain(|run| run.taken < run.records.len());
        let unfinished = self.runs.iter().filter(|run| !run.rest.is_empty());
        let bound = unfinished.filter_map(|run| run.records.last()).min().copied();
        self.fresh.clear();
        for run in &mut self.runs {
            let records = &run.records[run.taken..];
            let count =
                bound.map_or(records.len(), |bound| records.partition_point(|record| *record <= bound));
            self.fresh.extend_from_slice(&records[..count]);
            run.taken += count;
        }
        self.fresh.sort();
        // All records that equal one of these are here: each run has a record once, and no run has any left
        // up to the bound.
        if self.once {
            self.fresh.dedup();
        }
        to.extend_from_slice(&self.fresh);
        Ok(!self.runs.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_in_memory_are_all_given_while_they_are_freed() {
        let all: Vec<u64> = (0..600_000).collect();
        let mut cursor = MergeCursor::new(Sorted::InMemory(all.clone()));
        let mut read = Vec::new();
        while let Some(record) = cursor.next_if(|_| true).unwrap() {
            read.push(record);
        }
        assert!(read == all, "a cursor gives them in order");
        let mut drained = Vec::new();
        Sorted::InMemory(all.clone()).drain(|record| drained.push(record)).unwrap();
        drained.sort_unstable();
        assert!(drained == all, "each is drained once");
    }
}
