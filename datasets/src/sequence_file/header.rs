//! What a SequenceFile says of itself before its first record.

use cluster::Blob;

use super::codec::Codec;
use crate::Error;

/// The magic and the version that every file begins with.
pub(super) const MAGIC: &[u8; 3] = b"SEQ";
const VERSION: u8 = 6;
/// A sync marker: the escape (a record length of -1), then the 16 bytes of the file's own.
pub(super) const MARKER_BYTES: usize = 4 + SYNC_BYTES;
const SYNC_BYTES: usize = 16;
/// How much is read in search of the header's end; only a file with very large metadata needs the second.
const READ_BYTES: [usize; 2] = [1 << 16, 1 << 24];

/// A class of Hadoop's that a key or a value may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Class {
    /// A vint and that many bytes of UTF-8.
    Text,
    /// A big-endian `u32` and that many bytes.
    Bytes,
    /// A big-endian `i64`.
    Long,
    /// A big-endian `i32`.
    Int,
    /// Nothing.
    Null,
}

impl Class {
    fn named(name: &str) -> Option<Self> {
        Some(match name.strip_prefix("org.apache.hadoop.io.")? {
            "Text" => Class::Text,
            "BytesWritable" => Class::Bytes,
            "LongWritable" => Class::Long,
            "IntWritable" => Class::Int,
            "NullWritable" => Class::Null,
            _ => return None,
        })
    }

    /// How many bytes each of them takes, where that is always the same.
    pub(super) fn bytes(self) -> Option<usize> {
        match self {
            Class::Text | Class::Bytes => None,
            Class::Long => Some(8),
            Class::Int => Some(4),
            Class::Null => Some(0),
        }
    }
}

/// What of a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Compression {
    None,
    /// Each value by itself.
    Record(Codec),
    /// Blocks of records: the lengths of their keys, the keys, the lengths of their values, the values.
    Block(Codec),
}

/// The header of a file.
#[derive(Clone, Debug)]
pub(super) struct Header {
    /// The header as it is in the file, without the sync marker that ends it: a copy with other records
    /// begins with the same bytes, and so keeps the metadata.
    pub(super) bytes: Vec<u8>,
    pub(super) key: Class,
    pub(super) value: Class,
    pub(super) compression: Compression,
    /// As it stands between the records.
    pub(super) marker: [u8; MARKER_BYTES],
}

impl Header {
    /// Reads the header of a file: at most 64 KiB, unless its metadata is larger.
    pub(super) fn read(blob: &dyn Blob) -> Result<Self, Error> {
        let mut bytes = Vec::new();
        for limit in READ_BYTES {
            let old = bytes.len();
            bytes.resize(limit.min(blob.bytes() as usize).max(old), 0);
            let read = blob.read_full_at(old as u64, &mut bytes[old..])?;
            bytes.truncate(old + read);
            match parse(&bytes) {
                Ok(header) => return Ok(header),
                Err(Bad::Short) => {}
                Err(Bad::Data(offset, reason)) => {
                    return Err(Error::data(blob.path(), offset as u64, reason));
                }
            }
        }
        let reason = if bytes.len() < READ_BYTES[1] {
            "the file ends within its header"
        } else {
            "the header does not end within 16 MiB"
        };
        Err(Error::data(blob.path(), bytes.len() as u64, reason))
    }

    /// The header of a block-compressed file of ours, by the names of the classes; `sync` is what its markers are made of.
    pub(super) fn of_blocks(
        key: &str,
        value: &str,
        codec: &str,
        sync: [u8; SYNC_BYTES],
    ) -> Result<Self, Error> {
        let mut bytes = [MAGIC, &[VERSION][..]].concat();
        // Compressed, and in blocks.
        let names = [(key, &[][..]), (value, &[1, 1]), (codec, &[])];
        for (name, after) in names {
            put_vint(&mut bytes, name.len());
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(after);
        }
        // No metadata.
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&sync);
        parse(&bytes).map_err(|bad| match bad {
            Bad::Data(offset, reason) => Error::data("packed", offset as u64, reason),
            Bad::Short => Error::data("packed", 0, "a header that does not end"),
        })
    }

    /// Where the first record or block begins.
    pub(super) fn end(&self) -> u64 {
        (self.bytes.len() + SYNC_BYTES) as u64
    }

    /// The sync marker without its escape.
    pub(super) fn sync(&self) -> &[u8] {
        &self.marker[4..]
    }

    /// A marker with its escape from the sixteen bytes of a file's own.
    pub(super) fn marker(sync: [u8; SYNC_BYTES]) -> [u8; MARKER_BYTES] {
        let mut marker = [0xff; MARKER_BYTES];
        marker[4..].copy_from_slice(&sync);
        marker
    }
}

enum Bad {
    /// More bytes are needed.
    Short,
    /// Where, and what.
    Data(usize, String),
}

fn parse(bytes: &[u8]) -> Result<Header, Bad> {
    let mut cursor = Cursor { bytes, at: 0 };
    if cursor.take(MAGIC.len())? != MAGIC {
        return Err(Bad::Data(0, "not a SequenceFile: it does not begin with SEQ".to_owned()));
    }
    let version = cursor.byte()?;
    if version != VERSION {
        return Err(Bad::Data(
            3,
            format!("version {version} of SequenceFile is not supported, only {VERSION}"),
        ));
    }
    let key = cursor.class("keys")?;
    let value_at = cursor.at;
    let value = cursor.class("values")?;
    if !matches!(value, Class::Text | Class::Bytes) {
        return Err(Bad::Data(value_at, format!("values of class {value:?}Writable hold no text")));
    }
    let flags_at = cursor.at;
    let compression = match (cursor.byte()? != 0, cursor.byte()? != 0) {
        (false, false) => Compression::None,
        (true, false) => Compression::Record(cursor.codec()?),
        (true, true) => Compression::Block(cursor.codec()?),
        (false, true) => {
            let reason = "the header says both block-compressed and not compressed";
            return Err(Bad::Data(flags_at, reason.to_owned()));
        }
    };
    let count_at = cursor.at;
    let count = i32::from_be_bytes(cursor.array()?);
    if count < 0 {
        return Err(Bad::Data(count_at, format!("the metadata says it has {count} entries")));
    }
    for _ in 0..count {
        cursor.string()?;
        cursor.string()?;
    }
    let bytes = bytes[..cursor.at].to_vec();
    Ok(Header { bytes, key, value, compression, marker: Header::marker(cursor.array()?) })
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], Bad> {
        let taken = self.bytes[self.at..].get(..bytes).ok_or(Bad::Short)?;
        self.at += bytes;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Bad> {
        self.take(N)?.try_into().map_err(|_| Bad::Short)
    }

    fn byte(&mut self) -> Result<u8, Bad> {
        Ok(self.take(1)?[0])
    }

    fn string(&mut self) -> Result<&'a [u8], Bad> {
        let at = self.at;
        let (length, bytes) = vint(&self.bytes[at..]).ok_or(Bad::Short)?;
        self.at += bytes;
        match usize::try_from(length) {
            Ok(length) => self.take(length),
            Err(_) => Err(Bad::Data(at, format!("a string of {length} bytes"))),
        }
    }

    fn class(&mut self, role: &str) -> Result<Class, Bad> {
        let at = self.at;
        let name = String::from_utf8_lossy(self.string()?);
        Class::named(&name)
            .ok_or_else(|| Bad::Data(at, format!("{role} of class {} are not supported", short(&name))))
    }

    fn codec(&mut self) -> Result<Codec, Bad> {
        let at = self.at;
        let name = String::from_utf8_lossy(self.string()?);
        Codec::named(&name).ok_or_else(|| Bad::Data(at, format!("codec {} is not supported", short(&name))))
    }
}

/// A name from a file, made safe to print.
fn short(name: &str) -> String {
    format!("{:?}", name.chars().take(100).collect::<String>())
}

/// Reads a vint or vlong of Hadoop's: its value, and how many bytes it takes. `None` if `bytes` ends before it does.
///
/// Source: org.apache.hadoop.io.WritableUtils.
pub(super) fn vint(bytes: &[u8]) -> Option<(i64, usize)> {
    let first = *bytes.first()? as i8;
    if first >= -112 {
        return Some((i64::from(first), 1));
    }
    let (negative, rest) = if first < -120 { (true, -120 - first) } else { (false, -112 - first) };
    let rest = rest as usize;
    let value = bytes.get(1..=rest)?.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte)) as i64;
    Some((if negative { !value } else { value }, 1 + rest))
}

/// Appends a length as a vint of Hadoop's.
pub(super) fn put_vint(out: &mut Vec<u8>, length: usize) {
    if length <= 127 {
        return out.push(length as u8);
    }
    let bytes = (length as u64).to_be_bytes();
    let zeros = length.leading_zeros() as usize / 8;
    out.push((-112 - (8 - zeros) as i8) as u8);
    out.extend_from_slice(&bytes[zeros..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vints_are_hadoops() {
        // As WritableUtils.writeVLong writes them.
        let cases: [(&[u8], i64); 8] = [
            (&[0], 0),
            (&[127], 127),
            (&[0x90], -112),
            (&[0x8f, 0x80], 128),
            (&[0x8e, 0x01, 0x00], 256),
            (&[0x8c, 0x7f, 0xff, 0xff, 0xff], i64::from(i32::MAX)),
            (&[0x87, 0x70], -113),
            (&[0x80, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], i64::MIN),
        ];
        for (bytes, value) in cases {
            assert_eq!(vint(bytes), Some((value, bytes.len())));
            assert_eq!(vint(&bytes[..bytes.len() - 1]), None);
            if value >= 0 {
                let mut out = Vec::new();
                put_vint(&mut out, value as usize);
                assert_eq!(out, bytes);
            }
        }
    }
}
