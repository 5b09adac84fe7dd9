//! The matches of a document, as the index knows them.

use anyhow::Result;
use operators::hash::Identity;
use operators::method::KeptKeys;
use operators::{DocId, Similarity};

use crate::index::index_folder::IndexFolder;
use crate::index::topics::{IndexCandidate, IndexedDoc, TopicReader};

/// Largest number of candidates that are all compared. Of more than that, only those that stay are.
const FEW: usize = 32;

/// A document, and what is found about it before it is decided which others stay.
pub(in crate::index) struct AskedDoc {
    pub doc: DocId,
    /// Number of its text.
    pub text: u64,
    pub identity: Identity,
    /// Number of characters of its cleaned text.
    pub chars: u32,
    /// Whether the text has nothing by which documents are compared.
    pub is_empty: bool,
    /// Numbers of texts that are identical to it, its own among them.
    pub equal: Vec<u64>,
    /// Numbers of other texts that match it, if its candidates are few.
    pub near: Vec<(u64, Option<Similarity>)>,
    /// The candidates, if they are many. They are not compared yet.
    pub many: Vec<IndexCandidate>,
    /// The sets of the text, with which the candidates are compared.
    sets: Vec<u64>,
    /// Whether there may be candidates that were not looked at.
    pub is_cut: bool,
}

impl AskedDoc {
    /// Asks about a document. `keys`: makes the keys of texts.
    ///
    /// Cost: that of a query of the index; many candidates are not compared.
    pub fn ask(
        index: &IndexFolder,
        reader: &mut TopicReader,
        keys: &mut KeptKeys,
        doc: &IndexedDoc,
    ) -> Result<Self> {
        let text = reader.text(doc.text)?;
        let of_text = keys.of(&text);
        let mut asked = AskedDoc {
            doc: DocId(doc.number),
            text: doc.text,
            identity: of_text.identity,
            chars: text.chars().count() as u32,
            is_empty: of_text.is_empty,
            equal: Vec::new(),
            near: Vec::new(),
            many: Vec::new(),
            sets: Vec::new(),
            is_cut: false,
        };
        if asked.is_empty {
            return Ok(asked);
        }
        let (candidates, is_cut) = reader.candidates(&of_text, keys, None)?;
        let (equal, others): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|of| of.is_equal);
        asked.equal = equal.into_iter().map(|candidate| candidate.text).collect();
        asked.is_cut = is_cut;
        asked.sets = index.sets_of(&text);
        match others.len() <= FEW {
            true => {
                for candidate in others {
                    let matching = asked.matches(index, reader, candidate)?;
                    asked.near.extend(matching.map(|similarity| (candidate.text, similarity)));
                }
            }
            false => asked.many = others,
        }
        Ok(asked)
    }

    /// Whether only candidates that stay are to be compared, because there are many.
    pub fn is_led(&self) -> bool {
        !self.many.is_empty()
    }

    /// Compares a candidate. Returns its similarity, if that was measured; `None` if it does not match.
    pub fn matches(
        &self,
        index: &IndexFolder,
        reader: &mut TopicReader,
        candidate: IndexCandidate,
    ) -> Result<Option<Option<Similarity>>> {
        let matching = index.matching_text(reader, &self.sets, candidate)?;
        Ok(matching.map(|matching| matching.similarity))
    }
}
