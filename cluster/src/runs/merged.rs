//! Reads several runs as one.

use super::cursor::{RunCursor, RunRow};
use super::reader::RunReader;
use crate::Error;

/// A cursor in several runs of one shape, the newest first. Of rows with equal keys only that of the newest
/// run is seen.
///
/// ```text
/// newest   b2      d2
/// older    b1  c1
/// oldest   a0  b0      e0
/// seen     a0  b2  c1  d2  e0
/// ```
///
/// Cost: two comparisons of keys for each run and row. Memory: that of a [`RunCursor`] for each run.
pub struct MergedRuns {
    cursors: Vec<RunCursor>,
}

impl MergedRuns {
    /// Makes a cursor in front of the first row of all `runs`, the newest of which comes first.
    ///
    /// # Panics
    /// When the runs do not have the same shape.
    pub fn new<'a>(runs: impl IntoIterator<Item = &'a RunReader>) -> Self {
        let runs: Vec<_> = runs.into_iter().collect();
        let same = runs.windows(2).all(|pair| pair[0].summary().shape == pair[1].summary().shape);
        assert!(same, "merged runs must have the same shape");
        MergedRuns { cursors: runs.into_iter().map(RunReader::cursor).collect() }
    }

    /// Moves to the first row whose key is not less than `key`, as [`RunCursor::seek`] does.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Damaged`].
    pub fn seek(&mut self, key: &[u64]) -> Result<(), Error> {
        self.cursors.iter_mut().try_for_each(|cursor| cursor.seek(key))
    }

    /// Returns the current row, or `None` at the end.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Damaged`].
    pub fn peek_row(&mut self) -> Result<Option<RunRow<'_>>, Error> {
        match self.least()? {
            Some(least) => self.cursors[least].peek_row(),
            None => Ok(None),
        }
    }

    /// Returns the current row and moves behind it. Returns `None` at the end.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Damaged`].
    pub fn next_row(&mut self) -> Result<Option<RunRow<'_>>, Error> {
        match self.least()? {
            Some(least) => self.cursors[least].next_row(),
            None => Ok(None),
        }
    }

    /// Returns the newest run that has the current row, and moves the older ones behind that key.
    fn least(&mut self) -> Result<Option<usize>, Error> {
        let mut least: Option<usize> = None;
        for at in 0..self.cursors.len() {
            if !self.cursors[at].prepare()? {
                continue;
            }
            let key = self.cursors[at].key();
            if least.is_none_or(|least| key < self.cursors[least].key()) {
                least = Some(at);
            }
        }
        if let Some(newest) = least {
            let (newer, older) = self.cursors.split_at_mut(newest + 1);
            for cursor in older {
                if cursor.prepare()? && cursor.key() == newer[newest].key() {
                    cursor.skip();
                }
            }
        }
        Ok(least)
    }
}
