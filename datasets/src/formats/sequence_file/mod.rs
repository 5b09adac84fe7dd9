//! SequenceFiles of Hadoop: sequences of serialised keys and values, either uncompressed, or compressed one
//! by one or in blocks.
//!
//! The text of a document is the value, its id the key. If the values are NullWritable, the text is the key, and the id
//! is the place of the record. The format reads:
//!
//! | part | supported |
//! |---|---|
//! | version | 1 to 6 |
//! | keys and values | Text, BytesWritable (in UTF-8 or as named), LongWritable, IntWritable, NullWritable |
//! | codec | DefaultCodec, gzip, bzip2, snappy, lz4, zstd |
//!
//! A number becomes its decimal digits. Output is version 6, with the classes, the metadata, the compression
//! and the codec of the input.
//!
//! Source: org.apache.hadoop.io.SequenceFile of Hadoop 3.4.1.

mod block;
mod class;
mod codec;
mod framed;
mod header;
mod pack;
mod read;
mod shorten;
mod window;
mod write;

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::mem::swap;

use operators::DocBatch;

use self::block::{KeyValue, Raw};
use self::class::Class;
pub use self::codec::Codec;
use self::codec::Decompressor;
use self::header::{MAGIC, SequenceCompression};
pub(crate) use self::pack::SequencePacker;
use self::pack::SequenceUnpacker;
use self::read::SequenceRecords;
use crate::text::compression::{COMPRESSED, has_suffix};
use crate::{BadText, Cuts, Encoding, Error, Format, PackReader, Parts, Piece, Reader, Reading, Writer};

/// SequenceFiles, in pieces that begin and end at sync markers.
pub static SEQUENCE_FILE: SequenceFile = SequenceFile;

/// The format of SequenceFiles.
pub struct SequenceFile;

impl Format for SequenceFile {
    fn name(&self) -> &'static str {
        "sequencefile"
    }

    fn recognises(&self, path: &str, head: &[u8]) -> bool {
        // The known versions and some more are recognised, so that a new version is refused by its number.
        // The name is enough too: an empty or broken file among good ones costs itself and not the job.
        let version = head.strip_prefix(MAGIC).and_then(|rest| rest.first());
        version.is_some_and(|&version| version < 32)
            || [".seq", ".sequencefile"].iter().any(|suffix| has_suffix(path, suffix))
    }

    fn cuts(&self, _path: &str) -> Cuts {
        Cuts::File
    }

    /// Most files are compressed, and their names do not tell.
    fn expansion(&self, _path: &str) -> u64 {
        COMPRESSED
    }

    fn open(&self, piece: &Piece, reading: &Reading) -> Result<Box<dyn Reader>, Error> {
        let records = SequenceRecords::open(piece, reading)?;
        let decompressor = match records.header.compression {
            SequenceCompression::Record(codec) => Some(Decompressor::new(codec, reading.window_log())),
            _ => None,
        };
        let documents = Documents {
            key: records.header.key,
            value: records.header.value,
            text_is_key: records.header.text_is_key(),
            name: piece.name.clone(),
            encoding: reading.encoding,
            bad_text: reading.bad_text,
            max_record_bytes: reading.max_record_bytes,
            decompressor,
            decompressed: Vec::new(),
            id: String::new(),
            text: String::new(),
        };
        Ok(Box::new(SequenceReader { path: piece.blob.path().to_owned(), records, documents }))
    }

    fn unpack(&self, piece: &Piece, reading: &Reading) -> Result<Option<Box<dyn PackReader>>, Error> {
        Ok(Some(Box::new(SequenceUnpacker::open(piece, reading)?)))
    }

    fn writer<'a>(&self, parts: &'a dyn Parts, reading: &Reading) -> Box<dyn Writer + 'a> {
        Box::new(write::SequenceWriter::new(parts, reading))
    }
}

struct SequenceReader {
    path: String,
    records: SequenceRecords,
    documents: Documents,
}

impl Reader for SequenceReader {
    fn fill(&mut self, batch: &mut DocBatch) -> Result<bool, Error> {
        while !batch.full() {
            match self.records.next()? {
                None => return Ok(false),
                Some(Raw::Lost { offset, reason, head }) => batch.reject(&self.path, offset, reason, head),
                Some(Raw::Record(record)) => match self.documents.read(&record) {
                    Ok(SequenceDocument { id, text, replaced }) => batch.push_decoded(id, text, replaced),
                    Err((reason, head)) => batch.reject(&self.path, record.offset, reason, head),
                },
            }
        }
        Ok(true)
    }
}

/// Converter of records to documents.
struct Documents {
    key: Class,
    value: Class,
    /// Whether the text is the key, because the values are empty.
    text_is_key: bool,
    name: String,
    encoding: Option<Encoding>,
    bad_text: BadText,
    max_record_bytes: usize,
    /// Decompressor for files in which each value is compressed.
    decompressor: Option<Decompressor>,
    decompressed: Vec<u8>,
    id: String,
    text: String,
}

struct SequenceDocument<'a> {
    id: &'a str,
    text: &'a str,
    /// Whether the id or the text had illegal bytes.
    replaced: bool,
}

impl Documents {
    /// Returns the document of a record, or what is wrong with the record and how it begins.
    fn read<'a>(&'a mut self, record: &KeyValue<'a>) -> Result<SequenceDocument<'a>, (String, &'a [u8])> {
        let mut value = record.value;
        let limit = self.max_record_bytes;
        if let Some(decompressor) = &mut self.decompressor {
            match decompressor.decompress(value, limit, &mut self.decompressed) {
                Ok(bytes) => value = &self.decompressed[..bytes],
                Err(reason) => return Err((format!("the value: {reason}"), value)),
            }
        }
        let bytes = record.key.len() + value.len();
        if bytes > limit {
            return Err((format!("a record of {bytes} bytes, more than {limit}"), value));
        }
        let mut of_text = ("value", self.value, value);
        let mut of_id = ("key", self.key, record.key);
        if self.text_is_key {
            swap(&mut of_text, &mut of_id);
        }
        let (what, class, bytes) = of_text;
        let (text, bad_text) = class
            .text(bytes, self.encoding, self.bad_text, &mut self.text)
            .map_err(|reason| (format!("the {what} {reason}"), bytes))?;
        let (what, class, bytes) = of_id;
        let (id, bad_id) = match class {
            Class::Null if bytes.is_empty() => {
                self.id.clear();
                // Writing to a String cannot fail.
                let _ = write!(self.id, "{}:{}", self.name, record.offset);
                if let Some(index) = record.index {
                    let _ = write!(self.id, ":{index}");
                }
                (&*self.id, false)
            }
            class => class
                .text(bytes, None, self.bad_text, &mut self.id)
                .map_err(|reason| (format!("the {what} {reason}"), bytes))?,
        };
        Ok(SequenceDocument { id, text, replaced: bad_text || bad_id })
    }
}
