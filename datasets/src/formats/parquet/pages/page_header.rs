//! The headers of the pages of a column chunk.

use std::sync::Arc;

use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader;

use crate::formats::parquet::chunks::Chunks;
use crate::formats::parquet::library::text;
use crate::formats::parquet::thrift::{BadThrift, Thrift};

/// Number of bytes that are first read for a page header. A longer header is read again, with four times as
/// many.
const HEADER_BYTES: usize = 256;
/// Largest length of a page header. At most it holds the least and the greatest value of its page.
const MAX_HEADER_BYTES: u64 = 16 << 20;
/// Memory of a value or level of a repeated column, in bytes: the least that is known before decoding.
const LEVEL_BYTES: u64 = 8;
/// Memory of a value of a dictionary besides its bytes, in bytes.
const ENTRY_BYTES: u64 = 16;

/// The fields of a page header that matter here.
///
/// Source: apache/parquet-format, src/main/thrift/parquet.thrift, `PageHeader`.
#[derive(Debug, Default, PartialEq)]
pub struct PageHeader {
    pub page_type: i64,
    pub own_bytes: u64,
    pub uncompressed_bytes: u64,
    pub compressed_bytes: u64,
    /// Number of values, with nulls.
    pub values: u64,
    /// Encoding of the values of a data page.
    pub encoding: i64,
    /// Number of rows, which pages of the second version state.
    rows: Option<u64>,
}

impl PageHeader {
    const INDEX: i64 = 1;
    const DICTIONARY: i64 = 2;
    /// Encoding of values that share prefixes with the value before.
    pub const DELTA_BYTE_ARRAY: i64 = 7;

    pub fn read(bytes: &[u8]) -> Result<PageHeader, BadThrift> {
        let mut header = PageHeader { page_type: -1, ..PageHeader::default() };
        let mut sizes = [None; 2];
        let mut thrift = Thrift::new(bytes);
        let positive = |value: i64| u64::try_from(value).map_err(|_| BadThrift::Invalid("a negative length"));
        thrift.fields(|thrift, number, _| {
            match number {
                1 => header.page_type = thrift.integer()?,
                2 | 3 => sizes[number as usize - 2] = Some(positive(thrift.integer()?)?),
                // These are the headers of data pages, dictionaries, and data pages of the second version.
                5 | 7 | 8 => thrift.fields(|thrift, inner, _| {
                    match (number, inner) {
                        (_, 1) => header.values = positive(thrift.integer()?)?,
                        (5, 2) | (8, 4) => header.encoding = thrift.integer()?,
                        (8, 3) => header.rows = Some(positive(thrift.integer()?)?),
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let [Some(uncompressed), Some(compressed)] = sizes else {
            return Err(BadThrift::Invalid("no length"));
        };
        (header.uncompressed_bytes, header.compressed_bytes) = (uncompressed, compressed);
        header.own_bytes = thrift.position() as u64;
        Ok(header)
    }

    pub fn is_dictionary(&self) -> bool {
        self.page_type == PageHeader::DICTIONARY
    }

    /// Returns the memory that decoding the page takes, as far as the header tells.
    pub fn decoded_bytes(&self, repeated: bool) -> u64 {
        let value_bytes = match (self.is_dictionary(), repeated) {
            (true, _) => ENTRY_BYTES,
            (false, true) => LEVEL_BYTES,
            (false, false) => 0,
        };
        let bytes = self.uncompressed_bytes.max(self.compressed_bytes);
        bytes.saturating_add(self.values.saturating_mul(value_bytes))
    }

    /// Returns the number of records that begin in a data page, if it is known.
    pub fn rows(&self, repeated: bool) -> Option<u64> {
        if self.is_dictionary() {
            return None;
        }
        self.rows.or((!repeated).then_some(self.values))
    }
}

/// Iterator over the page headers of a column chunk.
pub struct PageHeaders {
    chunks: Arc<Chunks>,
    pub offset: u64,
    end: u64,
    /// Whether the column is repeated.
    pub repeated: bool,
}

impl PageHeaders {
    pub fn of(chunks: &Arc<Chunks>, column: &ColumnChunkMetaData) -> Self {
        let (offset, length) = column.byte_range();
        let repeated = column.column_descr().max_rep_level() > 0;
        PageHeaders { chunks: chunks.clone(), offset, end: offset + length, repeated }
    }

    /// Returns the next page's header and skips that page; `None` at the end of the chunk. Index pages are
    /// skipped, as the library does.
    pub fn next(&mut self) -> Result<Option<PageHeader>, String> {
        loop {
            let left = self.end.saturating_sub(self.offset);
            if left == 0 {
                return Ok(None);
            }
            let header = self.header(left)?;
            if header.compressed_bytes > left - header.own_bytes {
                let bytes = header.compressed_bytes;
                return Err(format!("a page of {bytes} bytes does not fit into its column chunk"));
            }
            self.offset += header.own_bytes + header.compressed_bytes;
            if header.page_type != PageHeader::INDEX {
                return Ok(Some(header));
            }
        }
    }

    fn header(&self, left: u64) -> Result<PageHeader, String> {
        let mut least_bytes = HEADER_BYTES as u64;
        loop {
            least_bytes = least_bytes.min(left);
            let bytes = self.chunks.get_bytes(self.offset, least_bytes as usize);
            let bytes = bytes.map_err(|error| text(&error))?;
            match PageHeader::read(&bytes) {
                Ok(header) => return Ok(header),
                Err(BadThrift::Short) if least_bytes < left.min(MAX_HEADER_BYTES) => least_bytes *= 4,
                Err(BadThrift::Short) => return Err("the page header does not end".to_owned()),
                Err(BadThrift::Invalid(reason)) => return Err(format!("bad page header: {reason}")),
            }
        }
    }
}
