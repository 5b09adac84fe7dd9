//! Damaged runs: wrong bits, missing ends, and wrong lengths under right checksums.

use std::sync::Arc;

use parking_lot::Mutex;
use proptest::collection::vec;
use proptest::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use super::*;
use crate::runs::block::{BlockBuilder, MAGIC, index_shape};

proptest! {
    /// The leaf is damaged, but every checksum is right.
    #[test]
    fn damage_with_a_right_checksum_does_no_harm(
        bytes in any::<bool>(),
        changes in vec((0..400usize, any::<u8>()), 0..5),
        whole in proptest::option::of(vec(any::<u8>(), 0..80)),
        of_root in any::<bool>(),
        seeks in vec(vec(word(), 0..2), 0..4),
    ) {
        let shape = shape(2, 1, bytes);
        let row = |at: u64| (vec![at << 40, at], (vec![at * at], vec![7; if bytes { 99 } else { 0 }]));
        let (mut contents, mut summary) = write(shape, NORMAL, &(0..20).map(row).collect());
        let mut root = contents.split_off(summary.root.offset as usize);
        let mut leaf = contents;
        let damaged = if of_root { &mut root } else { &mut leaf };
        for (at, byte) in changes {
            let length = damaged.len();
            damaged[at % length] = byte;
        }
        if let Some(whole) = whole {
            damaged.truncate(20);
            damaged.extend(whole);
        }
        if !of_root {
            root = root_of(shape, &leaf, leaf.len() as u64);
        }
        let contents = put_together(&leaf, &root, &mut summary);
        if let Ok(reader) = RunReader::open(blob(&contents), &summary) {
            let _ = (reader.check(), scan(&reader));
            let mut cursor = reader.cursor();
            for key in seeks {
                let _ = cursor.seek(&key);
                let _ = cursor.next_row();
            }
        }
    }
}

/// Makes a root with one child, which has the right checksum and the length `bytes`.
fn root_of(shape: RunShape, leaf: &[u8], bytes: u64) -> Vec<u8> {
    let mut index = BlockBuilder::new(index_shape(shape));
    let mut root = Vec::new();
    let place = [0, bytes, xxh3_64(leaf)];
    index.push(&[&vec![0; shape.key_words][..], &place].concat(), &[]);
    index.take_columns(1, &mut root);
    root.extend(MAGIC);
    root
}

/// Makes a file of a leaf and a root, and corrects the summary.
fn put_together(leaf: &[u8], root: &[u8], summary: &mut RunSummary) -> Vec<u8> {
    let (offset, bytes) = (leaf.len() as u64, root.len() as u64);
    summary.root = BlockPlace { offset, bytes, checksum: xxh3_64(root) };
    summary.bytes = offset + bytes;
    [leaf, root].concat()
}

#[test]
fn lengths_are_limited_where_checksums_are_right() {
    let shape = shape(1, 0, true);
    let row = (vec![0], (vec![], vec![7; 1000]));
    let (whole, mut summary) = write(shape, NORMAL, &Rows::from([row]));
    let leaf = &whole[..summary.root.offset as usize];
    for bytes in [u64::MAX, 1 << 50, leaf.len() as u64 + 1000] {
        let contents = put_together(leaf, &root_of(shape, leaf, bytes), &mut summary);
        let reader = RunReader::open(blob(&contents), &summary).unwrap();
        assert_damaged(scan(&reader), summary.bytes, &format!("a leaf of {bytes} bytes"));
    }
    for length in [u64::MAX, 1 << 50, 1 << 29, 1001, 999] {
        // A value has the place that the length of the bytes has in a leaf with bytes.
        let mut builder = BlockBuilder::new(RunShape { value_words: 1, bytes: false, ..shape });
        let mut leaf = vec![];
        builder.push(&[0, length], &[]);
        builder.take_columns(0, &mut leaf);
        leaf.extend(zstd::bulk::compress(&[7; 1000], 3).unwrap());
        let contents = put_together(&leaf, &root_of(shape, &leaf, leaf.len() as u64), &mut summary);
        let reader = RunReader::open(blob(&contents), &summary).unwrap();
        assert_damaged(scan(&reader), summary.bytes, &format!("a row of {length} bytes"));
    }
}

/// A small run of each kind: only words, words and bytes that are compressed or not, and large index blocks.
fn kinds() -> Vec<(Vec<u8>, RunSummary)> {
    let row =
        |at: u64| (vec![at << 48 | 3, at * 7], (vec![at.wrapping_mul(0x9e37_79b9_7f4a_7c15)], Vec::new()));
    let words: Rows = (0..40).map(row).collect();
    let with_bytes = |length: usize| {
        words
            .iter()
            .map(|(key, (value, _))| (key.clone(), (value.clone(), vec![value[0] as u8; length])))
            .collect()
    };
    vec![
        write(shape(2, 1, false), TINY, &words),
        write(shape(2, 1, false), NORMAL, &words),
        write(shape(2, 1, true), TINY, &with_bytes(3)),
        write(shape(2, 1, true), (150, 100), &with_bytes(60)),
        write(shape(2, 1, false), NORMAL, &Rows::new()),
    ]
}

#[track_caller]
fn assert_damaged<T>(result: Result<T, Error>, bytes: u64, case: &str) {
    match result {
        Err(Error::Damaged { path, offset, .. }) => assert!(path == "/runs/a" && offset <= bytes, "{case}"),
        Err(other) => panic!("{case}: {other}"),
        Ok(_) => panic!("{case} was not found"),
    }
}

#[test]
fn every_flipped_bit_is_found() {
    for (kind, (mut contents, summary)) in kinds().into_iter().enumerate() {
        for bit in 0..contents.len() * 8 {
            contents[bit / 8] ^= 1 << (bit % 8);
            let reader = RunReader::open(blob(&contents), &summary);
            let case = format!("bit {bit} of kind {kind}");
            assert_damaged(reader.and_then(|reader| scan(&reader)), summary.bytes, &case);
            let reader = RunReader::open(blob(&contents), &summary);
            assert_damaged(reader.and_then(|reader| reader.check()), summary.bytes, &case);
            contents[bit / 8] ^= 1 << (bit % 8);
        }
        RunReader::open(blob(&contents), &summary).unwrap().check().unwrap();
    }
}

#[test]
fn every_truncation_is_found() {
    for (contents, summary) in kinds() {
        for length in 0..contents.len() {
            let case = format!("length {length}");
            let cut = blob(&contents[..length]);
            assert_damaged(RunReader::open(cut, &summary).map(|_| ()), summary.bytes, &case);
            // A store that tells the whole length, but has no more bytes.
            let cut = NotedFile {
                contents: contents[..length].to_vec(),
                bytes: summary.bytes,
                reads: Mutex::default(),
            };
            let scanned = RunReader::open(Arc::new(cut), &summary).and_then(|reader| scan(&reader));
            assert_damaged(scanned.map(|_| ()), summary.bytes, &case);
        }
        let longer = blob(&[&contents[..], &[0]].concat());
        assert_damaged(RunReader::open(longer, &summary).map(|_| ()), summary.bytes + 1, "one more byte");
    }
}

#[test]
fn check_compares_the_summary() {
    let (contents, summary) = kinds().swap_remove(0);
    let changed: [fn(&mut RunSummary); 4] = [
        |summary| summary.rows += 1,
        |summary| summary.first_key[0] += 1,
        |summary| summary.last_key[1] -= 1,
        |summary| summary.shape = shape(1, 2, false),
    ];
    for (at, change) in changed.into_iter().enumerate() {
        let mut other = summary.clone();
        change(&mut other);
        let reader = RunReader::open(blob(&contents), &other);
        assert_damaged(reader.and_then(|reader| reader.check()), summary.bytes, &format!("change {at}"));
    }
}
