//! Adding and removing documents.

use anyhow::Result;
use hbase::TableCell;

use super::layout::{DocState, DocToken, HBaseDoc, fingerprint_of};
use super::settings_row::HBaseIndex;
use crate::topics::PreparedDoc;

/// Gives documents their times and tokens, in the order in which they come.
pub(super) struct DocStamps {
    process: u64,
    number: u32,
    time: u64,
}

impl DocStamps {
    /// `process`: a number that no other process has.
    pub fn new(process: u64) -> Self {
        DocStamps { process, number: 0, time: 0 }
    }

    /// Stamps a document that comes now, in milliseconds since 1970. Times do not go back when the clock does.
    pub fn stamp(&mut self, doc: &PreparedDoc, now: u64) -> HBaseDoc {
        self.time = self.time.max(now);
        let (time, token) = (self.time, self.token());
        HBaseDoc { time, token, fingerprint: fingerprint_of(doc), id: doc.id.clone() }
    }

    /// Returns a token that no other document with its id and fingerprint has.
    pub fn token(&mut self) -> DocToken {
        let token = DocToken { number: self.number, process: self.process };
        self.number = self.number.wrapping_add(1);
        token
    }
}

impl HBaseIndex {
    /// Adds documents. When this returns, they are durable.
    ///
    /// # Errors
    /// Those of the table. Some of the documents may be there then.
    pub fn insert(&self, topic: &str, docs: &[HBaseDoc]) -> Result<()> {
        self.put(topic, docs, DocState::Kept)
    }

    /// Writes all cells of documents, those by which they are believed last.
    pub fn put(&self, topic: &str, docs: &[HBaseDoc], state: DocState) -> Result<()> {
        let keys: Vec<TableCell> = docs.iter().flat_map(|doc| doc.key_cells(topic)).collect();
        self.table.put(&keys)?;
        let ids: Vec<TableCell> = docs.iter().map(|doc| doc.id_cell(topic, state)).collect();
        Ok(self.table.put(&ids)?)
    }

    /// Removes documents, whatever their states are.
    ///
    /// # Errors
    /// Those of the table. Some of the documents may be there then.
    pub fn remove(&self, topic: &str, docs: &[HBaseDoc]) -> Result<()> {
        let states = [DocState::Pending, DocState::Kept];
        let ids: Vec<TableCell> =
            docs.iter().flat_map(|doc| states.map(|state| doc.id_cell(topic, state))).collect();
        self.table.delete(&ids)?;
        self.forget(topic, docs)
    }

    /// Removes the cells by which documents are found that are no longer there.
    pub fn forget(&self, topic: &str, docs: &[HBaseDoc]) -> Result<()> {
        let keys: Vec<TableCell> = docs.iter().flat_map(|doc| doc.key_cells(topic)).collect();
        Ok(self.table.delete(&keys)?)
    }
}
