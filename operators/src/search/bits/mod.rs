//! The search by fingerprints: fingerprints that agree on some blocks of bits meet.
//!
//! `simhash.rs` makes the fingerprint of a text, in `join.rs` fingerprints meet, and `kept.rs` says how they are kept.

mod join;
mod kept;
mod simhash;

pub use self::simhash::{FingerprintDesign, SimHash, WeightedFeature, Weights};

use super::keyed_search::{KeyedSearch, agreement};
use super::map_records::put;
use super::search_context::SearchContext;
use super::text_search::{Explanation, MappedText, RuleTurn, TextSearch};
use crate::fingerprint::Bits;
use crate::hash::Secret;
use crate::record::Doc;
use crate::record::Row;
use crate::record::Sides;
use crate::sets::small_sketch::SketchSieve;
use crate::text::ignored_lines::CleanedText;

/// A pass is a table of the block join, which emits a pair in the first table where it meets. A candidate is a
/// pair within the distance, unless the sketches of its texts show that they cannot match.
///
/// A few features decide the fingerprint of a short text, so without sketches the candidates of short texts
/// grow nearly with the square of their number.
///
/// The map stage makes a section of identities and a section of [`Row`]s.
#[derive(Clone)]
pub struct BitSearch<W> {
    simhash: SimHash<W>,
    /// Drops pairs of short texts; `None` if candidates are not verified, so that every pair within the distance is one.
    sieve: Option<SketchSieve>,
    sides: Sides,
    /// Secret of the identities, if documents are identical only when their cleaned texts are.
    by_text: Option<Secret>,
}

/// Number of the section of fingerprints.
const FINGERPRINTS: usize = 1;

impl<W: Bits> BitSearch<W> {
    /// Makes a search by these fingerprints.
    pub fn new(mut simhash: SimHash<W>, context: &SearchContext) -> Self {
        let sides = context.inputs.sides;
        simhash.join = simhash.join.between(sides);
        BitSearch {
            simhash,
            sieve: context.verified.then(|| SketchSieve::new(context.rule)),
            sides,
            by_text: context.by_text(),
        }
    }
}

impl<W: Bits> TextSearch for BitSearch<W> {
    fn sections(&self) -> usize {
        FINGERPRINTS + 1
    }

    fn refuses(&self, text: &str) -> Option<String> {
        self.simhash.refuses(text)
    }

    fn map_text(&mut self, doc: &Doc, text: CleanedText, sections: &mut [Vec<u8>]) {
        let fingerprint = self.simhash.fingerprint(text.compared);
        let (identity, sketch) = match self.by_text {
            Some(secret) => (secret.identity(text.whole), self.simhash.sketch().bits()),
            None => (fingerprint.halves().into(), 0),
        };
        put(&mut sections[0], (identity, doc.doc));
        put(&mut sections[FINGERPRINTS], Row { fingerprint, doc: doc.doc, sketch });
    }

    fn are_candidates(&self, a: &MappedText, b: &MappedText) -> bool {
        self.distance(a, b).is_some_and(|distance| distance <= self.simhash.join.distance())
    }

    fn distance(&self, a: &MappedText, b: &MappedText) -> Option<u32> {
        let [a, b] = [a, b].map(|text| text.records::<Row<W>>(FINGERPRINTS).next());
        Some((a?.fingerprint ^ b?.fingerprint).count_ones())
    }

    fn explain(&self, a: &MappedText, b: &MappedText) -> Explanation {
        let found = self.are_candidates(a, b);
        let article = if found { "a" } else { "no" };
        let distance = self.distance(a, b).unwrap_or_default();
        let steps = vec![
            format!("fingerprints: {distance} bits differ, so they are {article} candidate"),
            agreement("blocks", self.simhash.join.tables().len(), self.agreeing(a, b)),
        ];
        Explanation { steps, found, rule: RuleTurn::Last }
    }
}
