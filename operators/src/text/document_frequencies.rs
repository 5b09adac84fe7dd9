//! Corpus statistics: the number of documents that have a feature, and the feature's rarity.

use serde::{Deserialize, Serialize};

use std::sync::Arc;

use super::Cleaner;
use super::features::Features;
use crate::record::DocBatch;

/// Document frequencies: the number of documents of a corpus that have each feature.
///
/// There are [`Statistics::COUNTERS`] counters, indexed by the hash of the feature. Features that share a
/// counter count as one. The counts are the same for any number of workers and any order of the documents.
/// Memory: 16 MB, or nothing as long as nothing is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Statistics {
    /// Number of documents that were counted.
    pub documents: u64,
    /// For each counter, the number of documents that have a feature of it, or `u32::MAX` if there are more.
    pub counts: Vec<u32>,
}

impl Statistics {
    /// Number of counters. A feature that no document has gets the count of the features that share its
    /// counter, which is 70 on average after a million documents of 300 different features each.
    pub const COUNTERS: usize = 1 << 22;

    /// Adds the counts of another worker.
    pub fn add(&mut self, other: Statistics) {
        self.documents += other.documents;
        if self.counts.is_empty() {
            self.counts = other.counts;
        } else {
            self.counts
                .iter_mut()
                .zip(other.counts)
                .for_each(|(sum, count)| *sum = sum.saturating_add(count));
        }
    }
}

/// Returns the index of a feature's counter.
#[inline]
fn counter(feature: u64) -> usize {
    (feature >> (u64::BITS - Statistics::COUNTERS.ilog2())) as usize
}

/// Counts the features of documents. Memory: 32 MB.
pub struct Count {
    cleaner: Cleaner,
    features: Features,
    documents: u64,
    counters: Vec<Counter>,
}

#[derive(Clone, Copy, Default)]
struct Counter {
    documents: u32,
    /// Number of the last of these documents, from 1.
    last: u32,
}

impl Count {
    /// Makes a counter of the features of cleaned texts.
    pub fn new(cleaner: Cleaner, features: Features) -> Self {
        Count { cleaner, features, documents: 0, counters: vec![Counter::default(); Statistics::COUNTERS] }
    }

    /// Counts the documents of a batch.
    pub fn batch(&mut self, batch: &DocBatch) {
        for doc in batch.docs() {
            self.documents += 1;
            let this = self.documents as u32;
            self.features.each(self.cleaner.clean(doc.text), |feature| {
                let counter = &mut self.counters[counter(feature)];
                if counter.last != this {
                    *counter = Counter { documents: counter.documents.saturating_add(1), last: this };
                }
            });
        }
    }

    /// Returns the counts.
    pub fn finish(self) -> Statistics {
        let counts = self.counters.into_iter().map(|counter| counter.documents).collect();
        Statistics { documents: self.documents, counts }
    }
}

/// Rarity of each feature in a corpus: its inverse document frequency, log2((N + 1) / n) for a feature in n
/// of N documents, in eighths, between 1 and 255. Clones share 4 MB.
#[derive(Clone, Debug)]
pub struct Rarities(Arc<[u8]>);

impl Rarities {
    /// Computes the rarities. If no document was counted, all features are equally rare. Cost: some 40 ms.
    pub fn new(statistics: &Statistics) -> Self {
        let all = log2_eighths(statistics.documents.saturating_add(1));
        let rarity = |&count: &u32| all.saturating_sub(log2_eighths(count.max(1).into())).clamp(1, 255) as u8;
        Rarities(statistics.counts.iter().map(rarity).collect())
    }

    /// Returns the rarity of a feature.
    #[inline]
    pub fn of(&self, feature: u64) -> u8 {
        self.0.get(counter(feature)).copied().unwrap_or(1)
    }
}

/// Returns the binary logarithm of a number above 0 in eighths, rounded down. It uses whole numbers, so the
/// result is the same on every machine: squaring a number doubles its logarithm.
fn log2_eighths(number: u64) -> u32 {
    let mut log = number.ilog2();
    // A number from 1 to 2, in units of 2^-63.
    let mut rest = number << (63 - log);
    for _ in 0..3 {
        let square = (u128::from(rest) * u128::from(rest)) >> 63;
        let carry = (square >> 64) as u32;
        rest = (square >> carry) as u64;
        log = 2 * log + carry;
    }
    log
}

#[cfg(test)]
mod tests {
    use super::super::Clean;
    use super::*;

    fn count(texts: &[&str]) -> Statistics {
        let mut count = Count::new(Cleaner::new(Clean::Nfkc), Features::Chars(1));
        let mut batch = DocBatch::new(0, 0);
        texts.iter().for_each(|text| batch.push("", text));
        count.batch(&batch);
        count.finish()
    }

    fn feature(text: &str) -> u64 {
        let mut set = Vec::new();
        Features::Chars(1).all(text, &mut set);
        set[0]
    }

    #[test]
    fn a_document_counts_once_for_a_feature_that_it_repeats() {
        let statistics = count(&["我我我", "我你", "他"]);
        let of = |text| statistics.counts[counter(feature(text))];
        assert_eq!((statistics.documents, of("我"), of("你"), of("他"), of("她")), (3, 2, 1, 1, 0));
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        let (one, other) = (["我们", "你们"], ["他们", "我"]);
        let mut sum = Statistics::default();
        sum.add(count(&other));
        sum.add(count(&one));
        assert_eq!(sum, count(&[one, other].concat()));
    }

    #[test]
    fn the_rarer_a_feature_the_more_it_weighs() {
        let texts: Vec<String> =
            (0..15).map(|i| if i < 3 { "我的".into() } else { "的".repeat(i) }).collect();
        let rarities = Rarities::new(&count(&texts.iter().map(String::as_str).collect::<Vec<_>>()));
        // log2(16) minus log2(15), log2(3) and log2(1), in eighths.
        assert_eq!(["的", "我", "他"].map(|text| rarities.of(feature(text))), [1, 32 - 12, 32]);
        let none = Rarities::new(&Statistics::default());
        assert_eq!(none.of(feature("的")), none.of(feature("我")));
    }

    #[test]
    fn logarithms_are_rounded_down_to_eighths() {
        let exactly = |number: u64| (0..).find(|&log| u128::from(number).pow(8) < 1 << (log + 1)).unwrap();
        assert!((1..30_000).all(|number| log2_eighths(number) == exactly(number)));
        assert_eq!([1 << 63, u64::MAX].map(log2_eighths), [504, 511]);
    }
}
