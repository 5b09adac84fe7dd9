//! Classification of documents: documents and classes as vectors of feature counts, and the nearest class of
//! a document by four measures.
//!
//! Source: Zhang Min, "Similarity detection in mass data by MapReduce" (海量數據的MapReduce相似度檢測), Research and
//! Exploration in Laboratory 2014(9), section 3: a document is the vector of its words' frequencies, and a
//! class is the sum of the vectors of its documents. The choices that the paper leaves open are in
//! docs/papers/zhang2014.md.

use crate::hash;
use crate::text::features::Features;

/// Counts of the features of a text, sorted by feature, each feature once. Never empty.
pub type Counts = Vec<(u64, u64)>;

/// Counts the features of a cleaned text. Cost: finding and sorting them.
pub fn counts(features: &Features, text: &str) -> Counts {
    let mut all = Vec::new();
    features.each(text, |feature| all.push(feature));
    all.sort_unstable();
    all.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64)).collect()
}

/// Returns the SimHash of a vector, with 64 bits. A bit is set if the features that have it set weigh more
/// than those that do not.
///
/// Cost: 64 additions a feature. Source: Zhang 2014, section 2.2.
pub fn simhash(counts: &[(u64, u64)]) -> u64 {
    let mut ballot = Ballot::default();
    counts.iter().for_each(|&(feature, count)| ballot.add(feature, count));
    ballot.majority()
}

/// Votes on each bit: the weight of the features that have it set, minus the weight of the others.
#[derive(Clone)]
struct Ballot([i64; 64]);

impl Default for Ballot {
    fn default() -> Self {
        Ballot([0; 64])
    }
}

impl Ballot {
    fn add(&mut self, feature: u64, count: u64) {
        for (bit, votes) in self.0.iter_mut().enumerate() {
            *votes += if feature >> bit & 1 == 1 { count as i64 } else { -(count as i64) };
        }
    }

    fn majority(&self) -> u64 {
        self.0.iter().enumerate().fold(0, |all, (bit, &votes)| all | u64::from(votes > 0) << bit)
    }
}

/// Division of the documents into a test set and a training set, by a hash of their text and a seed.
///
/// Equal texts are in one set, whatever their names and places are: a copy of a test document in the training
/// set would make the test worthless.
#[derive(Clone, Copy, Debug)]
pub struct Division {
    seed: u64,
    /// Bound below which hashes belong to the test set.
    end: u64,
}

impl Division {
    /// Makes a division. `share`: the approximate share of the test set, between 0 and 1.
    pub fn new(seed: u64, share: f64) -> Self {
        Division { seed, end: (share * 2f64.powi(64)) as u64 }
    }

    /// Whether the document with this text, not cleaned, is in the test set.
    pub fn tests(&self, text: &str) -> bool {
        hash::gram(u128::from(self.seed) << 64 | u128::from(hash::bytes(text.as_bytes()))) < self.end
    }
}

/// Measure of how near a document is to a class. If several classes are equally near, the first counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Euclidean distance of the two vectors.
    Euclid,
    /// Cosine of the angle between the two vectors.
    Cosine,
    /// Pearson's correlation coefficient over all features that occur in a class or in the document.
    Correlation,
    /// Hamming distance of the two fingerprints.
    SimHash,
}

impl Measure {
    /// All measures, in the paper's order.
    pub const ALL: [Measure; 4] = [Measure::Euclid, Measure::Cosine, Measure::Correlation, Measure::SimHash];

    /// Returns the measure of a name.
    pub fn named(name: &str) -> Option<Self> {
        Measure::ALL.into_iter().find(|measure| measure.name() == name)
    }

    /// Returns the name that is printed and written.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Euclid => "euclid",
            Measure::Cosine => "cosine",
            Measure::Correlation => "correlation",
            Measure::SimHash => "simhash",
        }
    }
}

/// Number of times that a feature occurs in all training documents of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClassSum {
    /// Hash of the feature.
    pub feature: u64,
    /// Number of the class.
    pub class: u32,
    /// Count, at least 1.
    pub count: u64,
}

/// Sums of all classes. Memory: 16 bytes a feature, and 16 for each class that a feature occurs in.
pub struct Classes {
    /// All features, sorted.
    features: Vec<u64>,
    /// For each feature, the start of its sums, and at last the end of all.
    starts: Vec<usize>,
    /// Class and count of each sum, feature after feature.
    sums: Vec<(u32, u64)>,
    classes: Vec<ClassData>,
}

/// Data of a class that the measures need beside its sums.
#[derive(Clone, Default)]
struct ClassData {
    /// Sum of all counts; 0 if the class has no training document, so that nothing is near to it.
    sum: u64,
    /// Sum of the squares of all counts.
    squares: u128,
    fingerprint: u64,
}

/// A document, expressed in the features of the classes.
pub struct Vector {
    /// For each of its features that a class has, the number of the feature and its count.
    known: Vec<(usize, u64)>,
    /// Number of its features that no class has.
    unknown: u64,
    sum: u64,
    fingerprint: u64,
}

impl Classes {
    /// Makes the classes. `sums`: in any order, each feature of a class once. Classes are numbered below
    /// `classes`.
    pub fn new(classes: u32, mut sums: Vec<ClassSum>) -> Self {
        sums.sort_unstable();
        let mut all = Classes {
            features: Vec::new(),
            starts: Vec::new(),
            sums: Vec::with_capacity(sums.len()),
            classes: vec![ClassData::default(); classes as usize],
        };
        let mut ballots = vec![Ballot::default(); classes as usize];
        for ClassSum { feature, class, count } in sums {
            if all.features.last() != Some(&feature) {
                all.features.push(feature);
                all.starts.push(all.sums.len());
            }
            all.sums.push((class, count));
            let of_class = &mut all.classes[class as usize];
            of_class.sum += count;
            of_class.squares += u128::from(count).pow(2);
            ballots[class as usize].add(feature, count);
        }
        all.starts.push(all.sums.len());
        for (class, ballot) in all.classes.iter_mut().zip(ballots) {
            class.fingerprint = ballot.majority();
        }
        all
    }

    /// Returns the number of different features.
    pub fn features(&self) -> usize {
        self.features.len()
    }

    /// Expresses a document in the features of the classes. `fingerprint`: its [`simhash`].
    pub fn vector(&self, counts: &[(u64, u64)], fingerprint: u64) -> Vector {
        let number = |feature| self.features.binary_search(&feature).ok();
        let known = counts.iter().filter_map(|&(feature, count)| Some((number(feature)?, count)));
        let known: Vec<_> = known.collect();
        let sum = counts.iter().map(|&(_, count)| count).sum();
        Vector { unknown: (counts.len() - known.len()) as u64, known, sum, fingerprint }
    }

    /// Returns the number of the last class that has a training document.
    pub fn last(&self) -> Option<u32> {
        (0u32..).zip(&self.classes).filter(|(_, class)| class.sum > 0).last().map(|(number, _)| number)
    }

    /// Returns the number of the nearest class; `None` if no class has a training document.
    ///
    /// Cost: for SimHash one comparison a class; for the others one multiplication for each feature of the
    /// document and each class that has it. Numbers are whole up to the last division, so the result does not
    /// depend on any order.
    pub fn nearest(&self, measure: Measure, document: &Vector) -> Option<u32> {
        let trained = (0u32..).zip(&self.classes).filter(|(_, class)| class.sum > 0);
        let nearest = match measure {
            Measure::SimHash => {
                trained.min_by_key(|(_, class)| (class.fingerprint ^ document.fingerprint).count_ones())
            }
            Measure::Euclid => {
                // The length of the document is the same for all classes, and left out.
                let products = self.products(document);
                trained.min_by_key(|(number, class)| {
                    class.squares as i128 - 2 * products[*number as usize] as i128
                })
            }
            Measure::Cosine => {
                let products = self.products(document);
                greatest(trained, |number, class| {
                    products[number as usize] as f64 / (class.squares as f64).sqrt()
                })
            }
            Measure::Correlation => {
                let products = self.products(document);
                let size = i128::from(self.features.len() as u64 + document.unknown);
                greatest(trained, |number, class| {
                    let sum = i128::from(class.sum);
                    let together = size * products[number as usize] as i128 - i128::from(document.sum) * sum;
                    let alone = size * class.squares as i128 - sum * sum;
                    // A class that has every feature equally often has no correlation with anything.
                    if alone == 0 { 0.0 } else { together as f64 / (alone as f64).sqrt() }
                })
            }
        };
        nearest.map(|(number, _)| number)
    }

    /// Returns the scalar product of the document with each class.
    fn products(&self, document: &Vector) -> Vec<u128> {
        let mut products = vec![0; self.classes.len()];
        for &(number, count) in &document.known {
            for &(class, of_class) in &self.sums[self.starts[number]..self.starts[number + 1]] {
                products[class as usize] += u128::from(count) * u128::from(of_class);
            }
        }
        products
    }
}

/// Returns the class with the greatest nearness, and of equal ones the first.
fn greatest<'c>(
    classes: impl Iterator<Item = (u32, &'c ClassData)>,
    nearness: impl Fn(u32, &ClassData) -> f64,
) -> Option<(u32, &'c ClassData)> {
    let measured = classes.map(|(number, class)| (nearness(number, class), (number, class)));
    measured.min_by(|a, b| b.0.total_cmp(&a.0)).map(|(_, class)| class)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::method::SimHashSpec;
    use crate::text::document_frequencies::Statistics;
    use crate::text::features::{FeatureSpec, Lexicon};

    fn characters() -> Features {
        Features::new(FeatureSpec::Chars(1), &Lexicon::default()).unwrap()
    }

    /// Makes classes. `sums`: for each class, the counts of the features 0, 1, 2 and so on.
    fn classes(sums: &[&[u64]]) -> Classes {
        let sum = |class: usize, feature: usize| ClassSum {
            feature: feature as u64,
            class: class as u32,
            count: sums[class][feature],
        };
        let all = (0..sums.len()).flat_map(|class| (0..sums[class].len()).map(move |f| sum(class, f)));
        Classes::new(sums.len() as u32, all.filter(|sum| sum.count > 0).collect())
    }

    fn counted(counts: &[u64]) -> Counts {
        (0..).zip(counts.iter().copied()).filter(|&(_, count)| count > 0).collect()
    }

    fn nearest(classes: &Classes, counts: &[u64]) -> [Option<u32>; 4] {
        let counts = counted(counts);
        let vector = classes.vector(&counts, simhash(&counts));
        Measure::ALL.map(|measure| classes.nearest(measure, &vector))
    }

    #[test]
    fn a_text_is_counted_feature_by_feature() {
        let counts = counts(&characters(), "abacab");
        let mut expected = [(b'a', 3), (b'b', 2), (b'c', 1)].map(|(c, count)| (hash::gram(c.into()), count));
        expected.sort_unstable();
        assert_eq!(counts, expected);
    }

    #[test]
    fn the_fingerprint_of_the_counts_is_that_of_the_text() {
        let mut made = SimHashSpec::default().simhash::<u64>(characters(), &Statistics::default());
        for text in ["", "a", "ab", "相似的文本有相似的指纹", "aaaabbbc"] {
            assert_eq!(simhash(&counts(&characters(), text)), made.fingerprint(text), "{text}");
        }
    }

    /// The squared distances are 6, 9, 11; the cosines 0, .316, .283; the correlations -.866, -.866, -.655.
    /// The fingerprints are 00 (of the document) and 10, 00, 10 (of the classes; features are their own
    /// hashes), which differ in 1, 0 and 1 bits.
    #[test]
    fn each_measure_has_its_own_nearest_class() {
        let classes = classes(&[&[0, 0, 1], &[0, 2, 2], &[1, 0, 3]]);
        assert_eq!(nearest(&classes, &[2, 1, 0]), [Some(0), Some(1), Some(2), Some(1)]);
    }

    #[test]
    fn of_equal_classes_the_first_counts_and_of_empty_ones_none() {
        assert_eq!(nearest(&classes(&[&[], &[1, 2], &[1, 2]]), &[1, 2]), [Some(1); 4]);
        assert_eq!(nearest(&classes(&[&[], &[]]), &[1, 2]), [None; 4]);
    }

    #[test]
    fn about_a_share_of_all_texts_is_for_testing_and_another_with_another_seed() {
        let tests = |seed, share| {
            let division = Division::new(seed, share);
            (0..10_000).filter(|n| division.tests(&n.to_string())).collect::<Vec<_>>()
        };
        let (some, others) = (tests(1, 0.1), tests(2, 0.1));
        assert!([&some, &others].iter().all(|chosen| (900..1100).contains(&chosen.len())));
        assert!(some.iter().filter(|n| others.contains(n)).count() < 200);
        assert!(some.iter().all(|n| tests(1, 0.3).contains(n)));
    }

    /// Computes a measure by its textbook formula, over every feature. Larger is nearer.
    fn slowly(measure: Measure, document: &[u64], class: &[u64]) -> f64 {
        let floats = |counts: &[u64]| counts.iter().map(|&count| count as f64).collect::<Vec<_>>();
        let less_mean = |counts: &[f64]| {
            let mean = counts.iter().sum::<f64>() / counts.len() as f64;
            counts.iter().map(|count| count - mean).collect::<Vec<_>>()
        };
        let cosine = |a: &[f64], b: &[f64]| {
            let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let lengths = product(a, a).sqrt() * product(b, b).sqrt();
            if lengths < 1e-9 { 0.0 } else { product(a, b) / lengths }
        };
        let (a, b) = (floats(document), floats(class));
        match measure {
            Measure::Euclid => -a.iter().zip(&b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt(),
            Measure::Cosine => cosine(&a, &b),
            Measure::Correlation => cosine(&less_mean(&a), &less_mean(&b)),
            Measure::SimHash => {
                let print = |counts: &[u64]| simhash(&counted(counts));
                -f64::from((print(document) ^ print(class)).count_ones())
            }
        }
    }

    proptest! {
        #[test]
        fn no_class_is_nearer_by_the_textbook(
            mut all in prop::collection::vec(prop::collection::vec(0u64..4, 6), 2..6),
            scale in 1u64..1000,
        ) {
            // Features that occur nowhere are dropped. Every document and every class has some feature.
            let used: Vec<usize> = (0..6).filter(|&f| all.iter().any(|counts| counts[f] > 0)).collect();
            for counts in &mut all {
                *counts = used.iter().map(|&f| counts[f]).collect();
            }
            all.retain(|counts| counts.iter().any(|&count| count > 0));
            prop_assume!(all.len() > 1);
            all[1].iter_mut().for_each(|count| *count *= scale);
            let (document, sums) = all.split_first().unwrap();
            let slices: Vec<&[u64]> = sums.iter().map(Vec::as_slice).collect();
            let found = nearest(&classes(&slices), document);
            for (measure, found) in Measure::ALL.into_iter().zip(found) {
                let nearness: Vec<f64> = sums.iter().map(|class| slowly(measure, document, class)).collect();
                let best = nearness.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                prop_assert!(nearness[found.unwrap() as usize] > best - 1e-9, "{measure:?}: {found:?} of {nearness:?}");
            }
        }
    }
}
