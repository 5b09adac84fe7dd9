use std::fs;
use std::sync::Arc;

use cluster::{Blob, Error, Local, Store};
use operators::hash::spread;
use proptest::prelude::*;
use tempfile::TempDir;

use super::layout::{FileShape, MOST_TABLES};
use super::*;

fn write(folder: &TempDir, name: &str, tables: usize, rows: Vec<(u64, u64)>) -> Option<FingerprintFile> {
    let path = format!("{}/{name}", folder.path().display());
    let first = rows.iter().map(|row| row.1).min().unwrap_or(0);
    let shape = FileShape::of_tables(tables, rows.len() as u64, (first, u64::MAX >> 20));
    let mut writer = FingerprintWriter::with_shape(&Local, &path, shape).unwrap();
    writer.push_all(rows).unwrap();
    let summary = writer.finish().unwrap()?;
    let blob = Arc::new(HalfAtHand(Local.open_settled(&path).unwrap()));
    Some(FingerprintFile::open(blob, &summary).unwrap())
}

/// A file of which the store has about half of the pages at hand.
struct HalfAtHand(Arc<dyn Blob>);

impl Blob for HalfAtHand {
    fn path(&self) -> &str {
        self.0.path()
    }

    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        self.0.read_at(offset, buffer)
    }

    fn read_at_hand(&self, offset: u64, buffer: &mut [u8]) -> bool {
        spread(offset).is_multiple_of(2) && self.0.read_at_hand(offset, buffer)
    }

    fn read_ahead_bytes(&self) -> usize {
        self.0.read_ahead_bytes()
    }
}

fn near(file: &FingerprintFile, word: u64, most: u32) -> Vec<(u64, u32)> {
    let mut found = Vec::new();
    let each = |distance, number| found.push((number, distance));
    let mut scratch = FingerprintScratch::default();
    file.begin(!word, &mut scratch).unwrap(); // whose pages this query must not take for its own
    file.begin(word, &mut scratch).unwrap();
    let looked_at = file.near(most, &mut scratch, each).unwrap();
    assert!(!looked_at.is_cut && (looked_at.met > 0 || found.is_empty()));
    found.sort_unstable();
    found.dedup();
    found
}

fn near_by_list(rows: &[(u64, u64)], word: u64, most: u32) -> Vec<(u64, u32)> {
    let near = rows.iter().map(|&(other, number)| (number, (other ^ word).count_ones()));
    let mut near: Vec<_> = near.filter(|(_, distance)| *distance <= most).collect();
    near.sort_unstable();
    near
}

/// Words that lie around a few others, so that many are near each other.
fn rows(first: u64) -> impl Strategy<Value = Vec<(u64, u64)>> {
    let word = (0..4u64, proptest::collection::vec(0..64u32, 0..4))
        .prop_map(|(around, flipped)| flipped.into_iter().fold(spread(around), |word, bit| word ^ 1 << bit));
    proptest::collection::vec(word, 0..300).prop_map(move |words| words.into_iter().zip(first..).collect())
}

proptest! {
    #[test]
    fn a_key_has_the_bits_of_its_word(word: u64, table in 0..MOST_TABLES) {
        let four = FileShape::FOUR;
        prop_assert_eq!(four.word_of(four.key_of(word, table), table), word);
        prop_assert_eq!(four.key_of(word, table) >> 48, word >> (48 - 16 * table) & 0xFFFF);
        let two = FileShape { tables: 2, ..four };
        let table = table / 2;
        prop_assert_eq!(two.word_of(two.key_of(word, table), table), word);
        prop_assert_eq!(two.key_of(word, table), word.rotate_left(32 * table as u32));
    }

    /// Also with other words among them, so that buckets have several bits.
    #[test]
    fn a_file_finds_what_a_list_does(
        mut all in rows(7), others in 0..3u64, asked in 0..8u64, bits in 0..4u32, half in 1..3usize,
    ) {
        all.extend((0..others * 10_000).map(|number| (spread(number + 1_000_000), number + 1_000)));
        let folder = TempDir::new().unwrap();
        if let Some(file) = write(&folder, "file", 2 * half, all.clone()) {
            file.check().unwrap();
            for most in 0..4 {
                let word = spread(asked) ^ ((1 << bits) - 1);
                prop_assert_eq!(near(&file, word, most), near_by_list(&all, word, most));
            }
        }
    }

    #[test]
    fn a_merged_file_has_what_stays(
        older in rows(0), newer in rows(1000), modulus in 1..5u64, halves in [1..3usize, 1..3usize, 1..3usize],
    ) {
        let folder = TempDir::new().unwrap();
        // A merged file is made for as many entries as the others have together, so it has no more tables than they.
        let [of_older, of_newer, of_merged] = halves.map(|half| 2 * half);
        let of_merged = of_merged.min(of_older).min(of_newer);
        let files =
            [write(&folder, "older", of_older, older.clone()), write(&folder, "newer", of_newer, newer.clone())];
        let files: Vec<&FingerprintFile> = files.iter().flatten().collect();
        let path = format!("{}/merged", folder.path().display());
        let entries = (older.len() + newer.len()) as u64;
        let shape = FileShape::of_tables(of_merged, entries, (0, 2000));
        let mut writer = FingerprintWriter::with_shape(&Local, &path, shape).unwrap();
        merge(&files, &mut writer, |_, number| Ok(number % modulus == 0)).unwrap();
        let mut all = [older, newer].concat();
        all.retain(|row| row.1 % modulus == 0);
        match writer.finish().unwrap() {
            None => prop_assert!(all.is_empty()),
            Some(summary) => {
                let file = FingerprintFile::open(Local.open(&path).unwrap(), &summary).unwrap();
                file.check().unwrap();
                for asked in 0..4 {
                    prop_assert_eq!(near(&file, spread(asked), 3), near_by_list(&all, spread(asked), 3));
                }
            }
        }
    }
}

#[test]
fn every_flipped_bit_is_found() {
    let folder = TempDir::new().unwrap();
    let rows: Vec<_> = (0..130).map(|number| (spread(number), number)).collect();
    let summary = write(&folder, "file", 4, rows).unwrap().summary;
    let path = format!("{}/file", folder.path().display());
    let whole = fs::read(&path).unwrap();
    for bit in (0..whole.len() * 8).step_by(5) {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, bytes).unwrap();
        let opened = FingerprintFile::open(Local.open(&path).unwrap(), &summary);
        assert!(opened.and_then(|file| file.check()).is_err(), "bit {bit}");
    }
}

#[test]
fn a_bucket_larger_than_a_page_is_read_whole() {
    [2, 4].into_iter().for_each(large_buckets);
}

fn large_buckets(tables: usize) {
    let folder = TempDir::new().unwrap();
    // All words have three equal blocks, and none is within three bits of most others.
    let rows: Vec<_> = (0..20_000u64).map(|number| (spread(1) & !0xFFFF | number, number)).collect();
    let file = write(&folder, "file", tables, rows.clone()).unwrap();
    file.check().unwrap();
    assert_eq!(near(&file, rows[77].0, 3), near_by_list(&rows, rows[77].0, 3));
    // All are in one of two buckets, and what another table finds lies on the last page of the other one.
    let word = |number: u64| spread(number) >> 16 | (number % 2) << 60;
    let mut rows: Vec<_> = (0..20_000).map(|number| (word(number), number)).collect();
    let asked = rows.iter().map(|row| row.0).max().unwrap();
    rows.extend((0..500).map(|number| (asked ^ 1 << 60 ^ 1 << (number % 40), 50_000 + number)));
    let file = write(&folder, "other", tables, rows.clone()).unwrap();
    file.check().unwrap();
    assert!(near(&file, asked, 3).len() > 500);
    assert_eq!(near(&file, asked, 3), near_by_list(&rows, asked, 3));
}
