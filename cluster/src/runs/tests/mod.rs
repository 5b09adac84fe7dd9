//! Runs in memory: against a sorted map, and what is read of them.

mod damage;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use parking_lot::Mutex;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use super::*;
use crate::{Blob, Error, Output};

/// Rows by their keys: the words of the value, and the bytes.
type Rows = BTreeMap<Vec<u64>, (Vec<u64>, Vec<u8>)>;

/// Sizes of leaves and index blocks so small that a few rows make a tree of many levels.
const TINY: (usize, usize) = (24, 48);
const NORMAL: (usize, usize) = (0, 0);

#[derive(Clone, Default)]
struct MemoryFile(Arc<Mutex<Vec<u8>>>);

impl Write for MemoryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for MemoryFile {
    fn finish(self: Box<Self>) -> Result<(), Error> {
        Ok(())
    }
}

/// A file in memory that notes which ranges are read. Its length may differ from what it says.
struct NotedFile {
    contents: Vec<u8>,
    bytes: u64,
    reads: Mutex<Vec<(u64, usize)>>,
}

impl Blob for NotedFile {
    fn path(&self) -> &str {
        "/runs/a"
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let rest = self.contents.get(offset as usize..).unwrap_or_default();
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        if read > 0 {
            self.reads.lock().push((offset, buffer.len()));
        }
        Ok(read)
    }

    fn read_ahead_bytes(&self) -> usize {
        1 << 20
    }
}

fn blob(contents: &[u8]) -> Arc<NotedFile> {
    let reads = Mutex::default();
    Arc::new(NotedFile { contents: contents.to_vec(), bytes: contents.len() as u64, reads })
}

fn shape(key_words: usize, value_words: usize, bytes: bool) -> RunShape {
    RunShape { key_words, value_words, bytes }
}

fn write(shape: RunShape, sizes: (usize, usize), rows: &Rows) -> (Vec<u8>, RunSummary) {
    let file = MemoryFile::default();
    let mut writer = RunWriter::new(Box::new(file.clone()), "/runs/a", shape).unwrap();
    if sizes != NORMAL {
        (writer.leaf_bytes, writer.index_bytes) = sizes;
        writer.this_leaf_bytes = writer.leaf_bytes;
    }
    for (key, (value, bytes)) in rows {
        writer.push(&[&key[..], value].concat(), bytes).unwrap();
    }
    let summary = writer.finish().unwrap();
    let contents = file.0.lock().clone();
    (contents, summary)
}

fn open(shape: RunShape, sizes: (usize, usize), rows: &Rows) -> RunReader {
    let (contents, summary) = write(shape, sizes, rows);
    RunReader::open(blob(&contents), &summary).unwrap()
}

type OwnedRow = (Vec<u64>, Vec<u8>);

fn owned(row: Option<RunRow<'_>>) -> Option<OwnedRow> {
    row.map(|row| (row.words.to_vec(), row.bytes.to_vec()))
}

fn scan(reader: &RunReader) -> Result<Vec<OwnedRow>, Error> {
    let mut cursor = reader.cursor();
    let mut rows = Vec::new();
    while let Some(row) = owned(cursor.next_row()?) {
        rows.push(row);
    }
    assert_eq!(cursor.next_row()?, None);
    Ok(rows)
}

fn listed(rows: &Rows) -> Vec<OwnedRow> {
    rows.iter().map(|(key, (value, bytes))| ([&key[..], value].concat(), bytes.clone())).collect()
}

/// Words that are often equal, and of all magnitudes.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![0..8u64, (0..40u64).prop_map(|word| word << 48), any::<u64>()]
}

fn rows(shape: RunShape) -> impl Strategy<Value = Rows> {
    let bytes = prop_oneof![
        vec(any::<u8>(), 0..6),
        (any::<u8>(), 0..200usize).prop_map(|(byte, length)| vec![byte; length]),
    ];
    let bytes = bytes.prop_map(move |bytes| if shape.bytes { bytes } else { Vec::new() });
    btree_map(vec(word(), shape.key_words), (vec(word(), shape.value_words), bytes), 0..120)
}

/// A key that is sought, and the number of rows that are read then.
type Visit = (Vec<u64>, usize);

/// Some runs of one shape, and what is sought in them.
fn case() -> impl Strategy<Value = (RunShape, Vec<Rows>, Vec<Visit>)> {
    let shapes = (1..4usize, 0..4usize, any::<bool>());
    shapes.prop_flat_map(|(key_words, value_words, bytes)| {
        let shape = shape(key_words, value_words, bytes);
        let seeks = vec((vec(word(), 0..=key_words), 0..6usize), 0..20);
        (Just(shape), vec(rows(shape), 1..5), seeks)
    })
}

proptest! {
    #[test]
    fn merged_runs_are_a_sorted_map((shape, runs, seeks) in case(), tiny in any::<bool>()) {
        let sizes = if tiny { TINY } else { NORMAL };
        let readers: Vec<_> = runs.iter().map(|rows| open(shape, sizes, rows)).collect();
        for (reader, rows) in readers.iter().zip(&runs) {
            reader.check().unwrap();
            prop_assert_eq!(scan(reader).unwrap(), listed(rows));
        }
        let mut map = Rows::new();
        runs.iter().rev().for_each(|rows| map.extend(rows.clone()));
        let expected = listed(&map);

        let mut merged = MergedRuns::new(&readers);
        let mut at = 0;
        for (mut key, reads) in seeks {
            merged.seek(&key).unwrap();
            key.resize(shape.key_words, 0);
            at = at.max(map.keys().position(|other| *other >= key).unwrap_or(map.len()));
            for _ in 0..reads {
                prop_assert_eq!(owned(merged.peek_row().unwrap()), expected.get(at).cloned());
                prop_assert_eq!(owned(merged.next_row().unwrap()), expected.get(at).cloned());
                at = map.len().min(at + 1);
            }
        }
    }
}

/// Bytes that no compression makes shorter.
fn noise(length: usize) -> Vec<u8> {
    (0..length as u64 / 8).flat_map(|at| xxh3_64(&at.to_le_bytes()).to_le_bytes()).collect()
}

#[test]
fn a_row_of_five_megabytes_has_a_leaf_of_its_own() {
    let small = |at: u64| (vec![at], (vec![], vec![at as u8; 10]));
    let mut rows: Rows = (0..200).map(small).collect();
    rows.insert(vec![70], (vec![], noise(5_000_000)));
    rows.insert(vec![90], (vec![], vec![9; 5_000_000]));
    let (contents, summary) = write(shape(1, 0, true), NORMAL, &rows);
    assert!((5_000_000..5_003_000).contains(&contents.len()), "{}", contents.len());
    let blob = blob(&contents);
    let reader = RunReader::open(blob.clone(), &summary).unwrap();
    reader.check().unwrap();
    assert_eq!(scan(&reader).unwrap(), listed(&rows));
    blob.reads.lock().clear();
    let mut cursor = reader.cursor();
    for key in [69, 71] {
        cursor.seek(&[key]).unwrap();
        assert_eq!(cursor.next_row().unwrap().unwrap().bytes, [key as u8; 10]);
    }
    let read: usize = blob.reads.lock().iter().map(|(_, bytes)| bytes).sum();
    assert!(read < 1000, "{read}");
}

#[test]
fn bytes_that_the_first_leaf_has_take_little_room_in_others() {
    let page = noise(3000);
    let row = |at: u64| (vec![at], (vec![], [&page[..], &at.to_le_bytes()].concat()));
    let rows: Rows = (0..100).map(row).collect();
    let (contents, summary) = write(shape(1, 0, true), NORMAL, &rows);
    assert!(contents.len() < 15_000, "{}", contents.len());
    let reader = RunReader::open(blob(&contents), &summary).unwrap();
    let mut cursor = reader.cursor();
    cursor.seek(&[99]).unwrap();
    assert_eq!(cursor.next_row().unwrap().unwrap().bytes, rows[&[99][..]].1);
    assert_eq!(scan(&reader).unwrap(), listed(&rows));
}

#[test]
fn a_dictionary_that_begins_like_one_of_zstd_is_contents() {
    let row = |at: u64| {
        (
            vec![at],
            (
                vec![],
                [&zstd::zstd_safe::zstd_sys::ZSTD_MAGIC_DICTIONARY.to_le_bytes()[..], &noise(3000)].concat(),
            ),
        )
    };
    let rows: Rows = (0..30).map(row).collect();
    assert_eq!(scan(&open(shape(1, 0, true), NORMAL, &rows)).unwrap(), listed(&rows));
}

#[test]
fn rows_up_to_a_key_give_the_words_that_are_asked_for() {
    let rows: Rows = (0..1000u64).map(|at| (vec![at / 100, at], (vec![at * at], vec![]))).collect();
    for sizes in [TINY, NORMAL] {
        let reader = open(shape(2, 1, false), sizes, &rows);
        let mut cursor = reader.cursor();
        for group in [0, 3, 4, 9] {
            cursor.seek(&[group]).unwrap();
            let mut squares = Vec::new();
            for most in [30, usize::MAX] {
                let read = cursor.read_to(&[group, u64::MAX], [2], |row| {
                    squares.push(row.word(0));
                    squares.len() < most
                });
                read.unwrap();
                assert_eq!(squares.len(), most.min(100));
            }
            let expected: Vec<u64> = (group * 100..group * 100 + 100).map(|at| at * at).collect();
            assert_eq!(squares, expected);
            let next = cursor.peek_row().unwrap().map(|row| row.words[1]);
            assert_eq!(next, Some(group * 100 + 100).filter(|next| *next < 1000));
        }
    }
}

#[test]
fn lookups_go_back_and_read_each_index_block_once() {
    let rows: Rows =
        (0..60_000u64).map(|at| (vec![at * 3], (vec![xxh3_64(&at.to_le_bytes())], vec![]))).collect();
    let (contents, summary) = write(shape(1, 1, false), NORMAL, &rows);
    let blob = blob(&contents);
    let reader = RunReader::open_for_lookups(blob.clone(), &summary).unwrap();
    let mut cursor = reader.cursor();
    let mut found = |key: u64| {
        cursor.look_up(&[key]).unwrap();
        owned(cursor.next_row().unwrap())
    };
    let keys: Vec<u64> = (0..60_000u32).rev().step_by(97).map(|at| u64::from(at) * 3).collect();
    for _ in 0..2 {
        blob.reads.lock().clear();
        for &key in &keys {
            let expected = (vec![key, rows[&[key][..]].0[0]], vec![]);
            assert_eq!(found(key), Some(expected.clone()));
            assert_eq!(found(key.saturating_sub(1)).unwrap(), expected);
        }
    }
    let index_blocks = blob.reads.lock().iter().filter(|(_, bytes)| *bytes > 3000).count();
    assert_eq!((index_blocks, found(u64::MAX)), (0, None));
}

#[test]
fn lookups_find_their_row_from_wherever_the_cursor_is() {
    let rows: Rows = (0..500u64).map(|at| (vec![at * 2], (vec![at], at.to_le_bytes().to_vec()))).collect();
    for sizes in [TINY, NORMAL] {
        let reader = open(shape(1, 1, true), sizes, &rows);
        let mut cursor = reader.cursor();
        for at in 0..5000u64 {
            // Half of the lookups are near the last one.
            let random = xxh3_64(&(at / 2).to_le_bytes());
            let key =
                if at % 2 == 0 { random % 1010 } else { (random % 1010 + 3).saturating_sub(random / 7 % 7) };
            cursor.look_up(&[key]).unwrap();
            let from = rows.range(vec![key]..).next().map(|(key, row)| (key.clone(), row.clone()));
            let from = from.map(|(key, (words, bytes))| ([key, words].concat(), bytes));
            let found = if at % 3 == 0 { cursor.peek_row() } else { cursor.next_row() };
            assert_eq!(owned(found.unwrap()), from, "key {key} of lookup {at}");
        }
    }
}

#[test]
fn a_run_may_have_no_row_or_one() {
    for bytes in [false, true] {
        let empty = open(shape(2, 0, bytes), NORMAL, &Rows::new());
        empty.check().unwrap();
        assert_eq!(scan(&empty).unwrap(), []);
        let mut cursor = empty.cursor();
        cursor.seek(&[1, 2]).unwrap();
        assert_eq!(cursor.peek_row().unwrap(), None);
        assert!(empty.summary().first_key.is_empty());

        let row = (vec![u64::MAX, 0], (vec![], if bytes { vec![1, 2] } else { vec![] }));
        let one = open(shape(2, 0, bytes), NORMAL, &Rows::from([row.clone()]));
        one.check().unwrap();
        let mut cursor = one.cursor();
        for sought in [0, u64::MAX] {
            cursor.seek(&[sought]).unwrap();
            assert_eq!(cursor.peek_row().unwrap().unwrap().bytes, row.1.1);
        }
        cursor.seek(&[u64::MAX, 1]).unwrap();
        assert_eq!(cursor.peek_row().unwrap(), None);
    }
    assert_eq!(MergedRuns::new([]).next_row().unwrap(), None);
}

#[test]
fn a_probe_reads_a_block_of_each_level_and_a_scan_reads_ahead() {
    let rows: Rows =
        (0..100_000u64).map(|at| (vec![at << 20, at], (vec![xxh3_64(&at.to_le_bytes())], vec![]))).collect();
    let (contents, summary) = write(shape(2, 1, false), NORMAL, &rows);
    let blob = blob(&contents);
    let reader = RunReader::open(blob.clone(), &summary).unwrap();
    let reads = || std::mem::take(&mut *blob.reads.lock());
    assert_eq!(reads(), [(summary.root.offset, summary.root.bytes as usize)]);

    let mut cursor = reader.cursor();
    cursor.seek(&[50_000 << 20]).unwrap();
    assert_eq!(cursor.next_row().unwrap().unwrap().words[1], 50_000);
    let probe = reads();
    assert_eq!(probe.len(), 2, "{probe:?}");
    assert!(probe[0].1 < 5000 && probe[1].1 < 1200, "{probe:?}");
    cursor.seek(&[50_003 << 20]).unwrap();
    assert_eq!(cursor.next_row().unwrap().unwrap().words[1], 50_003);
    assert_eq!(reads(), []);
    // Another leaf of the same index block.
    cursor.seek(&[50_500 << 20]).unwrap();
    let probe = reads();
    assert!(probe.len() == 1 && probe[0].1 < 1200, "{probe:?}");

    scan(&reader).unwrap();
    let scan = reads();
    let (large, small): (Vec<_>, Vec<_>) = scan.into_iter().partition(|(_, bytes)| *bytes > 1 << 18);
    assert!((1..8).contains(&large.len()) && small.len() < 30, "{large:?} {small:?}");
}

#[test]
#[should_panic(expected = "the keys of a run must ascend")]
fn a_key_that_does_not_ascend_is_refused() {
    let mut writer = RunWriter::new(Box::new(MemoryFile::default()), "/runs/a", shape(2, 0, false)).unwrap();
    writer.push(&[1, 5], &[]).unwrap();
    writer.push(&[1, 5], &[]).unwrap();
}
