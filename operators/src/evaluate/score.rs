//! Scores of a result against the truth.

use super::truth_groups::TruthGroups;

/// Agreement of a result with the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Number of items that were found and are true.
    pub right: u64,
    /// Number of items that were found and are not true.
    pub wrong: u64,
    /// Number of items that are true and were not found.
    pub missed: u64,
}

impl Score {
    /// Scores the pairs of documents.
    pub fn of_pairs(truth: &TruthGroups, found: &TruthGroups) -> Self {
        let right = found.pairs().filter(|&(a, b)| truth.related(a, b)).count() as u64;
        Score { right, wrong: found.count() - right, missed: truth.count() - right }
    }

    /// Returns the share of what was found that is true; `None` if nothing was found.
    pub fn precision(&self) -> Option<f64> {
        ratio(self.right, self.right + self.wrong)
    }

    /// Returns the share of what is true that was found; `None` if nothing is true.
    pub fn recall(&self) -> Option<f64> {
        ratio(self.right, self.right + self.missed)
    }

    /// Returns the harmonic mean of precision and recall; `None` if nothing is true and nothing was found.
    pub fn f1(&self) -> Option<f64> {
        ratio(2 * self.right, 2 * self.right + self.wrong + self.missed)
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Effect of the removal of documents from a corpus whose true pairs are known. A group is a component of
/// these pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removals {
    /// Number of documents removed.
    pub removed: u64,
    /// Number of documents removed that have a true partner.
    pub with_partner: u64,
    /// Number of documents removed without a true partner that stays.
    pub unsound: u64,
    /// Number of documents that would be removed if one of each group stayed.
    pub removable: u64,
    /// Number of these documents that were removed. In a group of which all were removed, all but one count.
    pub removed_of_removable: u64,
    /// Number of groups, single documents included, of which no document stays.
    pub wiped: u64,
    /// Number of true pairs of which both documents stay.
    pub left: u64,
}

impl Removals {
    /// Compares the removal with the truth. `removed`: for each document, whether it was removed.
    pub fn new(truth: &TruthGroups, removed: &[bool]) -> Self {
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

    /// Returns the share of the removed documents that have a true partner.
    pub fn precision(&self) -> Option<f64> {
        ratio(self.with_partner, self.removed)
    }

    /// Returns the share of the removable documents that was removed.
    pub fn recall(&self) -> Option<f64> {
        ratio(self.removed_of_removable, self.removable)
    }

    /// Returns the harmonic mean of precision and recall.
    pub fn f1(&self) -> Option<f64> {
        let (precision, recall) = (self.precision()?, self.recall()?);
        Some(if precision + recall == 0.0 { 0.0 } else { 2.0 * precision * recall / (precision + recall) })
    }
}

/// Counts of documents by the convention of the CORE-2020 benchmark. A document for which something was found
/// is a positive. A positive is a true one only if all its true partners were found, whatever else was found
/// too.
///
/// Source: Gyawali, Anastasiou, Knoth, "Deduplication of Scholarly Documents using Locality Sensitive Hashing and
/// Word Embeddings", LREC 2020, as text-dedup counts it (its `classify_prediction`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Core2020 {
    /// Number of documents for which something was found, and all true partners are in it.
    pub true_positives: u64,
    /// Number of documents for which something was found, but which have a true partner outside of it, or no
    /// true partner.
    pub false_positives: u64,
    /// Number of documents for which nothing was found, although they have a true partner.
    pub false_negatives: u64,
    /// Number of documents for which nothing was found, and which have no true partner.
    pub true_negatives: u64,
    /// Number of documents for which exactly the true partners were found.
    pub exact: u64,
}

impl Core2020 {
    /// Counts the documents. `documents`: the number of all. Those beyond the documents of `truth` have no
    /// partners.
    pub fn new(truth: &TruthGroups, found: &TruthGroups, documents: u64) -> Self {
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

    /// Returns the score of the documents that have partners, by the convention.
    pub fn duplicates(&self) -> Score {
        Score { right: self.true_positives, wrong: self.false_positives, missed: self.false_negatives }
    }

    /// Returns the score of the documents that have no partners, by the convention.
    pub fn others(&self) -> Score {
        Score { right: self.true_negatives, wrong: self.false_negatives, missed: self.false_positives }
    }

    /// Returns the share of documents for which exactly the true partners were found.
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
        let truth = TruthGroups::new(5, &[(0, 1), (1, 2)], &[]);
        let found = TruthGroups::new(5, &[], &[(0, 1), (3, 4)]);
        let score = Score::of_pairs(&truth, &found);
        assert_eq!(score, Score { right: 1, wrong: 1, missed: 2 });
        assert_eq!((score.precision(), score.recall(), score.f1()), (Some(0.5), Some(1.0 / 3.0), Some(0.4)));
        assert_eq!(Score::default().precision(), None);
    }

    #[test]
    fn a_removed_document_needs_a_partner_and_one_that_stays() {
        // The groups are 0-1-2 (a chain), 3-4, and 5. Removed are 1 and 2, both 3 and 4, and 5.
        let truth = TruthGroups::new(6, &[], &[(0, 1), (1, 2), (3, 4)]);
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
        let truth = TruthGroups::new(7, &[(0, 1), (1, 2)], &[(3, 4)]);
        // 0 and 1 lack 2. 2 has nothing. 3 and 4 have all, and also 5, which has no true partner. 6 and 7
        // have nothing.
        let found = TruthGroups::new(7, &[], &[(0, 1), (3, 4), (3, 5), (4, 5)]);
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
            let (truth, found) = (TruthGroups::new(12, &same, &pairs), TruthGroups::new(12, &same2, &pairs2));
            let every = |of: &TruthGroups| -> BTreeSet<(u32, u32)> {
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
