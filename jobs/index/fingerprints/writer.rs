//! Writes a file of fingerprints.

use anyhow::Result;
use cluster::runs::BlockPlace;
use cluster::{Error, Output, Store};
use xxhash_rust::xxh3::xxh3_64;

use super::layout::{FileShape, FingerprintSummary, MAGIC, PAGE_ENTRIES};

/// Number of bits behind those that the words of a group share.
pub(super) const GROUP_SHIFT: u32 = u64::BITS - 16;

/// Writes the tables of a file one after the other, each in the order of its keys.
///
/// Memory: a page, and the directory, which has 19 bytes for each page.
pub(crate) struct FingerprintWriter {
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
        FingerprintWriter::with_shape(store, path, FileShape::new(entries, numbers))
    }

    /// Creates a file of some shape.
    pub(super) fn with_shape(store: &dyn Store, path: &str, shape: FileShape) -> Result<Self> {
        Ok(FingerprintWriter {
            output: store.create(path)?,
            path: path.to_owned(),
            shape,
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
        rows.sort_unstable();
        rows.iter().try_for_each(|&(word, number)| self.push_first(word, number))?;
        let mut words: Vec<u64> = rows.into_iter().map(|(word, _)| word).collect();
        for table in 1..self.shape.tables {
            let shape = self.shape;
            words.sort_unstable_by_key(|word| shape.key_of(*word, table));
            words.iter().try_for_each(|word| self.push(table, shape.key_of(*word, table), 0))?;
        }
        Ok(())
    }

    /// Adds an entry to the first table. Entries come in the order of words and numbers.
    pub fn push_first(&mut self, word: u64, number: u64) -> Result<()> {
        self.push(0, word, number)
    }

    /// Writes the other tables. `words`: is asked once for each of them. It gets the number of a block of 16 bits, and calls
    /// its other argument with all words in the order of that block. It may repeat a word.
    ///
    /// Memory: the words that have this block in common.
    pub fn push_others(
        &mut self,
        mut words: impl FnMut(usize, &mut dyn FnMut(u64) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let shape = self.shape;
        for table in 1..shape.tables {
            let mut keys: Vec<u64> = Vec::new();
            words(FileShape::FOUR.table_like(shape, table), &mut |word| {
                let key = shape.key_of(word, table);
                if keys.first().is_some_and(|first| first >> GROUP_SHIFT != key >> GROUP_SHIFT) {
                    self.push_sorted(table, &mut keys)?;
                }
                keys.push(key);
                Ok(())
            })?;
            self.push_sorted(table, &mut keys)?;
        }
        Ok(())
    }

    /// Sorts keys, adds them to a table, and takes them away.
    fn push_sorted(&mut self, table: usize, keys: &mut Vec<u64>) -> Result<()> {
        keys.sort_unstable();
        keys.drain(..).try_for_each(|key| self.push(table, key, 0))
    }

    /// Adds an entry to a table. Entries come in the order of tables, keys and numbers. Only the first table has numbers,
    /// so the others have each key once.
    fn push(&mut self, table: usize, key: u64, number: u64) -> Result<()> {
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
