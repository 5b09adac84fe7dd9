//! Candidate searches: how documents meet, and which of those that meet may match.
//!
//! A search is a folder of this room, an arm of [`Search`], and an arm of its [visit](Search::visit). The folder owns the
//! records that the map stage makes of a text, the join of these records, the keys that a state keeps of them, and what
//! is said of two single texts. Four traits describe a search: [`TextSearch`], which all implement;
//! [`CandidateSearch`], for records that meet by a key; [`KeyedSearch`], for those whose keys outlive their run; and
//! [`BucketSearch`](crowds::placed::BucketSearch), for those that also find what is nearest among very many.
//! In `crowds` is what all of them do where very many documents share a key. This room uses `text`, `fingerprint`,
//! `sets` and `spill`; `method`, `flow` and the jobs use it.

pub mod bands;
pub mod bits;
mod candidate_search;
pub mod crowds;
pub mod identity;
mod key_counters;
mod keyed_search;
pub mod map_records;
pub mod prefix;
mod search_context;
mod text_search;
pub mod zhou;

pub use self::candidate_search::{CandidateSearch, PassLoad};
pub(crate) use self::key_counters::{COUNTER_BITS, KeyCounters, counter};
pub use self::keyed_search::{FingerprintKeys, KeyedSearch};
pub use self::search_context::{SearchContext, SearchInputs};
pub use self::text_search::{Explanation, MappedText, RuleTurn, TextSearch};

use self::bands::BandSearch;
use self::bits::{BitSearch, SimHash};
use self::identity::Identities;
use self::prefix::PrefixTexts;
use self::zhou::Zhou;
use crate::sets::minhash::MinHash;

/// Search for the candidates of a method, with its own parameters.
#[derive(Clone)]
pub enum Search {
    /// No candidates: only equal texts match.
    Identity,
    /// Fingerprints of up to 64 bits, in blocks.
    Bits64(SimHash<u64>),
    /// Fingerprints of 128 bits, in blocks.
    Bits128(SimHash<u128>),
    /// Signatures, in bands.
    Bands(MinHash),
    /// Sets of features, in the features of their prefixes. Misses no pair that the rule matches.
    Prefix,
    /// The retrieval of `zhou2017`, which deletes documents as it compares them.
    Zhou(Zhou),
}

impl Search {
    /// Makes the search for a method and a run, and gives it to `visitor`. Other functions name a search only where it has
    /// a join of its own, as `Prefix` and `Zhou` have.
    pub fn visit<V: SearchVisitor>(&self, context: &SearchContext, visitor: V) -> V::Output {
        match self {
            Search::Identity => visitor.visit(Identities::new(context.inputs.secret)),
            Search::Bits64(simhash) => visitor.visit_keyed(BitSearch::new(simhash.clone(), context)),
            Search::Bits128(simhash) => visitor.visit_keyed(BitSearch::new(simhash.clone(), context)),
            Search::Bands(minhash) => visitor.visit_keyed(BandSearch::new(*minhash, context)),
            Search::Prefix => visitor.visit(PrefixTexts::new(context.inputs.secret)),
            Search::Zhou(zhou) => visitor.visit(zhou.clone()),
        }
    }
}

/// Work that is done with whichever search a method has. It is compiled for each search, so that the loops inside call
/// the search directly.
pub trait SearchVisitor: Sized {
    /// Result of the work.
    type Output;
    /// Works with a search.
    fn visit<S: TextSearch + Clone>(self, search: S) -> Self::Output;
    /// Works with a search whose records meet by keys. Work that does not join records leaves this as it is.
    fn visit_keyed<S: KeyedSearch>(self, search: S) -> Self::Output {
        self.visit(search)
    }
}
