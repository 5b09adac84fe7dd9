//! The map stage: what is kept of each document for the stages after it.
//!
//! A document adds to one or more sections of bytes, which are stored for each split and read section by section
//! (docs/design/0021). Nothing of a document lies in two pieces of a section.

use std::collections::HashSet;

use super::zhou::retrieval::WordRow;
use super::{Method, Zhou};
pub use crate::hash::Identity;
use crate::hash::Secret;
use crate::record::{Doc, DocId, Record};
use crate::sets::minhash::MinHash;
use crate::sets::{Rule, Sets};
use crate::text::Cleaner;

/// What documents are identical by, a fingerprint or the [`Identity`] of their text or both, and a document.
pub type Mapped<K> = (K, u64);

/// Maps documents, one after the other. Every split has a fresh clone, so what is kept of a split depends on
/// nothing but the split.
pub trait Mapper: Clone + Send + Sync {
    /// How many sections there are. The first holds something of every document.
    fn sections(&self) -> usize;
    /// Appends what is kept of a document.
    fn map(&mut self, doc: &Doc, sections: &mut [Vec<u8>]);
}

fn put<R: Record>(section: &mut Vec<u8>, record: R) {
    let start = section.len();
    section.resize(start + R::BYTES, 0);
    record.write(&mut section[start..]);
}

fn take<R: Record>(bytes: &mut &[u8]) -> Option<R> {
    bytes.split_off(..R::BYTES).map(R::read)
}

/// The records of a section, or of a piece of it, that holds nothing else.
pub fn records<R: Record>(section: &[u8]) -> impl Iterator<Item = R> {
    section.chunks_exact(R::BYTES).map(R::read)
}

/// Fingerprints: one section of [`Mapped`] records, of fingerprints or of fingerprints and identities.
#[derive(Clone)]
pub struct Fingerprints<M> {
    cleaner: Cleaner,
    method: M,
    by_text: Option<Secret>,
}

impl<M: Method> Fingerprints<M> {
    /// `by_text`: documents are identical when their cleaned texts are, by this secret, and not already when their
    /// fingerprints are.
    pub fn new(cleaner: Cleaner, method: M, by_text: Option<Secret>) -> Self {
        Fingerprints { cleaner, method, by_text }
    }
}

impl<M: Method> Mapper for Fingerprints<M> {
    fn sections(&self) -> usize {
        1
    }

    fn map(&mut self, doc: &Doc, sections: &mut [Vec<u8>]) {
        let text = self.cleaner.clean(doc.text);
        let fingerprint = self.method.fingerprint(text);
        match self.by_text {
            Some(secret) => put(&mut sections[0], ((fingerprint, secret.identity(text)), doc.doc.0)),
            None => put(&mut sections[0], (fingerprint, doc.doc.0)),
        }
    }
}

/// Cleaned texts: a section of identities, [`Mapped`], and one of [`Text`].
#[derive(Clone)]
pub struct Texts {
    cleaner: Cleaner,
    secret: Secret,
}

/// A document that is kept with its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// Its place in the corpus.
    pub doc: DocId,
    /// What users call it.
    pub id: &'a str,
    /// Of the text before it was cleaned.
    pub chars: u64,
    /// Cleaned.
    pub text: &'a str,
}

impl Texts {
    /// Which section holds the texts.
    pub const TEXTS: usize = 1;

    /// Texts go through `cleaner`.
    pub fn new(cleaner: Cleaner, secret: Secret) -> Self {
        Texts { cleaner, secret }
    }

    /// The documents of a piece of the section of texts. What is not one ends them.
    pub fn of(mut section: &[u8]) -> impl Iterator<Item = Text<'_>> {
        std::iter::from_fn(move || {
            let (doc, (chars, (id, text))) = take(&mut section)?;
            let mut string =
                |bytes: u64| simdutf8::basic::from_utf8(section.split_off(..bytes as usize)?).ok();
            Some(Text { doc: DocId(doc), id: string(id)?, chars, text: string(text)? })
        })
    }
}

impl Mapper for Texts {
    fn sections(&self) -> usize {
        2
    }

    fn map(&mut self, doc: &Doc, sections: &mut [Vec<u8>]) {
        let text = self.cleaner.clean(doc.text);
        put(&mut sections[0], (self.secret.identity(text), doc.doc.0));
        let section = &mut sections[Self::TEXTS];
        let chars = doc.text.chars().count() as u64;
        put(section, (doc.doc.0, (chars, (doc.id.len() as u64, text.len() as u64))));
        section.extend_from_slice(doc.id.as_bytes());
        section.extend_from_slice(text.as_bytes());
    }
}

/// Bands of signatures: a section of identities, [`Mapped`], and one for each band of hash and document, a pair of `u64`.
/// Of identical documents of a split the first alone has bands: it stands for all.
#[derive(Clone)]
pub struct Bands {
    cleaner: Cleaner,
    rule: Rule,
    minhash: MinHash,
    secret: Secret,
    seen: HashSet<Identity>,
    sets: Sets,
    keys: Vec<u64>,
}

impl Bands {
    /// Signatures of the sets that `rule` compares.
    pub fn new(cleaner: Cleaner, rule: Rule, minhash: MinHash, secret: Secret) -> Self {
        let (seen, sets, keys) = (HashSet::new(), Sets::default(), Vec::new());
        Bands { cleaner, rule, minhash, secret, seen, sets, keys }
    }

    /// Which section holds a band.
    pub fn section(band: u32) -> usize {
        1 + band as usize
    }
}

impl Mapper for Bands {
    fn sections(&self) -> usize {
        Self::section(self.minhash.bands)
    }

    fn map(&mut self, doc: &Doc, sections: &mut [Vec<u8>]) {
        let text = self.cleaner.clean(doc.text);
        let identity = self.secret.identity(text);
        put(&mut sections[0], (identity, doc.doc.0));
        if !self.seen.insert(identity) {
            return;
        }
        self.rule.unsorted(text, &mut self.sets);
        self.keys.clear();
        self.minhash.bands_of(&self.sets, &mut self.keys);
        for keys in self.keys.chunks_exact(self.minhash.bands as usize) {
            for (section, &key) in sections[1..].iter_mut().zip(keys) {
                put(section, (key, doc.doc.0));
            }
        }
    }
}

/// Fingerprints and words of `zhou2017`: one section.
#[derive(Clone)]
pub struct Words {
    cleaner: Cleaner,
    method: Zhou,
}

impl Words {
    /// Texts go through `cleaner`.
    pub fn new(cleaner: Cleaner, method: Zhou) -> Self {
        Words { cleaner, method }
    }

    /// The documents of a piece of the section. What is not one ends them.
    pub fn of(mut section: &[u8]) -> impl Iterator<Item = WordRow> {
        std::iter::from_fn(move || {
            let (doc, (fingerprint, words)): (u64, (u64, u64)) = take(&mut section)?;
            let words = section.split_off(..words as usize * u64::BYTES)?;
            let words = records(words).collect();
            Some(WordRow { doc: DocId(doc), fingerprint: fingerprint as u32, words })
        })
    }
}

impl Mapper for Words {
    fn sections(&self) -> usize {
        1
    }

    fn map(&mut self, doc: &Doc, sections: &mut [Vec<u8>]) {
        let row = self.method.row(doc.doc, self.cleaner.clean(doc.text));
        put(&mut sections[0], (row.doc.0, (u64::from(row.fingerprint), row.words.len() as u64)));
        row.words.into_iter().for_each(|word| put(&mut sections[0], word));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Clean;

    #[test]
    fn texts_come_back_with_id_and_length_and_an_end_in_the_midst_ends_them() {
        let mut texts = Texts::new(Cleaner::new(Clean::Nfkc), Secret::random());
        let mut sections = vec![Vec::new(); texts.sections()];
        let doc = |record, id, text| Doc { doc: DocId::new(3, record), id, text };
        for (record, id, text) in [(0, "a", "ＡＢ"), (7, "", ""), (8, "丙", "重复")] {
            texts.map(&doc(record, id, text), &mut sections);
        }
        let read: Vec<_> = Texts::of(&sections[1]).collect();
        assert_eq!(read.len(), 3);
        assert_eq!(read[0], Text { doc: DocId::new(3, 0), id: "a", chars: 2, text: "AB" });
        assert_eq!(read[2], Text { doc: DocId::new(3, 8), id: "丙", chars: 2, text: "重复" });
        assert_eq!(Texts::of(&sections[1][..sections[1].len() - 1]).count(), 2);
        assert_eq!(records::<Mapped<Identity>>(&sections[0]).count(), 3);
    }
}
