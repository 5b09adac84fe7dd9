//! Whole files, read in pieces and divided.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use cluster::{Blob, Output};

use super::header::put_vint;
use super::*;
use crate::{Fate, Removal};

const SYNC: [u8; 16] = *b"\x2f\xf9\x11\xb1\x30\xca\x9e\xfa\x86\xed\x26\x0a\xa0\x5f\x93\x84";
const TEXTS: [&str; 5] = ["新华社北京电 国家统计局十九日发布数据", "", "転発微博", "😀 a\0b\r\n", "x"];

struct Memory(Vec<u8>);

impl Blob for Memory {
    fn path(&self) -> &str {
        "/in/a.seq"
    }
    fn bytes(&self) -> u64 {
        self.0.len() as u64
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, cluster::Error> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        // Short reads, as stores may give them.
        let read = rest.len().min(buffer.len()).min(300);
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }
    fn read_ahead_bytes(&self) -> usize {
        256
    }
}

#[derive(Default)]
struct Folder(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

struct File(String, Vec<u8>, Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for File {
    fn finish(self: Box<Self>) -> Result<(), cluster::Error> {
        self.2.lock().unwrap().insert(self.0, self.1);
        Ok(())
    }
}

impl Parts for Folder {
    fn part(&self, folder: &str, extension: &str) -> Result<Box<dyn Output>, Error> {
        let part = self.0.lock().unwrap().keys().filter(|name| name.starts_with(folder)).count();
        self.named(folder, &format!("part-{part}{extension}"))
    }
    fn named(&self, folder: &str, name: &str) -> Result<Box<dyn Output>, Error> {
        Ok(Box::new(File(format!("{folder}/{name}"), Vec::new(), self.0.clone())))
    }
}

/// A file as Hadoop writes it, by code that shares little with ours.
struct Made {
    bytes: Vec<u8>,
    kind: u8,
    codec: Codec,
    per_sync: usize,
    waiting: Vec<(Vec<u8>, Vec<u8>)>,
    records: usize,
}

use super::codec::Codec;

fn string(out: &mut Vec<u8>, text: &str) {
    put_vint(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

impl Made {
    /// `kind`: 0 uncompressed, 1 by record, 2 in blocks. A sync marker comes before every `per_sync` records.
    fn new(key: &str, value: &str, kind: u8, codec: Codec, per_sync: usize) -> Self {
        let mut bytes = b"SEQ\x06".to_vec();
        string(&mut bytes, &format!("org.apache.hadoop.io.{key}"));
        string(&mut bytes, &format!("org.apache.hadoop.io.{value}"));
        bytes.extend([u8::from(kind > 0), u8::from(kind > 1)]);
        if kind > 0 {
            let name = if codec == Codec::Zlib { "DefaultCodec" } else { "GzipCodec" };
            string(&mut bytes, &format!("org.apache.hadoop.io.compress.{name}"));
        }
        bytes.extend(1i32.to_be_bytes());
        string(&mut bytes, "creator");
        string(&mut bytes, "測試");
        bytes.extend(SYNC);
        Made { bytes, kind, codec, per_sync, waiting: Vec::new(), records: 0 }
    }

    fn add(mut self, key: &[u8], value: &[u8]) -> Self {
        self.records += 1;
        if self.kind == 2 {
            self.waiting.push((key.to_vec(), value.to_vec()));
            return if self.waiting.len() == self.per_sync { self.block() } else { self };
        }
        if self.records.is_multiple_of(self.per_sync) {
            self.bytes.extend([0xff; 4]);
            self.bytes.extend(SYNC);
        }
        let value = if self.kind == 1 { self.compressed(value) } else { value.to_vec() };
        self.bytes.extend(((key.len() + value.len()) as i32).to_be_bytes());
        self.bytes.extend((key.len() as i32).to_be_bytes());
        self.bytes.extend(key);
        self.bytes.extend(value);
        self
    }

    fn compressed(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.codec.compress(bytes, &mut out).unwrap();
        out
    }

    fn block(mut self) -> Self {
        let mut parts = [const { Vec::new() }; 4];
        for (key, value) in &self.waiting {
            put_vint(&mut parts[0], key.len());
            parts[1].extend(key);
            put_vint(&mut parts[2], value.len());
            parts[3].extend(value);
        }
        self.bytes.extend([0xff; 4]);
        self.bytes.extend(SYNC);
        put_vint(&mut self.bytes, self.waiting.len());
        for part in parts {
            let part = self.compressed(&part);
            put_vint(&mut self.bytes, part.len());
            self.bytes.extend(part);
        }
        self.waiting.clear();
        self
    }

    fn end(self) -> Vec<u8> {
        if self.waiting.is_empty() { self.bytes } else { self.block().bytes }
    }
}

fn serialised(class: &str, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    match class {
        "Text" => string(&mut out, text),
        "BytesWritable" => {
            out.extend((text.len() as u32).to_be_bytes());
            out.extend(text.as_bytes());
        }
        "LongWritable" => out.extend((text.len() as i64 - 5).to_be_bytes()),
        "IntWritable" => out.extend((text.len() as i32 - 5).to_be_bytes()),
        _ => {}
    }
    out
}

/// Files of every kind, with `records` records each.
fn files(records: usize) -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    for (kind, codec) in
        [(0, Codec::Zlib), (1, Codec::Zlib), (1, Codec::Gzip), (2, Codec::Zlib), (2, Codec::Gzip)]
    {
        for (key, value) in [
            ("Text", "Text"),
            ("Text", "BytesWritable"),
            ("LongWritable", "Text"),
            ("IntWritable", "Text"),
            ("BytesWritable", "Text"),
            ("NullWritable", "Text"),
        ] {
            let file = (0..records).fold(Made::new(key, value, kind, codec, 4), |file, record| {
                let text = TEXTS[record % TEXTS.len()];
                file.add(&serialised(key, &format!("id{record}")), &serialised(value, text))
            });
            files.push(file.end());
        }
    }
    files
}

#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Doc(String, String),
    Reject(u64, String),
}

fn pieces(file: &[u8], cuts: &[u64]) -> Vec<Piece> {
    let blob: Arc<dyn Blob> = Arc::new(Memory(file.to_vec()));
    let cuts: Vec<u64> = [0].iter().chain(cuts).chain([&(file.len() as u64)]).copied().collect();
    cuts.windows(2)
        .map(|ends| Piece { blob: blob.clone(), name: "a.seq".to_owned(), start: ends[0], end: ends[1] })
        .collect()
}

fn even_cuts(file: &[u8], pieces: u64) -> Vec<u64> {
    (1..pieces).map(|piece| file.len() as u64 * piece / pieces).collect()
}

fn read_piece(piece: &Piece) -> Result<Vec<Seen>, Error> {
    let mut reader = SEQUENCE_FILE.open(piece, &Fields::default())?;
    let (mut seen, mut more, mut next) = (Vec::new(), true, 0);
    while more {
        let mut batch = DocBatch::new(0, next);
        more = reader.fill(&mut batch)?;
        next = batch.next_record();
        seen.extend(batch.docs().map(|doc| (doc.doc, Seen::Doc(doc.id.to_owned(), doc.text.to_owned()))));
        let rejects = batch.take_rejects().into_iter();
        seen.extend(rejects.map(|reject| (reject.doc, Seen::Reject(reject.offset, reject.reason))));
    }
    seen.sort_by_key(|(doc, _)| *doc);
    assert!(seen.iter().enumerate().all(|(ordinal, (doc, _))| doc.record() == ordinal as u64));
    Ok(seen.into_iter().map(|(_, seen)| seen).collect())
}

fn read(file: &[u8], cuts: &[u64]) -> Vec<Seen> {
    pieces(file, cuts).iter().flat_map(|piece| read_piece(piece).unwrap()).collect()
}

fn removal(id: &str) -> Removal {
    Removal {
        id: id.to_owned(),
        duplicate_of: "first".to_owned(),
        similarity: Some(0.5),
        cluster: "first".to_owned(),
        reason: "similar",
    }
}

/// Every third document is removed.
fn fates(seen: &[Seen]) -> Vec<Fate> {
    let fate = |(ordinal, seen): (usize, &Seen)| match seen {
        Seen::Reject(..) => Fate::Rejected,
        Seen::Doc(id, _) if ordinal % 3 == 0 => Fate::Removed(removal(id)),
        Seen::Doc(..) => Fate::Kept,
    };
    seen.iter().enumerate().map(fate).collect()
}

fn divide(file: &[u8], cuts: &[u64]) -> BTreeMap<String, Vec<u8>> {
    let folder = Folder::default();
    let mut writer = SEQUENCE_FILE.writer(&folder);
    let mut fates = fates(&read(file, cuts)).into_iter();
    for piece in pieces(file, cuts) {
        writer.divide(&piece, &mut fates).unwrap();
    }
    assert_eq!(fates.next(), None);
    writer.finish().unwrap();
    std::mem::take(&mut folder.0.lock().unwrap())
}

/// The records as they are stored, `None` for what cannot be read.
fn raw(file: &[u8]) -> Vec<Option<(Vec<u8>, Vec<u8>)>> {
    let mut records = Records::open(&pieces(file, &[])[0]).unwrap();
    let mut all = Vec::new();
    while let Some(raw) = records.next().unwrap() {
        all.push(match raw {
            Raw::Record(record) => Some((record.key.to_vec(), record.value.to_vec())),
            Raw::Lost { .. } => None,
        });
    }
    all
}

/// Numbers that look random and are the same in every run (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

#[test]
fn every_kind_of_file_gives_its_texts_and_ids() {
    for (number, file) in files(9).into_iter().enumerate() {
        let seen = read(&file, &[]);
        assert_eq!(seen.len(), 9);
        for (record, seen) in seen.iter().enumerate() {
            let Seen::Doc(id, text) = seen else { panic!("{seen:?}") };
            assert_eq!(text, TEXTS[record % TEXTS.len()]);
            match number % 6 {
                0 | 1 | 4 => assert_eq!(*id, format!("id{record}")),
                2 | 3 => assert_eq!(id, "-2"),
                _ => assert!(id.starts_with("a.seq:"), "{id}"),
            }
        }
    }
}

#[test]
fn records_without_a_key_get_an_id_of_their_own() {
    for file in files(9) {
        let mut ids: Vec<_> = read(&file, &[]);
        ids.dedup_by_key(|seen| if let Seen::Doc(id, _) = seen { id.clone() } else { String::new() });
        assert!(ids.len() == 9 || ids.len() == 1);
    }
}

#[test]
fn any_number_of_pieces_gives_every_record_once() {
    for file in files(40) {
        let whole = read(&file, &[]);
        assert_eq!(whole.len(), 40);
        for count in [2, 3, 7, 64] {
            assert_eq!(read(&file, &even_cuts(&file, count)), whole);
        }
        for cut in 0..=file.len() as u64 {
            assert_eq!(read(&file, &[cut]), whole, "cut at {cut}");
        }
    }
}

#[test]
fn many_pieces_get_records_where_there_are_many_sync_markers() {
    for file in files(40) {
        let pieces = pieces(&file, &even_cuts(&file, 5));
        let busy = pieces.iter().filter(|piece| !read_piece(piece).unwrap().is_empty()).count();
        assert!(busy >= 4, "{busy} of 5 pieces have records");
    }
}

#[test]
fn divided_records_are_the_same_bytes() {
    for file in files(40) {
        let all = raw(&file);
        for count in [1, 3, 64] {
            let out = divide(&file, &even_cuts(&file, count));
            let part = |removed| {
                all.iter()
                    .enumerate()
                    .filter(move |(ordinal, _)| (ordinal % 3 == 0) == removed)
                    .map(|(_, raw)| raw)
            };
            assert!(raw(&out["kept/part-0.seq"]).iter().eq(part(false)));
            assert!(raw(&out["removed/part-0.seq"]).iter().eq(part(true)));
            assert_eq!(out, divide(&file, &[]), "pieces make no difference");
            // The header and its metadata, without the sync marker.
            let header = Records::open(&pieces(&file, &[])[0]).unwrap().header.bytes.len();
            assert_eq!(out["kept/part-0.seq"][..header], file[..header]);
            assert_ne!(out["kept/part-0.seq"][header..header + 16], file[header..header + 16]);
        }
    }
}

#[test]
fn what_is_removed_has_its_reason_beside_it() {
    let out = divide(&files(7)[0], &[]);
    let reasons = out.iter().find(|(name, _)| name.ends_with(".reasons.jsonl")).unwrap().1;
    let lines: Vec<_> = std::str::from_utf8(reasons).unwrap().lines().collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(
        lines[1],
        r#"{"id":"id3","duplicate_of":"first","similarity":0.5,"cluster":"first","reason":"similar"}"#
    );
}

#[test]
fn a_new_header_begins_a_new_part() {
    let folder = Folder::default();
    let mut writer = SEQUENCE_FILE.writer(&folder);
    let files = files(4);
    for file in [&files[0], &files[0], &files[1], &files[0]] {
        writer.divide(&pieces(file, &[])[0], &mut vec![Fate::Kept; 4].into_iter()).unwrap();
    }
    writer.finish().unwrap();
    let out = folder.0.lock().unwrap();
    assert_eq!(out.values().map(|file| read(file, &[]).len()).collect::<Vec<_>>(), [8, 4, 4]);
}

#[test]
fn long_files_are_written_with_sync_markers_and_blocks() {
    for (kind, least) in [(0, 400), (1, 30), (2, 3)] {
        let file = (0..3000)
            .fold(Made::new("Text", "Text", kind, Codec::Zlib, 4000), |file, record| {
                file.add(&serialised("Text", "id"), &serialised("Text", &format!("{record}").repeat(300)))
            })
            .end();
        let out = &divide(&file, &[])["kept/part-0.seq"];
        let marker = Records::open(&pieces(out, &[])[0]).unwrap().header.marker;
        let markers = memchr::memmem::find_iter(out, &marker).count();
        assert!(markers >= least, "{markers} markers in {} bytes of kind {kind}", out.len());
        assert_eq!(read(out, &even_cuts(out, 7)).len(), 2000);
    }
}

#[test]
fn an_output_keeps_the_extension_of_its_input() {
    for (name, extension) in [
        ("a/b.c/part-00000", ".seq"),
        ("a/.x", ".seq"),
        ("x.sequencefile", ".sequencefile"),
        ("x.y.seq", ".seq"),
    ] {
        assert_eq!(write::extension(name), extension);
    }
}

#[test]
fn a_changed_file_is_an_error_when_divided() {
    let files = files(4);
    let folder = Folder::default();
    let mut writer = SEQUENCE_FILE.writer(&folder);
    assert!(writer.divide(&pieces(&files[0], &[])[0], &mut vec![Fate::Kept; 3].into_iter()).is_err());
    let mut damaged = files[0].clone();
    damaged.truncate(files[0].len() - 1);
    assert!(writer.divide(&pieces(&damaged, &[])[0], &mut vec![Fate::Kept; 4].into_iter()).is_err());
}

/// A file with one record that is `bad`, as it stands in the file, between others: the offset of the bad one
/// and what was seen.
fn with_bad(kind: u8, bad: &[u8]) -> (u64, Vec<Seen>) {
    let good = |file: Made| (0..4).fold(file, |file, _| file.add(&[0; 8], &serialised("Text", "good")));
    let mut file = good(Made::new("LongWritable", "Text", kind, Codec::Zlib, 4));
    let offset = file.bytes.len();
    file.bytes.extend(bad);
    file.records = 3;
    let file = good(file).end();
    let seen = read(&file, &[]);
    for cut in 0..file.len() as u64 {
        assert_eq!(read(&file, &[cut]), seen);
    }
    (offset as u64, seen)
}

fn record(length: i32, key_length: i32, rest: &[u8]) -> Vec<u8> {
    [&length.to_be_bytes(), &key_length.to_be_bytes(), rest].concat()
}

#[test]
fn one_bad_record_costs_one_reject() {
    let key_and = |value: &[u8]| [&[0; 8], value].concat();
    for (kind, bad, reason) in [
        (0, record(11, 8, &key_and(b"\x02\xff\xfe")), "the value is not UTF-8"),
        (0, record(10, 8, &key_and(b"\x02a")), "the value is shorter than it says"),
        (0, record(9, 8, &key_and(b"\xff")), "the value has a negative length"),
        (0, record(8, 8, &key_and(b"")), "the value ends before its length"),
        (1, record(12, 8, &key_and(b"\x78\x9c\x03\x00")), "the value: its compressed data ends too early"),
        (1, record(12, 8, &key_and(b"abcd")), "the value: its compressed data is damaged"),
        (0, record(9, 7, &key_and(b"\0")), "a LongWritable key of 7 bytes"),
        (0, record(9, -8, &key_and(b"\0")), "a key of -8 bytes in a record of 9"),
        (0, record(9, 10, &key_and(b"\0")), "a key of 10 bytes in a record of 9"),
        (0, record(-5, 8, &key_and(b"\0")), "a record of -5 bytes"),
        (0, record(i32::MAX, 8, &key_and(b"\0")), "a record of 2147483647 bytes, and the file ends before"),
        (0, record(40, 8, &key_and(b"\0")), "a sync marker lies within the record"),
        (0, vec![0xff; 20], "a record of -1 bytes"),
        (2, vec![9; 30], "no sync marker where a block should begin"),
    ] {
        let (offset, seen) = with_bad(kind, &bad);
        assert_eq!(seen.len(), 9, "{reason}");
        assert_eq!(seen[4], Seen::Reject(offset, reason.to_owned()));
        assert!(
            [&seen[..4], &seen[5..]]
                .concat()
                .iter()
                .all(|seen| *seen == Seen::Doc("0".to_owned(), "good".to_owned()))
        );
    }
}

#[test]
fn a_block_with_a_damaged_part_is_one_reject() {
    let block = |count: usize, part: usize| {
        let mut block = Made::new("LongWritable", "Text", 2, Codec::Zlib, 9);
        let start = block.bytes.len();
        block =
            block.add(&[0; 8], &serialised("Text", "bad")).add(&[0; 8], &serialised("Text", "bad")).block();
        let mut block = block.bytes.split_off(start);
        block[20] = count as u8;
        if part < 4 {
            let mut at = 21;
            (0..part).for_each(|_| at += 1 + block[at] as usize);
            let last = at + block[at] as usize;
            block[last] ^= 1; // the checksum
        }
        block
    };
    for (bad, reason) in [
        (block(3, 4), "the block does not hold 3 keys"),
        (block(1, 4), "the keys of the block: it is more than 8 bytes decompressed"),
        (block(2, 0), "the keys of the block: its compressed data is damaged"),
        (block(2, 1), "the keys of the block: its compressed data is damaged"),
        (block(2, 2), "the values of the block: its compressed data is damaged"),
        (block(2, 3), "the values of the block: its compressed data is damaged"),
        (block(0x90, 4), "the block's number of records is damaged"),
    ] {
        let (offset, seen) = with_bad(2, &bad);
        assert_eq!(seen.len(), 9, "{reason}");
        assert_eq!(seen[4], Seen::Reject(offset, reason.to_owned()));
    }
    assert_eq!(with_bad(2, &block(2, 4)).1.len(), 10);
}

#[test]
fn a_sync_marker_in_a_value_is_not_where_a_piece_begins() {
    let mut file = Made::new("Text", "Text", 0, Codec::Zlib, 1000);
    for _ in 0..3 {
        let mut value = b"\x8f\x8d\xff\xff\xff\xff".to_vec();
        value.extend(SYNC);
        value.extend("新华社北京电 国家统计局十九日发布数据".repeat(3).as_bytes());
        file = file.add(b"\x01k", &value);
    }
    let file = file.end();
    let whole = read(&file, &[]);
    assert_eq!(whole.len(), 3);
    for cut in 0..file.len() as u64 {
        assert_eq!(read(&file, &[cut]), whole);
    }
}

#[test]
fn a_file_cut_short_keeps_what_is_whole() {
    for file in files(9) {
        let header = Records::open(&pieces(&file, &[])[0]).unwrap().header.end() as usize;
        let whole = read(&file, &[]);
        for length in 0..file.len() {
            let short = &file[..length];
            if length < header {
                assert!(read_piece(&pieces(short, &[])[0]).is_err_and(|error| error.is_data()));
                continue;
            }
            let mut seen = read(short, &[]);
            let rejects = seen.iter().filter(|seen| matches!(seen, Seen::Reject(..))).count();
            assert!(rejects <= 1);
            seen.truncate(seen.len() - rejects);
            assert_eq!(seen[..], whole[..seen.len()]);
            assert_eq!(read(short, &even_cuts(short, 3)).len(), seen.len() + rejects);
        }
    }
}

#[test]
fn damage_is_seen_alike_by_all_pieces_and_by_both_readings() {
    let mut dice = Dice(1);
    for round in 0..40 {
        for mut file in files(12) {
            let header = Records::open(&pieces(&file, &[])[0]).unwrap().header.clone();
            for _ in 0..=dice.below(4) {
                let at = header.end() as usize + dice.below(file.len() - header.end() as usize);
                match dice.below(5) {
                    0 => file[at] ^= 1 << dice.below(8),
                    1 => file[at] = [0, 0xff, 0x7f][dice.below(3)],
                    2 => drop(file.drain(at..(at + dice.below(30)).min(file.len() - 1))),
                    3 => drop(file.splice(at..at, header.marker)),
                    _ => drop(file.splice(at..at, vec![0xff; dice.below(30)])),
                }
            }
            let whole = read(&file, &[]);
            for _ in 0..6 {
                let mut cuts: Vec<_> = (0..dice.below(6)).map(|_| dice.below(file.len()) as u64).collect();
                cuts.sort_unstable();
                assert_eq!(read(&file, &cuts), whole, "round {round}, cut at {cuts:?}");
            }
            assert_eq!(divide(&file, &even_cuts(&file, 3)), divide(&file, &[]));
        }
    }
}

#[test]
fn a_sync_marker_of_the_worst_kind_is_survived() {
    // A file's own marker may be anything: here it is its own escape, over and over.
    let mut file = files(12).swap_remove(2);
    while let Some(at) = memchr::memmem::find(&file, &SYNC) {
        file[at..at + 16].fill(0xff);
    }
    let whole = read(&file, &[]);
    assert_eq!(whole.len(), 12);
    for extra in 0..30 {
        let mut file = file.clone();
        file.splice(file.len() - 100..file.len() - 100, vec![0xff; extra]);
        let whole = read(&file, &[]);
        for cut in 0..file.len() as u64 {
            assert_eq!(read(&file, &[cut]), whole);
        }
    }
}

#[test]
fn headers_that_lie_are_errors() {
    let good = files(1).swap_remove(2);
    let count = memchr::memmem::find(&good, b"\0\0\0\x01\x07creator").unwrap();
    for (at, bytes) in [
        (0, &b"SEP"[..]),
        (3, &[7]),
        (3, &[0]),
        (4, &[0x8c, 0x7f, 0xff, 0xff, 0xff]),
        (4, &[0x87]),
        (30, b"?"),
        (count - 1, &[1]),
        (count, &[0x7f, 0xff, 0xff, 0xff]),
        (count, &[0xff, 0xff, 0xff, 0xff]),
    ] {
        let mut bad = good.clone();
        bad[at..at + bytes.len()].copy_from_slice(bytes);
        let error = read_piece(&pieces(&bad, &[])[0]).unwrap_err();
        assert!(error.is_data(), "{error}");
    }
    let mut newer = good.clone();
    newer[3] = 7;
    assert!(SEQUENCE_FILE.recognises("x", &newer[..4]));
    assert!(read_piece(&pieces(&newer, &[])[0]).unwrap_err().to_string().contains("version 7"));
    assert!(!SEQUENCE_FILE.recognises("x.seq", b"SEQUENCE"));
}

#[test]
fn metadata_may_be_longer_than_the_first_read() {
    let file = files(3).swap_remove(0);
    let count = memchr::memmem::find(&file, b"\0\0\0\x01\x07creator").unwrap();
    let mut entry = Vec::new();
    string(&mut entry, "long");
    string(&mut entry, &"長".repeat(50_000));
    let mut long = file.clone();
    long[count + 3] = 2;
    long.splice(count + 4..count + 4, entry);
    assert_eq!(read(&long, &even_cuts(&long, 7)), read(&file, &[]));
}

/// Files that Hadoop wrote, and hostile ones, with what its own reader made of them.
#[test]
fn hadoops_own_files_are_read_as_hadoop_reads_them() {
    let Ok(data) = std::env::var("DEDUP_TEST_DATA") else {
        println!("skipped: DEDUP_TEST_DATA is not set");
        return;
    };
    let folder = Path::new(&data).join("hostile");
    let truth = std::fs::read_to_string(folder.join("SEQ_TRUTH.tsv")).unwrap();
    let mut read_files = 0;
    for line in truth.lines().skip(1) {
        let fields: Vec<_> = line.split('\t').collect();
        let file = std::fs::read(folder.join(fields[0])).unwrap();
        let Ok(whole) = read_piece(&pieces(&file, &[])[0]) else { continue };
        read_files += 1;
        for count in [2, 3, 7, 64] {
            assert_eq!(read(&file, &even_cuts(&file, count)), whole, "{line}");
        }
        let rejects = whole.iter().filter(|seen| matches!(seen, Seen::Reject(..))).count();
        let expected = match fields[0].trim_start_matches("sequencefile/") {
            // Hadoop gives the damaged text as if it were right.
            "block_bitflip_values.seq" => (9, 1),
            "block_count_huge.seq" | "block_len_mismatch.seq" => (9, 1),
            // Hadoop stops at the damage.
            "keylen_gt_reclen.seq" | "keylen_negative.seq" | "reclen_2g.seq" | "reclen_negative.seq" => {
                (6, 1)
            }
            // One marker is damaged, the next one is 581 bytes later.
            "bad_sync.seq" => (6, 1),
            "vint_negative_text.seq" | "vint_overlong_text.seq" => (5, 1),
            // Bytes in a Text that are not UTF-8.
            "hadoop341_text_illegal_utf8.seq" => (1, 2),
            "fake_sync_in_value.seq" => (6, 1),
            // Where two files were flipped or cut at random, only the whole is known.
            name if name.starts_with("trunc") || name.starts_with("random") => {
                continue;
            }
            _ => (fields[5].parse().unwrap(), 0),
        };
        assert_eq!((whole.len() - rejects, rejects), expected, "{line}");
    }
    assert!(read_files > 20, "only {read_files} files could be read");
}
