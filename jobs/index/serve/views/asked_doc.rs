//! A document, and what is found about it in the index.

use anyhow::Result;
use operators::method::KeptKeys;
use operators::sets::PackedSets;
use operators::{DocId, Similarity};

use super::text_sets::TextSets;
use crate::index::index_folder::IndexFolder;
use crate::index::topics::{IndexCandidate, IndexedDoc, TopicReader};

/// Largest number of texts with common keys that are all compared. Of more than that, only those that stay are.
const FEW: usize = 32;

/// A document, and what is found about it before it is decided which others stay.
pub(super) struct AskedDoc {
    pub doc: DocId,
    /// Number of characters of its cleaned text.
    pub chars: u32,
    /// Numbers of texts that are identical to it, its own among them.
    pub equal: Vec<u64>,
    /// Other texts that may match it: all of them, or of a document that is led those that may stay.
    pub candidates: Vec<IndexCandidate>,
    /// Whether only texts that stay are compared with it, since very many have common keys.
    pub is_led: bool,
    /// Whether there may be candidates that were not looked at.
    pub is_cut: bool,
    /// The sets of the text, with which the candidates are compared.
    sets: Vec<u64>,
}

impl AskedDoc {
    /// Asks about a document. `keys`: makes the keys of texts. `may_stay`: whether a text may stay, as far as that is known.
    ///
    /// Cost: that of a query of the index, but that nothing is compared.
    pub fn ask(
        index: &IndexFolder,
        reader: &mut TopicReader,
        keys: &mut KeptKeys,
        doc: &IndexedDoc,
        may_stay: impl Fn(u64) -> bool,
    ) -> Result<Self> {
        let text = reader.text(doc.text)?;
        let of_text = keys.of(&text);
        let mut asked = AskedDoc {
            doc: DocId(doc.number),
            chars: text.chars().count() as u32,
            equal: Vec::new(),
            candidates: Vec::new(),
            is_led: false,
            is_cut: false,
            sets: Vec::new(),
        };
        if of_text.is_empty {
            return Ok(asked);
        }
        let mut met = reader.meet(&of_text, keys, None)?;
        asked.is_led = met.are_more_than(FEW, of_text.keys.len());
        let is_wanted = |text| !asked.is_led || may_stay(text);
        let (candidates, is_cut) = reader.sieve(&of_text, keys, met, is_wanted)?;
        let (equal, others): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|of| of.is_equal);
        asked.equal = equal.into_iter().map(|candidate| candidate.text).collect();
        (asked.candidates, asked.is_cut) = (others, is_cut);
        asked.sets = index.sets_of(&text);
        Ok(asked)
    }

    /// Compares a text. Returns its similarity; `None` if it does not match.
    pub fn similarity(
        &self,
        index: &IndexFolder,
        reader: &mut TopicReader,
        known: &mut TextSets,
        text: u64,
    ) -> Result<Option<Similarity>> {
        let other = known.of(text, || Ok(index.sets_of(&reader.text(text)?)))?;
        Ok(index.method.rule.matches(PackedSets(&self.sets), PackedSets(other)))
    }
}
