//! Searches whose records meet by keys that outlive their run: a state keeps them, and documents of later runs meet
//! them.

use super::crowds::placed::BucketSearch;
use super::text_search::{MappedText, TextSearch};
use crate::sets::small_sketch::{SketchSieve, SmallSketch};

/// A search whose records are those of the map stage, and whose keys can be kept as numbers for documents that come
/// later.
///
/// A *kept key* is a number of 128 bits. Records meet in a pass if their keys begin with the same bits, and
/// the rest says how far two that meet are apart. Kept keys are sorted, so that all keys that a new document
/// meets lie behind each other. [`BandSearch`](super::bands::BandSearch) and [`BitSearch`](super::bits::BitSearch)
/// implement it. The search by prefixes cannot, because the rarest features of a text change with the corpus.
///
/// ```text
/// search    first bits, which must be equal     the rest
/// bands     64: the hash of the band            none
/// bits      the chosen blocks                   the other bits of the fingerprint
/// ```
pub trait KeyedSearch: TextSearch + BucketSearch + Clone {
    /// Returns the section of the map output that has the records of a pass.
    fn section(pass: &Self::Pass) -> usize;
    /// Returns the number of first bits on which the keys of records must agree to meet, from 1 to 64.
    fn key_bits(pass: &Self::Pass) -> u32;
    /// Returns the kept key of a record.
    fn kept_key(pass: &Self::Pass, record: &Self::Record) -> u128;
    /// Returns the sketch of the set that the record stands for, which is kept if there is a sieve.
    fn sketch(record: &Self::Record) -> SmallSketch;
    /// Returns the sieve by which sketches drop candidates; `None` if no sketches are kept.
    fn sieve(&self) -> Option<&SketchSieve>;
    /// Returns the number of bits in which the fingerprints of two keys that meet differ, or `None` if these are
    /// too many for a candidate. It is 0 where records have no fingerprint.
    fn key_distance(&self, one: u128, other: u128) -> Option<u32>;
    /// Describes the fingerprints that the keys are made of, if they are made of any.
    fn fingerprints(&self) -> Option<FingerprintKeys> {
        None
    }
    /// Returns the record of a fingerprint of 64 bits that was made elsewhere; `None` if records are made of anything
    /// else, or texts are compared.
    fn record_of(&self, fingerprint: u64) -> Option<Self::Record> {
        let _ = fingerprint;
        None
    }
    /// Returns the fingerprint of 64 bits whose kept key in a pass this is; `None` where [`record_of`](Self::record_of) returns none.
    fn fingerprint_of(&self, pass: &Self::Pass, key: u128) -> Option<u64> {
        let _ = (pass, key);
        None
    }

    /// Returns the numbers of the passes in which two texts have a key in common.
    fn agreeing<'a>(&self, a: &'a MappedText, b: &'a MappedText) -> impl Iterator<Item = usize> {
        let agree = move |pass: &Self::Pass| {
            let key = |record| Self::key(pass, &record);
            let records = |text: &'a MappedText| text.records::<Self::Record>(Self::section(pass)).map(key);
            records(a).any(|of_a| records(b).any(|of_b| of_a == of_b))
        };
        self.passes().into_iter().enumerate().filter(move |(_, pass)| agree(pass)).map(|(number, _)| number)
    }
}

/// Fingerprints that keys are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FingerprintKeys {
    /// Number of bits of a fingerprint.
    pub bits: u32,
    /// Largest number of bits in which the fingerprints of a candidate differ.
    pub distance: u32,
    /// Whether texts are identical if their fingerprints are.
    pub identify: bool,
}

/// Says on which of `all` blocks or bands two texts agree.
pub(super) fn agreement(name: &str, all: usize, agree: impl Iterator<Item = usize>) -> String {
    let agree: Vec<String> = agree.map(|number| number.to_string()).collect();
    match agree.is_empty() {
        true => format!("none of the {all} {name} agree"),
        false => format!("of the {name} 0 to {}, these agree: {}", all - 1, agree.join(", ")),
    }
}
