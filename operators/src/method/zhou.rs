//! The method `zhou2017`, whose search is `search/zhou`. docs/papers/zhou2017.md is our reading of the paper.

use std::fmt;

use super::Method;
use super::curve::{Cost, Curve, within};
use super::parameters::{Parameters, WrongParameter, named, number, store, store_clean, store_features};
use crate::Error;
use crate::search::Search;
use crate::search::zhou::retrieval::{Retrieval, Splitting, Uneven};
use crate::search::zhou::{Fold, WordHash, Zhou};
use crate::sets::similarity::Similarity;
use crate::text::document_frequencies::Statistics;
use crate::text::features::{FeatureSpec, Features, Lexicon};
use crate::text::{Clean, Cleaner};

/// Parameters of `zhou2017`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZhouSpec {
    /// Weight of the words that two texts share: 2 to 8, or 0 for the traditional SimHash, which has Hamming distances alone.
    pub k: u32,
    /// Least Sim of a duplicate, in millionths; by default 1 + 0.2 K.
    pub threshold: Option<u64>,
    /// Way in which the documents to compare are found.
    pub retrieval: Retrieval,
    /// Bounds of the recursive retrieval.
    pub splitting: Splitting,
    /// Hash of a word.
    pub hash: WordHash,
    /// Parts of it that are or-ed onto each other.
    pub fold: Fold,
    /// Features that the fingerprint is made from.
    pub features: FeatureSpec,
    /// Cleaning of the text.
    pub clean: Clean,
}

impl Default for ZhouSpec {
    fn default() -> Self {
        let (features, clean) = (FeatureSpec::Jieba, Clean::Weibo);
        ZhouSpec {
            k: 4,
            threshold: None,
            retrieval: Retrieval::Recursive,
            splitting: Splitting::default(),
            hash: WordHash::Java,
            fold: Fold::Upper,
            features,
            clean,
        }
    }
}

impl ZhouSpec {
    /// Returns the least Sim of a duplicate, in millionths.
    fn threshold(&self) -> u64 {
        self.threshold.unwrap_or(1_000_000 + 200_000 * u64::from(self.k))
    }

    /// Returns the search that these parameters describe, by the words that they name.
    pub fn zhou(&self, features: Features) -> Zhou {
        let ZhouSpec { k, retrieval, splitting, hash, fold, .. } = *self;
        Zhou { features, k: k.into(), threshold: self.threshold(), hash, fold, retrieval, splitting }
    }
}

impl Parameters for ZhouSpec {
    fn name(&self) -> &'static str {
        "zhou2017"
    }

    fn examples(&self) -> &'static [&'static str] {
        &[
            "zhou2017:threshold=2.4,features=char:1",
            "zhou2017:k=8,retrieval=bucket,features=char:2,clean=none",
            "zhou2017:k=2,threshold=1.25,retrieval=linear,features=word:1,clean=nfkc",
            "zhou2017:fold=lower,features=char:2",
            "zhou2017:k=0,threshold=0.25,hash=xxh3,fold=none",
            "zhou2017:variance=2,top=2,small=1,fold=lower",
            "zhou2017:heavy=20,fold=lower,features=char:2",
        ]
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), WrongParameter> {
        match key {
            "k" => number(&mut self.k, value, [0].into_iter().chain(2..=8), "0 or 2 to 8"),
            "threshold" => {
                let sim = value.parse().ok().filter(|sim| (0.0..=9.0).contains(sim));
                let millionths = sim.map(|sim: f64| Some((sim * 1e6).round() as u64));
                store(&mut self.threshold, millionths, "a number from 0 to 9")
            }
            "retrieval" => store(&mut self.retrieval, named(value), "linear, bucket or recursive"),
            "hash" => store(&mut self.hash, named(value), "java or xxh3"),
            "fold" => store(&mut self.fold, named(value), "upper, lower or none"),
            "heavy" => {
                let share = value.parse().ok().filter(|share| (1..=100).contains(share));
                store(&mut self.splitting.uneven, share.map(Uneven::Share), "1 to 100")
            }
            "variance" => {
                let percent = value.parse().ok().filter(|percent| (0..=39).contains(percent));
                let variance = percent.map(|percent| Uneven::Variance { percent, top: 1 });
                store(&mut self.splitting.uneven, variance, "0 to 39")
            }
            "top" => match &mut self.splitting.uneven {
                Uneven::Variance { top, .. } => number(top, value, 1..=2, "1 or 2"),
                Uneven::Share(_) => Err(WrongParameter::Expected("variance=N before it")),
            },
            "small" => number(&mut self.splitting.small, value, 0..=100, "0 to 100"),
            "features" => store_features(&mut self.features, value),
            "clean" => store_clean(&mut self.clean, value),
            _ => Err(WrongParameter::Unknown),
        }
    }

    fn help(&self) -> &'static str {
        "zhou2017 (k=2..8, threshold=1+0.2k, retrieval=linear|bucket|recursive, hash=java|xxh3, \
         fold=upper|lower|none, features, clean) compares fingerprints and shared words together, and \
         deletes as it compares; k=0 compares fingerprints alone. The recursive retrieval splits \
         buckets with more than heavy=50 percent of the rows, or with variance=N the top=1|2 largest, \
         down to small=10 percent."
    }

    fn clean(&self) -> Clean {
        self.clean
    }

    fn features(&self) -> Option<FeatureSpec> {
        Some(self.features)
    }

    fn deletes_as_it_compares(&self) -> bool {
        true
    }

    fn measures(&self) -> bool {
        true
    }

    fn weight_of_sim(&self) -> Option<u32> {
        Some(self.k)
    }

    // Its threshold is one of Sim, which is not a similarity between 0 and 1, so `thresholds` has none.

    fn fingerprints(&self) -> bool {
        true
    }

    fn method(&self, lexicon: &Lexicon, _: &Statistics, _: Option<Similarity>) -> Result<Method, Error> {
        let features = Features::new(self.features, lexicon)?;
        Ok(Method::verified_by(
            Search::Zhou(self.zhou(features.clone())),
            features,
            Cleaner::new(self.clean),
            None,
        ))
    }

    fn curve(&self) -> Curve {
        Curve {
            of: "cosine of the texts' words, by their number in the text",
            because:
                "two are compared if they agree on 8 bits of a copy (of 32 independent bits; the upper half \
                      nearly repeats the lower, so rather less), and kept if Sim reaches the threshold"
                    .to_owned(),
            chance: Box::new(|cosine| 1.0 - (1.0 - within(8, 0, cosine)).powi(4)),
        }
    }

    /// The search also holds the words that no other document has.
    fn cost(&self) -> Cost {
        Cost { document: 64, feature: 8 }
    }
}

impl fmt::Display for ZhouSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ZhouSpec { k, threshold, retrieval, splitting, hash, fold, features, clean } = self;
        write!(f, "k={k},")?;
        if let Some(millionths) = threshold {
            write!(f, "threshold={},", *millionths as f64 / 1e6)?;
        }
        write!(f, "retrieval={retrieval},")?;
        let standard = Splitting::default();
        match splitting.uneven {
            uneven if uneven == standard.uneven => {}
            Uneven::Share(percent) => write!(f, "heavy={percent},")?,
            Uneven::Variance { percent, top } => write!(f, "variance={percent},top={top},")?,
        }
        if splitting.small != standard.small {
            write!(f, "small={},", splitting.small)?;
        }
        if *hash != WordHash::Java {
            write!(f, "hash={hash},")?;
        }
        write!(f, "fold={fold},features={features},clean={clean}")
    }
}
