//! Records of the map stage that several searches make.

use crate::record::Doc;
use crate::record::{DocId, Record};
use crate::record::{Merit, Priority};

/// Appends a record to a section.
pub(super) fn put<R: Record>(section: &mut Vec<u8>, record: R) {
    let start = section.len();
    section.resize(start + R::BYTES, 0);
    record.write(&mut section[start..]);
}

/// Takes a record off the beginning of a section; `None` if too few bytes are left.
pub(super) fn take<R: Record>(bytes: &mut &[u8]) -> Option<R> {
    bytes.split_off(..R::BYTES).map(R::read)
}

/// Returns the records of a section, or of a piece of it, which contains nothing else.
pub fn records<R: Record>(section: &[u8]) -> impl Iterator<Item = R> {
    section.chunks_exact(R::BYTES).map(R::read)
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

impl<'a> StoredText<'a> {
    /// Number of the section that holds the texts, in searches that store them.
    pub const SECTION: usize = 1;

    /// Appends a document with its cleaned text to a section of texts.
    pub fn put(doc: &Doc, text: &str, section: &mut Vec<u8>) {
        let Merit { chars, priority } = doc.merit();
        put(section, (doc.doc, [chars, priority.0, doc.id.len() as u64, text.len() as u64]));
        section.extend_from_slice(doc.id.as_bytes());
        section.extend_from_slice(text.as_bytes());
    }

    /// Returns the documents of a piece of a section of texts, up to the first bytes that are no document.
    pub fn all(mut section: &'a [u8]) -> impl Iterator<Item = StoredText<'a>> {
        std::iter::from_fn(move || {
            let (doc, [chars, priority, id, text]): (DocId, [u64; 4]) = take(&mut section)?;
            let merit = Merit { chars, priority: Priority(priority) };
            let mut string =
                |bytes: u64| simdutf8::basic::from_utf8(section.split_off(..bytes as usize)?).ok();
            Some(StoredText { doc, id: string(id)?, merit, text: string(text)? })
        })
    }
}
