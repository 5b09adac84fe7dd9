//! The lengths of delta-encoded texts: how many of them a page claims to have.
//!
//! The library allocates memory for all lengths before it reads one. A run of equal lengths takes almost no
//! bytes, so a page of a few bytes can claim two billion.
//!
//! Source: apache/parquet-format, Encodings.md, "Delta Encoding", "Delta-length byte array" and "Delta
//! Strings".

use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::schema::types::ColumnDescriptor;

use super::levels::Levels;
use crate::formats::parquet::thrift::{BadThrift, Thrift};

/// Returns the number of bytes that the library allocates for the lengths of a page's values, before it
/// decodes the values.
///
/// For a damaged page, this is what the library allocates until it meets the damage. Cost: where values share
/// prefixes, the lengths of these are skipped, without decoding them.
pub(super) fn bytes_of_lengths(page: &Page, column: &ColumnDescriptor) -> u64 {
    let shares = match page.encoding() {
        Encoding::DELTA_BYTE_ARRAY => true,
        Encoding::DELTA_LENGTH_BYTE_ARRAY => false,
        _ => return 0,
    };
    let mut claimed = 0;
    // Errors are left to the library.
    let _damaged = count(page, column, shares, &mut claimed);
    claimed.saturating_mul(size_of::<i32>() as u64)
}

fn count(page: &Page, column: &ColumnDescriptor, shares: bool, claimed: &mut u64) -> Result<(), BadThrift> {
    let start = Levels::of(page, column)?.values;
    let mut values = Thrift::new(page.buffer().get(start..).ok_or(BadThrift::Short)?);
    let mut lengths = Lengths::read(&mut values)?;
    *claimed = lengths.left;
    if shares {
        lengths.pass(&mut values)?;
        *claimed = claimed.saturating_add(Lengths::read(&mut values)?.left);
    }
    Ok(())
}

/// Numbers in the encoding `DELTA_BINARY_PACKED`: blocks of miniblocks, each with a width in bits.
struct Lengths {
    per_miniblock: u64,
    miniblocks: u64,
    /// Number of lengths that are still to come.
    left: u64,
}

impl Lengths {
    /// Reads the header, and the first number.
    fn read(values: &mut Thrift) -> Result<Self, BadThrift> {
        let (per_block, miniblocks, left) = (values.varint()?, values.varint()?, values.varint()?);
        values.varint()?;
        let per_miniblock = per_block.checked_div(miniblocks).ok_or(BadThrift::Invalid("no miniblocks"))?;
        Ok(Lengths { per_miniblock, miniblocks, left })
    }

    /// Skips the other numbers.
    fn pass(&mut self, values: &mut Thrift) -> Result<(), BadThrift> {
        let mut left = self.left.saturating_sub(1);
        while left > 0 {
            values.varint()?; // the least number of the block
            let mut bytes = 0_u64;
            for _ in 0..self.miniblocks {
                let width = u64::from(values.byte()?);
                // Behind the last number, a width has no meaning.
                let used = if left > 0 { width } else { 0 };
                bytes = bytes.saturating_add(used.saturating_mul(self.per_miniblock) / 8);
                left = left.saturating_sub(self.per_miniblock);
            }
            values.pass(bytes)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{ListBuilder, StringBuilder};
    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::{WriterProperties, WriterVersion};
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    /// Returns columns of texts that share prefixes, with nulls in between, alone and in lists.
    fn columns(rows: usize) -> [ArrayRef; 3] {
        let text = |row: usize| format!("正文 {} {}", row / 100, "x".repeat(row * 7919 % 61));
        let mut lists = ListBuilder::new(StringBuilder::new());
        for row in 0..rows {
            (0..row % 4).for_each(|at| lists.values().append_option((at != 1).then(|| text(row + at))));
            lists.append(row % 5 > 0);
        }
        [
            Arc::new(StringArray::from_iter_values((0..rows).map(text))),
            Arc::new((0..rows).map(|row| (row % 3 > 0).then(|| text(row))).collect::<StringArray>()),
            Arc::new(lists.finish()),
        ]
    }

    #[test]
    fn the_lengths_of_each_page_are_counted_as_they_were_written() {
        for rows in [1, 2, 32, 33, 128, 129, 130, 257, 5000] {
            for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
                for (encoding, each) in
                    [(Encoding::DELTA_BYTE_ARRAY, 2), (Encoding::DELTA_LENGTH_BYTE_ARRAY, 1)]
                {
                    for (number, column) in columns(rows).into_iter().enumerate() {
                        let nullable = number > 0;
                        let batch =
                            RecordBatch::try_from_iter_with_nullable([("c", column, nullable)]).unwrap();
                        let properties = WriterProperties::builder()
                            .set_writer_version(version)
                            .set_dictionary_enabled(false)
                            .set_encoding(encoding)
                            .build();
                        let mut writer =
                            ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
                        writer.write(&batch).unwrap();
                        let file =
                            SerializedFileReader::new(Bytes::from(writer.into_inner().unwrap())).unwrap();
                        let group = file.get_row_group(0).unwrap();
                        let descriptor = group.metadata().column(0).column_descr();
                        let mut pages = group.get_column_page_reader(0).unwrap();
                        let mut lengths = 0;
                        while let Some(page) = pages.get_next_page().unwrap() {
                            assert_eq!(page.encoding(), encoding);
                            lengths += bytes_of_lengths(&page, descriptor) / 4;
                        }
                        let values = match number {
                            0 => rows,
                            1 => rows - rows.div_ceil(3),
                            // Arrow keeps the values of a list that is null; the file does not.
                            _ => (0..rows)
                                .filter(|row| row % 5 > 0)
                                .map(|row| row % 4 - usize::from(row % 4 > 1))
                                .sum(),
                        };
                        assert_eq!(lengths, (each * values) as u64, "{rows} {version:?} {encoding} {number}");
                    }
                }
            }
        }
    }
}
