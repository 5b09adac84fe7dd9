use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use proptest::prelude::*;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;
use crate::Extractors;
use crate::testing::mutants;

const TEXT: &str = "春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。";

/// Returns text that deflate makes shorter, in many ways.
fn text(seed: usize, lines: usize) -> Vec<u8> {
    let line = |line: usize| format!("{} {}\n", TEXT.repeat(line * 7 % 3), line * seed % 1013);
    (0..lines).map(line).collect::<String>().into_bytes()
}

fn archive(level: i64, members: &[Vec<u8>]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (at, member) in members.iter().enumerate() {
        let options = SimpleFileOptions::default().compression_level(Some(level));
        archive.start_file(format!("word/{at}.xml"), options).unwrap();
        archive.write_all(member).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn pdf(level: u32, streams: &[Vec<u8>]) -> Vec<u8> {
    let mut file = b"%PDF-1.4\n".to_vec();
    for stream in streams {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::new(level));
        zlib.write_all(stream).unwrap();
        file.extend(b"1 0 obj\n<</Filter/FlateDecode>>\nstream\r\n");
        file.extend(zlib.finish().unwrap());
        file.extend(b"\nendstream\nendobj\n");
    }
    file
}

fn undone(file: &[u8]) -> Option<UndoneFile> {
    UndoneFile::of_foreign(file, &Extractors::default()).unwrap()
}

#[test]
fn streams_of_archives_and_pdfs_are_undone_and_made_again() {
    let members = [text(3, 40), text(7, 400), b"short".to_vec(), text(11, 4000)];
    for level in 1..=9 {
        for file in [archive(level.into(), &members), pdf(level, &members)] {
            let undone = undone(&file).unwrap();
            assert_eq!(undone.parts.len(), 4, "three are long enough, and there is the end");
            assert!(undone.plain == [text(3, 40), text(7, 400), text(11, 4000)].concat());
            assert!(undone.recreate().unwrap() == file);
            assert!(undone.corrections.len() < file.len() / 8, "{} bytes", undone.corrections.len());
            assert_eq!(UndoneFile::decode(&undone.encode()).unwrap(), undone);
        }
    }
    assert!(undone(&text(3, 40)).is_none());
    assert!(undone(b"").is_none());
    assert!(undone(&archive(6, &[])).is_none());
}

#[test]
fn decompressed_bytes_are_limited() {
    let members = [text(3, 40), vec![b'a'; 1 << 20], text(7, 40)];
    for most in [0, 1000, 5000, 1 << 20] {
        let file = archive(6, &members);
        let undone = UndoneFile::of(&file, most).unwrap();
        assert!(undone.plain.len() <= most, "{} bytes", undone.plain.len());
        assert!(undone.recreate().unwrap() == file);
    }
}

#[test]
fn damaged_files_are_made_again_or_stay_as_they_are() {
    for file in [archive(6, &[text(3, 40), text(7, 60)]), pdf(6, &[text(3, 40), text(7, 60)])] {
        for (mutant, _) in mutants(&file, 300) {
            let again = undone(&mutant).map(|undone| undone.recreate().unwrap());
            assert!(again.is_none_or(|again| again == mutant));
        }
    }
}

proptest! {
    /// A message of somebody else is an error or a file, and no panic.
    #[test]
    fn decoding_any_bytes_does_not_panic(bytes: Vec<u8>) {
        if let Ok(undone) = UndoneFile::decode(&bytes) {
            let _ = undone.recreate();
        }
    }
}
