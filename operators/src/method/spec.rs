//! The specs of methods: what users write after `--method`.

use std::fmt;
use std::str::FromStr;

use super::curve::{Cost, Curve};
use super::parameters::{Parameters, parse};
use super::simhash::MANKU2007;
use super::{AutoSpec, ExactSpec, JaccardSpec, Method, MinHashSpec, SimHashSpec, ZhouSpec};
use crate::Error;
use crate::sets::similarity::Similarity;
use crate::text::Clean;
use crate::text::document_frequencies::Statistics;
use crate::text::features::{FeatureSpec, Lexicon};

/// A method and its parameters, as users write them: `simhash:bits=64,hamming=3,features=char:5`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    /// See [`SimHashSpec`].
    SimHash(SimHashSpec),
    /// See [`AutoSpec`].
    Auto(AutoSpec),
    /// See [`ExactSpec`].
    Exact(ExactSpec),
    /// See [`JaccardSpec`].
    Jaccard(JaccardSpec),
    /// See [`MinHashSpec`].
    MinHash(MinHashSpec),
    /// See [`ZhouSpec`].
    Zhou(ZhouSpec),
}

impl Spec {
    /// Example specs of every method, for the laws that all methods must keep.
    pub const ALL: &[&str] = &[
        "auto",
        "auto:search=minhash",
        "auto:revisions",
        "auto:short=0.5,long=0.6",
        "simhash",
        "simhash:features=char:5",
        "simhash:bits=32,hamming=2,features=char:2,clean=weibo",
        "simhash:hamming=6,features=word:1,clean=none",
        "simhash:bits=128,hamming=9,features=char:3,weights=tfidf",
        "simhash:hamming=4,blocks=6,features=char:2,weights=rank5",
        "manku2007:blocks=5",
        "exact",
        "jaccard:0.5,features=char:2",
        "jaccard:0.8,features=word:1,clean=none",
        "minhash:jaccard=0.7,features=char:3,bands=40,rows=3",
        "zhou2017:threshold=2.4,features=char:1",
        "zhou2017:k=8,retrieval=bucket,features=char:2,clean=none",
        "zhou2017:k=2,threshold=1.25,retrieval=linear,features=word:1,clean=nfkc",
        "zhou2017:fold=lower,features=char:2",
    ];

    /// Returns what `--help` says about all methods.
    pub fn help() -> String {
        let methods: [&dyn Parameters; 6] = [
            &AutoSpec::default(),
            &JaccardSpec::default(),
            &MinHashSpec::default(),
            &SimHashSpec::default(),
            &ExactSpec::default(),
            &ZhouSpec::default(),
        ];
        methods.map(|method| method.help()).join(" ")
    }

    /// Returns the name of the method and its parameters.
    fn parts(&self) -> (&'static str, &dyn Parameters) {
        match self {
            Spec::SimHash(spec) => ("simhash", spec),
            Spec::Exact(spec) => ("exact", spec),
            Spec::Auto(spec) => ("auto", spec),
            Spec::Jaccard(spec) => ("jaccard", spec),
            Spec::MinHash(spec) => ("minhash", spec),
            Spec::Zhou(spec) => ("zhou2017", spec),
        }
    }

    fn parameters(&self) -> &dyn Parameters {
        self.parts().1
    }

    fn parameters_mut(&mut self) -> &mut dyn Parameters {
        match self {
            Spec::SimHash(spec) => spec,
            Spec::Exact(spec) => spec,
            Spec::Auto(spec) => spec,
            Spec::Jaccard(spec) => spec,
            Spec::MinHash(spec) => spec,
            Spec::Zhou(spec) => spec,
        }
    }

    /// Makes the method of this spec. `statistics`: of the features that [`Spec::counted`] returns; not used
    /// if it returns `None`. `verify`: the least similarity of a pair of matching fingerprints, or `None` if
    /// their features are not compared; not used by methods that measure similarity themselves.
    ///
    /// # Errors
    /// When the user dictionary of `lexicon` is needed and does not parse.
    pub fn method(
        &self,
        lexicon: &Lexicon,
        statistics: &Statistics,
        verify: Option<Similarity>,
    ) -> Result<Method, Error> {
        self.parameters().method(lexicon, statistics, verify)
    }

    /// Returns the cleaning and the features that must be counted in the whole corpus before the method can
    /// be used, or `None` if nothing must be counted.
    pub fn counted(&self) -> Option<(Clean, FeatureSpec)> {
        let parameters = self.parameters();
        Some((parameters.clean(), parameters.features()?)).filter(|_| parameters.counts_features())
    }

    /// Returns the cleaning of texts.
    pub fn clean(&self) -> Clean {
        self.parameters().clean()
    }

    /// Returns the spec with the parameters that it leaves open chosen for a corpus of `bytes` bytes.
    pub fn for_corpus(mut self, bytes: u64) -> Self {
        self.parameters_mut().choose_for_corpus(bytes);
        self
    }

    /// Whether texts are cut into jieba's words, so that stop words and a user dictionary matter.
    pub fn cuts_words(&self) -> bool {
        self.parameters().features() == Some(FeatureSpec::Jieba)
    }

    /// Whether the method itself measures the similarity of matching texts.
    pub fn measures(&self) -> bool {
        self.parameters().measures()
    }

    /// Returns the thresholds of a method that measures similarity itself, except those of `zhou2017`.
    pub fn thresholds(&mut self) -> Vec<&mut Similarity> {
        self.parameters_mut().thresholds()
    }

    /// Whether the method compares fingerprints, so that a pair has a distance.
    pub fn fingerprints(&self) -> bool {
        self.parameters().has_fingerprints()
    }

    /// Whether pairs need verification, because matching fingerprints do not prove that the texts are near.
    pub fn approximate(&self) -> bool {
        self.parameters().approximate()
    }

    /// Returns the S-curve of the method.
    pub fn curve(&self) -> Curve {
        self.parameters().curve()
    }

    /// Returns the memory that a search holds.
    pub fn cost(&self) -> Cost {
        self.parameters().cost()
    }
}

impl FromStr for Spec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let spec = match name {
            "simhash" => parse(name, parameters).map(Spec::SimHash),
            "manku2007" => parse(name, &format!("{MANKU2007},{parameters}")).map(Spec::SimHash),
            "exact" => parse(name, parameters).map(Spec::Exact),
            "auto" => parse(name, parameters).map(Spec::Auto),
            "jaccard" => parse(name, parameters).map(Spec::Jaccard),
            "minhash" => parse(name, parameters).map(Spec::MinHash),
            "zhou2017" => parse(name, parameters).map(Spec::Zhou),
            _ => Err(format!(
                "no method is called \"{name}\"; there are auto, simhash, manku2007, exact, jaccard, minhash and zhou2017"
            )),
        };
        spec.map_err(|reason| Error::BadSpec { spec: text.to_owned(), reason })
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, parameters) = self.parts();
        write!(f, "{name}:{parameters}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spec_reads_back_as_itself() {
        for text in Spec::ALL {
            let spec: Spec = text.parse().unwrap();
            assert_eq!(spec.to_string().parse::<Spec>().unwrap(), spec, "{text}");
        }
    }

    #[test]
    fn a_preset_is_a_name_for_a_whole_spec() {
        let preset: Spec = "manku2007:features=word:1".parse().unwrap();
        let whole = "simhash:bits=64,hamming=3,features=word:1,weights=tfidf,clean=nfkc";
        assert_eq!(preset.to_string(), whole);
    }

    #[test]
    fn another_threshold_changes_nothing_else() {
        for (spec, expected) in [
            ("auto:revisions,long=0.4", "auto:revisions,short=0.65,long=0.65"),
            ("jaccard:0.8,features=char:2", "jaccard:0.65,features=char:2"),
            ("minhash:rows=4,clean=none", "minhash:rows=4,clean=none,jaccard=0.65"),
            ("simhash", "simhash"),
        ] {
            let mut spec: Spec = spec.parse().unwrap();
            spec.thresholds().into_iter().for_each(|least| *least = Similarity::millionths(650_000));
            assert_eq!(spec, expected.parse().unwrap());
        }
    }

    #[test]
    fn a_bad_spec_says_what_was_expected() {
        for (text, expected) in [
            ("simhsah", "there are auto, simhash, manku2007, exact"),
            ("simhash:bits=16", "32, 64 or 128"),
            ("simhash:blocks=0", "1 to 128"),
            ("simhash:blocks=3", "blocks must be more than hamming, which is 3"),
            ("simhash:blocks=6,hamming=6", "blocks must be more than hamming, which is 6"),
            ("simhash:bits=32,hamming=0,blocks=33", "no more than bits, which is 32"),
            ("simhash:blocks=16", "16 blocks for a distance of 3 make 560 tables"),
            ("simhash:weights=idf", "tf, tfidf or rank5"),
            ("simhash:hamming=16", "0 to 15"),
            ("simhash:features=char:0", "char:N"),
            ("simhash:clean", "none, nfkc, post or weibo"),
            ("jaccard:0.001", "0.001 is not a number from 0.01 to 1"),
            ("jaccard:most", "no parameter \"most\""),
            ("auto:search=minhash,revisions", "search=exact alone"),
            ("minhash:bands=256,rows=64", "no more than 1024"),
            ("zhou2017:k=9", "2 to 8"),
            ("zhou2017:threshold=nan", "0 to 9"),
            ("zhou2017:retrieval=fast", "linear, bucket or recursive"),
            ("exact:bits=64", "no parameter \"bits\""),
        ] {
            let error = text.parse::<Spec>().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains(expected), "{error}");
        }
    }
}
