//! The method `simhash`: similar texts have fingerprints that differ in few bits.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::curve::{Cost, Curve, within};
use super::parameters::{Parameters, WrongParameter, named, number, store, store_clean, store_features};
use super::{Method, Search};
use crate::Error;
use crate::fingerprint::bit_counts::BitCounts;
use crate::fingerprint::bits::Bits;
use crate::fingerprint::block_join::BlockJoin;
use crate::fingerprint::block_tables::{MAX_TABLES, tables};
use crate::fingerprint::hamming::Kernel;
use crate::sets::SetKind;
use crate::sets::similarity::Similarity;
use crate::sets::small_sketch::{LARGEST_LIST, SmallSketch};
use crate::text::document_frequencies::{Rarities, Statistics};
use crate::text::features::{FeatureSpec, Features, Lexicon};
use crate::text::{Clean, Cleaner};

/// Parameters of the preset `manku2007`: the setting of the paper, with features weighted as in information
/// retrieval.
pub const MANKU2007: &str = "bits=64,hamming=3,features=jieba,weights=tfidf";

/// Parameters of `simhash`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimHashSpec {
    /// Number of bits of a fingerprint: 32, 64 or 128.
    pub bits: u32,
    /// Largest distance of a match, in bits: up to 15.
    pub hamming: u32,
    /// Number of blocks that a fingerprint is cut into; by default one more than `hamming`.
    pub blocks: Option<u32>,
    /// Features that the fingerprint is made from.
    pub features: FeatureSpec,
    /// Weight of each feature of a text.
    pub weights: Weights,
    /// Cleaning of the text.
    pub clean: Clean,
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

impl Default for SimHashSpec {
    fn default() -> Self {
        SimHashSpec {
            bits: 64,
            hamming: 3,
            blocks: None,
            features: FeatureSpec::Jieba,
            weights: Weights::Tf,
            clean: Clean::Nfkc,
        }
    }
}

impl SimHashSpec {
    fn blocks(&self) -> u32 {
        self.blocks.unwrap_or(self.hamming + 1)
    }
}

impl Parameters for SimHashSpec {
    fn name(&self) -> &'static str {
        "simhash"
    }

    fn examples(&self) -> &'static [&'static str] {
        &[
            "simhash",
            "simhash:features=char:5",
            "simhash:bits=32,hamming=2,features=char:2,clean=weibo",
            "simhash:hamming=6,features=word:1,clean=none",
            "simhash:bits=128,hamming=9,features=char:3,weights=tfidf",
            "simhash:hamming=4,blocks=6,features=char:2,weights=rank5",
        ]
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), WrongParameter> {
        match key {
            "bits" => number(&mut self.bits, value, [32, 64, 128].into_iter(), "32, 64 or 128"),
            "hamming" => number(&mut self.hamming, value, 0..=15, "0 to 15"),
            "blocks" => number(self.blocks.insert(0), value, 1..=128, "1 to 128"),
            "features" => store_features(&mut self.features, value),
            "weights" => store(&mut self.weights, named(value), "tf, tfidf or rank5"),
            "clean" => store_clean(&mut self.clean, value),
            _ => Err(WrongParameter::Unknown),
        }
    }

    fn check(&self) -> Result<(), String> {
        let (SimHashSpec { bits, hamming, .. }, blocks) = (self, self.blocks());
        if blocks <= *hamming {
            return Err(format!("blocks must be more than hamming, which is {hamming}"));
        }
        if blocks > *bits {
            return Err(format!("blocks must be no more than bits, which is {bits}"));
        }
        match tables(*hamming, blocks) {
            0..=MAX_TABLES => Ok(()),
            tables => Err(format!(
                "{blocks} blocks for a distance of {hamming} make {tables} tables; at most {MAX_TABLES} are possible"
            )),
        }
    }

    fn help(&self) -> &'static str {
        "simhash (bits=32|64|128, hamming=0..15, blocks=N, features, weights=tf|tfidf|rank5, clean) \
         finds every pair of fingerprints within the distance; weights other than tf take one more \
         reading of the corpus. manku2007 is simhash with weights=tfidf."
    }

    fn clean(&self) -> Clean {
        self.clean
    }

    fn features(&self) -> Option<FeatureSpec> {
        Some(self.features)
    }

    fn counts_features(&self) -> bool {
        self.weights != Weights::Tf
    }

    fn measures(&self) -> bool {
        false
    }

    fn fingerprints(&self) -> bool {
        true
    }

    fn approximate(&self) -> bool {
        true
    }

    fn method(
        &self,
        lexicon: &Lexicon,
        statistics: &Statistics,
        verify: Option<Similarity>,
    ) -> Result<Method, Error> {
        let features = Features::new(self.features, lexicon)?;
        let search = match self.bits {
            0..=64 => Search::SimHash64(SimHash::new(self, features.clone(), statistics)),
            _ => Search::SimHash128(SimHash::new(self, features.clone(), statistics)),
        };
        Ok(Method::verified_by(search, features, Cleaner::new(self.clean), verify))
    }

    fn curve(&self) -> Curve {
        let (bits, limit) = (self.bits, self.hamming);
        Curve {
            of: "cosine of the texts' weighted features",
            because: "each bit differs with the chance of the angle over pi (exact for random hyperplanes; \
                      features that are few make it coarser)"
                .to_owned(),
            chance: Box::new(move |cosine| within(bits, limit, cosine)),
        }
    }

    fn cost(&self) -> Cost {
        Cost::FINGERPRINTS
    }
}

impl fmt::Display for SimHashSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SimHashSpec { bits, hamming, blocks: _, features, weights, clean } = self;
        write!(f, "bits={bits},hamming={hamming},")?;
        self.blocks.iter().try_for_each(|blocks| write!(f, "blocks={blocks},"))?;
        write!(f, "features={features},weights={weights},clean={clean}")
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
    /// Join of the fingerprints, which finds those within the distance.
    pub join: BlockJoin<W>,
}

impl<W: Bits> SimHash<W> {
    /// Makes the method that `spec` describes. The word must have as many bits as the fingerprints of `spec`.
    ///
    /// `statistics`: of the corpus, for [`Weights`] other than `Tf`. If nothing was counted, all features
    /// weigh the same.
    pub fn new(spec: &SimHashSpec, features: Features, statistics: &Statistics) -> Self {
        SimHash {
            features,
            weights: spec.weights,
            rarities: Rarities::new(statistics),
            words: Vec::new(),
            first: Vec::new(),
            mask: W::lowest(spec.bits),
            join: BlockJoin::new(spec.bits, spec.hamming, spec.blocks(), Kernel::widest()),
        }
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

    /// Returns the sketch of the features of the text whose fingerprint was asked for last.
    pub fn sketch(&self) -> SmallSketch {
        SmallSketch::new(SetKind::Long, &self.first, false)
    }

    /// Adds the features of a text with weights from 1 to 5. The weight of a feature is one more than the
    /// number of whole fifths of the text's different features that are commoner. Equally rare features weigh
    /// the same.
    fn add_ranked(&mut self, text: &str, tally: &mut BitCounts<W>) {
        let (words, rarities) = (&mut self.words, &self.rarities);
        words.clear();
        self.features.each(text, |word| words.push(word));
        self.first.extend(words.iter().take(LARGEST_LIST + 1));
        words.sort_unstable();
        let mut of_rarity = [0; 256];
        words.chunk_by(|a, b| a == b).for_each(|same| of_rarity[usize::from(rarities.of(same[0]))] += 1);
        let different: u64 = of_rarity.iter().sum();
        let mut commoner = 0;
        let grades = of_rarity.map(|words| {
            let grade = 1 + 5 * commoner / different;
            commoner += words;
            grade
        });
        for &word in &*words {
            tally.add_weighted(W::of_feature(word), grades[usize::from(rarities.of(word))]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc_batch::DocBatch;
    use crate::text::document_frequencies::Count;

    fn method<W: Bits>(spec: &str, corpus: &[&str]) -> SimHash<W> {
        let (mut spec, text) = (SimHashSpec::default(), spec);
        super::super::parameters::set_all(&mut spec, "simhash", text).unwrap();
        let mut count = Count::new(Cleaner::new(spec.clean), Features::Chars(1));
        let mut batch = DocBatch::new(0, 0);
        corpus.iter().for_each(|text| batch.push("", text));
        count.batch(&batch);
        SimHash::new(&spec, Features::Chars(1), &count.finish())
    }

    fn feature<W: Bits>(text: &str) -> W {
        let mut set = Vec::new();
        Features::Chars(1).all(text, &mut set);
        W::of_feature(set[0])
    }

    #[test]
    fn of_two_words_the_rarer_one_decides() {
        let mut method = method::<u64>("weights=tfidf", &["的", "的", "的", "的飞", "的碟"]);
        assert_eq!(method.fingerprint("的飞"), feature::<u64>("飞"));
        assert_eq!(method.fingerprint(&format!("飞{}", "的".repeat(20))), feature::<u64>("的"));
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
        let mut method =
            method::<u64>("weights=rank5", &corpus.iter().map(String::as_str).collect::<Vec<_>>());
        let mut check = |words: &[char], grades: &[u64]| {
            let mut expected = BitCounts::default();
            for (word, &grade) in words.iter().zip(grades) {
                expected.add_weighted(feature::<u64>(&word.to_string()), grade);
            }
            assert_eq!(
                method.fingerprint(&words.iter().collect::<String>()),
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
        let [tf, tfidf, rank5] = ["weights=tf", "weights=tfidf", "weights=rank5"]
            .map(|spec| method::<u64>(spec, &[]).fingerprint(text));
        assert_eq!((tf, tf), (tfidf, rank5));
    }

    #[test]
    fn fingerprints_of_fewer_bits_are_the_low_bits_of_longer_ones() {
        let text = "我们的生活充满阳光";
        let wide = method::<u128>("bits=128", &[]).fingerprint(text);
        assert_eq!(method::<u64>("bits=64", &[]).fingerprint(text), wide as u64);
        assert_eq!(method::<u64>("bits=32", &[]).fingerprint(text), u64::from(wide as u32));
        assert_ne!(wide as u64, (wide >> 64) as u64);
    }
}
