//! Parquet: row groups are read column by column, and written with the input's schema and codecs.
//!
//! The library trusts what a file claims. So footers (`footer.rs`, `thrift.rs`) and `pages` are checked before it sees
//! them, and its panics are caught (`library.rs`). `batches.rs` gives the rows of a piece to `reader.rs`, `writer.rs` and
//! `pack.rs`; `row_part.rs` encodes those that `writer.rs` keeps, `decision_columns.rs` what they say of a decision.

mod batches;
mod chunks;
mod decision_columns;
mod file;
mod footer;
mod library;
mod pack;
mod pages;
mod reader;
mod row_part;
mod schema;
#[cfg(test)]
mod tests;
mod thrift;
mod writer;

pub(crate) use self::pack::ParquetPacker;
use self::pack::ParquetUnpacker;
use crate::text::compression::{COMPRESSED, has_suffix};
use crate::{Cuts, Error, Format, PackReader, Parts, Piece, Reader, Reading, Writer};

/// Apache Parquet, recognised by its extension `.parquet` or its magic.
///
/// The rows of a row group are divided among the pieces in which it lies. A nested text is named by its path, as in
/// `doc.body.text`; `\.` is a dot within a name. A row without text is rejected, with its number in the file
/// as the offset. Consecutive rows of pages that cannot be decoded, in any column, are one reject. Parts have
/// the input's schema, metadata and codecs. Page checksums are verified, but not written.
pub static PARQUET: Parquet = Parquet;

/// The type of [`PARQUET`].
pub struct Parquet;

impl Format for Parquet {
    fn name(&self) -> &'static str {
        "parquet"
    }

    fn recognises(&self, path: &str, head: &[u8]) -> bool {
        has_suffix(path, ".parquet") || head.starts_with(b"PAR1")
    }

    fn has_fields(&self) -> bool {
        true
    }

    fn cuts(&self, _path: &str) -> Cuts {
        Cuts::File
    }

    /// Most files are compressed, and their names do not tell.
    fn expansion(&self, _path: &str) -> u64 {
        COMPRESSED
    }

    fn open(&self, piece: &Piece, reading: &Reading) -> Result<Box<dyn Reader>, Error> {
        Ok(Box::new(reader::RowReader::open(piece, reading)?))
    }

    fn unpack(&self, piece: &Piece, reading: &Reading) -> Result<Option<Box<dyn PackReader>>, Error> {
        Ok(Some(Box::new(ParquetUnpacker::open(piece, reading)?)))
    }

    fn writer<'a>(&self, parts: &'a dyn Parts, reading: &Reading) -> Box<dyn Writer + 'a> {
        Box::new(writer::RowWriter::new(parts, reading))
    }
}
