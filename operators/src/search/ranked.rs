//! A search whose records say where their documents stand in keep order, for crowds in which those ask that come later in it.

use super::crowds::{Crowds, Rank};
use super::{CandidateSearch, PassLoad};
use crate::record::{DocId, Pair};

/// The same search among records with the ranks of their documents.
pub struct RankedSearch<S>(pub S);

impl<S: CandidateSearch> CandidateSearch for RankedSearch<S> {
    type Record = (Rank, S::Record);
    type Pass = S::Pass;

    fn passes(&self) -> Vec<S::Pass> {
        self.0.passes()
    }

    fn key(pass: &S::Pass, record: &Self::Record) -> u64 {
        S::key(pass, &record.1)
    }

    fn doc(record: &Self::Record) -> DocId {
        S::doc(&record.1)
    }

    fn narrower(&self, pass: &S::Pass) -> Option<Vec<S::Pass>> {
        self.0.narrower(pass)
    }

    fn candidates(
        &mut self,
        pass: &S::Pass,
        records: &mut [Self::Record],
        crowds: &mut Crowds,
        emit: impl FnMut(Pair) -> bool,
    ) -> PassLoad {
        crowds.rank(records.iter().map(|(rank, record)| (S::doc(record), *rank)));
        let mut plain: Vec<S::Record> = records.iter().map(|record| record.1).collect();
        self.0.candidates(pass, &mut plain, crowds, emit)
    }
}
