//! The comparison of every two of some documents.

use std::ops::Range;

use anyhow::Result;

use runtime::corpus::at_once::each_with;
use runtime::corpus::input::Input;
use runtime::progress::{Progress, Stage};

/// The comparison of every two of some documents, on all workers.
pub(super) struct AllPairs<'a> {
    workers: usize,
    progress: &'a Progress,
    /// Number of bytes of the input, of which the comparisons that are done count as a part.
    input_bytes: u64,
}

impl<'a> AllPairs<'a> {
    pub fn of(input: &Input, progress: &'a Progress) -> Self {
        AllPairs { workers: input.workers, progress, input_bytes: input.plan.bytes() }
    }

    /// Calls `judge` with every two of `count` documents. Returns what it returns, in the order of the pairs. Memory: all of it.
    pub fn each<T: Send>(&self, count: usize, judge: impl Fn(usize, usize) -> T + Sync) -> Result<Vec<T>> {
        let of_row =
            |first, others: Range<usize>| others.map(|other| judge(first, other)).collect::<Vec<T>>();
        Ok(self.rows(count, of_row)?.into_iter().flatten().collect())
    }

    /// Calls `judge` with each of `count` documents and those behind it, and returns what it returns, in order.
    pub fn rows<R: Send>(
        &self,
        count: usize,
        judge: impl Fn(usize, Range<usize>) -> R + Sync,
    ) -> Result<Vec<R>> {
        let all = (count * count.saturating_sub(1) / 2).max(1) as f64;
        let firsts: Vec<usize> = (0..count).collect();
        let worker = |index| self.progress.worker_at(index, Stage::Compare);
        each_with(self.workers.max(1), &firsts, worker, |at, &first| {
            let others = first + 1..count;
            let share = others.len() as f64 / all;
            let row = judge(first, others);
            at.done((self.input_bytes as f64 * share) as u64);
            Ok(row)
        })
    }
}
