//! Ids and text lengths of the documents that may matter after the search.

use anyhow::{Result, bail};
use operators::{DocId, SpillBudget, Spool};

/// Names that may not all be wanted. Those beyond a budget are spilled to disk.
pub(crate) struct NameSpool {
    /// For each document the length of its text in characters, in 8 bytes, and its id.
    spool: Spool<u8>,
    /// Buffer for one document.
    name: Vec<u8>,
}

impl NameSpool {
    /// Begins without a document.
    pub fn new(budget: &SpillBudget) -> Self {
        NameSpool { spool: Spool::new(budget), name: Vec::new() }
    }

    /// Adds a document with its id and the length of its text in characters.
    pub fn add(&mut self, doc: DocId, id: &str, chars: u64) {
        self.name.clear();
        self.name.extend(chars.to_le_bytes());
        self.name.extend(id.as_bytes());
        self.spool.push(doc, &self.name);
    }

    /// Calls `each` with every name in the order of adding, until it fails.
    pub fn scan(&self, mut each: impl FnMut(DocId, &str, u64) -> Result<()>) -> Result<()> {
        self.spool.scan(|doc, name| {
            let Some((chars, id)) = name.split_first_chunk() else { bail!("names on disk are damaged") };
            each(doc, str::from_utf8(id)?, u64::from_le_bytes(*chars))
        })
    }
}
