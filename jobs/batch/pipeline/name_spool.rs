//! Ids and merits of the documents that may matter after the search.

use anyhow::{Result, bail};
use operators::{DocId, Merit, Priority, SpillBudget, Spool};

/// Names that may not all be wanted. Those beyond a budget are spilled to disk.
pub(crate) struct NameSpool {
    /// For each document its length in characters and its priority, in 8 bytes each, and its id.
    spool: Spool<u8>,
    /// Buffer for one document.
    name: Vec<u8>,
}

impl NameSpool {
    /// Begins without a document.
    pub fn new(budget: &SpillBudget) -> Self {
        NameSpool { spool: Spool::new(budget), name: Vec::new() }
    }

    /// Adds a document with its id and its merit.
    pub fn add(&mut self, doc: DocId, id: &str, Merit { chars, priority }: Merit) {
        self.name.clear();
        self.name.extend(chars.to_le_bytes());
        self.name.extend(priority.0.to_le_bytes());
        self.name.extend(id.as_bytes());
        self.spool.push(doc, &self.name);
    }

    /// Calls `each` with every name in the order of adding, until it fails.
    pub fn scan(&self, mut each: impl FnMut(DocId, &str, Merit) -> Result<()>) -> Result<()> {
        self.spool.scan(|doc, name| {
            let parts = name.split_first_chunk().and_then(|(chars, rest)| {
                let (priority, id) = rest.split_first_chunk()?;
                Some((*chars, *priority, id))
            });
            let Some((chars, priority, id)) = parts else { bail!("names on disk are damaged") };
            let [chars, priority] = [chars, priority].map(u64::from_le_bytes);
            each(doc, str::from_utf8(id)?, Merit { chars, priority: Priority(priority) })
        })
    }
}
