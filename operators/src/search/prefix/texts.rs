//! The map stage of the search by prefixes, which reads the texts again once their features are counted.

use crate::hash::Secret;
use crate::record::Doc;
use crate::search::map_records::{StoredText, put};
use crate::search::text_search::{Explanation, MappedText, RuleTurn, TextSearch};
use crate::text::ignored_lines::CleanedText;

/// Stores texts. It has a section of identities and a section of [`StoredText`]s.
///
/// The features of a prefix are the rarest of the corpus, which nobody knows before all texts are mapped. So single texts
/// have no keys, and each two of them are a candidate.
#[derive(Clone)]
pub struct PrefixTexts {
    secret: Secret,
}

impl PrefixTexts {
    /// Makes a map stage. `secret`: the secret of the identities.
    pub fn new(secret: Secret) -> Self {
        PrefixTexts { secret }
    }
}

impl TextSearch for PrefixTexts {
    fn sections(&self) -> usize {
        2
    }

    fn stores_texts(&self) -> bool {
        true
    }

    fn map_text(&mut self, doc: &Doc, text: CleanedText, sections: &mut [Vec<u8>]) {
        put(&mut sections[0], (self.secret.identity(text.whole), doc.doc));
        StoredText::put(doc, text.compared, &mut sections[StoredText::SECTION]);
    }

    fn are_candidates(&self, _: &MappedText, _: &MappedText) -> bool {
        true
    }

    fn explain(&self, _: &MappedText, _: &MappedText) -> Explanation {
        let steps = vec!["every pair that is similar enough is found".to_owned()];
        Explanation { steps, found: true, rule: RuleTurn::First }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Identity;
    use crate::record::DocId;
    use crate::record::{Merit, Priority};
    use crate::search::map_records::records;

    #[test]
    fn texts_come_back_with_id_and_merit_and_an_end_in_the_midst_ends_them() {
        let mut texts = PrefixTexts::new(Secret::random());
        let mut sections = vec![Vec::new(); texts.sections()];
        let doc = |record, id, text| Doc { doc: DocId::new(3, record), id, text, priority: Priority(record) };
        for (record, id, text, cleaned) in
            [(0, "a", "ＡＢ", "AB"), (7, "", "", ""), (8, "丙", "重复", "重复")]
        {
            texts.map(&doc(record, id, text), cleaned.into(), &mut sections);
        }
        let read: Vec<_> = StoredText::all(&sections[1]).collect();
        assert_eq!(read.len(), 3);
        let stored = |record, id, text| {
            let merit = Merit { chars: 2, priority: Priority(record) };
            StoredText { doc: DocId::new(3, record), id, merit, text }
        };
        assert_eq!((read[0], read[2]), (stored(0, "a", "AB"), stored(8, "丙", "重复")));
        assert_eq!(StoredText::all(&sections[1][..sections[1].len() - 1]).count(), 2);
        // The document without text has no identity, so no other one is its duplicate.
        assert_eq!(records::<(Identity, DocId)>(&sections[0]).count(), 2);
    }
}
