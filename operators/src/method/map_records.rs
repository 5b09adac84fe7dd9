//! The map stage: computes and stores what the later stages need of each document.
//!
//! A document adds to one or more sections of bytes, which are stored for each split and read section by
//! section (docs/design/0021). A section is stored in pieces, and the bytes of a document are never divided
//! between two pieces.

use foldhash::HashSet;

use super::zhou::copy_search::WordRow;
use super::{SimHash, Zhou};
use crate::doc_batch::Doc;
use crate::fingerprint::Bits;
use crate::hash::{Identity, Secret};
use crate::merit::{Merit, Priority};
use crate::record::{DocId, Record, Row};
use crate::sets::minhash::MinHash;
use crate::sets::small_sketch::SmallSketch;
use crate::sets::{Rule, Sets};
use crate::text::cleaned::has_text;
use crate::text::ignored_lines::CleanedText;

/// Maps documents one after the other. Each split is mapped by a fresh clone, so its sections depend on
/// nothing but the split.
pub trait Mapper: Clone + Send + Sync {
    /// Returns the number of sections. The first section has the identity of every document with a text and the document,
    /// except for `zhou2017`.
    fn sections(&self) -> usize;
    /// Whether the section [`Texts::TEXTS`] has every document with what is compared of its text, but perhaps of those that are
    /// identical to an earlier one.
    fn stores_texts(&self) -> bool {
        false
    }
    /// Appends the entries of a document with a text to the sections. `text`: its cleaned text.
    fn map_text(&mut self, doc: &Doc, text: CleanedText, sections: &mut [Vec<u8>]);
    /// Appends the entries of a document to the sections. Returns whether it has a text. A document without text has no
    /// record by which another one could find it, so it is nobody's duplicate, and its text is stored as "".
    fn map(&mut self, doc: &Doc, text: CleanedText, sections: &mut [Vec<u8>]) -> bool {
        let has_text = has_text(text.whole);
        if has_text {
            self.map_text(doc, text, sections);
        } else if self.stores_texts() {
            Texts::put(doc, "", &mut sections[Texts::TEXTS]);
        }
        has_text
    }
}

fn put<R: Record>(section: &mut Vec<u8>, record: R) {
    let start = section.len();
    section.resize(start + R::BYTES, 0);
    record.write(&mut section[start..]);
}

fn take<R: Record>(bytes: &mut &[u8]) -> Option<R> {
    bytes.split_off(..R::BYTES).map(R::read)
}

/// Returns the records of a section, or of a piece of it, which contains nothing else.
pub fn records<R: Record>(section: &[u8]) -> impl Iterator<Item = R> {
    section.chunks_exact(R::BYTES).map(R::read)
}

/// Mapper of `exact`. It has one section, of identities.
#[derive(Clone)]
pub struct Identities {
    secret: Secret,
}

impl Identities {
    /// Makes a mapper. `secret`: the secret of the identities.
    pub fn new(secret: Secret) -> Self {
        Identities { secret }
    }
}

impl Mapper for Identities {
    fn sections(&self) -> usize {
        1
    }

    fn map_text(&mut self, doc: &Doc, text: CleanedText, sections: &mut [Vec<u8>]) {
        put(&mut sections[0], (self.secret.identity(text.whole), doc.doc));
    }
}

/// Mapper of SimHash. It has a section of identities and a section of [`Row`]s.
#[derive(Clone)]
pub struct Fingerprints<W: Bits> {
    simhash: SimHash<W>,
    by_text: Option<Secret>,
}

impl<W: Bits> Fingerprints<W> {
    /// Makes a mapper. `by_text`: the secret of the identities, if documents are identical only when their
    /// cleaned texts are; `None` if equal fingerprints are enough.
    pub fn new(simhash: SimHash<W>, by_text: Option<Secret>) -> Self {
        Fingerprints { simhash, by_text }
    }
}

/// Number of the section of fingerprints.
pub const FINGERPRINTS: usize = 1;

impl<W: Bits> Mapper for Fingerprints<W> {
    fn sections(&self) -> usize {
        2
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
}

/// Mapper of the exact join. It has a section of identities and a section of [`StoredText`]s.
#[derive(Clone)]
pub struct Texts {
    secret: Secret,
}

/// A document that is stored with its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredText<'a> {
    /// Position in the corpus.
    pub doc: DocId,
    /// Name that users know the document by.
    pub id: &'a str,
    /// Numbers that keep orders compare.
    pub merit: Merit,
    /// Cleaned text.
    pub text: &'a str,
}

impl Texts {
    /// Number of the section that holds the texts.
    pub const TEXTS: usize = 1;

    /// Makes a mapper. `secret`: the secret of the identities.
    pub fn new(secret: Secret) -> Self {
        Texts { secret }
    }

    /// Appends a document with its cleaned text to a section of texts.
    pub fn put(doc: &Doc, text: &str, section: &mut Vec<u8>) {
        let Merit { chars, priority } = doc.merit();
        put(section, (doc.doc, [chars, priority.0, doc.id.len() as u64, text.len() as u64]));
        section.extend_from_slice(doc.id.as_bytes());
        section.extend_from_slice(text.as_bytes());
    }

    /// Returns the documents of a piece of the section of texts, up to the first bytes that are no document.
    pub fn of(mut section: &[u8]) -> impl Iterator<Item = StoredText<'_>> {
        std::iter::from_fn(move || {
            let (doc, [chars, priority, id, text]): (DocId, [u64; 4]) = take(&mut section)?;
            let merit = Merit { chars, priority: Priority(priority) };
            let mut string =
                |bytes: u64| simdutf8::basic::from_utf8(section.split_off(..bytes as usize)?).ok();
            Some(StoredText { doc, id: string(id)?, merit, text: string(text)? })
        })
    }
}

impl Mapper for Texts {
    fn sections(&self) -> usize {
        2
    }

    fn stores_texts(&self) -> bool {
        true
    }

    fn map_text(&mut self, doc: &Doc, text: CleanedText, sections: &mut [Vec<u8>]) {
        put(&mut sections[0], (self.secret.identity(text.whole), doc.doc));
        Texts::put(doc, text.compared, &mut sections[Self::TEXTS]);
    }
}

/// Mapper of MinHash. It has a section of identities, a section of [`StoredText`]s, and for each band a section of
/// [`BandRecord`](crate::search::bands::BandRecord)s. If several documents of a split are identical, the first has a text and
/// bands, and stands for all.
#[derive(Clone)]
pub struct Bands {
    rule: Rule,
    minhash: MinHash,
    secret: Secret,
    seen: HashSet<Identity>,
    sets: Sets,
    keys: Vec<u64>,
}

impl Bands {
    /// Makes a mapper of signatures of the sets that `rule` compares.
    pub fn new(rule: Rule, minhash: MinHash, secret: Secret) -> Self {
        let (seen, sets, keys) = (HashSet::default(), Sets::default(), Vec::new());
        Bands { rule, minhash, secret, seen, sets, keys }
    }

    /// Returns the number of the section that holds a band.
    pub fn section(band: u32) -> usize {
        1 + Texts::TEXTS + band as usize
    }
}

impl Mapper for Bands {
    fn sections(&self) -> usize {
        Self::section(self.minhash.bands)
    }

    fn stores_texts(&self) -> bool {
        true
    }

    fn map_text(&mut self, doc: &Doc, text: CleanedText, sections: &mut [Vec<u8>]) {
        let identity = self.secret.identity(text.whole);
        put(&mut sections[0], (identity, doc.doc));
        if !self.seen.insert(identity) {
            return Texts::put(doc, "", &mut sections[Texts::TEXTS]);
        }
        Texts::put(doc, text.compared, &mut sections[Texts::TEXTS]);
        self.rule.unsorted(text.compared, &mut self.sets);
        let both = self.sets.present().count() == 2;
        for (kind, set) in self.sets.present() {
            let sketch = SmallSketch::new(kind, set, both);
            self.keys.clear();
            self.minhash.bands(set, &mut self.keys);
            for (section, &key) in sections[Self::section(0)..].iter_mut().zip(&self.keys) {
                put(section, (key, (doc.doc, sketch)));
            }
        }
    }
}

/// Mapper of `zhou2017`. It has one section of fingerprints and words.
#[derive(Clone)]
pub struct Words {
    method: Zhou,
}

impl Words {
    /// Makes a mapper of a method.
    pub fn new(method: Zhou) -> Self {
        Words { method }
    }

    /// Returns the documents of a piece of the section, up to the first bytes that are no document.
    pub fn of(mut section: &[u8]) -> impl Iterator<Item = WordRow> {
        std::iter::from_fn(move || {
            let (doc, (fingerprint, words)): (DocId, (u64, u64)) = take(&mut section)?;
            let words = section.split_off(..words as usize * u64::BYTES)?;
            let words = records(words).collect();
            Some(WordRow { doc, fingerprint: fingerprint as u32, words })
        })
    }
}

impl Mapper for Words {
    fn sections(&self) -> usize {
        1
    }

    fn map_text(&mut self, doc: &Doc, text: CleanedText, sections: &mut [Vec<u8>]) {
        let row = self.method.row(doc.doc, text.compared);
        put(&mut sections[0], (row.doc, (u64::from(row.fingerprint), row.words.len() as u64)));
        row.words.into_iter().for_each(|word| put(&mut sections[0], word));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_with_id_and_merit_and_an_end_in_the_midst_ends_them() {
        let mut texts = Texts::new(Secret::random());
        let mut sections = vec![Vec::new(); texts.sections()];
        let doc = |record, id, text| Doc { doc: DocId::new(3, record), id, text, priority: Priority(record) };
        for (record, id, text, cleaned) in
            [(0, "a", "ＡＢ", "AB"), (7, "", "", ""), (8, "丙", "重复", "重复")]
        {
            texts.map(&doc(record, id, text), cleaned.into(), &mut sections);
        }
        let read: Vec<_> = Texts::of(&sections[1]).collect();
        assert_eq!(read.len(), 3);
        let stored = |record, id, text| {
            let merit = Merit { chars: 2, priority: Priority(record) };
            StoredText { doc: DocId::new(3, record), id, merit, text }
        };
        assert_eq!((read[0], read[2]), (stored(0, "a", "AB"), stored(8, "丙", "重复")));
        assert_eq!(Texts::of(&sections[1][..sections[1].len() - 1]).count(), 2);
        // The document without text has no identity, so no other one is its duplicate.
        assert_eq!(records::<(Identity, DocId)>(&sections[0]).count(), 2);
    }
}
