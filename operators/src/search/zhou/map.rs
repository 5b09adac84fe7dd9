//! The map stage of `zhou2017`, and its answers about two single texts.

use super::Zhou;
use super::copy_search::{WordRow, meet};
use crate::record::Doc;
use crate::record::{DocId, Record};
use crate::search::map_records::{put, records, take};
use crate::search::text_search::{Explanation, MappedText, RuleTurn, TextSearch};
use crate::sets::similarity::{Similarity, jaccard};
use crate::text::ignored_lines::CleanedText;

/// Document, fingerprint, and number of the words that follow.
type WordHead = (DocId, (u64, u64));

impl WordRow {
    /// Returns the documents of a piece of the section, up to the first bytes that are no document.
    pub fn all(mut section: &[u8]) -> impl Iterator<Item = WordRow> {
        std::iter::from_fn(move || {
            let (doc, (fingerprint, words)): WordHead = take(&mut section)?;
            let words = section.split_off(..words as usize * u64::BYTES)?;
            let words = records(words).collect();
            Some(WordRow { doc, fingerprint: fingerprint as u32, words })
        })
    }
}

/// It has one section of fingerprints and words.
impl TextSearch for Zhou {
    fn sections(&self) -> usize {
        1
    }

    fn map_text(&mut self, doc: &Doc, text: CleanedText, sections: &mut [Vec<u8>]) {
        let row = self.row(doc.doc, text.compared);
        let head: WordHead = (row.doc, (row.fingerprint.into(), row.words.len() as u64));
        put(&mut sections[0], head);
        row.words.into_iter().for_each(|word| put(&mut sections[0], word));
    }

    fn are_candidates(&self, a: &MappedText, b: &MappedText) -> bool {
        meet(fingerprint(a), fingerprint(b))
    }

    fn distance(&self, a: &MappedText, b: &MappedText) -> Option<u32> {
        Some((fingerprint(a) ^ fingerprint(b)).count_ones())
    }

    fn decide(&self, a: &MappedText, b: &MappedText) -> Option<(Similarity, bool)> {
        let [a, b] = rows([a, b]);
        let matches = meet(a.fingerprint, b.fingerprint) && self.duplicates(&a, &b).is_some();
        Some((jaccard(&a.words, &b.words), matches))
    }

    fn explain(&self, a: &MappedText, b: &MappedText) -> Explanation {
        let [a, b] = rows([a, b]);
        let met = meet(a.fingerprint, b.fingerprint);
        let duplicates = self.duplicates(&a, &b).is_some();
        let distance = (a.fingerprint ^ b.fingerprint).count_ones();
        let (sim, dup) = self.sim(&a, &b);
        let k = self.k;
        let threshold = self.threshold as f64 / 1e6;
        let steps = vec![
            format!(
                "fingerprints: {distance} bits differ; the two {} in a copy",
                if met { "meet" } else { "do not meet" }
            ),
            format!("words: {} and {}, similarity {dup} (Dup)", a.words.len(), b.words.len()),
            format!(
                "Sim = 1/({distance} + 1) + {k} · {dup} = {sim:.4}, {} the threshold {threshold}",
                if duplicates { "not under" } else { "under" }
            ),
        ];
        Explanation { steps, found: met && duplicates, rule: RuleTurn::Never }
    }
}

/// Returns the rows of two texts.
fn rows(texts: [&MappedText; 2]) -> [WordRow; 2] {
    texts.map(|text| WordRow::all(text.section(0)).next().unwrap_or_default())
}

/// Returns the fingerprint of a text.
fn fingerprint(text: &MappedText) -> u32 {
    take::<WordHead>(&mut text.section(0)).unwrap_or_default().1.0 as u32
}
