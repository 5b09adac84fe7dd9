//! The settings that an index is made with.

use anyhow::{Context, Result, bail};
use operators::hash::Secret;
use operators::method::{KeptKeys, Spec};
use operators::text::document_frequencies::Statistics;
use operators::text::features::Lexicon;
use xxhash_rust::xxh3::xxh3_128;

use super::index_folder::IndexFolder;
use super::manifest::IndexSettings;
use crate::cli::exit::WrongUse;
use crate::dedup::options::Verification;

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
    if method.counted().is_some() {
        bail!(WrongUse(format!(
            "the method {method} weighs features by a whole corpus, which an index does not have"
        )));
    }
    if verify.is_some() && method.measures() {
        bail!(WrongUse(format!("{method} compares the features of every pair itself: leave --verify out")));
    }
    let verify = match no_text {
        true => Verification(None),
        false => verify.unwrap_or_else(|| Verification::default_of(method)),
    };
    let ready = method.method(lexicon, &Statistics::default(), verify.0)?;
    let keys = KeptKeys::new(&ready, secret);
    let keys = keys.with_context(|| {
        WrongUse(format!(
            "the method {method} has no keys that an index can keep: use auto, minhash, simhash, manku2007 or exact"
        ))
    })?;
    let texts = !no_text && ready.verified && keys.has_keys();
    let verify = if method.measures() { String::new() } else { verify.to_string() };
    Ok(IndexSettings::new(method.to_string(), verify, hash_of(lexicon), texts, secret.words()))
}

/// Returns an error if texts would be cut by other words than those of the index.
///
/// # Errors
/// [`WrongUse`].
pub(super) fn check_words(index: &IndexFolder, path: &str, lexicon: &Lexicon) -> Result<()> {
    if index.settings.words != hash_of(lexicon) {
        bail!(WrongUse(format!(
            "the index \"{path}\" was made with other --stop-words or another --user-dict"
        )));
    }
    Ok(())
}

fn hash_of(lexicon: &Lexicon) -> String {
    let words = xxh3_128(format!("{}\0{}", lexicon.stop_words, lexicon.user_words).as_bytes()) as u64;
    format!("{words:016x}")
}
