//! Makes of a document what an index stores of it.

use operators::DocBatch;
use operators::method::{KeptKeys, Method};

use super::index_folder::IndexFolder;
use super::topics::PreparedDoc;

/// Maker of what an index stores of a document: its keys, and its cleaned text if the index keeps texts.
#[derive(Clone)]
pub struct Preparer {
    method: Method,
    keys: KeptKeys,
    keeps_texts: bool,
}

impl Preparer {
    pub(super) fn new(method: Method, keys: KeptKeys, keeps_texts: bool) -> Self {
        Preparer { method, keys, keeps_texts }
    }

    /// Makes one for an index in a folder.
    pub fn of(index: &IndexFolder) -> Self {
        Preparer::new(index.method.clone(), index.keys.clone(), index.settings.texts)
    }

    /// Prepares the documents of a batch. Cost: that of mapping their texts.
    pub fn prepare(&mut self, batch: &DocBatch) -> Vec<PreparedDoc> {
        let doc = |doc: operators::Doc| {
            let text = self.method.cleaner.clean(doc.text);
            let keys = self.keys.of(text);
            let text = if self.keeps_texts { text.to_owned() } else { String::new() };
            PreparedDoc { id: doc.id.to_owned(), keys, text, priority: doc.priority }
        };
        batch.docs().map(doc).collect()
    }
}

impl PreparedDoc {
    /// Prepares a document by its fingerprint of 64 bits; `None` if the method of the index has none, or compares texts.
    pub fn of_fingerprint(index: &IndexFolder, id: &str, fingerprint: u64) -> Option<Self> {
        let keys = index.keys.of_fingerprint(fingerprint)?;
        Some(PreparedDoc { id: id.to_owned(), keys, ..PreparedDoc::default() })
    }
}
