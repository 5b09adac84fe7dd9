//! Adding and removing documents.

use anyhow::Result;
use hbase::TableCell;

use super::layout::{DocState, HBaseDoc};
use super::settings_row::HBaseIndex;

impl HBaseIndex {
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
