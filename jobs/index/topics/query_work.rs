//! Counts what queries look at.

use std::ops::AddAssign;

/// Sums of what some queries have looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueryWork {
    pub queries: u64,
    /// Keys in segments that agreed with one of the query in the first bits.
    pub met: u64,
    /// Texts that were compared, or answers if texts are not compared.
    pub candidates: u64,
    /// Pieces of files that were read to find keys.
    pub key_reads: u64,
    /// Pieces of files that were read for candidates and for the documents of answers.
    pub other_reads: u64,
}

impl AddAssign for QueryWork {
    fn add_assign(&mut self, other: Self) {
        self.queries += other.queries;
        self.met += other.met;
        self.candidates += other.candidates;
        self.key_reads += other.key_reads;
        self.other_reads += other.other_reads;
    }
}
