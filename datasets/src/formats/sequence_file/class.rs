//! The classes of keys and values, and their text.

use std::cmp::Ordering;
use std::fmt::Write as _;

use crate::text::charset::Charset;
use crate::{BadText, Encoding};

/// A class of Hadoop that a key or a value may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Class {
    /// A vint and that many bytes of UTF-8.
    Text,
    /// A big-endian `u32` and that many bytes: text in UTF-8, or as the user says.
    Bytes,
    /// A big-endian `i64`.
    Long,
    /// A big-endian `i32`.
    Int,
    /// No bytes.
    Null,
}

impl Class {
    /// Names of the classes that are read, for messages.
    pub(super) const NAMES: &str = "Text, BytesWritable, LongWritable, IntWritable and NullWritable";

    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name.strip_prefix("org.apache.hadoop.io.")? {
            "Text" => Class::Text,
            "BytesWritable" => Class::Bytes,
            "LongWritable" => Class::Long,
            "IntWritable" => Class::Int,
            "NullWritable" => Class::Null,
            _ => return None,
        })
    }

    /// Returns the length of a serialised value, if it is always the same.
    pub(super) fn bytes(self) -> Option<usize> {
        match self {
            Class::Text | Class::Bytes => None,
            Class::Long => Some(8),
            Class::Int => Some(4),
            Class::Null => Some(0),
        }
    }

    /// Returns the text of a serialised value (a text, the decimal digits of a number, or nothing), and
    /// whether illegal bytes were replaced in it. `scratch` holds a text that is not in `bytes` as it is.
    ///
    /// # Errors
    /// The fault of the value, such as "is not UTF-8".
    pub(super) fn text<'a>(
        self,
        bytes: &'a [u8],
        encoding: Option<Encoding>,
        bad_text: BadText,
        scratch: &'a mut String,
    ) -> Result<(&'a str, bool), String> {
        if self.bytes().is_some_and(|length| length != bytes.len()) {
            return Err("is not as long as its class".to_owned());
        }
        scratch.clear();
        match self {
            Class::Text | Class::Bytes => {
                let text = self.payload(bytes)?;
                let charset = Charset::of_values(encoding.filter(|_| self == Class::Bytes));
                if charset.is_utf8()
                    && let Ok(text) = simdutf8::basic::from_utf8(text)
                {
                    return Ok((text, false));
                }
                let mut decoded = Vec::new();
                let (text, replaced) = charset
                    .decode(text, bad_text, &mut decoded)
                    .map_err(|illegal| format!("is {}", illegal.reason))?;
                scratch.push_str(text);
                return Ok((scratch, replaced));
            }
            // Writing to a String cannot fail.
            Class::Long => drop(write!(scratch, "{}", i64::from_be_bytes(array(bytes)?))),
            Class::Int => drop(write!(scratch, "{}", i32::from_be_bytes(array(bytes)?))),
            Class::Null => {}
        }
        Ok((scratch, false))
    }

    /// Returns the bytes of a serialised Text or BytesWritable. Surplus bytes are as bad as missing ones, as
    /// in Hadoop: a document must not be judged by a part of its record.
    pub(super) fn payload(self, bytes: &[u8]) -> Result<&[u8], &'static str> {
        let (length, start) = match self {
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
}

fn array<const N: usize>(bytes: &[u8]) -> Result<[u8; N], &'static str> {
    bytes.try_into().map_err(|_| "is not as long as its class")
}

/// Reads a vint or vlong of Hadoop. Returns its value and its length, or `None` if `bytes` ends too early.
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

/// Appends a length as a vint of Hadoop.
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
        // These are the bytes that WritableUtils.writeVLong writes.
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
