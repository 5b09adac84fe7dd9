//! Whole files, read in pieces and divided.

use std::collections::BTreeMap;

use self::made::{Made, SYNC, Sample, TEXTS, files, samples, serialised, string};
use super::codec::Codec;
use super::header::Header;
use super::*;
use crate::testing::{MemoryBlob, MemoryParts};
use crate::{Fate, Removal};

mod damage;
mod limits;
mod made;
mod mutants;

#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Doc(String, String),
    Reject(u64, String),
}

fn pieces(file: &[u8], cuts: &[u64]) -> Vec<Piece> {
    let whole = Piece::whole(MemoryBlob::shared("/in/a.seq", file, 256), "a.seq".to_owned());
    let cuts: Vec<u64> = [0].iter().chain(cuts).chain([&(file.len() as u64)]).copied().collect();
    cuts.windows(2).map(|ends| Piece { start: ends[0], end: ends[1], ..whole.clone() }).collect()
}

fn even_cuts(file: &[u8], pieces: u64) -> Vec<u64> {
    (1..pieces).map(|piece| file.len() as u64 * piece / pieces).collect()
}

fn read_piece(piece: &Piece) -> Result<Vec<Seen>, Error> {
    read_as(piece, &Reading::default())
}

fn read_as(piece: &Piece, reading: &Reading) -> Result<Vec<Seen>, Error> {
    let mut reader = SEQUENCE_FILE.open(piece, reading)?;
    let mut seen = Vec::new();
    let mut more = true;
    let mut next = 0;
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
        reason: "similar".into(),
    }
}

/// Removes every third document.
fn fates(seen: &[Seen]) -> Vec<Fate> {
    let fate = |(ordinal, seen): (usize, &Seen)| match seen {
        Seen::Reject(..) => Fate::Rejected,
        Seen::Doc(id, _) if ordinal % 3 == 0 => Fate::Removed(removal(id)),
        Seen::Doc(..) => Fate::Kept,
    };
    seen.iter().enumerate().map(fate).collect()
}

fn divide(file: &[u8], cuts: &[u64]) -> BTreeMap<String, Vec<u8>> {
    let folder = MemoryParts::default();
    let mut writer = SEQUENCE_FILE.writer(&folder, &Reading::default());
    let mut fates = fates(&read(file, cuts)).into_iter();
    for piece in pieces(file, cuts) {
        writer.divide(&piece, &mut fates).unwrap();
    }
    assert_eq!(fates.next(), None);
    writer.finish().unwrap();
    folder.take()
}

/// Returns the records as they are stored, and `None` for those that cannot be read.
fn raw(file: &[u8]) -> Vec<Option<(Vec<u8>, Vec<u8>)>> {
    let mut records = SequenceRecords::open(&pieces(file, &[])[0], &Reading::default()).unwrap();
    let mut all = Vec::new();
    while let Some(raw) = records.next().unwrap() {
        all.push(match raw {
            Raw::Record(record) => Some((record.key.to_vec(), record.value.to_vec())),
            Raw::Lost { .. } => None,
        });
    }
    all
}

fn header(file: &[u8]) -> Header {
    Header::read(&*MemoryBlob::shared("/in/a.seq", file, 256), 1 << 24).unwrap()
}

#[test]
fn every_kind_of_file_gives_its_texts_and_ids() {
    for sample in samples(9) {
        let name = sample.name();
        let seen = read(&sample.bytes, &[]);
        assert_eq!(seen.len(), 9, "{name}");
        for (record, seen) in seen.iter().enumerate() {
            let Seen::Doc(id, text) = seen else { panic!("{name}: {seen:?}") };
            let written = TEXTS[record % TEXTS.len()];
            if sample.value == "NullWritable" {
                let number = format!("{}", format!("id{record}").len() as i64 - 5);
                let key = if sample.key == "Text" { format!("id{record}") } else { number };
                assert_eq!(*text, key, "{name}");
                assert!(id.starts_with("a.seq:"), "{name}: {id}");
                continue;
            }
            match sample.value {
                "Text" | "BytesWritable" => assert_eq!(text, written, "{name}"),
                _ => assert_eq!(*text, format!("{}", written.len() as i32 - 5), "{name}"),
            }
            match sample.key {
                "Text" | "BytesWritable" => assert_eq!(*id, format!("id{record}"), "{name}"),
                "NullWritable" => assert!(id.starts_with("a.seq:"), "{name}: {id}"),
                _ => assert_eq!(id, "-2", "{name}"),
            }
        }
    }
}

#[test]
fn records_without_a_key_or_a_value_get_an_id_of_their_own() {
    let is_null = |sample: &&Sample| [sample.key, sample.value].contains(&"NullWritable");
    for sample in samples(9).iter().filter(is_null) {
        let mut seen = read(&sample.bytes, &[]);
        let id = |seen: &Seen| if let Seen::Doc(id, _) = seen { id.clone() } else { String::new() };
        seen.sort_by_key(id);
        seen.dedup_by_key(|seen| id(seen));
        assert_eq!(seen.len(), 9);
    }
}

#[test]
fn any_number_of_pieces_gives_every_record_once() {
    for sample in samples(40) {
        let name = sample.name();
        let file = sample.bytes;
        let whole = read(&file, &[]);
        assert_eq!(whole.len(), 40, "{name}");
        for count in [2, 3, 7, 64] {
            assert_eq!(read(&file, &even_cuts(&file, count)), whole, "{name}");
        }
        // bzip2 is slow, and the place of a cut does not depend on the compression.
        let step = if sample.codec == Codec::Bzip2 { 23 } else { 1 };
        for cut in (0..=file.len() as u64).step_by(step) {
            assert_eq!(read(&file, &[cut]), whole, "{name}, cut at {cut}");
        }
    }
}

#[test]
fn many_pieces_get_records_where_there_are_many_sync_markers() {
    for Sample { bytes: file, .. } in samples(40).into_iter().filter(|sample| sample.version > 1) {
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
            assert!(raw(&out["kept/0.seq"]).iter().eq(part(false)));
            assert!(raw(&out["removed/0.seq"]).iter().eq(part(true)));
            assert_eq!(out, divide(&file, &[]), "pieces make no difference");
            let kept = &out["kept/0.seq"];
            let from = header(&file);
            let to = header(kept);
            assert_eq!(to.copy, kept[..to.copy.len()]);
            assert_eq!((from.key, from.value, from.compression), (to.key, to.value, to.compression));
            assert_ne!(from.marker, to.marker);
            if file[3] == 6 {
                assert_eq!(to.copy, file[..to.copy.len()], "its metadata too");
            }
        }
    }
}

#[test]
fn what_is_removed_has_its_reason_beside_it() {
    let out = divide(&files(7)[0], &[]);
    let reasons = out.iter().find(|(name, _)| name.starts_with("removed/_reasons/")).unwrap().1;
    let lines: Vec<_> = std::str::from_utf8(reasons).unwrap().lines().collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(
        lines[1],
        r#"{"id":"-2","duplicate_of":"first","similarity":0.5,"cluster":"first","reason":"similar"}"#
    );
}

#[test]
fn a_text_that_is_a_key_is_cut_where_it_stands() {
    for sample in samples(2).iter().filter(|of| (of.key, of.value) == ("Text", "NullWritable")) {
        let folder = MemoryParts::default();
        let mut writer = SEQUENCE_FILE.writer(&folder, &Reading::default());
        let fates = [Fate::Kept, Fate::Cut(std::iter::once(0..1).collect())];
        writer.divide(&pieces(&sample.bytes, &[])[0], &mut fates.into_iter()).unwrap();
        writer.finish().unwrap();
        let text = |seen: Seen| if let Seen::Doc(_, text) = seen { text } else { String::new() };
        let texts: Vec<String> = read(&folder.take()["kept/0.seq"], &[]).into_iter().map(text).collect();
        assert_eq!(texts, ["id0", "d1"], "{}", sample.name());
    }
}

#[test]
fn a_new_header_begins_a_new_part() {
    let folder = MemoryParts::default();
    let mut writer = SEQUENCE_FILE.writer(&folder, &Reading::default());
    let files = files(4);
    for file in [&files[0], &files[0], &files[1], &files[0]] {
        writer.divide(&pieces(file, &[])[0], &mut vec![Fate::Kept; 4].into_iter()).unwrap();
    }
    writer.finish().unwrap();
    let out = folder.take();
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
        let out = &divide(&file, &[])["kept/0.seq"];
        let marker = header(out).marker.unwrap();
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
    let folder = MemoryParts::default();
    let mut writer = SEQUENCE_FILE.writer(&folder, &Reading::default());
    let error = writer.divide(&pieces(&files[0], &[])[0], &mut vec![Fate::Kept; 3].into_iter()).unwrap_err();
    assert!(!error.is_data(), "a reject would lose the records");
    let mut damaged = files[0].clone();
    damaged.truncate(files[0].len() - 1);
    assert!(writer.divide(&pieces(&damaged, &[])[0], &mut vec![Fate::Kept; 4].into_iter()).is_err());
}
