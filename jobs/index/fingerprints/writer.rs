//! Writes a file of fingerprints.

use anyhow::Result;
use cluster::runs::BlockPlace;
use cluster::{Error, Output, Store};
use xxhash_rust::xxh3::xxh3_64;

use super::layout::{FileShape, FingerprintSummary, MAGIC, PAGE_ENTRIES, TABLES, key_of};

/// Writes the tables of a file one after the other, each in the order of its keys.
///
/// Memory: a page, and the directory, which has 19 bytes for each page.
pub(in crate::index) struct FingerprintWriter {
    output: Box<dyn Output>,
    path: String,
    shape: FileShape,
    /// Table and first key of the page.
    first: (usize, u64),
    keys: Vec<u8>,
    numbers: Vec<u8>,
    entries: usize,
    last_key: Option<(usize, u64)>,
    directory: Vec<u8>,
    bytes: u64,
    first_table: u64,
}

impl FingerprintWriter {
    /// Creates the file `path` for up to so many entries. `numbers`: the least number, and one that is greater than all.
    ///
    /// # Errors
    /// Those of the store.
    pub fn new(store: &dyn Store, path: &str, entries: u64, numbers: (u64, u64)) -> Result<Self> {
        Ok(FingerprintWriter {
            output: store.create(path)?,
            path: path.to_owned(),
            shape: FileShape::new(entries, numbers),
            first: (0, 0),
            keys: Vec::new(),
            numbers: Vec::new(),
            entries: 0,
            last_key: None,
            directory: Vec::new(),
            bytes: 0,
            first_table: 0,
        })
    }

    /// Adds words with their numbers to all tables, and sorts them.
    pub fn push_all(&mut self, mut rows: Vec<(u64, u64)>) -> Result<()> {
        for table in 0..TABLES {
            rows.sort_unstable_by_key(|&(word, number)| (key_of(word, table), number));
            rows.iter().try_for_each(|&(word, number)| self.push(table, key_of(word, table), number))?;
        }
        Ok(())
    }

    /// Adds an entry to a table. Entries come in the order of tables, keys and numbers. Only the first table has numbers,
    /// so the others have each key once.
    pub fn push(&mut self, table: usize, key: u64, number: u64) -> Result<()> {
        if table > 0 && self.last_key == Some((table, key)) {
            return Ok(());
        }
        debug_assert!(self.last_key.is_none_or(|last| last <= (table, key)), "keys must ascend");
        self.last_key = Some((table, key));
        let bucket = |of: (usize, u64)| (of.0, self.shape.bucket(of.1));
        if bucket((table, key)) != bucket(self.first) || self.entries == PAGE_ENTRIES {
            self.close_page()?;
        }
        if self.entries == 0 {
            self.first = (table, key);
        }
        self.entries += 1;
        self.keys.extend(&key.to_le_bytes()[..self.shape.key_bytes()]);
        if table == 0 {
            self.first_table += 1;
            let number = number - self.shape.first;
            self.numbers.extend(&number.to_le_bytes()[..self.shape.number_bytes]);
        }
        Ok(())
    }

    fn close_page(&mut self) -> Result<()> {
        if self.entries == 0 {
            return Ok(());
        }
        self.keys.append(&mut self.numbers);
        self.output.write_all(&self.keys).map_err(|error| Error::of_write(&self.path, error))?;
        self.directory.push(self.first.0 as u8);
        self.directory.extend((self.entries as u16).to_le_bytes());
        self.directory.extend(self.first.1.to_le_bytes());
        self.directory.extend(xxh3_64(&self.keys).to_le_bytes());
        self.bytes += self.keys.len() as u64;
        self.keys.clear();
        self.entries = 0;
        Ok(())
    }

    /// Writes the directory. Returns `None` if there are no entries.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self) -> Result<Option<FingerprintSummary>> {
        self.close_page()?;
        if self.first_table == 0 {
            return Ok(None);
        }
        self.directory.extend(MAGIC);
        self.output.write_all(&self.directory).map_err(|error| Error::of_write(&self.path, error))?;
        let bytes = self.directory.len() as u64;
        let directory = BlockPlace { offset: self.bytes, bytes, checksum: xxh3_64(&self.directory) };
        self.output.finish()?;
        let bytes = self.bytes + bytes;
        Ok(Some(FingerprintSummary { bytes, entries: self.first_table, shape: self.shape, directory }))
    }
}
