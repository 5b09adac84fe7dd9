//! The pages of one row group, which are checked before they are decompressed: their headers (`page_header.rs`), levels
//! (`levels.rs`) and lengths (`deltas.rs`).

mod deltas;
mod levels;
pub(super) mod page_header;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::{Encoding, Type as PhysicalType};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::SerializedPageReader;
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};

use self::deltas::bytes_of_lengths;
use self::levels::{Levels, check_repetition};
use self::page_header::{PageHeader, PageHeaders};
use super::chunks::Chunks;
use super::library::text;
use super::schema;

/// Bounds on what the parquet library may be given to decode: for one page, and for all pages that one record
/// batch needs.
///
/// The bounds are needed because a page of a few bytes can hold 2 GiB, and a run of a few bytes two billion
/// values.
#[derive(Clone)]
pub(super) struct Budget {
    page_bytes: u64,
    batch_bytes: Arc<AtomicU64>,
    left: Arc<AtomicU64>,
    /// Largest number of rows of the batch.
    rows: Arc<AtomicU64>,
    exceeded: Arc<AtomicBool>,
}

impl Budget {
    pub(super) fn new(page_bytes: u64, batch_bytes: u64) -> Self {
        let batch_bytes = Arc::new(AtomicU64::new(batch_bytes));
        let (left, rows, exceeded) = Default::default();
        Budget { page_bytes, batch_bytes, left, rows, exceeded }
    }

    /// Adds `bytes` to the bound of each batch from now on.
    pub(super) fn extend(&self, bytes: u64) {
        self.batch_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Begins the next record batch, with at most `rows` rows.
    pub(super) fn refill(&self, rows: u64) {
        self.rows.store(rows, Ordering::Relaxed);
        self.left.store(self.batch_bytes.load(Ordering::Relaxed), Ordering::Relaxed);
        self.exceeded.store(false, Ordering::Relaxed);
    }

    /// Returns whether the pages of the batch were too large together.
    pub(super) fn exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Relaxed)
    }

    fn take(&self, header: &PageHeader, repeated: bool, fixed_bytes: u64) -> Result<(), String> {
        if header.is_dictionary() && header.values > header.uncompressed_bytes {
            let PageHeader { values, uncompressed_bytes, .. } = header;
            return Err(format!("a dictionary of {values} values in {uncompressed_bytes} bytes"));
        }
        let bytes = header.uncompressed_bytes.max(header.compressed_bytes);
        if bytes > self.page_bytes {
            return Err(format!("a page of {bytes} bytes, where at most {} are read", self.page_bytes));
        }
        self.take_bytes(self.decoded_bytes(header, repeated, fixed_bytes))
    }

    /// Takes the memory for lengths, which a page needs however few of its rows are read. A single page that
    /// exceeds the bound of a batch does not count as too many pages.
    fn take_lengths(&self, bytes: u64) -> Result<(), String> {
        let most = self.batch_bytes.load(Ordering::Relaxed);
        if bytes > most {
            return Err(format!("a page with {bytes} bytes of lengths, where at most {most} are read"));
        }
        self.take_bytes(bytes)
    }

    fn take_bytes(&self, bytes: u64) -> Result<(), String> {
        let left = self.left.load(Ordering::Relaxed).checked_sub(bytes);
        self.left.store(left.unwrap_or(0), Ordering::Relaxed);
        if left.is_none() {
            self.exceeded.store(true, Ordering::Relaxed);
            let bytes = self.batch_bytes.load(Ordering::Relaxed);
            return Err(format!("pages of more than {bytes} bytes for one batch of records"));
        }
        Ok(())
    }
}

impl Budget {
    /// Returns the memory that decoding a page for the batch takes, as far as its header tells. `fixed_bytes`
    /// is the length of each value, if all have the same length.
    fn decoded_bytes(&self, header: &PageHeader, repeated: bool, fixed_bytes: u64) -> u64 {
        let rows = self.rows.load(Ordering::Relaxed);
        let values = if repeated { header.values } else { header.values.min(rows) };
        let mut bytes = header.decoded_bytes(repeated);
        if repeated {
            bytes = bytes.saturating_add(header.values.saturating_mul(fixed_bytes));
        }
        if header.encoding == PageHeader::DELTA_BYTE_ARRAY {
            // Each value may begin with all of the one before it.
            bytes = bytes.saturating_add(header.uncompressed_bytes.saturating_mul(values));
        }
        bytes
    }
}

/// Columns of a row group, as the parquet library asks for them.
pub(super) struct Columns {
    pub(super) chunks: Arc<Chunks>,
    /// Metadata of this row group alone.
    pub(super) metadata: Arc<ParquetMetaData>,
    pub(super) budget: Budget,
}

/// Starts of the data pages of a column.
#[derive(Debug, Default, PartialEq)]
pub(super) struct PageStarts {
    /// First row of each page, counted from the first row of the row group. Empty where a column is repeated
    /// and its pages are of the first version, which do not tell it.
    pub(super) rows: Vec<u64>,
    /// Row from which on no page can be found, because a page header is damaged.
    pub(super) unknown_from: Option<u64>,
    /// Memory for all pages that the library must decode to skip them, because it cannot tell their rows, in
    /// bytes.
    pub(super) passing_bytes: u64,
}

impl Columns {
    /// Returns the largest memory that skipping the pages of repeated columns takes.
    pub(super) fn passing_bytes(&self) -> u64 {
        let columns = self.metadata.row_group(0).columns().iter().enumerate();
        let repeated = columns.filter(|(_, column)| column.column_descr().max_rep_level() > 0);
        repeated.map(|(column, _)| self.page_starts(column).passing_bytes).fold(0, u64::saturating_add)
    }

    /// Finds the starts of the pages, from page header to page header. This fetches the whole column chunk.
    pub(super) fn page_starts(&self, column: usize) -> PageStarts {
        let mut pages = PageHeaders::of(&self.chunks, self.metadata.row_group(0).column(column));
        let mut starts = PageStarts::default();
        let mut row = 0u64;
        loop {
            match pages.next() {
                Ok(None) => return starts,
                Err(_) => {
                    starts.unknown_from = Some(row);
                    return starts;
                }
                Ok(Some(header)) => {
                    if let Some(rows) = header.rows(pages.repeated) {
                        starts.rows.push(row);
                        row = row.saturating_add(rows);
                    } else if !header.is_dictionary() {
                        let bytes = header.decoded_bytes(pages.repeated);
                        starts.passing_bytes = starts.passing_bytes.saturating_add(bytes);
                    }
                }
            }
        }
    }
}

impl RowGroups for Columns {
    fn num_rows(&self) -> usize {
        self.metadata.row_group(0).num_rows() as usize
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        let metadata = self.metadata.row_group(0).column(column);
        let library = SerializedPageReader::new(self.chunks.clone(), metadata, self.num_rows(), None)?;
        let name = metadata.column_path().string();
        let headers = PageHeaders::of(&self.chunks, self.metadata.row_group(0).column(column));
        let budget = self.budget.clone();
        let fixed_bytes = schema::fixed_bytes(metadata);
        let descriptor = metadata.column_descr_ptr();
        let pages: Box<dyn PageReader> =
            Box::new(CheckedPages { name, descriptor, headers, library, fixed_bytes, budget });
        Ok(Box::new(OneChunk(Some(pages))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.metadata.row_groups().iter())
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The one chunk that a column has in a row group.
struct OneChunk(Option<Box<dyn PageReader>>);

impl Iterator for OneChunk {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageIterator for OneChunk {}

/// The pages of a column chunk. Each is checked against the budget before the library sees it.
struct CheckedPages {
    name: String,
    descriptor: ColumnDescPtr,
    /// Headers of the pages, one page ahead of the library.
    headers: PageHeaders,
    library: SerializedPageReader<Chunks>,
    fixed_bytes: u64,
    budget: Budget,
}

impl CheckedPages {
    /// Calls the library for the page whose header is next. The page is taken from the budget if `taken` says
    /// that it will be decoded.
    fn page<T>(
        &mut self,
        taken: impl FnOnce(&PageHeader) -> bool,
        call: impl FnOnce(&mut SerializedPageReader<Chunks>) -> Result<T>,
    ) -> Result<T> {
        let start = self.headers.offset;
        let header = self.headers.next().map_err(|reason| self.bad(start, &reason))?;
        if let Some(header) = header.filter(taken) {
            let enough = self.budget.take(&header, self.headers.repeated, self.fixed_bytes);
            enough.map_err(|reason| self.bad(start, &reason))?;
        }
        call(&mut self.library).map_err(|error| self.bad(start, &text(&error)))
    }

    fn bad(&self, page: u64, reason: &str) -> ParquetError {
        ParquetError::General(format!("column \"{}\", page at byte {page}: {reason}", self.name))
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let start = self.headers.offset;
        let page = self.page(|_| true, PageReader::get_next_page)?;
        let page = page.map(|page| without_spare_bytes(page, &self.descriptor));
        if let Some(page) = &page {
            let lengths = bytes_of_lengths(page, &self.descriptor);
            let fine =
                self.budget.take_lengths(lengths).and_then(|()| check_repetition(page, &self.descriptor));
            fine.map_err(|reason| self.bad(start, &reason))?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.library.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        // The library may come back to a dictionary that it has skipped.
        self.page(PageHeader::is_dictionary, PageReader::skip_next_page)
    }

    fn supports_deferred_dictionary(&self) -> bool {
        self.library.supports_deferred_dictionary()
    }

    fn take_deferred_dictionary(&mut self) -> Result<Option<Page>> {
        self.library.take_deferred_dictionary()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.library.at_record_boundary()
    }
}

/// Returns a page of values of one length without bytes at its end that are no whole value. fastparquet leaves eight there,
/// and the library would refuse the page.
fn without_spare_bytes(mut page: Page, column: &ColumnDescriptor) -> Page {
    let length = usize::try_from(column.type_length()).unwrap_or(0);
    if column.physical_type() != PhysicalType::FIXED_LEN_BYTE_ARRAY || length == 0 {
        return page;
    }
    let Ok(Levels { values, .. }) = Levels::of(&page, column) else { return page };
    if let Page::DataPage { buf, encoding: Encoding::PLAIN, .. }
    | Page::DataPageV2 { buf, encoding: Encoding::PLAIN, .. } = &mut page
    {
        let spare = buf.len().saturating_sub(values) % length;
        buf.truncate(buf.len() - spare);
    }
    page
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use parquet::schema::types::{ColumnPath, Type};

    use super::*;

    #[test]
    fn bytes_behind_the_last_value_of_one_length_are_left_out() {
        let column = |physical_type| {
            let column = Type::primitive_type_builder("c", physical_type).with_length(12).build().unwrap();
            ColumnDescriptor::new(Arc::new(column), 0, 0, ColumnPath::from("c"))
        };
        let page = |bytes: usize, encoding| Page::DataPage {
            buf: Bytes::from(vec![7; bytes]),
            num_values: 25,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let fixed = column(PhysicalType::FIXED_LEN_BYTE_ARRAY);
        for (bytes, encoding, column, expected) in [
            (308, Encoding::PLAIN, &fixed, 300),
            (300, Encoding::PLAIN, &fixed, 300),
            (308, Encoding::RLE_DICTIONARY, &fixed, 308),
            (308, Encoding::PLAIN, &column(PhysicalType::INT64), 308),
        ] {
            assert_eq!(without_spare_bytes(page(bytes, encoding), column).buffer().len(), expected);
        }
    }
}
