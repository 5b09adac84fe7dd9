//! SequenceFiles of Hadoop: rows of serialised keys and values, uncompressed, compressed one by one or in blocks.
//!
//! A document's text is the value, its id the key. What is read: version 6; keys of the classes Text,
//! BytesWritable, LongWritable, IntWritable and NullWritable; values of the classes Text and BytesWritable,
//! both UTF-8; DefaultCodec and GzipCodec.
//!
//! Source: org.apache.hadoop.io.SequenceFile of Hadoop 3.4.1.

mod codec;
mod header;
mod pack;
mod read;
mod window;
mod write;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt::Write as _;

use operators::DocBatch;

pub(crate) use self::pack::{Packer, Unpacker};

use self::codec::Decompressor;
use self::header::{Class, Compression, MAGIC, vint};
use self::read::{RECORD_BYTES, Raw, Record, Records};
use crate::{Error, Format, Parts, Piece, Reader, Reading, Writer};

/// SequenceFiles, in pieces that begin and end at sync markers.
pub static SEQUENCE_FILE: SequenceFile = SequenceFile;

/// The format of SequenceFiles.
pub struct SequenceFile;

impl Format for SequenceFile {
    fn name(&self) -> &'static str {
        "sequencefile"
    }

    fn recognises(&self, _path: &str, head: &[u8]) -> bool {
        // The versions there have been, and some more, so that a new one is refused by its number.
        head.starts_with(MAGIC) && head.get(MAGIC.len()).is_some_and(|&version| version < 32)
    }

    fn splits(&self, _path: &str) -> bool {
        true
    }

    fn open(&self, piece: &Piece, _reading: &Reading) -> Result<Box<dyn Reader>, Error> {
        let records = Records::open(piece)?;
        let decompressor = match records.header.compression {
            Compression::Record(codec) => Some(Decompressor::new(codec)),
            _ => None,
        };
        let documents = Documents {
            key: records.header.key,
            value: records.header.value,
            name: piece.name.clone(),
            decompressor,
            decompressed: Vec::new(),
            id: String::new(),
        };
        Ok(Box::new(SequenceReader { path: piece.blob.path().to_owned(), records, documents }))
    }

    fn writer<'a>(&self, parts: &'a dyn Parts, _reading: &Reading) -> Box<dyn Writer + 'a> {
        Box::new(write::SequenceWriter::new(parts))
    }
}

struct SequenceReader {
    path: String,
    records: Records,
    documents: Documents,
}

impl Reader for SequenceReader {
    fn fill(&mut self, batch: &mut DocBatch) -> Result<bool, Error> {
        // Rejects do not fill a batch, so records are counted too.
        for _ in 0..1 << 16 {
            if batch.full() {
                break;
            }
            match self.records.next()? {
                None => return Ok(false),
                Some(Raw::Lost { offset, reason, head }) => batch.reject(&self.path, offset, reason, head),
                Some(Raw::Record(record)) => match self.documents.read(&record) {
                    Ok((id, text)) => batch.push(id, text),
                    Err((reason, head)) => batch.reject(&self.path, record.offset, reason, head),
                },
            }
        }
        Ok(true)
    }
}

/// Makes documents of records.
struct Documents {
    key: Class,
    value: Class,
    name: String,
    /// Where each value is compressed.
    decompressor: Option<Decompressor>,
    decompressed: Vec<u8>,
    id: String,
}

impl Documents {
    /// The id and the text of a record, or what is wrong with it and how it begins.
    fn read<'a>(&'a mut self, record: &Record<'a>) -> Result<(&'a str, &'a str), (String, &'a [u8])> {
        let mut value = record.value;
        if let Some(decompressor) = &mut self.decompressor {
            match decompressor.decompress(value, RECORD_BYTES as usize, &mut self.decompressed) {
                Ok(()) => value = &self.decompressed,
                Err(reason) => return Err((format!("the value: {reason}"), value)),
            }
        }
        let text = payload(self.value, value)
            .and_then(utf8)
            .map_err(|reason| (format!("the value {reason}"), value))?;
        self.id.clear();
        let id = match self.key {
            Class::Text | Class::Bytes => payload(self.key, record.key).and_then(utf8),
            Class::Long => record.key.try_into().map_err(|_| BAD_LENGTH).map(|key| {
                // Writing to a String cannot fail.
                let _ = write!(self.id, "{}", i64::from_be_bytes(key));
                self.id.as_str()
            }),
            Class::Int => record.key.try_into().map_err(|_| BAD_LENGTH).map(|key| {
                let _ = write!(self.id, "{}", i32::from_be_bytes(key));
                self.id.as_str()
            }),
            Class::Null => {
                let _ = write!(self.id, "{}:{}", self.name, record.offset);
                if let Some(index) = record.index {
                    let _ = write!(self.id, ":{index}");
                }
                Ok(self.id.as_str())
            }
        };
        Ok((id.map_err(|reason| (format!("the key {reason}"), record.key))?, text))
    }
}

const BAD_LENGTH: &str = "is not as long as its class";

/// The bytes of a serialised Text or BytesWritable. Bytes after them are as bad as too few, as for Hadoop:
/// a document must not be judged by a part of its record.
fn payload(class: Class, bytes: &[u8]) -> Result<&[u8], &'static str> {
    let (length, start) = match class {
        Class::Text => vint(bytes).ok_or("ends before its length")?,
        _ => {
            let length = bytes.first_chunk().ok_or("ends before its length")?;
            (i64::from(i32::from_be_bytes(*length)), 4)
        }
    };
    let length = usize::try_from(length).map_err(|_| "has a negative length")?;
    match bytes[start..].len().cmp(&length) {
        Ordering::Less => Err("is shorter than it says"),
        Ordering::Equal => Ok(&bytes[start..]),
        Ordering::Greater => Err("is longer than it says"),
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, &'static str> {
    std::str::from_utf8(bytes).map_err(|_| "is not UTF-8")
}
