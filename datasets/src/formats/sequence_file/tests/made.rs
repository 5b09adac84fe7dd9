//! Files as Hadoop writes them, by code that shares little with ours.

use crate::formats::sequence_file::class::put_vint;
use crate::formats::sequence_file::codec::Codec;

pub(super) const SYNC: [u8; 16] = *b"\x2f\xf9\x11\xb1\x30\xca\x9e\xfa\x86\xed\x26\x0a\xa0\x5f\x93\x84";
pub(super) const TEXTS: [&str; 5] =
    ["新华社北京电 国家统计局十九日发布数据", "", "転発微博", "😀 a\0b\r\n", "x"];
pub(super) const CODECS: [(Codec, &str); 6] = [
    (Codec::Zlib, "DefaultCodec"),
    (Codec::Gzip, "GzipCodec"),
    (Codec::Bzip2, "BZip2Codec"),
    (Codec::Snappy, "SnappyCodec"),
    (Codec::Lz4, "Lz4Codec"),
    (Codec::Zstd, "ZStandardCodec"),
];
/// Pairs of classes in which each of the five is a key and a value.
const CLASSES: [(&str, &str); 10] = [
    ("LongWritable", "Text"),
    ("Text", "Text"),
    ("Text", "BytesWritable"),
    ("IntWritable", "Text"),
    ("BytesWritable", "Text"),
    ("NullWritable", "Text"),
    ("Text", "LongWritable"),
    ("Text", "IntWritable"),
    ("LongWritable", "NullWritable"),
    ("Text", "NullWritable"),
];

/// A file that is being made.
pub(super) struct Made {
    pub(super) bytes: Vec<u8>,
    /// Compression: 0 for none, 1 by record, 2 in blocks.
    kind: u8,
    codec: Codec,
    /// Number of records between sync markers.
    per_sync: usize,
    markers: bool,
    waiting: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) records: usize,
}

pub(super) fn string(out: &mut Vec<u8>, text: &str) {
    put_vint(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

impl Made {
    pub(super) fn new(key: &str, value: &str, kind: u8, codec: Codec, per_sync: usize) -> Self {
        Made::old(6, key, value, kind, codec, per_sync)
    }

    /// Begins a file of an earlier version.
    pub(super) fn old(version: u8, key: &str, value: &str, kind: u8, codec: Codec, per_sync: usize) -> Self {
        let mut bytes = b"SEQ".to_vec();
        bytes.push(version);
        for class in [key, value].map(|class| format!("org.apache.hadoop.io.{class}")) {
            match version {
                1..=3 => {
                    bytes.extend((class.len() as u16).to_be_bytes());
                    bytes.extend(class.as_bytes());
                }
                _ => string(&mut bytes, &class),
            }
        }
        let flags = [u8::from(kind > 0), u8::from(kind > 1)];
        bytes.extend(&flags[..[0, 0, 0, 1, 2, 2, 2][version as usize]]);
        if kind > 0 && version > 4 {
            let name = CODECS.iter().find(|(known, _)| *known == codec).unwrap().1;
            string(&mut bytes, &format!("org.apache.hadoop.io.compress.{name}"));
        }
        if version > 5 {
            bytes.extend(1i32.to_be_bytes());
            string(&mut bytes, "creator");
            string(&mut bytes, "測試");
        }
        if version > 1 {
            bytes.extend(SYNC);
        }
        Made { bytes, kind, codec, per_sync, markers: version > 1, waiting: Vec::new(), records: 0 }
    }

    pub(super) fn add(mut self, key: &[u8], value: &[u8]) -> Self {
        self.records += 1;
        if self.kind == 2 {
            self.waiting.push((key.to_vec(), value.to_vec()));
            return if self.waiting.len() == self.per_sync { self.block() } else { self };
        }
        if self.markers && self.records.is_multiple_of(self.per_sync) {
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

    pub(super) fn block(mut self) -> Self {
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

    pub(super) fn end(self) -> Vec<u8> {
        if self.waiting.is_empty() { self.bytes } else { self.block().bytes }
    }
}

pub(super) fn serialised(class: &str, text: &str) -> Vec<u8> {
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

/// A whole file.
pub(super) struct Sample {
    pub(super) version: u8,
    pub(super) key: &'static str,
    pub(super) value: &'static str,
    pub(super) kind: u8,
    pub(super) codec: Codec,
    pub(super) bytes: Vec<u8>,
}

impl Sample {
    fn new(
        version: u8,
        classes: (&'static str, &'static str),
        kind: u8,
        codec: Codec,
        records: usize,
    ) -> Self {
        let (key, value) = classes;
        let file = Made::old(version, key, value, kind, codec, 4);
        let file = (0..records).fold(file, |file, record| {
            let text = TEXTS[record % TEXTS.len()];
            file.add(&serialised(key, &format!("id{record}")), &serialised(value, text))
        });
        Sample { version, key, value, kind, codec, bytes: file.end() }
    }

    pub(super) fn name(&self) -> String {
        let Sample { version, key, value, kind, codec, .. } = self;
        format!(
            "version {version}, {key} and {value}, {}, {codec:?}",
            ["none", "record", "block"][*kind as usize]
        )
    }
}

/// Returns files of every style with every codec, of every version, and of all classes, with `records`
/// records each.
pub(super) fn samples(records: usize) -> Vec<Sample> {
    let styles = [(0, Codec::Zlib)]
        .into_iter()
        .chain([1, 2].into_iter().flat_map(|kind| CODECS.map(|(codec, _)| (kind, codec))));
    let mut samples: Vec<_> =
        styles.map(|(kind, codec)| Sample::new(6, CLASSES[0], kind, codec, records)).collect();
    for kind in 0..3 {
        let others = CLASSES[1..].iter().map(|&classes| Sample::new(6, classes, kind, Codec::Zlib, records));
        samples.extend(others);
    }
    for (version, kind, codec) in [
        (1, 0, Codec::Zlib),
        (2, 0, Codec::Zlib),
        (3, 0, Codec::Zlib),
        (3, 1, Codec::Zlib),
        (4, 0, Codec::Zlib),
        (4, 1, Codec::Zlib),
        (4, 2, Codec::Zlib),
        (5, 0, Codec::Zlib),
        (5, 1, Codec::Gzip),
        (5, 2, Codec::Snappy),
    ] {
        samples.push(Sample::new(version, CLASSES[0], kind, codec, records));
    }
    samples
}

/// Returns the bytes of these files. The first is uncompressed, with LongWritable keys and Text values.
pub(super) fn files(records: usize) -> Vec<Vec<u8>> {
    samples(records).into_iter().map(|sample| sample.bytes).collect()
}
