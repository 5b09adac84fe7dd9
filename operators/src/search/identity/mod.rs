//! The search for equal texts: documents of one identity meet.

use super::candidate_search::{CandidateSearch, PassLoad};
use super::crowds::PairSink;
use super::map_records::put;
use super::text_search::{Explanation, MappedText, RuleTurn, TextSearch};
use crate::hash::{Identity, Secret};
use crate::record::Doc;
use crate::record::{DocId, Pair};
use crate::text::ignored_lines::CleanedText;

/// The map stage of `exact`. It has one section, of identities.
///
/// [`EqualTexts`] joins this section in every method but `zhou2017`, so `exact` has no candidates of its own.
#[derive(Clone)]
pub struct Identities {
    secret: Secret,
}

impl Identities {
    /// Makes a map stage. `secret`: the secret of the identities.
    pub fn new(secret: Secret) -> Self {
        Identities { secret }
    }
}

impl TextSearch for Identities {
    fn sections(&self) -> usize {
        1
    }

    fn only_equal(&self) -> bool {
        true
    }

    fn map_text(&mut self, doc: &Doc, text: CleanedText, sections: &mut [Vec<u8>]) {
        put(&mut sections[0], (self.secret.identity(text.whole), doc.doc));
    }

    fn are_candidates(&self, a: &MappedText, b: &MappedText) -> bool {
        a.identity() == b.identity()
    }

    fn explain(&self, a: &MappedText, b: &MappedText) -> Explanation {
        let steps = vec!["only equal texts match".to_owned()];
        Explanation { steps, found: self.are_candidates(a, b), rule: RuleTurn::Never }
    }
}

/// Finds identical documents. Every document is paired with the first one of its identity, so `n` identical
/// documents make `n - 1` pairs.
///
/// ```text
/// identity   documents   pairs
/// 4f…        2, 5, 9     2-5, 2-9
/// 81…        3           none
/// ```
#[derive(Clone, Copy, Debug)]
pub struct EqualTexts;

impl CandidateSearch for EqualTexts {
    type Record = (Identity, DocId);
    type Pass = ();
    const PAIRWISE: bool = false;

    fn passes(&self) -> Vec<()> {
        vec![()]
    }

    fn key((): &(), record: &(Identity, DocId)) -> u64 {
        record.0.0
    }

    fn doc(record: &(Identity, DocId)) -> DocId {
        record.1
    }

    fn candidates(&mut self, (): &(), records: &mut [(Identity, DocId)], found: &mut PairSink) -> PassLoad {
        records.sort_unstable();
        let mut load = PassLoad { records: records.len() as u64, ..PassLoad::default() };
        for same in records.chunk_by(|a, b| a.0 == b.0) {
            load.largest_bucket = load.largest_bucket.max(same.len() as u64);
            load.compared += same.len() as u64 - 1;
            // A document of an earlier run may come from several workers.
            let later = same[1..].iter().filter(|later| later.1 != same[0].1);
            later.for_each(|later| found.add(Pair::new(same[0].1, later.1, 0)));
        }
        load
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SpillBudget;

    #[test]
    fn each_later_document_is_paired_with_the_first() {
        let mut records = [((7, 1), 5), ((7, 1), 2), ((9, 1), 1), ((7, 3), 4), ((7, 1), 3)]
            .map(|(identity, doc)| (identity, DocId(doc)));
        let mut found = PairSink::new(1, &SpillBudget::unused());
        let load = EqualTexts.candidates(&(), &mut records, &mut found);
        let mut pairs = Vec::new();
        found.pairs.finish().unwrap().each(|(later, (_, first))| pairs.push((first.0, later.0))).unwrap();
        assert_eq!(pairs, [(2, 3), (2, 5)]);
        assert_eq!(load, PassLoad { records: 5, largest_bucket: 3, compared: 2 });
    }
}
