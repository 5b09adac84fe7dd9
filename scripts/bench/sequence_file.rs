//! Measures how fast SequenceFiles are read, in CPU seconds of one thread. `scripts/bench/sequence_file` runs
//! it beside Hadoop's own reader.
//!
//! `make FOLDER` writes the texts of `$DEDUP_TEST_DATA/corpora/mixed.parquet` to `none.seq` and to
//! `block-zstd.seq`, which Hadoop's jars cannot write; `read FILE TIMES` reads a file.

#![expect(clippy::expect_used, reason = "a benchmark that cannot run should say so and end")]

mod reading;
mod timing;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use reading::read;
use timing::timed;

const SYNC: [u8; 16] = *b"a sync marker 16";
/// Least distance of sync markers, as in Hadoop 3.
const SYNC_BYTES: usize = 100 * 1024;
const BLOCK_BYTES: usize = 1_000_000;

fn main() {
    // Cargo adds an argument of its own.
    let args: Vec<_> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    match &args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["make", folder] => make(Path::new(folder)),
        ["read", file, times] => {
            for _ in 0..times.parse().expect("a number") {
                let (seconds, (records, bytes)) = timed(|| texts(file, "sequencefile", |_| ()));
                let rate = bytes as f64 / 1e6 / seconds;
                println!("{records} records, {bytes} bytes of text, {seconds:.2} s, {rate:.0} MB/s");
            }
        }
        _ => println!("usage: make FOLDER, or read FILE TIMES; see scripts/bench/sequence_file"),
    }
}

/// Reads a file without rejects, and returns the numbers of documents and of bytes of text.
fn texts(file: &str, format: &str, mut each: impl FnMut(&str)) -> (usize, usize) {
    let (mut docs, mut bytes) = (0, 0);
    let records = read(file, format, |batch| {
        docs += batch.docs().len();
        bytes += batch.text_bytes();
        batch.docs().for_each(|doc| each(doc.text));
    });
    assert_eq!(docs as u64, records, "a file without rejects");
    (docs, bytes)
}

fn make(folder: &Path) {
    let data = std::env::var("DEDUP_TEST_DATA").expect("DEDUP_TEST_DATA: the folder of the test corpora");
    let create = |name: &str| BufWriter::new(File::create(folder.join(name)).expect("a new file"));
    let (mut none, mut zstd) = (create("none.seq"), create("block-zstd.seq"));
    none.write_all(&header(None)).expect("space");
    zstd.write_all(&header(Some("org.apache.hadoop.io.compress.ZStandardCodec"))).expect("space");
    let mut record = 0u64;
    let mut since_sync = 0;
    let mut block = [const { Vec::new() }; 4];
    texts(&format!("{data}/corpora/mixed.parquet"), "parquet", |text| {
        let key = record.to_be_bytes();
        let mut value = Vec::new();
        vint(&mut value, text.len());
        value.extend_from_slice(text.as_bytes());
        record += 1;

        let mut row = Vec::new();
        if since_sync >= SYNC_BYTES {
            marker(&mut row);
            since_sync = 0;
        }
        row.extend(((key.len() + value.len()) as u32).to_be_bytes());
        row.extend((key.len() as u32).to_be_bytes());
        row.extend_from_slice(&[&key[..], &value].concat());
        since_sync += row.len();
        none.write_all(&row).expect("space");

        vint(&mut block[0], key.len());
        block[1].extend_from_slice(&key);
        vint(&mut block[2], value.len());
        block[3].extend_from_slice(&value);
        if block[1].len() + block[3].len() >= BLOCK_BYTES {
            zstd.write_all(&closed(&mut block)).expect("space");
        }
    });
    zstd.write_all(&closed(&mut block)).expect("space");
}

fn header(codec: Option<&str>) -> Vec<u8> {
    let mut header = b"SEQ\x06".to_vec();
    let mut name = |name: &str| {
        vint(&mut header, name.len());
        header.extend_from_slice(name.as_bytes());
    };
    name("org.apache.hadoop.io.LongWritable");
    name("org.apache.hadoop.io.Text");
    header.extend([u8::from(codec.is_some()); 2]);
    if let Some(codec) = codec {
        vint(&mut header, codec.len());
        header.extend_from_slice(codec.as_bytes());
    }
    header.extend([0; 4]);
    header.extend(SYNC);
    header
}

fn marker(out: &mut Vec<u8>) {
    out.extend([0xff; 4]);
    out.extend(SYNC);
}

/// Returns the parts as a block, and empties them.
fn closed(parts: &mut [Vec<u8>; 4]) -> Vec<u8> {
    let mut out = Vec::new();
    marker(&mut out);
    vint(&mut out, parts[1].len() / 8);
    for part in parts {
        // The level is the default of Hadoop's ZStandardCodec.
        let compressed = zstd::bulk::compress(part, 3).expect("memory");
        vint(&mut out, compressed.len());
        out.extend(compressed);
        part.clear();
    }
    out
}

/// Appends a length as a vint of Hadoop.
fn vint(out: &mut Vec<u8>, length: usize) {
    let bytes = (length as u32).to_be_bytes();
    match length {
        0..=0x7f => out.push(length as u8),
        0x80..=0xff => out.extend([0x8f, bytes[3]]),
        0x100..=0xffff => out.extend([0x8e, bytes[2], bytes[3]]),
        0x1_0000..=0xff_ffff => out.extend([0x8d, bytes[1], bytes[2], bytes[3]]),
        _ => out.extend([0x8c, bytes[0], bytes[1], bytes[2], bytes[3]]),
    }
}
