//! The search by MinHash: documents that agree on a band of their signatures meet.
//!
//! Here are the map stage and the kept keys, and in `join.rs` the records meet.

mod join;

use foldhash::HashSet;

use super::keyed_search::{KeyedSearch, agreement};
use super::map_records::{StoredText, put};
use super::search_context::SearchContext;
use super::text_search::{Explanation, MappedText, RuleTurn, TextSearch};
use crate::hash::{self, Identity, Secret};
use crate::record::Doc;
use crate::record::DocId;
use crate::record::Sides;
use crate::sets::minhash::MinHash;
use crate::sets::small_sketch::{SketchSieve, SmallSketch};
use crate::sets::{Rule, Sets};
use crate::text::ignored_lines::CleanedText;

/// Each two documents that agree on a band are a candidate, unless the sketches of their sets show that they
/// cannot match. A document may have a record for each kind of its sets.
///
/// The map stage makes a section of identities, a section of [`StoredText`]s, and for each band a section of
/// [`BandRecord`]s. If several documents of a split are identical, the first has a text and bands, and stands for all.
#[derive(Clone)]
pub struct BandSearch {
    minhash: MinHash,
    rule: Rule,
    sieve: SketchSieve,
    secret: Secret,
    sides: Sides,
    /// Identities of the documents of the split so far.
    seen: HashSet<Identity>,
    /// Buffers for the sets of a text, and for the bands of a set.
    sets: Sets,
    bands: Vec<u64>,
}

/// Hash of a band; the document, and the sketch of the set that has the band.
pub type BandRecord = (u64, (DocId, SmallSketch));

/// Number of the section that holds the first band.
const FIRST_BAND: usize = StoredText::SECTION + 1;

impl BandSearch {
    /// Makes a search by signatures of the sets that the rule compares.
    pub fn new(minhash: MinHash, context: &SearchContext) -> Self {
        BandSearch {
            minhash,
            rule: context.rule.clone(),
            sieve: SketchSieve::new(context.rule),
            secret: context.inputs.secret,
            sides: context.inputs.sides,
            seen: HashSet::default(),
            sets: Sets::default(),
            bands: Vec::new(),
        }
    }
}

impl TextSearch for BandSearch {
    fn sections(&self) -> usize {
        FIRST_BAND + self.minhash.bands as usize
    }

    fn stores_texts(&self) -> bool {
        true
    }

    fn begin_split(&mut self) {
        self.seen.clear();
    }

    fn map_text(&mut self, doc: &Doc, text: CleanedText, sections: &mut [Vec<u8>]) {
        let identity = self.secret.identity(text.whole);
        put(&mut sections[0], (identity, doc.doc));
        if !self.seen.insert(identity) {
            return StoredText::put(doc, "", &mut sections[StoredText::SECTION]);
        }
        StoredText::put(doc, text.compared, &mut sections[StoredText::SECTION]);
        self.rule.unsorted(text.compared, &mut self.sets);
        let both = self.sets.present().count() == 2;
        for (kind, set) in self.sets.present() {
            let sketch = SmallSketch::new(kind, set, both);
            self.bands.clear();
            self.minhash.bands(set, &mut self.bands);
            for (section, &band) in sections[FIRST_BAND..].iter_mut().zip(&self.bands) {
                put(section, (band, (doc.doc, sketch)));
            }
        }
    }

    fn are_candidates(&self, a: &MappedText, b: &MappedText) -> bool {
        self.agreeing(a, b).next().is_some()
    }

    fn explain(&self, a: &MappedText, b: &MappedText) -> Explanation {
        let found = self.are_candidates(a, b);
        let article = if found { "a" } else { "no" };
        let steps = vec![
            agreement("bands", self.minhash.bands as usize, self.agreeing(a, b)),
            format!("so they are {article} candidate"),
        ];
        Explanation { steps, found, rule: RuleTurn::First }
    }
}

impl KeyedSearch for BandSearch {
    fn section(band: &u32) -> usize {
        FIRST_BAND + *band as usize
    }

    fn key_bits(_band: &u32) -> u32 {
        u64::BITS
    }

    fn kept_key(_band: &u32, record: &BandRecord) -> u128 {
        // Hashes of bands are spread over all bits, so a range of keys has as many records as any other.
        u128::from(hash::spread(record.0)) << 64
    }

    fn sketch(record: &BandRecord) -> SmallSketch {
        record.1.1
    }

    fn sieve(&self) -> Option<&SketchSieve> {
        Some(&self.sieve)
    }

    fn key_distance(&self, _one: u128, _other: u128) -> Option<u32> {
        Some(0)
    }
}
