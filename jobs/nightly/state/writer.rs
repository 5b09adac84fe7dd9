//! Writes the rows of a night as runs of the state.

use std::sync::Arc;

use anyhow::Result;
use cluster::Store;
use cluster::runs::RunWriter;
use operators::DocId;

use super::manifest::RunEntry;
use super::state_folder::StateFolder;
use super::table::{StateTable, number_of};

/// Numbers of the documents of a night in the state.
///
/// ```text
/// the state ends at 70,000, so it has splits 0 and 1, and the night's input is splits 2 and 3
/// document 5 of split 1    65,541    it is an old one
/// document 5 of split 2    131,077   the numbers of the night begin behind split 1
/// document 0 of split 3    131,972   split 2 has 900 records
/// ```
#[derive(Clone, Debug)]
pub struct Numbering {
    first_split: u32,
    /// Number of the first record of each split of the night, and that behind the last.
    starts: Vec<u64>,
}

impl Numbering {
    /// Numbers the records of the splits behind `first_split`. `records`: how many each of them has.
    pub fn new(first_split: u32, records: impl IntoIterator<Item = u64>) -> Self {
        let mut starts = vec![number_of(DocId::new(first_split, 0))];
        for count in records {
            starts.push(starts[starts.len() - 1] + count);
        }
        Numbering { first_split, starts }
    }

    /// Returns the first document of the night.
    pub fn first_new(&self) -> DocId {
        DocId::new(self.first_split, 0)
    }

    /// Returns the number of a document.
    pub fn number(&self, doc: DocId) -> u64 {
        match doc.split().checked_sub(self.first_split) {
            Some(split) => self.starts[split as usize] + doc.record(),
            None => number_of(doc),
        }
    }

    /// Returns the number behind the last record of the night.
    pub fn end(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }
}

/// The files that one worker writes for a version of the state.
pub(crate) struct RunsOfNight {
    store: Arc<dyn Store>,
    folder: String,
    version: u64,
    /// Name that tells the files of this worker from those of others, and of other runs.
    name: String,
    runs: Vec<RunEntry>,
}

/// A table that a worker is writing.
pub(crate) struct TableWriter {
    run: RunWriter,
    table: StateTable,
    /// Path below the folder of the state.
    file: String,
    rows: u64,
}

impl RunsOfNight {
    /// Begins without files. `name`: that of the worker.
    pub fn new(state: &StateFolder, version: u64, name: &str) -> Self {
        let store = Arc::clone(&state.store);
        let folder = state.path.clone();
        let name = format!("{name}-{}", state.run());
        RunsOfNight { store, folder, version, name, runs: Vec::new() }
    }

    /// Begins the rows of a table.
    pub fn table(&self, table: StateTable) -> Result<TableWriter> {
        let file = format!("runs/{:08}/{}-{}.run", self.version, table.name(), self.name);
        let path = format!("{}/{file}", self.folder);
        let run = RunWriter::new(self.store.create(&path)?, &path, table.shape())?;
        Ok(TableWriter { run, table, file, rows: 0 })
    }

    /// Ends a table. A table without rows leaves no file.
    pub fn finish(&mut self, writer: TableWriter) -> Result<()> {
        let TableWriter { run, table, file, rows } = writer;
        if rows > 0 {
            self.runs.push(RunEntry { table, version: self.version, file, summary: run.finish()? });
        }
        Ok(())
    }

    /// Returns the files that are finished.
    pub fn entries(self) -> Vec<RunEntry> {
        self.runs
    }
}

impl TableWriter {
    /// Adds a row. Keys must ascend.
    pub fn push(&mut self, words: &[u64], bytes: &[u8]) -> Result<()> {
        self.rows += 1;
        Ok(self.run.push(words, bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_of_a_night_are_numbered_behind_those_of_the_state() {
        let numbering = Numbering::new(2, [900, 3]);
        let docs = [DocId::new(1, 5), DocId::new(2, 0), DocId::new(2, 5), DocId::new(3, 0)];
        assert_eq!(docs.map(|doc| numbering.number(doc)), [65_541, 131_072, 131_077, 131_972]);
        assert_eq!(numbering.end(), 131_975);
    }
}
