//! Sorts to which all workers add records, and each of which one worker reads.

use anyhow::{Result, anyhow};
use operators::hash::Identity;
use operators::{ExternalSort, Record, Sorted, SpillBudget};
use parking_lot::Mutex;

/// Number of records that a worker holds for a sort before it adds them.
const HELD: usize = 256;

/// Several sorts, between which the caller divides its records.
///
/// Memory: the budget, shared by all sorts.
pub struct SharedSorts<R>(Vec<Mutex<Option<ExternalSort<R>>>>);

impl<R: Record + Ord> SharedSorts<R> {
    /// Makes `sorts` sorts without records, which share a budget.
    pub fn new(sorts: usize, spill: &SpillBudget) -> Self {
        let each = spill.shared_by(sorts.max(1));
        SharedSorts((0..sorts).map(|_| Mutex::new(Some(ExternalSort::new(&each)))).collect())
    }

    /// Returns the number of sorts.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Begins to add records.
    pub fn writer(&self) -> SortWriter<'_, R> {
        SortWriter { sorts: self, held: self.0.iter().map(|_| Vec::new()).collect() }
    }

    /// Returns the records of a sort, once all writers have ended.
    ///
    /// # Errors
    /// Those of spilling; an error if the records were taken before.
    pub fn take(&self, sort: usize) -> Result<Sorted<R>> {
        let taken = self.0[sort].lock().take();
        Ok(taken.ok_or_else(|| anyhow!("the records of a sort were taken twice"))?.finish()?)
    }

    fn add(&self, sort: usize, records: &mut Vec<R>) {
        // A sort keeps its first error, which `take` returns.
        if let Some(sort) = self.0[sort].lock().as_mut() {
            sort.extend(records.iter().copied());
        }
        records.clear();
    }
}

/// Writer of records to sorts. Holds up to `HELD` records for each of them.
pub struct SortWriter<'a, R> {
    sorts: &'a SharedSorts<R>,
    held: Vec<Vec<R>>,
}

impl<R: Record + Ord> SortWriter<'_, R> {
    /// Adds a record to a sort.
    pub fn push(&mut self, sort: usize, record: R) {
        self.held[sort].push(record);
        if self.held[sort].len() == HELD {
            self.sorts.add(sort, &mut self.held[sort]);
        }
    }

    /// Adds the records that are held.
    pub fn finish(mut self) {
        for (sort, held) in self.held.iter_mut().enumerate() {
            self.sorts.add(sort, held);
        }
    }
}

/// Returns the number of the sort, among `sorts`, that the occurrences of an identity go to.
pub fn sort_of(identity: Identity, sorts: usize) -> usize {
    identity.0 as usize % sorts
}
