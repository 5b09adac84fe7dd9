//! The levels of a page, which precede its values. They say where a record begins and what is missing, for
//! values in lists.
//!
//! Source: apache/parquet-format, Encodings.md, "Run Length Encoding / Bit-Packing Hybrid".

use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::schema::types::ColumnDescriptor;

use crate::formats::parquet::thrift::{BadThrift, Thrift};

/// Layout of a decompressed data page.
pub(super) struct Levels<'a> {
    /// Repetition levels, if the column is in lists and the levels are runs.
    repetition: Option<&'a [u8]>,
    /// Offset of the values.
    pub(super) values: usize,
}

impl<'a> Levels<'a> {
    pub(super) fn of(page: &'a Page, column: &ColumnDescriptor) -> Result<Self, BadThrift> {
        match page {
            Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
                let repetition = buf.get(..*rep_levels_byte_len as usize).ok_or(BadThrift::Short)?;
                Ok(Levels {
                    repetition: (column.max_rep_level() > 0).then_some(repetition),
                    values: repetition.len() + *def_levels_byte_len as usize,
                })
            }
            Page::DataPage { buf, num_values, def_level_encoding, rep_level_encoding, .. } => {
                let mut levels = Levels { repetition: None, values: 0 };
                let repetition = (column.max_rep_level(), rep_level_encoding);
                let definition = (column.max_def_level(), def_level_encoding);
                for (most, encoding) in [repetition, definition].into_iter().filter(|(most, _)| *most > 0) {
                    let start = levels.values;
                    if *encoding == Encoding::RLE {
                        let length = buf.get(start..start + 4).and_then(|bytes| bytes.try_into().ok());
                        levels.values += 4 + u32::from_le_bytes(length.ok_or(BadThrift::Short)?) as usize;
                    } else {
                        // The deprecated encoding has plain bits, one level after the other.
                        levels.values += (*num_values as usize * bits(most)).div_ceil(8);
                    }
                    if start == 0 && column.max_rep_level() > 0 && *encoding == Encoding::RLE {
                        levels.repetition = Some(buf.get(4..levels.values).ok_or(BadThrift::Short)?);
                    }
                }
                Ok(levels)
            }
            Page::DictionaryPage { .. } => Ok(Levels { repetition: None, values: 0 }),
        }
    }
}

/// Checks that a page has as many repetition levels as its header says. When the library skips records of a
/// page with fewer levels, it waits for the missing ones for ever.
pub(super) fn check_repetition(page: &Page, column: &ColumnDescriptor) -> Result<(), String> {
    // Other damage is left to the library.
    let Ok(Levels { repetition: Some(levels), .. }) = Levels::of(page, column) else { return Ok(()) };
    let found = count(levels, bits(column.max_rep_level()));
    let claimed = u64::from(page.num_values());
    match found < claimed {
        true => Err(format!("{found} repetition levels, where its header says {claimed}")),
        false => Ok(()),
    }
}

/// Returns the number of bits of a level.
fn bits(most: i16) -> usize {
    (i16::BITS - most.leading_zeros()) as usize
}

/// Counts the numbers of `bits` bits in runs.
fn count(runs: &[u8], bits: usize) -> u64 {
    let mut reader = Thrift::new(runs);
    let mut count = 0_u64;
    while let Ok(head) = reader.varint() {
        let left = (runs.len() - reader.position()) as u64;
        let (numbers, bytes) = match head & 1 {
            0 => (head >> 1, bits.div_ceil(8) as u64),
            // The numbers come in groups of eight, the last of which may be cut.
            _ => {
                let bytes = (head >> 1).saturating_mul(bits as u64).min(left);
                (bytes * 8 / bits as u64, bytes)
            }
        };
        if reader.pass(bytes).is_err() {
            break;
        }
        count = count.saturating_add(numbers);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_runs_are_counted_as_far_as_they_are_there() {
        for (runs, bits, expected) in [
            (&[][..], 1, 0),
            (&[6, 1], 1, 3),
            (&[6], 1, 0),
            (&[5, 0xaa, 2], 1, 16),
            (&[5, 0xaa], 1, 8),
            (&[3, 1, 2, 8, 1], 2, 12),
            (&[0, 0, 4, 1], 1, 2),
            (&[0x80, 0x80, 1, 0], 1, 8192),
        ] {
            assert_eq!(count(runs, bits), expected, "{runs:?} of {bits} bits");
        }
    }
}
