//! The options of `nightly` that decide its result.

use std::fmt;
use std::str::FromStr;

use operators::method::Spec;
use operators::{DocId, Merit, Resolve};
use serde::{Deserialize, Serialize};

use crate::cli::configuration::{optional_text, text};
use crate::cli::values::paths;
use crate::corpus::input::InputOptions;
use crate::dedup::keep::{Keep, KeepRank};
use crate::dedup::options::{DedupOptions, Verification};
use crate::output::tables::PairsOf;
use crate::state::{Pinned, StateManifest};

/// Options that decide the result of a night, as they are parsed and as `_SUCCESS` records them.
#[derive(Clone, Debug, clap::Args, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct NightlyOptions {
    /// Method and parameters, such as auto, minhash or simhash:hamming=6
    ///
    /// Only methods whose search has keys can be used: auto, minhash, simhash, manku2007 and exact.
    #[arg(long, value_name = "SPEC", default_value = "auto")]
    #[serde(with = "text")]
    pub method: Spec,
    /// Compare the features of every candidate pair: jaccard:T, or none
    #[arg(long, value_name = "HOW")]
    #[serde(with = "optional_text")]
    pub verify: Option<Verification>,
    /// Document that stays of two that match: old-first, newest, longest or priority:FIELD
    ///
    /// old-first is the one that came first, newest the one of the latest night, longest the one with the most
    /// characters, and priority:FIELD the one with the greatest number in a field of its record. Of equal ones the
    /// first stays. With old-first, an earlier decision changes only if a document is withdrawn. With priority:FIELD,
    /// a record without a finite number in the field is rejected, and formats without fields are refused.
    #[arg(long, value_name = "WHICH", default_value = "old-first")]
    #[serde(with = "text")]
    pub policy: Policy,
    /// Pairs to write: firsts (one for each identical document) or all
    #[arg(long, value_name = "WHICH", default_value = "firsts")]
    pub pairs: PairsOf,
    /// Withdraw the documents whose ids are in this file, one a line, and give back what they had suppressed
    #[arg(long, value_name = "FILE", value_parser = paths())]
    pub retract: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub input: InputOptions,
    /// Take the corpus statistics that weights=tfidf and rank5 need from an earlier output
    ///
    /// By default the first night counts them. The state keeps them, and all nights use the same.
    #[arg(long, value_name = "PATH")]
    pub statistics: Option<String>,
}

/// Rule for the document that stays of two that match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
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

    /// Whether new documents can come before old ones in keep order.
    pub fn reorders(&self) -> bool {
        *self != Policy::Keep(Keep::First)
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
    /// Returns the options of `dedup` that read the same documents and find the same pairs.
    pub fn of_dedup(&self) -> DedupOptions {
        let keep = match &self.policy {
            Policy::Newest => Keep::First,
            Policy::Keep(keep) => keep.clone(),
        };
        DedupOptions {
            method: self.method.clone(),
            verify: self.verify,
            resolve: Resolve::Greedy,
            keep,
            pairs: self.pairs,
            against: Vec::new(),
            within: None,
            input: self.input.clone(),
            statistics: self.statistics.clone(),
        }
    }

    /// Returns what all nights of a state must have in common. `words`: the hash of the user's words.
    pub fn pinned(&self, words: u64) -> Pinned {
        Pinned {
            method: self.method.to_string(),
            verify: self.verify.map_or(String::new(), |verify| verify.to_string()),
            policy: self.policy.to_string(),
            words: format!("{words:016x}"),
        }
    }
}

/// Returns the ordinal of the night of a document; that of the night that is being made for new documents.
pub(crate) fn night_of(manifest: &StateManifest, number: u64) -> u64 {
    manifest.nights.partition_point(|night| night.end <= number) as u64
}
