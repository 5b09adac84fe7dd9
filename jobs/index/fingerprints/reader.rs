//! Opens a file of fingerprints, and reads its pages.

use std::ops::Range;
use std::sync::Arc;

use cluster::{Blob, Error};
use operators::hash::spread;
use xxhash_rust::xxh3::xxh3_64;

use super::layout::{FileShape, FingerprintSummary, MAGIC, MOST_TABLES, PAGE_RECORD_BYTES};

/// Number of bytes behind a page in memory, so that each key can be read as eight bytes.
const PADDING: usize = 8;

/// An open file of fingerprints.
///
/// Memory: its directory, with 32 bytes for each page and 4 for each bucket; 10 MB for ten million documents.
pub(crate) struct FingerprintFile {
    blob: Arc<dyn Blob>,
    pub summary: FingerprintSummary,
    pages: Vec<Page>,
    /// For each table, the first page of each bucket, and the end.
    buckets: [Vec<u32>; MOST_TABLES],
}

/// A page, as the directory has it.
#[derive(Clone, Copy)]
pub(super) struct Page {
    offset: u64,
    checksum: u64,
    first_key: u64,
    pub entries: u16,
    table: u8,
}

impl FingerprintFile {
    /// Opens the file that `summary` describes, which takes one read.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Damaged`].
    pub fn open(blob: Arc<dyn Blob>, summary: &FingerprintSummary) -> Result<Self, Error> {
        let place = summary.directory;
        let (pages, buckets) = (Vec::new(), Default::default());
        let mut file = FingerprintFile { blob, summary: summary.clone(), pages, buckets };
        let is_possible =
            summary.shape.is_possible() && place.offset.checked_add(place.bytes) == Some(summary.bytes);
        if file.blob.bytes() != summary.bytes || !is_possible {
            return Err(file.damage(place.offset, "its length is not that of its summary"));
        }
        let mut directory = vec![0; place.bytes as usize];
        let read = file.blob.read_full_at(place.offset, &mut directory)?;
        if read < directory.len() || xxh3_64(&directory) != place.checksum {
            return Err(file.damage(place.offset, "the checksum of its directory is wrong"));
        }
        let records = directory.strip_suffix(MAGIC).filter(|records| records.len() % PAGE_RECORD_BYTES == 0);
        let Some(records) = records else {
            return Err(file.damage(place.offset, "it is no file of fingerprints of this version"));
        };
        file.read_directory(records)?;
        Ok(file)
    }

    /// Returns a number that is not greater than that of any entry.
    pub fn first_number(&self) -> u64 {
        self.summary.shape.first
    }

    /// Returns the shape of the file.
    pub(super) fn shape(&self) -> FileShape {
        self.summary.shape
    }

    fn read_directory(&mut self, records: &[u8]) -> Result<(), Error> {
        let shape = self.summary.shape;
        let buckets = 1usize << shape.bucket_bits;
        let (mut offset, mut last) = (0, None);
        for record in records.chunks_exact(PAGE_RECORD_BYTES) {
            let &[table, e0, e1, ref words @ ..] = record else { continue };
            let entries = u16::from_le_bytes([e0, e1]);
            let (first_key, checksum) = (eight_bytes(words, 0), eight_bytes(words, 8));
            if usize::from(table) >= shape.tables || last > Some((table, first_key)) {
                return Err(self.damage(self.summary.directory.offset, "its directory is wrong"));
            }
            last = Some((table, first_key));
            self.pages.push(Page { offset, checksum, first_key, entries, table });
            offset += u64::from(entries) * shape.entry_bytes(table.into()) as u64;
        }
        if offset != self.summary.directory.offset {
            return Err(self.damage(offset, "its pages do not end where its directory begins"));
        }
        for (table, firsts) in self.buckets.iter_mut().enumerate() {
            let mut page = self.pages.partition_point(|page| usize::from(page.table) < table);
            for bucket in 0..=buckets {
                let is_before =
                    |page: &Page| usize::from(page.table) == table && shape.bucket(page.first_key) < bucket;
                while self.pages.get(page).is_some_and(is_before) {
                    page += 1;
                }
                firsts.push(page as u32);
            }
        }
        Ok(())
    }

    /// Returns the pages that may have keys from the first to the last, which are of one bucket.
    pub(super) fn pages_between(&self, table: usize, (first, last): (u64, u64)) -> Range<usize> {
        let bucket = self.summary.shape.bucket(first);
        let begin = self.buckets[table][bucket] as usize;
        let end = self.buckets[table][bucket + 1] as usize;
        let pages = &self.pages[begin..end];
        let from = pages.partition_point(|page| page.first_key < first).saturating_sub(1);
        begin + from..begin + pages.partition_point(|page| page.first_key <= last)
    }

    /// Reads a page into `buffer`, and compares its checksum.
    pub(super) fn read_page(&self, at: usize, buffer: &mut Vec<u8>) -> Result<Page, Error> {
        let page = self.pages[at];
        let bytes = self.page_bytes(page);
        buffer.resize(bytes + PADDING, 0);
        let read = self.blob.read_full_at(page.offset, &mut buffer[..bytes])?;
        self.checked(page, &buffer[..read])
    }

    /// Does what [`FingerprintFile::read_page`] does if the store has the page at hand. `None` if it has not, and then it
    /// fetches the page meanwhile, if it can.
    pub(super) fn read_page_at_hand(&self, at: usize, buffer: &mut Vec<u8>) -> Result<Option<Page>, Error> {
        let page = self.pages[at];
        let bytes = self.page_bytes(page);
        buffer.resize(bytes + PADDING, 0);
        let is_read = self.blob.read_at_hand(page.offset, &mut buffer[..bytes]);
        is_read.then(|| self.checked(page, &buffer[..bytes])).transpose()
    }

    fn page_bytes(&self, page: Page) -> usize {
        usize::from(page.entries) * self.summary.shape.entry_bytes(page.table.into())
    }

    /// Returns the page if these bytes are its own.
    fn checked(&self, page: Page, bytes: &[u8]) -> Result<Page, Error> {
        if bytes.len() < self.page_bytes(page) || xxh3_64(bytes) != page.checksum {
            return Err(self.damage(page.offset, "the checksum of a page is wrong"));
        }
        Ok(page)
    }

    /// Returns the first entry of a page whose key is not less than `key`, which is of its bucket.
    pub(super) fn first_from(&self, page: Page, buffer: &[u8], key: u64) -> usize {
        let rest = key & self.summary.shape.rest_mask();
        let (mut from, mut to) = (0, usize::from(page.entries));
        while from < to {
            let middle = from.midpoint(to);
            if self.rest(buffer, middle) < rest { from = middle + 1 } else { to = middle }
        }
        from
    }

    /// Returns the bits of the key of an entry that its bucket does not say.
    #[inline]
    pub(super) fn rest(&self, buffer: &[u8], entry: usize) -> u64 {
        let shape = self.summary.shape;
        eight_bytes(buffer, entry * shape.key_bytes()) & shape.rest_mask()
    }

    /// Returns the number of an entry of the first table.
    pub(super) fn number(&self, page: Page, buffer: &[u8], entry: usize) -> u64 {
        let shape = self.summary.shape;
        let numbers = usize::from(page.entries) * shape.key_bytes();
        let word = eight_bytes(buffer, numbers + entry * shape.number_bytes);
        shape.first + (word & u64::MAX >> (u64::BITS - 8 * shape.number_bytes as u32))
    }

    /// Reads the entries of a table in order.
    pub(super) fn rows(&self, table: usize) -> FingerprintRows<'_> {
        let pages = |table| self.pages.partition_point(|page| usize::from(page.table) < table);
        FingerprintRows {
            file: self,
            table,
            pages: pages(table)..pages(table + 1),
            buffer: Vec::new(),
            rows: Vec::new(),
            at: 0,
        }
    }

    /// Calls `each` with the word and the number of each entry.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Damaged`].
    pub fn each_entry(&self, mut each: impl FnMut(u64, u64)) -> Result<(), Error> {
        let mut rows = self.rows(0);
        while let Some((key, number)) = rows.next()? {
            each(rows.word_of(key), number);
        }
        Ok(())
    }

    /// Reads every page, and compares checksums, the order of keys, and the words of the tables with each other.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Damaged`] for the first page that is wrong.
    pub fn check(&self) -> Result<(), Error> {
        let mut sums = vec![0u64; self.shape().tables];
        for (table, sum) in sums.iter_mut().enumerate() {
            let mut rows = self.rows(table);
            let mut last = None;
            while let Some((key, number)) = rows.next()? {
                let this = Some((key, number));
                if this <= last {
                    return Err(self.damage(0, "the keys of a table do not ascend"));
                }
                if last.is_none_or(|(last, _)| last != key) {
                    *sum = sum.wrapping_add(spread(rows.word_of(key)));
                }
                last = this;
            }
        }
        match sums.iter().all(|sum| *sum == sums[0]) {
            true => Ok(()),
            false => Err(self.damage(0, "its tables do not have the same words")),
        }
    }

    fn damage(&self, offset: u64, reason: &str) -> Error {
        Error::Damaged { path: self.blob.path().to_owned(), offset, reason: reason.to_owned() }
    }
}

/// Entries of a table, in order.
pub(super) struct FingerprintRows<'a> {
    file: &'a FingerprintFile,
    table: usize,
    pages: Range<usize>,
    buffer: Vec<u8>,
    rows: Vec<(u64, u64)>,
    at: usize,
}

impl FingerprintRows<'_> {
    /// Returns the word whose key in the table this is.
    pub fn word_of(&self, key: u64) -> u64 {
        self.file.shape().word_of(key, self.table)
    }

    /// Returns the key and the number of the current entry, and does not move; the number is 0 but in the first table.
    pub fn peek(&mut self) -> Result<Option<(u64, u64)>, Error> {
        while self.at == self.rows.len() {
            let Some(at) = self.pages.next() else { return Ok(None) };
            let page = self.file.read_page(at, &mut self.buffer)?;
            let bucket = page.first_key & !self.file.summary.shape.rest_mask();
            self.at = 0;
            self.rows.clear();
            for entry in 0..usize::from(page.entries) {
                let key = self.file.rest(&self.buffer, entry) | bucket;
                let number = if page.table == 0 { self.file.number(page, &self.buffer, entry) } else { 0 };
                self.rows.push((key, number));
            }
        }
        Ok(Some(self.rows[self.at]))
    }

    /// Returns what [`FingerprintRows::peek`] does, and moves behind it.
    pub fn next(&mut self) -> Result<Option<(u64, u64)>, Error> {
        let row = self.peek()?;
        self.at += usize::from(row.is_some());
        Ok(row)
    }
}

/// Reads eight bytes, of which the padding ensures that they are there.
#[inline]
fn eight_bytes(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight))
}
