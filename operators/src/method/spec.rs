//! The specs of methods: what users write after `--method`.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::str::FromStr;

use super::parameters::{Parameters, set_all};
use super::simhash::MANKU2007;
use super::{AutoSpec, ContainedSpec, ExactSpec, JaccardSpec, MinHashSpec, SimHashSpec, ZhouSpec};
use crate::Error;
use crate::text::Clean;
use crate::text::features::FeatureSpec;

/// A method and its parameters, as users write them: `simhash:bits=64,hamming=3,features=char:5`.
///
/// Its [`Parameters`] tell which method it is.
#[derive(Clone)]
pub struct Spec(Box<dyn Parameters>);

/// A method by its name, with its default parameters and those that its name sets.
type Named = (&'static str, fn() -> Box<dyn Parameters>, &'static str);

/// Every method.
const METHODS: [Named; 8] = [
    ("auto", || Box::<AutoSpec>::default(), ""),
    ("jaccard", || Box::<JaccardSpec>::default(), ""),
    ("contained", || Box::<ContainedSpec>::default(), ""),
    ("minhash", || Box::<MinHashSpec>::default(), ""),
    ("simhash", || Box::<SimHashSpec>::default(), ""),
    ("manku2007", || Box::<SimHashSpec>::default(), MANKU2007),
    ("exact", || Box::<ExactSpec>::default(), ""),
    ("zhou2017", || Box::<ZhouSpec>::default(), ""),
];

impl Spec {
    /// Returns what `--help` says about all methods.
    pub fn help() -> String {
        Spec::helps().join(" ")
    }

    /// Returns what each method has to say of itself.
    pub fn helps() -> Vec<&'static str> {
        let methods = METHODS.iter().filter(|(_, _, preset)| preset.is_empty());
        methods.map(|(_, parameters, _)| parameters().help()).collect()
    }

    /// Returns example specs of every method, for the laws that all methods must keep.
    pub fn examples() -> impl Iterator<Item = &'static str> {
        METHODS
            .iter()
            .flat_map(|(name, parameters, preset)| match *preset {
                "" => parameters().examples(),
                _ => std::slice::from_ref(name),
            })
            .copied()
    }

    /// Returns the cleaning and the features that must be counted in the whole corpus before the method can
    /// be used, or `None` if nothing must be counted.
    pub fn counted(&self) -> Option<(Clean, FeatureSpec)> {
        Some((self.clean(), self.features()?)).filter(|_| self.counts_features())
    }

    /// Whether texts are cut into jieba's words, so that stop words and a user dictionary matter.
    pub fn cuts_words(&self) -> bool {
        self.features() == Some(FeatureSpec::Jieba)
    }
}

impl Default for Spec {
    /// Returns `auto` with its default parameters.
    fn default() -> Self {
        Spec(Box::<AutoSpec>::default())
    }
}

impl Deref for Spec {
    type Target = dyn Parameters;

    fn deref(&self) -> &Self::Target {
        self.0.as_ref()
    }
}

impl DerefMut for Spec {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.0.as_mut()
    }
}

impl PartialEq for Spec {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl FromStr for Spec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = |reason| Error::BadSpec { spec: text.to_owned(), reason };
        // Chinese keyboards write these signs in full width.
        let text = &text.replace('：', ":").replace('，', ",").replace('＝', "=");
        let (name, own) = text.split_once(':').unwrap_or((text, ""));
        let name = &*name.to_ascii_lowercase();
        let Some((_, parameters, preset)) = METHODS.iter().find(|method| method.0 == name) else {
            let near = METHODS.map(|method| (strsim::damerau_levenshtein(method.0, name), method.0));
            let near = near.into_iter().min().filter(|(distance, _)| *distance <= 3);
            let tip = near.map_or_else(String::new, |(_, near)| format!(", but perhaps {near} is meant"));
            let names = METHODS.map(|method| method.0).join(", ");
            return Err(bad(format!("no method is called \"{name}\"{tip}; there are {names}")));
        };
        let mut parameters = parameters();
        set_all(parameters.as_mut(), name, &[preset, ",", own].concat()).map_err(bad)?;
        Ok(Spec(parameters))
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name(), self.0)
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Similarity;

    #[test]
    fn every_spec_reads_back_as_itself() {
        for text in Spec::examples() {
            let spec: Spec = text.parse().unwrap();
            assert_eq!(spec.to_string().parse::<Spec>().unwrap(), spec, "{text}");
        }
    }

    /// States, indexes and outputs keep a spec as it was printed, with the bands by which they were searched.
    #[test]
    fn bands_that_were_printed_stay_when_the_default_changes() {
        let kept = "minhash:bands=25,rows=5,seed=0,jaccard=0.5,features=char:5,clean=nfkc";
        assert_eq!(kept.parse::<Spec>().unwrap().to_string(), kept);
        let now: Spec = "minhash:jaccard=0.5".parse().unwrap();
        let printed = now.to_string();
        assert!(printed.starts_with("minhash:bands=154,rows=4,") && printed.parse::<Spec>().unwrap() == now);
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
            ("simhsah", "there are auto, jaccard, contained, minhash, simhash, manku2007, exact, zhou2017"),
            ("simhash:bits=16", "32, 64 or 128"),
            ("simhash:blocks=0", "1 to 128"),
            ("simhash:blocks=3", "blocks must be more than hamming, which is 3"),
            ("simhash:blocks=6,hamming=6", "blocks must be more than hamming, which is 6"),
            ("simhash:bits=32,hamming=0,blocks=33", "no more than bits, which is 32"),
            ("simhash:blocks=16", "16 blocks for a distance of 3 make 560 tables"),
            ("simhash:weights=idf", "tf, tfidf or rank5"),
            ("simhash:hamming=16", "0 to 15"),
            ("simhash:features=char:0", "char:N"),
            ("simhash:given=1", "without a value"),
            ("simhash:weights=tfidf,given", "need no weights"),
            ("simhash:clean", "none, nfkc, fold, post or weibo"),
            ("jaccard:0.001", "0.001 is not a number from 0.01 to 1"),
            ("contained:0.8,bands=3", "contained has no parameter \"bands\""),
            ("jaccard:most", "no parameter \"most\""),
            ("auto:search=minhash,revisions", "search=exact alone"),
            ("minhash:bands=256,rows=64", "no more than 1024"),
            ("zhou2017:k=9", "2 to 8"),
            ("zhou2017:top=2", "variance=N before it"),
            ("zhou2017:threshold=nan", "0 to 9"),
            ("zhou2017:retrieval=fast", "linear, bucket or recursive"),
            ("exact:bits=64", "no parameter \"bits\""),
        ] {
            let error = text.parse::<Spec>().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains(expected), "{error}");
        }
    }
}
