//! SequenceFiles of whole files: names as keys, contents as values.

use xxhash_rust::xxh3::xxh3_128;

use super::block::Raw;
use super::class::{Class, put_vint};
use super::codec::Decompressor;
use super::header::{Header, SequenceCompression};
use super::read::SequenceRecords;
use super::write::SequencePart;
use crate::{BadText, Codec, Content, Error, PackReader, PackWriter, Packed, PartOutput, Piece, Reading};

/// Writer of a block-compressed file.
pub(crate) struct SequencePacker {
    part: SequencePart,
    content: Content,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl SequencePacker {
    pub(crate) fn create(
        output: Box<dyn PartOutput>,
        content: Content,
        codec: Codec,
        seed: &str,
    ) -> Result<Self, Error> {
        let value = match content {
            Content::Text => "org.apache.hadoop.io.Text",
            Content::Bytes => "org.apache.hadoop.io.BytesWritable",
            Content::Fingerprint => "org.apache.hadoop.io.LongWritable",
        };
        let sync = xxh3_128(seed.as_bytes()).to_be_bytes();
        let header = Header::of_blocks("org.apache.hadoop.io.Text", value, codec, sync)?;
        Ok(SequencePacker {
            part: SequencePart::new(&header, "packed", output),
            content,
            key: Vec::new(),
            value: Vec::new(),
        })
    }
}

impl PackWriter for SequencePacker {
    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.key.clear();
        put_vint(&mut self.key, name.len());
        self.key.extend_from_slice(name.as_bytes());
        self.value.clear();
        match self.content {
            Content::Text => put_vint(&mut self.value, bytes.len()),
            Content::Bytes => self.value.extend_from_slice(&(bytes.len() as u32).to_be_bytes()),
            Content::Fingerprint => {}
        }
        self.value.extend_from_slice(bytes);
        self.part.append(&self.key, &self.value)
    }

    fn finish(self: Box<Self>) -> Result<(), Error> {
        self.part.finish()
    }
}

/// Reader of the keys and values of a piece as names and bytes.
pub(crate) struct SequenceUnpacker {
    records: SequenceRecords,
    key: Class,
    value: Class,
    /// Decompressor for files in which each value is compressed.
    decompressor: Option<Decompressor>,
    decompressed: Vec<u8>,
    max_record_bytes: usize,
    name: String,
}

impl SequenceUnpacker {
    pub(crate) fn open(piece: &Piece, reading: &Reading) -> Result<Self, Error> {
        let records = SequenceRecords::open(piece, reading)?;
        let (key, value) = (records.header.key, records.header.value);
        let binary = |class| matches!(class, Class::Text | Class::Bytes);
        if !binary(key) || !binary(value) {
            let reason = format!("keys of class {key:?} and values of class {value:?} are no files");
            return Err(Error::data(piece.blob.path(), 4, reason));
        }
        let decompressor = match records.header.compression {
            SequenceCompression::Record(codec) => Some(Decompressor::new(codec, reading.window_log())),
            _ => None,
        };
        let (decompressed, name) = (Vec::new(), String::new());
        let max_record_bytes = reading.max_record_bytes;
        Ok(SequenceUnpacker { records, key, value, decompressor, decompressed, max_record_bytes, name })
    }
}

impl PackReader for SequenceUnpacker {
    fn next(&mut self) -> Result<Option<Packed<'_>>, Error> {
        let record = match self.records.next()? {
            None => return Ok(None),
            Some(Raw::Lost { offset, reason, head }) => {
                return Ok(Some(Packed::Lost { offset, reason: reason.to_owned(), head }));
            }
            Some(Raw::Record(record)) => record,
        };
        let offset = record.offset;
        let lost = |reason: String, head| Ok(Some(Packed::Lost { offset, reason, head }));
        let mut value = record.value;
        if let Some(decompressor) = &mut self.decompressor {
            match decompressor.decompress(value, self.max_record_bytes, &mut self.decompressed) {
                Ok(bytes) => value = &self.decompressed[..bytes],
                Err(reason) => return lost(format!("the value: {reason}"), value),
            }
        }
        let name = match self.key.text(record.key, None, BadText::Reject, &mut self.name) {
            Ok((name, _)) => name,
            Err(reason) => return lost(format!("the key {reason}"), record.key),
        };
        match self.value.payload(value) {
            Ok(bytes) => Ok(Some(Packed::File { offset, name, bytes })),
            Err(reason) => lost(format!("the value {reason}"), value),
        }
    }
}
