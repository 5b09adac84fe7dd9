//! SimHash: similar texts have fingerprints that differ in few bits.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::fingerprint::bit_counts::BitCounts;
use crate::fingerprint::bits::Bits;
use crate::fingerprint::block_join::BlockJoin;
use crate::fingerprint::hamming::Kernel;
use crate::sets::SetKind;
use crate::sets::small_sketch::{LARGEST_LIST, SmallSketch};
use crate::text::document_frequencies::{Rarities, Statistics};
use crate::text::features::Features;

/// Fingerprints of a method, and how near two that match must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FingerprintDesign {
    /// Number of bits of a fingerprint.
    pub bits: u32,
    /// Largest distance of a match, in bits.
    pub distance: u32,
    /// Number of blocks that a fingerprint is cut into.
    pub blocks: u32,
    /// Weight of each feature of a text.
    pub weights: Weights,
}

/// Weight of each feature of a text. A feature that the text repeats is weighed each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weights {
    /// All features weigh 1, so a feature counts by its frequency in the text.
    #[default]
    Tf,
    /// A feature weighs its inverse document frequency: the rarer it is in the corpus, the more.
    Tfidf,
    /// A feature weighs from 1 to 5. The different features of the text are ordered by their rarity in the
    /// corpus, and each fifth of them has one weight.
    Rank5,
}

impl fmt::Display for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// SimHash of up to 64 or 128 bits. Two texts match within a number of bits.
///
/// The hash of each feature of a text votes on each bit of the fingerprint, with the weight of the feature:
/// for the bit if the hash has it set, else against it. A bit of the fingerprint is set if the sum of the
/// votes is above 0. Texts that share most of their weight get most votes alike, so few bits differ.
///
/// Example with fingerprints of six bits and two features:
///
/// ```text
/// hash 100101, weight 4     +4 -4 -4 +4 -4 +4
/// hash 101011, weight 5     +5 -5 +5 -5 +5 +5
/// sums                      +9 -9 +1 -1 +1 +9
/// fingerprint               1  0  1  0  1  1
/// ```
///
/// Sources: Charikar, "Similarity Estimation Techniques from Rounding Algorithms", STOC 2002; as a detector
/// of near-duplicates: Manku, Jain, Das Sarma, WWW 2007; weights of five grades: docs/papers/lanceyan.md.
#[derive(Clone)]
pub struct SimHash<W> {
    features: Features,
    weights: Weights,
    rarities: Rarities,
    words: Vec<u64>,
    /// The first features of the last text, one more than can be sketched.
    first: Vec<u64>,
    mask: W,
    /// Whether texts are fingerprints, written as numbers.
    given: bool,
    /// Join of the fingerprints, which finds those within the distance.
    pub join: BlockJoin<W>,
}

impl<W: Bits> SimHash<W> {
    /// Makes fingerprints of these features. The word must have at least as many bits as the fingerprints.
    ///
    /// `statistics`: of the corpus, for [`Weights`] other than `Tf`. If nothing was counted, all features
    /// weigh the same.
    pub fn new(design: FingerprintDesign, features: Features, statistics: &Statistics) -> Self {
        let FingerprintDesign { bits, distance, blocks, weights } = design;
        SimHash {
            features,
            weights,
            rarities: Rarities::new(statistics),
            words: Vec::new(),
            first: Vec::new(),
            mask: W::lowest(bits),
            given: false,
            join: BlockJoin::new(bits, distance, blocks, Kernel::widest()),
        }
    }

    /// Takes texts as fingerprints that were made elsewhere ([`Bits::of_number`]). Other texts have the fingerprint 0.
    pub fn given(self) -> Self {
        SimHash { given: true, ..self }
    }

    /// Returns the reason for which a text has no fingerprint.
    pub(super) fn refuses(&self, text: &str) -> Option<String> {
        let bits = self.bits();
        // A negative number of fewer bits has all the bits above them set, and the highest of them.
        let above = !(self.mask >> 1);
        let fits = |word: W| {
            word & !self.mask == W::default() || text.trim().starts_with('-') && word & above == above
        };
        let is_number = || W::of_number(text).is_some_and(fits);
        (self.given && !is_number())
            .then(|| format!("not a fingerprint of {bits} bits: a number, or 0x and hexadecimal digits"))
    }

    /// Returns the number of bits of a fingerprint.
    pub fn bits(&self) -> u32 {
        self.mask.count_ones()
    }

    /// Returns the fingerprint of a cleaned text.
    pub fn fingerprint(&mut self, text: &str) -> W {
        let mut tally = BitCounts::default();
        let first = &mut self.first;
        first.clear();
        if self.given {
            return W::of_number(text).unwrap_or_default() & self.mask;
        }
        let mut note = |feature| {
            if first.len() <= LARGEST_LIST {
                first.push(feature);
            }
        };
        match self.weights {
            Weights::Tf => self.features.each(text, |feature| {
                note(feature);
                tally.add(W::of_feature(feature));
            }),
            Weights::Tfidf => self.features.each(text, |feature| {
                note(feature);
                tally.add_weighted(W::of_feature(feature), self.rarities.of(feature).into());
            }),
            Weights::Rank5 => self.add_ranked(text, &mut tally),
        }
        tally.majority() & self.mask
    }

    /// Returns the features of a cleaned text in the order in which they first stand in it, each with the weight with which its
    /// hash votes: for people. Cost: some microseconds a feature.
    pub fn weighted_features(&mut self, text: &str) -> Vec<WeightedFeature<W>> {
        let mut names = Vec::new();
        self.features.slices(text, |name| names.push(name.to_owned()));
        let mut hashes = Vec::new();
        self.features.all(text, &mut hashes);
        self.words.clone_from(&hashes);
        let grades = self.grades();
        let mut features: Vec<WeightedFeature<W>> = Vec::new();
        for (text, feature) in names.into_iter().zip(hashes) {
            let rarity = self.rarities.of(feature);
            let weight = match self.weights {
                Weights::Tf => 1,
                Weights::Tfidf => rarity.into(),
                Weights::Rank5 => grades[usize::from(rarity)],
            };
            match features.iter_mut().find(|known| known.text == text) {
                Some(known) => known.weight += weight,
                None => features.push(WeightedFeature { text, weight, hash: W::of_feature(feature) }),
            }
        }
        features
    }

    /// Returns the sketch of the features of the text whose fingerprint was asked for last.
    pub fn sketch(&self) -> SmallSketch {
        SmallSketch::new(SetKind::Long, &self.first, false)
    }

    /// Adds the features of a text with weights from 1 to 5. The weight of a feature is one more than the
    /// number of whole fifths of the text's different features that are commoner. Equally rare features weigh
    /// the same.
    fn add_ranked(&mut self, text: &str, tally: &mut BitCounts<W>) {
        self.words.clear();
        self.features.each(text, |word| self.words.push(word));
        self.first.extend(self.words.iter().take(LARGEST_LIST + 1));
        let grades = self.grades();
        for &word in &self.words {
            tally.add_weighted(W::of_feature(word), grades[usize::from(self.rarities.of(word))]);
        }
    }

    /// Returns the weight of the words of each rarity among those in `words`, which it sorts.
    fn grades(&mut self) -> [u64; 256] {
        let (words, rarities) = (&mut self.words, &self.rarities);
        words.sort_unstable();
        let mut of_rarity = [0; 256];
        words.chunk_by(|a, b| a == b).for_each(|same| of_rarity[usize::from(rarities.of(same[0]))] += 1);
        let different = of_rarity.iter().sum::<u64>().max(1);
        let mut commoner = 0;
        of_rarity.map(|words| {
            let grade = 1 + 5 * commoner / different;
            commoner += words;
            grade
        })
    }
}

/// A feature of a text, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightedFeature<W> {
    /// The feature as it stands in the text.
    pub text: String,
    /// Weight with which its hash votes, summed up over its repetitions.
    pub weight: u64,
    /// Its bits, each of which votes.
    pub hash: W,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::DocBatch;
    use crate::text::document_frequencies::Count;
    use crate::text::{Clean, Cleaner};

    fn simhash<W: Bits>(bits: u32, weights: Weights, corpus: &[&str]) -> SimHash<W> {
        let mut count = Count::new(Cleaner::new(Clean::Nfkc), Features::Chars(1));
        let mut batch = DocBatch::new(0, 0);
        corpus.iter().for_each(|text| batch.push("", text));
        count.batch(&batch);
        let design = FingerprintDesign { bits, distance: 3, blocks: 4, weights };
        SimHash::new(design, Features::Chars(1), &count.finish())
    }

    fn feature<W: Bits>(text: &str) -> W {
        let mut set = Vec::new();
        Features::Chars(1).all(text, &mut set);
        W::of_feature(set[0])
    }

    #[test]
    fn of_two_words_the_rarer_one_decides() {
        let mut simhash = simhash::<u64>(64, Weights::Tfidf, &["的", "的", "的", "的飞", "的碟"]);
        assert_eq!(simhash.fingerprint("的飞"), feature::<u64>("飞"));
        assert_eq!(simhash.fingerprint(&format!("飞{}", "的".repeat(20))), feature::<u64>("的"));
    }

    /// Twelve words, as many as in the example of papers/2, each the rarer the later it comes.
    #[test]
    fn grades_go_from_one_to_five_by_fifths() {
        let words: Vec<char> = "称有曾看部内员架国色飞碟".chars().collect();
        let corpus: Vec<String> = (0..1 << 11)
            .map(|i| {
                let there = words.iter().enumerate().filter(|(w, _)| i >> w << w == i).map(|(_, &word)| word);
                // 圆 is as common as 员.
                there.flat_map(|word| [word].into_iter().chain((word == '员').then_some('圆'))).collect()
            })
            .collect();
        let corpus: Vec<&str> = corpus.iter().map(String::as_str).collect();
        let mut simhash = simhash::<u64>(64, Weights::Rank5, &corpus);
        let mut check = |words: &[char], grades: &[u64]| {
            let mut expected = BitCounts::default();
            for (word, &grade) in words.iter().zip(grades) {
                expected.add_weighted(feature::<u64>(&word.to_string()), grade);
            }
            assert_eq!(
                simhash.fingerprint(&words.iter().collect::<String>()),
                expected.majority(),
                "{words:?}"
            );
        };
        // The words are taken in windows, so that every grade decides some bit of some fingerprint.
        for grades in [
            &[1, 1, 1, 2, 2, 3, 3, 3, 4, 4, 5, 5][..],
            &[1, 1, 2, 2, 3, 3, 4, 4, 5, 5],
            &[1, 1, 2, 3, 3, 4, 5],
            &[1, 2, 3, 4, 5],
            &[1, 2, 4],
        ] {
            words.windows(grades.len()).for_each(|words| check(words, grades));
        }
        for &rarer in &words[7..] {
            check(&['称', '员', '圆', rarer], &[1, 2, 2, 4]);
        }
    }

    #[test]
    fn without_statistics_all_weights_are_those_of_tf() {
        let text = "我们的生活充满阳光";
        let [tf, tfidf, rank5] = [Weights::Tf, Weights::Tfidf, Weights::Rank5]
            .map(|weights| simhash::<u64>(64, weights, &[]).fingerprint(text));
        assert_eq!((tf, tf), (tfidf, rank5));
    }

    #[test]
    fn fingerprints_of_fewer_bits_are_the_low_bits_of_longer_ones() {
        let text = "我们的生活充满阳光";
        let wide = simhash::<u128>(128, Weights::Tf, &[]).fingerprint(text);
        assert_eq!(simhash::<u64>(64, Weights::Tf, &[]).fingerprint(text), wide as u64);
        assert_eq!(simhash::<u64>(32, Weights::Tf, &[]).fingerprint(text), u64::from(wide as u32));
        assert_ne!(wide as u64, (wide >> 64) as u64);
    }
}
