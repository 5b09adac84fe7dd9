//! The header of a SequenceFile, which precedes its first record.

use std::ops::RangeInclusive;

use cluster::Blob;

use super::class::{Class, put_vint, vint};
use super::codec::Codec;
use crate::Error;

/// Magic at the beginning of every file, without the version that follows.
pub(super) const MAGIC: &[u8; 3] = b"SEQ";
/// Versions that are read. The last of them is written.
const VERSIONS: RangeInclusive<u8> = 1..=6;
/// Length of a sync marker, in bytes: the escape (a record length of -1), then the 16 bytes of the file's
/// own.
pub(super) const MARKER_BYTES: usize = 4 + SYNC_BYTES;
/// Length of a sync marker without its escape, in bytes.
const SYNC_BYTES: usize = 16;
/// Numbers of bytes that are read in search of the header's end. Only a file with very large metadata needs
/// the second, which the length of a block also limits.
const READ_BYTES: [usize; 2] = [1 << 16, 1 << 24];

/// Compression of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SequenceCompression {
    None,
    /// Each value is compressed by itself.
    Record(Codec),
    /// Blocks of records are compressed: the lengths of their keys, the keys, the lengths of their values,
    /// the values.
    Block(Codec),
}

/// The header of a file.
#[derive(Clone, Debug)]
pub(super) struct Header {
    /// Header of a copy with other records, without the sync marker at its end. It has the class names, codec
    /// and metadata of the file, in version 6.
    pub(super) copy: Vec<u8>,
    /// Offset of the first record or block.
    pub(super) end: u64,
    pub(super) key: Class,
    pub(super) value: Class,
    pub(super) compression: SequenceCompression,
    /// Sync marker as it stands between the records. Version 1 has none.
    pub(super) marker: Option<[u8; MARKER_BYTES]>,
}

impl Header {
    /// Whether the text of a record is its key, because it has no value.
    pub(super) fn text_is_key(&self) -> bool {
        self.value == Class::Null && self.key != Class::Null
    }

    /// Reads the header of a file: at most 64 KiB, unless its metadata is larger.
    pub(super) fn read(blob: &dyn Blob, block_bytes: usize) -> Result<Self, Error> {
        let mut bytes = Vec::new();
        let [little, much] = READ_BYTES.map(|bytes| bytes.min(block_bytes));
        for limit in [little, much] {
            let old = bytes.len();
            bytes.resize(limit.min(blob.bytes() as usize).max(old), 0);
            let read = blob.read_full_at(old as u64, &mut bytes[old..])?;
            bytes.truncate(old + read);
            match parse(&bytes) {
                Ok(header) => return Ok(header),
                Err(BadHeader::Short) => {}
                Err(BadHeader::Data(offset, reason)) => {
                    return Err(Error::data(blob.path(), offset as u64, reason));
                }
            }
        }
        let reason = match bytes.len() < much {
            true => "the file ends within its header".to_owned(),
            false => format!("the header does not end within {} MiB", much >> 20),
        };
        Err(Error::data(blob.path(), bytes.len() as u64, reason))
    }

    /// Returns the header of a block-compressed file of our own, with these classes. Its sync markers are
    /// made of `sync`.
    pub(super) fn of_blocks(
        key: &str,
        value: &str,
        codec: Codec,
        sync: [u8; SYNC_BYTES],
    ) -> Result<Self, Error> {
        let mut bytes = [MAGIC, &[*VERSIONS.end()][..]].concat();
        // The two bytes behind the value's class say that the file is compressed, and in blocks.
        let codec = codec.class();
        let names = [(key, &[][..]), (value, &[1, 1]), (&codec, &[])];
        for (name, after) in names {
            put_vint(&mut bytes, name.len());
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(after);
        }
        // The metadata is empty.
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&sync);
        parse(&bytes).map_err(|bad| match bad {
            BadHeader::Data(offset, reason) => Error::data("packed", offset as u64, reason),
            BadHeader::Short => Error::data("packed", 0, "a header that does not end"),
        })
    }

    /// Returns a sync marker with its escape, from the 16 bytes of a file's own.
    pub(super) fn marker(sync: [u8; SYNC_BYTES]) -> [u8; MARKER_BYTES] {
        let mut marker = [0xff; MARKER_BYTES];
        marker[4..].copy_from_slice(&sync);
        marker
    }
}

/// Reason why bytes could not be read as a header.
enum BadHeader {
    /// More bytes are needed.
    Short,
    /// Offset and reason of a fault.
    Data(usize, String),
}

fn parse(bytes: &[u8]) -> Result<Header, BadHeader> {
    let mut cursor = Cursor { bytes, at: 0 };
    if cursor.take(MAGIC.len())? != MAGIC {
        return Err(BadHeader::Data(0, "not a SequenceFile: it does not begin with SEQ".to_owned()));
    }
    let version = cursor.byte()?;
    if !VERSIONS.contains(&version) {
        let (first, last) = (VERSIONS.start(), VERSIONS.end());
        let reason = format!("version {version} of SequenceFile is not supported, only {first} to {last}");
        return Err(BadHeader::Data(3, reason));
    }
    // Source of what each version added: the constants and Reader.init of org.apache.hadoop.io.SequenceFile.
    let (key_name, key) = cursor.class("keys", version)?;
    let (value_name, value) = cursor.class("values", version)?;
    let flags_at = cursor.at;
    let compressed = version > 2 && cursor.byte()? != 0;
    let blocks = version > 3 && cursor.byte()? != 0;
    if blocks && !compressed {
        let reason = "the header says both block-compressed and not compressed";
        return Err(BadHeader::Data(flags_at, reason.to_owned()));
    }
    // Versions before 5 do not name their codec, which is this one.
    let default_class = Codec::Zlib.class();
    let mut codec_name = default_class.as_bytes();
    let compression = if compressed {
        let mut codec = Codec::Zlib;
        if version > 4 {
            (codec_name, codec) = cursor.codec()?;
        }
        if blocks { SequenceCompression::Block(codec) } else { SequenceCompression::Record(codec) }
    } else {
        SequenceCompression::None
    };
    if version == *VERSIONS.end() {
        cursor.metadata()?;
    }
    let copy = match version == *VERSIONS.end() {
        true => bytes[..cursor.at].to_vec(),
        false => {
            let mut copy = MAGIC.to_vec();
            copy.push(*VERSIONS.end());
            put_string(&mut copy, key_name);
            put_string(&mut copy, value_name);
            copy.extend([u8::from(compressed), u8::from(blocks)]);
            if compressed {
                put_string(&mut copy, codec_name);
            }
            // The metadata is empty.
            copy.extend([0; 4]);
            copy
        }
    };
    let marker = if version > 1 { Some(Header::marker(cursor.array()?)) } else { None };
    Ok(Header { copy, end: cursor.at as u64, key, value, compression, marker })
}

fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    put_vint(out, text.len());
    out.extend_from_slice(text);
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], BadHeader> {
        let taken = self.bytes[self.at..].get(..bytes).ok_or(BadHeader::Short)?;
        self.at += bytes;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadHeader> {
        self.take(N)?.try_into().map_err(|_| BadHeader::Short)
    }

    fn byte(&mut self) -> Result<u8, BadHeader> {
        Ok(self.take(1)?[0])
    }

    fn string(&mut self) -> Result<&'a [u8], BadHeader> {
        let at = self.at;
        let (length, bytes) = vint(&self.bytes[at..]).ok_or(BadHeader::Short)?;
        self.at += bytes;
        match usize::try_from(length) {
            Ok(length) => self.take(length),
            Err(_) => Err(BadHeader::Data(at, format!("a string of {length} bytes"))),
        }
    }

    fn class(&mut self, role: &str, version: u8) -> Result<(&'a [u8], Class), BadHeader> {
        let at = self.at;
        let bytes = match version {
            // These versions write names as the deprecated class UTF8 does.
            ..=3 => {
                let length = u16::from_be_bytes(self.array()?);
                self.take(length.into())?
            }
            _ => self.string()?,
        };
        let name = String::from_utf8_lossy(bytes);
        let class = Class::named(&name).ok_or_else(|| {
            let name = short(&name);
            let known = Class::NAMES;
            BadHeader::Data(at, format!("{role} of class {name} are not supported, only {known}"))
        })?;
        Ok((bytes, class))
    }

    fn codec(&mut self) -> Result<(&'a [u8], Codec), BadHeader> {
        let at = self.at;
        let bytes = self.string()?;
        let name = String::from_utf8_lossy(bytes);
        let codec = Codec::named(&name).ok_or_else(|| {
            let name = short(&name);
            let known = Codec::classes();
            BadHeader::Data(
                at,
                format!("codec {name} is not supported, only {known}; write the file with one of them"),
            )
        })?;
        Ok((bytes, codec))
    }

    fn metadata(&mut self) -> Result<(), BadHeader> {
        let at = self.at;
        let count = i32::from_be_bytes(self.array()?);
        if count < 0 {
            return Err(BadHeader::Data(at, format!("the metadata says it has {count} entries")));
        }
        for _ in 0..count {
            self.string()?;
            self.string()?;
        }
        Ok(())
    }
}

/// Returns a name from a file, made safe to print.
fn short(name: &str) -> String {
    format!("{:?}", name.chars().take(100).collect::<String>())
}
