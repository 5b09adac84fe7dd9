//! Finds the fingerprints of a file that are near one.

use std::ops::Range;

use cluster::Error;

use super::layout::PAGE_ENTRIES;
use super::reader::{FingerprintFile, Page};

/// Largest number of pages that a query reads of one table: a million entries.
const MOST_PAGES: usize = (1 << 20) / PAGE_ENTRIES;
/// Largest number of pages that a query asks the store for before it waits for the first one. Two tables have 66 probes.
const MOST_AHEAD: usize = 80;

/// Counts of the pages and entries of a file that a query has looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NearEntries {
    /// Whether there are more entries than are looked at.
    pub is_cut: bool,
    /// Number of entries that agree with the word in the block of their table.
    pub met: u64,
    /// Number of pages that were read for these.
    pub reads: u64,
    /// Number of pages that were read for the numbers of words that other tables than the first have found.
    pub number_reads: u64,
}

/// Facts that a query has found out about a file, and buffers, which a later one uses again.
#[derive(Default)]
pub(crate) struct FingerprintScratch {
    /// The word of the query.
    word: u64,
    probes: Vec<Probe>,
    /// The first pages of the probes. The buffers of earlier queries stay behind those of this one.
    ahead: Vec<AheadPage>,
    page: Vec<u8>,
    /// Words that tables but the first have found, and their distances.
    found: Vec<(u64, u32)>,
}

/// The keys of a table that have one block.
struct Probe {
    table: usize,
    /// One of these keys; the rest of its bits is that of the query.
    key: u64,
    pages: Range<usize>,
    is_cut: bool,
}

/// A page that a query has asked for before it needs it.
#[derive(Default)]
struct AheadPage {
    /// The page, if the store had it at hand.
    page: Option<Page>,
    bytes: Vec<u8>,
}

impl FingerprintFile {
    /// Begins to look for `word`: finds the pages that may have near entries, and reads those that the store has at hand.
    /// It fetches the others meanwhile if it can, so a query begins with all files before it waits for one.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn begin(&self, word: u64, scratch: &mut FingerprintScratch) -> Result<(), Error> {
        scratch.word = word;
        scratch.probes.clear();
        let FingerprintScratch { probes, ahead, .. } = scratch;
        let shape = self.shape();
        let mut used = 0;
        for table in 0..shape.tables {
            shape.each_probe(shape.key_of(word, table), |key| {
                let all = self.pages_between(table, shape.keys_of_block(key));
                let pages = all.start..all.end.min(all.start + MOST_PAGES);
                for at in pages.clone().take(MOST_AHEAD - used) {
                    if used == ahead.len() {
                        ahead.push(AheadPage::default());
                    }
                    ahead[used].page = self.read_page_at_hand(at, &mut ahead[used].bytes)?;
                    used += 1;
                }
                let is_cut = pages.end < all.end;
                probes.push(Probe { table, key, pages, is_cut });
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Calls `each` with the distance and the number of every entry whose word differs in at most `most` bits, which are
    /// three at most, from the one that [`FingerprintFile::begin`] was called with.
    ///
    /// Cost: a read for each page that has keys with a block of the word, and for each word that only another table than
    /// the first has found, since that table has no numbers.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Damaged`].
    pub fn near(
        &self,
        most: u32,
        scratch: &mut FingerprintScratch,
        mut each: impl FnMut(u32, u64),
    ) -> Result<NearEntries, Error> {
        let &mut FingerprintScratch { word, ref probes, ref mut ahead, page: ref mut buffer, ref mut found } =
            scratch;
        let mut ahead = ahead.iter_mut().take(MOST_AHEAD);
        found.clear();
        let mut near = NearEntries::default();
        let shape = self.shape();
        for Probe { table, key: probe, pages, is_cut } in probes {
            let key = shape.key_of(word, *table);
            near.is_cut |= is_cut;
            for at in pages.clone() {
                let (page, buffer) = match ahead.next() {
                    Some(AheadPage { page: Some(page), bytes }) => (*page, bytes),
                    Some(AheadPage { page: None, bytes }) => (self.read_page(at, bytes)?, bytes),
                    None => (self.read_page(at, buffer)?, &mut *buffer),
                };
                near.reads += 1;
                near.met += self.each_of_block(page, buffer, *probe, |entry, other| {
                    // If at most `most` bits are set, clearing the lowest one `most` times leaves none.
                    let all = key ^ other;
                    if (0..most).fold(all, |bits, _| bits & bits.wrapping_sub(1)) != 0 {
                        return;
                    }
                    let distance = all.count_ones();
                    if *table == 0 {
                        return each(distance, self.number(page, buffer, entry));
                    }
                    let other = shape.word_of(other, *table);
                    if shape.block_distance(other, word) > shape.nearest_block() {
                        found.push((other, distance));
                    }
                });
            }
        }
        found.sort_unstable();
        found.dedup();
        let mut in_buffer = None;
        for &(other, distance) in found.iter() {
            for at in self.pages_between(0, (other, other)) {
                let page = match in_buffer {
                    Some((last, page)) if last == at => page,
                    _ => {
                        near.number_reads += 1;
                        self.read_page(at, buffer)?
                    }
                };
                in_buffer = Some((at, page));
                self.each_equal(page, buffer, other, |entry| {
                    each(distance, self.number(page, buffer, entry));
                });
            }
        }
        Ok(near)
    }

    /// Calls `each` with the entries of a page whose keys have the block of `key`, which is of its bucket, and with these
    /// keys. Returns how many there are.
    #[inline]
    fn each_of_block(&self, page: Page, buffer: &[u8], key: u64, mut each: impl FnMut(usize, u64)) -> u64 {
        let (first, last) = self.shape().keys_of_block(key);
        let bucket = key & !self.shape().rest_mask();
        let from = self.first_from(page, buffer, first);
        for entry in from..usize::from(page.entries) {
            let other = bucket | self.rest(buffer, entry);
            if other > last {
                return (entry - from) as u64;
            }
            each(entry, other);
        }
        usize::from(page.entries).saturating_sub(from) as u64
    }

    /// Calls `each` with the entries of a page that have the key of a word of its bucket.
    fn each_equal(&self, page: Page, buffer: &[u8], key: u64, mut each: impl FnMut(usize)) {
        let from = self.first_from(page, buffer, key);
        let rest = key & self.shape().rest_mask();
        let equal = |entry: &usize| self.rest(buffer, *entry) == rest;
        (from..usize::from(page.entries)).take_while(equal).for_each(&mut each);
    }
}
