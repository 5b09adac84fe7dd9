//! A document, and what is found about it in the index.

use anyhow::Result;
use operators::method::KeptKeys;
use operators::sets::PackedSets;
use operators::{DocId, Similarity};

use super::crowded_keys::{CrowdedKeys, MetByKeys};
use super::text_sets::TextSets;
use crate::index_folder::IndexFolder;
use crate::topics::{IndexCandidate, IndexedDoc, TopicReader};

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
    /// Asks about a document. `keys`: makes the keys of texts. `crowded`: the keys that many texts have. `may_stay`: whether a text may stay,
    /// as far as that is known.
    ///
    /// Cost: that of a query of the index in which a key meets few texts, or those that stay; nothing is compared.
    pub fn ask(
        index: &IndexFolder,
        reader: &mut TopicReader,
        (keys, crowded): (&mut KeptKeys, &mut CrowdedKeys),
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
        let MetByKeys { of_text, met, is_led } =
            crowded.meet(reader, keys, (of_text, doc.text), &may_stay)?;
        asked.is_led = is_led;
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
