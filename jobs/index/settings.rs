//! The settings that an index is made with.

use anyhow::{Context, Result, bail};
use cluster::Store;
use operators::Similarity;
use operators::hash::Secret;
use operators::method::{KeptKeys, Method, Spec};
use operators::text::document_frequencies::Statistics;
use operators::text::features::Lexicon;
use serde::{Deserialize, Serialize};

use batch::options::{Verification, refuse_given};
use runtime::cli::exit::WrongUse;
use runtime::corpus::input::hash_of_words;
use runtime::output::read_sealed;

/// Version of the format of an index.
const FORMAT: u32 = 4;

/// Settings that an index is made with and that never change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct IndexSettings {
    format: u32,
    /// Version of the program that made the index.
    program: String,
    /// Method with all parameters.
    pub method: String,
    /// Verification of matching fingerprints; empty if the method measures similarity itself.
    pub verify: String,
    /// Hash of the user's stop words and dictionary.
    pub words: String,
    /// Whether cleaned texts are kept, so that answers are verified.
    pub texts: bool,
    /// Secret by which texts are hashed to find equal ones.
    pub secret: [u64; 2],
}

impl IndexSettings {
    /// Makes the settings of a new index.
    pub fn new(method: String, verify: String, words: String, texts: bool, secret: [u64; 2]) -> Self {
        let program = env!("CARGO_PKG_VERSION").to_owned();
        IndexSettings { format: FORMAT, program, method, verify, words, texts, secret }
    }

    /// Returns an error if this program does not know the format of the index at `path`.
    pub fn check_format(&self, path: &str) -> Result<()> {
        if self.format != FORMAT {
            bail!(
                "\"{path}\" has format {}, and this program knows {FORMAT}: earlier programs cleaned texts by other rules, so \
                 build the index anew from its documents, which index export of the earlier program writes",
                self.format
            );
        }
        Ok(())
    }

    /// Makes the method of the index again, and what makes its keys.
    ///
    /// # Errors
    /// Those of the method, and [`WrongUse`] when it has no keys that can be kept.
    pub fn method(&self, lexicon: &Lexicon) -> Result<(Method, KeptKeys)> {
        let spec: Spec = self.method.parse()?;
        refuse_given(&spec)?;
        let least = self.verification()?.and_then(|verify| verify.0);
        let method = spec.method(lexicon, &Statistics::default(), least)?;
        let keys = KeptKeys::new(&method, Secret::of_words(self.secret));
        let keys =
            keys.with_context(|| WrongUse(format!("the method {spec} has no keys that an index can keep")))?;
        Ok((method, keys))
    }

    /// Returns the least similarity of texts that match; `None` if no similarity is measured.
    pub fn least_similarity(&self) -> Result<Option<Similarity>> {
        let verify = self.verification()?;
        let mut spec: Spec = self.method.parse()?;
        let of_method = spec.thresholds().into_iter().map(|least| *least).min();
        Ok(verify.and_then(|verify| verify.0).or(of_method))
    }

    fn verification(&self) -> Result<Option<Verification>> {
        match &*self.verify {
            "" => Ok(None),
            verify => Ok(Some(verify.parse().map_err(anyhow::Error::msg)?)),
        }
    }

    /// Returns an error if texts would be cut by other words than those of the index at `path`.
    ///
    /// # Errors
    /// [`WrongUse`].
    pub fn check_words(&self, path: &str, lexicon: &Lexicon) -> Result<()> {
        if self.words != hash_of_words(lexicon) {
            bail!(WrongUse(format!(
                "the index \"{path}\" was made with other --stop-words or another --user-dict"
            )));
        }
        Ok(())
    }
}

/// Makes the settings of a new index.
///
/// # Errors
/// [`WrongUse`] when the method has no keys that can be kept, needs statistics of a whole corpus, or measures
/// similarity itself and verification is asked for.
pub(super) fn new(
    method: &Spec,
    verify: Option<Verification>,
    no_text: bool,
    lexicon: &Lexicon,
    secret: Secret,
) -> Result<IndexSettings> {
    refuse_given(method)?;
    if method.counted().is_some() {
        bail!(WrongUse(format!(
            "the method {method} weighs features by a whole corpus, which an index does not have: take weights=tf"
        )));
    }
    let verify = match no_text {
        true => Verification(None),
        false => Verification::of(method, verify)?,
    };
    let ready = method.method(lexicon, &Statistics::default(), verify.0)?;
    let keys = KeptKeys::new(&ready, secret);
    let keys = keys.with_context(|| {
        WrongUse(format!(
            "the method {method} has no keys that an index can keep: use auto, minhash, simhash or exact"
        ))
    })?;
    let texts = !no_text && ready.verified && keys.has_keys();
    let verify = if method.measures() { String::new() } else { verify.to_string() };
    Ok(IndexSettings::new(method.to_string(), verify, hash_of_words(lexicon), texts, secret.words()))
}

/// Reads the settings of an index; `None` if there is none.
pub(super) fn read_settings(store: &dyn Store, path: &str) -> Result<Option<IndexSettings>> {
    let settings: Option<IndexSettings> = read_sealed(store, path)?;
    settings.as_ref().map_or(Ok(()), |settings| settings.check_format(path))?;
    Ok(settings)
}
