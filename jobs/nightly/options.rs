//! The options of `nightly` that decide its result.

use operators::method::Spec;
use operators::{DocId, Resolve};
use serde::{Deserialize, Serialize};

use crate::cli::configuration::{optional_text, text};
use crate::cli::values::paths;
use crate::corpus::input::InputOptions;
use crate::dedup::options::{DedupOptions, Keep, Verification};
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
    /// Document that stays of two that match
    ///
    /// With old-first, an earlier decision changes only if a document is withdrawn.
    #[arg(long, value_name = "WHICH", default_value = "old-first")]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Policy {
    /// The one that came first.
    OldFirst,
    /// The one of the latest night, and of one night the first.
    Newest,
    /// The one with the most characters, and of equal ones the first.
    Longest,
}

/// Place of a document in keep order: the least comes first.
pub(crate) type KeepRank = (u64, DocId);

impl Policy {
    /// Returns the name of the policy, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Policy::OldFirst => "old-first",
            Policy::Newest => "newest",
            Policy::Longest => "longest",
        }
    }

    /// Returns the place of a document in keep order. `night`: the ordinal of its night. `chars`: its length in
    /// characters.
    pub fn rank(self, doc: DocId, night: impl FnOnce() -> u64, chars: impl FnOnce() -> u64) -> KeepRank {
        match self {
            Policy::OldFirst => (0, doc),
            Policy::Newest => (u64::MAX - night(), doc),
            Policy::Longest => (u64::MAX - chars(), doc),
        }
    }

    /// Whether new documents can come before old ones in keep order.
    pub fn reorders(self) -> bool {
        self != Policy::OldFirst
    }
}

impl NightlyOptions {
    /// Returns the options of `dedup` that find the same pairs.
    pub fn of_dedup(&self) -> DedupOptions {
        DedupOptions {
            method: self.method.clone(),
            verify: self.verify,
            resolve: Resolve::Greedy,
            keep: Keep::First,
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
            policy: self.policy.name().to_owned(),
            words: format!("{words:016x}"),
        }
    }
}

/// Returns the ordinal of the night of a document; that of the night that is being made for new documents.
pub(crate) fn night_of(manifest: &StateManifest, number: u64) -> u64 {
    manifest.nights.partition_point(|night| night.end <= number) as u64
}
