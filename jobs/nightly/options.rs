//! The options of `nightly` that decide its result.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Result, bail};
use operators::method::Spec;
use operators::text::features::Lexicon;
use operators::{DocId, Merit, Resolve};
use serde::{Deserialize, Serialize};

use crate::state::{Numbering, Pinned, StateManifest};
use batch::keep::{Keep, KeepOrder, KeepRank};
use batch::options::{DedupOptions, Verification};
use batch::write::WriteOptions;
use runtime::cli::configuration::{optional_text, text};
use runtime::cli::exit::WrongUse;
#[cfg(feature = "cli")]
use runtime::cli::values::paths;
use runtime::corpus::input::{InputOptions, hash_of_words};
use runtime::output::tables::PairsOf;

/// Options that decide the result of a night, as they are parsed and as `_SUCCESS` records them.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(rename_all = "kebab-case")]
pub(crate) struct NightlyOptions {
    #[cfg_attr(feature = "cli", arg(skip))]
    #[serde(with = "text")]
    pub method: Spec,
    #[cfg_attr(feature = "cli", arg(skip))]
    #[serde(with = "optional_text")]
    pub verify: Option<Verification>,
    #[cfg_attr(feature = "cli", arg(skip))]
    #[serde(with = "text")]
    pub policy: Policy,
    /// Withdraw the documents whose ids are in this file, one a line, and give back what they had suppressed
    #[cfg_attr(feature = "cli", arg(long, value_name = "FILE", value_parser = paths()))]
    pub retract: Option<String>,
    #[cfg_attr(feature = "cli", command(flatten))]
    #[serde(flatten)]
    pub input: InputOptions,
    /// Take the corpus statistics that weights=tfidf and rank5 need from an earlier output
    ///
    /// By default the first night counts them. The state keeps them, and all nights use the same.
    #[cfg_attr(feature = "cli", arg(long, value_name = "PATH"))]
    pub statistics: Option<String>,
}

/// Options that all nights of a state have in common, so that the state answers for what is not given.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub(crate) struct PinnedOptions {
    /// Method and parameters, such as auto, minhash or simhash:hamming=6 [default: that of the state; auto for a new one]
    ///
    /// Only methods whose search has keys can be used: auto, minhash, simhash, manku2007 and exact.
    #[cfg_attr(feature = "cli", arg(long, value_name = "SPEC"))]
    method: Option<Spec>,
    /// Compare the features of every candidate pair: jaccard:T, or none [default: as in the state]
    #[cfg_attr(feature = "cli", arg(long, value_name = "HOW"))]
    verify: Option<Verification>,
    /// Document that stays of two that match: old-first, newest, longest or priority:FIELD [default: that of the state;
    /// old-first for a new one]
    ///
    /// old-first is the one that came first, newest the one of the latest night, longest the one with the most
    /// characters, and priority:FIELD the one with the greatest number in a field of its record. Of equal ones the
    /// first stays. With old-first, an earlier decision changes only if a document is withdrawn. With priority:FIELD,
    /// a record without a finite number in the field is rejected, and formats without fields are refused.
    #[cfg_attr(feature = "cli", arg(long, value_name = "WHICH"))]
    policy: Option<Policy>,
}

/// Rule for the document that stays of two that match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The one of the latest night, and of one night the first.
    Newest,
    /// The one that a keep order of `dedup` prefers, in the order of nights.
    Keep(Keep),
}

/// Name of the policy that prefers the document that came first.
const OLD_FIRST: &str = "old-first";

impl Policy {
    /// Returns the place of a document in keep order. `night`: the ordinal of its night.
    pub fn rank(&self, doc: DocId, night: impl FnOnce() -> u64, merit: impl FnOnce() -> Merit) -> KeepRank {
        match self {
            Policy::Newest => (u64::MAX - night(), doc),
            Policy::Keep(keep) => keep.rank(doc, merit),
        }
    }

    /// Returns the keep order of the documents of a state and of the night that is being made.
    pub fn order(self, manifest: StateManifest, numbering: Numbering) -> KeepOrder {
        Arc::new(move |doc, merit| self.rank(doc, || night_of(&manifest, numbering.number(doc)), merit))
    }

    /// Returns the field of a record that decides, if one does.
    pub fn field(&self) -> Option<&str> {
        match self {
            Policy::Newest => None,
            Policy::Keep(keep) => keep.field(),
        }
    }

    /// Whether new documents can come before old ones in keep order.
    pub fn reorders(&self) -> bool {
        *self != Policy::Keep(Keep::First)
    }
}

impl Default for Policy {
    fn default() -> Self {
        Policy::Keep(Keep::First)
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            (OLD_FIRST, _) => Ok(Policy::Keep(Keep::First)),
            ("newest", _) => Ok(Policy::Newest),
            (_, Ok(keep)) if keep != Keep::First => Ok(Policy::Keep(keep)),
            _ => Err(format!("expected {OLD_FIRST}, newest, longest or priority:FIELD")),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Newest => f.write_str("newest"),
            Policy::Keep(Keep::First) => f.write_str(OLD_FIRST),
            Policy::Keep(keep) => keep.fmt(f),
        }
    }
}

impl NightlyOptions {
    /// Takes what the user has given, and what a state says of the rest. `state`: what its nights have in common, if
    /// there is one.
    ///
    /// # Errors
    /// [`WrongUse`] when the method keeps no keys, when it measures similarity itself and verification is asked for, or
    /// when a state of another version names what is not known.
    pub fn resolve(&mut self, given: &PinnedOptions, state: Option<&Pinned>) -> Result<()> {
        let unknown =
            |error: String| WrongUse(format!("the state is of another version of this program: {error}"));
        self.method = match (&given.method, state) {
            (Some(given), _) => given.clone(),
            (None, Some(state)) => {
                state.method.parse().map_err(|error: operators::Error| unknown(error.to_string()))?
            }
            (None, None) => Spec::default(),
        };
        self.policy = match (&given.policy, state) {
            (Some(given), _) => given.clone(),
            (None, Some(state)) => state.policy.parse().map_err(unknown)?,
            (None, None) => Policy::default(),
        };
        // A method that measures similarity takes no such option.
        let of_state = state.filter(|state| !state.verify.is_empty() && !self.method.measures());
        self.verify = match (given.verify, of_state) {
            (None, Some(state)) => Some(state.verify.parse().map_err(unknown)?),
            (given, _) => given,
        };
        let mut of_dedup = self.of_dedup();
        of_dedup.resolve()?;
        self.verify = of_dedup.verify;
        refuse_method(&self.method)
    }

    /// Returns the options of `dedup` that read the same documents and find the same pairs.
    pub fn of_dedup(&self) -> DedupOptions {
        let keep = match &self.policy {
            Policy::Newest => Keep::First,
            Policy::Keep(keep) => keep.clone(),
        };
        DedupOptions {
            from_fingerprints: false,
            method: self.method.clone(),
            verify: self.verify,
            resolve: Resolve::Greedy,
            keep,
            pairs: PairsOf::Deciding,
            write: WriteOptions::default(),
            against: Vec::new(),
            within: None,
            ignore_lines: None,
            ignore_lines_of: None,
            input: self.input.clone(),
            statistics: self.statistics.clone(),
        }
    }

    /// Returns what all nights of a state must have in common. `lexicon`: the user's words.
    pub fn pinned(&self, lexicon: &Lexicon) -> Pinned {
        Pinned {
            method: self.method.to_string(),
            verify: self.verify.map_or(String::new(), |verify| verify.to_string()),
            policy: self.policy.to_string(),
            words: hash_of_words(lexicon),
        }
    }
}

/// Returns the ordinal of the night of a document; that of the night that is being made for new documents.
pub(crate) fn night_of(manifest: &StateManifest, number: u64) -> u64 {
    manifest.nights.partition_point(|night| night.end <= number) as u64
}

/// Returns an error if the search of a method has no keys that a state can keep.
fn refuse_method(method: &Spec) -> Result<()> {
    if matches!(method.name(), "jaccard" | "zhou2017") || method.cost().feature > 0 {
        bail!(WrongUse(format!(
            "the method {method} has no keys that a state can keep: use auto, minhash, simhash, manku2007 or exact"
        )));
    }
    Ok(())
}
