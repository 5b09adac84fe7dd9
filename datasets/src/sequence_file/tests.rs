//! Whole files, read in pieces and divided.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use cluster::{Blob, Output};

use super::codec::Codec;
use super::header::put_vint;
use super::*;
use crate::{Fate, Removal};

mod damage;

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
    let mut reader = SEQUENCE_FILE.open(piece, &Reading::default())?;
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
    let mut writer = SEQUENCE_FILE.writer(&folder, &Reading::default());
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
    for file in files(9).into_iter().skip(5).step_by(6) {
        let mut seen = read(&file, &[]);
        let id = |seen: &Seen| if let Seen::Doc(id, _) = seen { id.clone() } else { String::new() };
        seen.sort_by_key(id);
        seen.dedup_by_key(|seen| id(seen));
        assert_eq!(seen.len(), 9);
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
    let mut writer = SEQUENCE_FILE.writer(&folder, &Reading::default());
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
    let mut writer = SEQUENCE_FILE.writer(&folder, &Reading::default());
    let error = writer.divide(&pieces(&files[0], &[])[0], &mut vec![Fate::Kept; 3].into_iter()).unwrap_err();
    assert!(!error.is_data(), "a reject would lose the records");
    let mut damaged = files[0].clone();
    damaged.truncate(files[0].len() - 1);
    assert!(writer.divide(&pieces(&damaged, &[])[0], &mut vec![Fate::Kept; 4].into_iter()).is_err());
}
