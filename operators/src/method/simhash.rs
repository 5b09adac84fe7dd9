//! The method `simhash`, whose search is `search/bits`: similar texts have fingerprints that differ in few bits.

use std::fmt;

use super::Method;
use super::curve::{Cost, Curve, within};
use super::parameters::{Parameters, WrongParameter, named, number, store, store_clean, store_features};
use crate::Error;
use crate::fingerprint::Bits;
use crate::fingerprint::block_tables::{MAX_TABLES, tables};
use crate::search::Search;
use crate::search::bits::{FingerprintDesign, SimHash, Weights};
use crate::sets::similarity::Similarity;
use crate::text::document_frequencies::Statistics;
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
    /// Whether texts are fingerprints that were made elsewhere.
    pub given: bool,
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
            given: false,
        }
    }
}

impl SimHashSpec {
    fn blocks(&self) -> u32 {
        self.blocks.unwrap_or(self.hamming + 1)
    }

    /// Returns the fingerprints that these parameters describe. The word must have at least as many bits.
    pub fn simhash<W: Bits>(&self, features: Features, statistics: &Statistics) -> SimHash<W> {
        let SimHashSpec { bits, hamming: distance, weights, .. } = *self;
        let design = FingerprintDesign { bits, distance, blocks: self.blocks(), weights };
        let simhash = SimHash::new(design, features, statistics);
        if self.given { simhash.given() } else { simhash }
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
            "given" => store(&mut self.given, value.is_empty().then_some(true), "without a value"),
            _ => Err(WrongParameter::Unknown),
        }
    }

    fn check(&self) -> Result<(), String> {
        let SimHashSpec { bits, hamming, .. } = self;
        let blocks = self.blocks();
        if self.given && self.weights != Weights::Tf {
            return Err("fingerprints that are given need no weights".to_owned());
        }
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
        "simhash (bits=32|64|128, hamming=0..15, blocks=N, features, weights=tf|tfidf|rank5, clean, given) \
         finds every pair of fingerprints within the distance; weights other than tf take one more \
         reading of the corpus; given takes texts as fingerprints. manku2007 is simhash with weights=tfidf."
    }

    fn clean(&self) -> Clean {
        self.clean
    }

    fn features(&self) -> Option<FeatureSpec> {
        Some(self.features).filter(|_| !self.given)
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
        !self.given
    }

    fn takes_fingerprints(&self) -> bool {
        self.given
    }

    fn take_fingerprints(&mut self) -> bool {
        // The fingerprints were made with these.
        self.weights = Weights::Tf;
        self.given = true;
        true
    }

    fn method(
        &self,
        lexicon: &Lexicon,
        statistics: &Statistics,
        verify: Option<Similarity>,
    ) -> Result<Method, Error> {
        if self.given && verify.is_some() {
            let reason = "fingerprints that are given have no features that could be compared".to_owned();
            return Err(Error::BadSpec { spec: format!("simhash:{self}"), reason });
        }
        // There are no words of fingerprints, so the dictionary need not be loaded.
        let spec = if self.given { FeatureSpec::Chars(1) } else { self.features };
        let features = Features::new(spec, lexicon)?;
        let search = match self.bits {
            0..=64 => Search::Bits64(self.simhash(features.clone(), statistics)),
            _ => Search::Bits128(self.simhash(features.clone(), statistics)),
        };
        let clean = if self.given { Clean::None } else { self.clean };
        Ok(Method::verified_by(search, features, Cleaner::new(clean), verify))
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
        let SimHashSpec { bits, hamming, blocks: _, features, weights, clean, given } = self;
        write!(f, "bits={bits},hamming={hamming},")?;
        self.blocks.iter().try_for_each(|blocks| write!(f, "blocks={blocks},"))?;
        write!(f, "features={features},weights={weights},clean={clean}")?;
        f.write_str(if *given { ",given" } else { "" })
    }
}
