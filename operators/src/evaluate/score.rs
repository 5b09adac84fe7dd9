//! How well what was found agrees with what is true.

use super::truth_groups::Partners;

/// How what was found compares with what is true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Found, and true.
    pub right: u64,
    /// Found, and not true.
    pub wrong: u64,
    /// True, and not found.
    pub missed: u64,
}

impl Score {
    /// Of the pairs of documents.
    pub fn of_pairs(truth: &Partners, found: &Partners) -> Self {
        let right = found.pairs().filter(|&(a, b)| truth.related(a, b)).count() as u64;
        Score { right, wrong: found.count() - right, missed: truth.count() - right }
    }

    /// Which part of what was found is true; `None` if nothing was found.
    pub fn precision(&self) -> Option<f64> {
        ratio(self.right, self.right + self.wrong)
    }

    /// Which part of what is true was found; `None` if nothing is.
    pub fn recall(&self) -> Option<f64> {
        ratio(self.right, self.right + self.missed)
    }

    /// The harmonic mean of the two; `None` if nothing is true and nothing was found.
    pub fn f1(&self) -> Option<f64> {
        ratio(2 * self.right, 2 * self.right + self.wrong + self.missed)
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// What the removal of documents did to a corpus whose true pairs are known. A group is a component of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removals {
    /// Documents removed.
    pub removed: u64,
    /// Those of them that go together with another document.
    pub with_partner: u64,
    /// Those of them that go together with none that stays.
    pub unsound: u64,
    /// Documents that go if one of each group stays.
    pub removable: u64,
    /// As many of them as were removed: of each group, all that went but one if all went.
    pub removed_of_removable: u64,
    /// Groups, single documents included, of which none stays.
    pub wiped: u64,
    /// True pairs of which both stay.
    pub left: u64,
}

impl Removals {
    /// `removed`: for each document whether it went.
    pub fn new(truth: &Partners, removed: &[bool]) -> Self {
        let mut all = Removals::default();
        let components = truth.components();
        let mut groups = vec![(0, 0); removed.len()];
        for (doc, &gone) in (0..).zip(removed) {
            let group: &mut (u64, u64) = &mut groups[components[doc as usize] as usize];
            group.0 += 1;
            if gone {
                group.1 += 1;
                all.removed += 1;
                all.with_partner += u64::from(truth.of(doc).next().is_some());
                all.unsound += u64::from(truth.of(doc).all(|other| removed[other as usize]));
            } else {
                all.left +=
                    truth.of(doc).filter(|&other| doc < other && !removed[other as usize]).count() as u64;
            }
        }
        for (size, gone) in groups.into_iter().filter(|group| group.0 > 0) {
            all.removable += size - 1;
            all.removed_of_removable += gone.min(size - 1);
            all.wiped += u64::from(gone == size);
        }
        all
    }

    /// Which part of the removed documents goes together with another.
    pub fn precision(&self) -> Option<f64> {
        ratio(self.with_partner, self.removed)
    }

    /// Which part of the removable documents was removed.
    pub fn recall(&self) -> Option<f64> {
        ratio(self.removed_of_removable, self.removable)
    }

    /// The harmonic mean of the two.
    pub fn f1(&self) -> Option<f64> {
        let (precision, recall) = (self.precision()?, self.recall()?);
        Some(if precision + recall == 0.0 { 0.0 } else { 2.0 * precision * recall / (precision + recall) })
    }
}

/// Documents by the convention of the CORE-2020 benchmark: a document for which something was found is a
/// positive, and a true one only if all of its true partners are among what was found, whatever else is.
///
/// Source: Gyawali, Anastasiou, Knoth, "Deduplication of Scholarly Documents using Locality Sensitive Hashing and
/// Word Embeddings", LREC 2020, as text-dedup counts it (its `classify_prediction`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Core2020 {
    /// Something was found, and all that is true is in it.
    pub true_positives: u64,
    /// Something was found, and something true is not in it, or nothing is true.
    pub false_positives: u64,
    /// Nothing was found where something is true.
    pub false_negatives: u64,
    /// Nothing was found where nothing is true.
    pub true_negatives: u64,
    /// Exactly what is true was found.
    pub exact: u64,
}

impl Core2020 {
    /// `documents`: all that count, of which those above the relations' have no partners.
    pub fn new(truth: &Partners, found: &Partners, documents: u64) -> Self {
        let mut all = Core2020::default();
        let known = truth.documents();
        for doc in 0..known as u32 {
            let (count, found_count) = (truth.of(doc).count(), found.of(doc).count());
            let covered = truth.of(doc).all(|other| found.related(doc, other));
            match (found_count > 0, count > 0) {
                (true, true) if covered => all.true_positives += 1,
                (true, _) => all.false_positives += 1,
                (false, true) => all.false_negatives += 1,
                (false, false) => all.true_negatives += 1,
            }
            all.exact += u64::from(covered && count == found_count);
        }
        let unknown = documents.saturating_sub(known as u64);
        Core2020 { true_negatives: all.true_negatives + unknown, exact: all.exact + unknown, ..all }
    }

    /// Precision and recall of the documents that have partners, as the convention has them.
    pub fn duplicates(&self) -> Score {
        Score { right: self.true_positives, wrong: self.false_positives, missed: self.false_negatives }
    }

    /// The same of those that have none.
    pub fn others(&self) -> Score {
        Score { right: self.true_negatives, wrong: self.false_negatives, missed: self.false_positives }
    }

    /// Which part of the documents has exactly its true partners.
    pub fn accuracy(&self) -> Option<f64> {
        ratio(
            self.exact,
            self.true_positives + self.false_positives + self.false_negatives + self.true_negatives,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn pairs_are_right_wrong_or_missed() {
        let truth = Partners::new(5, &[(0, 1), (1, 2)], &[]);
        let found = Partners::new(5, &[], &[(0, 1), (3, 4)]);
        let score = Score::of_pairs(&truth, &found);
        assert_eq!(score, Score { right: 1, wrong: 1, missed: 2 });
        assert_eq!((score.precision(), score.recall(), score.f1()), (Some(0.5), Some(1.0 / 3.0), Some(0.4)));
        assert_eq!(Score::default().precision(), None);
    }

    #[test]
    fn a_removed_document_needs_a_partner_and_one_that_stays() {
        // Groups: 0-1-2 (a chain), 3-4, 5. Gone: 1 and 2, both of 3-4, and 5.
        let truth = Partners::new(6, &[], &[(0, 1), (1, 2), (3, 4)]);
        let got = Removals::new(&truth, &[false, true, true, true, true, true]);
        let expected = Removals {
            removed: 5,
            with_partner: 4,
            unsound: 4, // 2, whose only partner went too, 3, 4 and 5
            removable: 3,
            removed_of_removable: 3,
            wiped: 2,
            left: 0,
        };
        assert_eq!(got, expected);
        assert_eq!((got.precision(), got.recall()), (Some(0.8), Some(1.0)));
        assert_eq!(Removals::new(&truth, &[false; 6]).left, 3);
    }

    #[test]
    fn by_the_convention_of_core_2020_one_missed_partner_makes_a_false_positive() {
        let truth = Partners::new(7, &[(0, 1), (1, 2)], &[(3, 4)]);
        // 0 and 1 lack 2; 2 has nothing; 3 and 4 have all and 5 besides, which has nothing true; 6 and 7 none.
        let found = Partners::new(7, &[], &[(0, 1), (3, 4), (3, 5), (4, 5)]);
        let got = Core2020::new(&truth, &found, 8);
        let expected = Core2020 {
            true_positives: 2,
            false_positives: 3,
            false_negatives: 1,
            true_negatives: 2,
            exact: 2,
        };
        assert_eq!(got, expected);
        assert_eq!(got.duplicates().precision(), Some(0.4));
        assert_eq!(got.others().recall(), Some(0.4));
        assert_eq!(got.accuracy(), Some(0.25));
    }

    type Edges = Vec<(u32, u32)>;

    fn relation() -> impl Strategy<Value = (Edges, Edges)> {
        let ties = || prop::collection::vec((0u32..12, 0u32..12), 0..10);
        (ties(), ties())
    }

    proptest! {
        #[test]
        fn counting_by_classes_equals_looking_at_every_pair((same, pairs) in relation(), (same2, pairs2) in relation()) {
            let (truth, found) = (Partners::new(12, &same, &pairs), Partners::new(12, &same2, &pairs2));
            let every = |of: &Partners| -> BTreeSet<(u32, u32)> {
                (0..12).flat_map(|a| (a + 1..12).map(move |b| (a, b))).filter(|&(a, b)| of.related(a, b)).collect()
            };
            let (t, f) = (every(&truth), every(&found));
            prop_assert_eq!(found.pairs().collect::<BTreeSet<_>>(), f.clone());
            prop_assert_eq!(found.count(), f.len() as u64);
            let score = Score::of_pairs(&truth, &found);
            prop_assert_eq!(score.right, t.intersection(&f).count() as u64);
            prop_assert_eq!(score.wrong, f.difference(&t).count() as u64);
            prop_assert_eq!(score.missed, t.difference(&f).count() as u64);
        }
    }
}
