//! Keys and values of SequenceFiles out of whose text parts are cut.

use std::ops::Range;

use super::class::{Class, put_vint};
use super::codec::{Codec, Decompressor};
use super::header::{Header, SequenceCompression};
use crate::parts::cut_text::without;
use crate::text::charset::Charset;
use crate::{BadText, Reading};

/// Maker of records whose text is shorter. Memory: one record, several times.
pub(super) struct Shortener {
    class: Class,
    charset: Charset,
    max_record_bytes: usize,
    /// Codec of the texts, if each is compressed by itself. Keys are not.
    codec: Option<(Codec, Decompressor)>,
}

impl Shortener {
    /// Makes the texts of a file of this header shorter.
    pub fn new(header: &Header, reading: &Reading) -> Self {
        let text_is_key = header.text_is_key();
        let class = if text_is_key { header.key } else { header.value };
        let codec = match header.compression {
            SequenceCompression::Record(codec) if !text_is_key => {
                Some((codec, Decompressor::new(codec, reading.window_log())))
            }
            _ => None,
        };
        let charset = Charset::of_values(reading.encoding.filter(|_| class == Class::Bytes));
        Shortener { class, charset, max_record_bytes: reading.max_record_bytes, codec }
    }

    /// Returns a serialised text without these ranges: a key or a value, as the file has its texts in the one or the other.
    /// `None` if the text has no such ranges, or is a number.
    pub fn shorten(&mut self, stored: &[u8], cuts: &[Range<usize>]) -> Option<Vec<u8>> {
        let mut decompressed = Vec::new();
        let stored = match &mut self.codec {
            Some((_, decompressor)) => {
                let bytes = decompressor.decompress(stored, self.max_record_bytes, &mut decompressed).ok()?;
                &decompressed[..bytes]
            }
            None => stored,
        };
        let payload = match self.class {
            Class::Text | Class::Bytes => self.class.payload(stored).ok()?,
            Class::Long | Class::Int | Class::Null => return None,
        };
        let mut buffer = Vec::new();
        let (text, _) = self.charset.decode(payload, BadText::Replace, &mut buffer).ok()?;
        let text = without(text, cuts)?;
        let text = self.charset.encode(&text, payload);
        let mut shortened = Vec::with_capacity(text.len() + 9);
        match self.class {
            Class::Text => put_vint(&mut shortened, text.len()),
            _ => shortened.extend((text.len() as u32).to_be_bytes()),
        }
        shortened.extend_from_slice(&text);
        if let Some((codec, _)) = self.codec {
            let mut compressed = Vec::new();
            codec.compress(&shortened, &mut compressed).ok()?;
            return Some(compressed);
        }
        Some(shortened)
    }
}
