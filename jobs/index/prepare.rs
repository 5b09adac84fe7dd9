//! Prepares documents for an index.

use std::time::{SystemTime, UNIX_EPOCH};

use operators::DocBatch;
use operators::method::{KeptKeys, Method};

use super::index_folder::IndexFolder;
use super::topics::PreparedDoc;

/// Prepares documents as the index does that they come to.
#[derive(Clone)]
pub(super) struct Preparer {
    method: Method,
    keys: KeptKeys,
    keeps_texts: bool,
}

impl Preparer {
    pub fn new(method: Method, keys: KeptKeys, keeps_texts: bool) -> Self {
        Preparer { method, keys, keeps_texts }
    }

    /// Makes one for an index in a folder.
    pub fn of(index: &IndexFolder) -> Self {
        Preparer::new(index.method.clone(), index.keys.clone(), index.settings.texts)
    }

    pub fn prepare(&mut self, batch: &DocBatch) -> Vec<PreparedDoc> {
        let doc = |doc: operators::Doc| {
            let text = self.method.cleaner.clean(doc.text);
            let keys = self.keys.of(text);
            let text = if self.keeps_texts { text.to_owned() } else { String::new() };
            PreparedDoc { id: doc.id.to_owned(), keys, text }
        };
        batch.docs().map(doc).collect()
    }
}

/// Returns the time in seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
