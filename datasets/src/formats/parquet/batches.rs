//! Record batches of the row groups of a piece, and the rows that damage has cost.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowSelection, RowSelector};
use parquet::arrow::{FieldLevels, ProjectionMask};

use super::chunks::Chunks;
use super::file::{File, PieceGroup};
use super::library::decode;
use super::pages::{Budget, Columns, PageStarts};
use super::schema;
use crate::{Error, Reading};

/// Approximate size of a decoded record batch, in bytes.
const BATCH_BYTES: u64 = 4 << 20;
/// Largest number of rows of a record batch.
const MAX_BATCH_ROWS: u64 = 8192;
/// Number of bytes that each column may add to the pages of a record batch.
const COLUMN_BYTES: u64 = 4 << 20;
/// Bound on what all columns may add together, in units of [`Reading::block_bytes`].
const COLUMNS_BLOCKS: u64 = 8;

/// Bound on the bytes that may be decoded in addition to skip lists, where reading begins anew behind damage.
const PASSING_BYTES: u64 = 1 << 30;

/// Next rows of a row group.
pub(super) enum BatchRows {
    /// Records.
    Batch {
        /// Number of the first row in the file.
        first_row: u64,
        records: RecordBatch,
    },
    /// Rows that cannot be decoded. They are one rejected record, however many they are.
    Lost {
        /// Number of the first row in the file.
        first_row: u64,
        reason: String,
    },
}

/// Reader of the row groups of a piece, which always gives whole rows: damage in any column costs the row.
///
/// So every reading of a piece gives the same records and the same losses, whichever columns the reading
/// needs. A batch that cannot be decoded is cut at the pages of the faulty column, until only the rows of bad
/// pages are left. For example, the text column has pages of 5 rows, and its third page is damaged:
///
/// ```text
/// rows  0..15   fail; the text column is at fault, and its pages begin at rows 0, 5 and 10
/// cut at 10     rows 0..10 and 10..15
/// rows  0..10   are read
/// rows 10..15   fail, and no page begins within them: they are lost, as one reject
/// ```
///
/// If a loss goes on from one piece to the next, the first of the two rejects it.
pub(super) struct Batches {
    pub(super) file: File,
    /// Row groups in reverse order.
    groups: Vec<PieceGroup>,
    group: Option<OpenGroup>,
    /// Length of the largest page that is decoded, in bytes.
    pub(super) page_bytes: u64,
    block_bytes: u64,
}

/// A row group that is being read.
struct OpenGroup {
    group: PieceGroup,
    columns: Columns,
    levels: FieldLevels,
    /// Rows of the piece to be read, counted from the first row of the row group, in reverse order.
    waiting: Vec<Range<u64>>,
    reader: Option<SpanReader>,
    batch_rows: u64,
    damaged: bool,
    lost: Option<Loss>,
    /// Batch that waits until a loss before it was returned.
    ready: Option<(u64, RecordBatch)>,
}

/// Reader of a range of rows of a row group.
struct SpanReader {
    library: ParquetRecordBatchReader,
    /// Rows that are still to be read.
    rows: Range<u64>,
}

/// Rows that cannot be decoded, counted from the first of the row group, and why.
struct Loss {
    rows: Range<u64>,
    reason: String,
}

/// Reason why rows were not decoded.
enum DecodeFailure {
    Store(cluster::Error),
    Data(String),
}

impl Batches {
    pub(super) fn new(file: File, reading: &Reading) -> Self {
        let mut groups = file.groups.clone();
        groups.reverse();
        // Writers end a page only after some number of rows.
        let block_bytes = reading.block_bytes as u64;
        let page_bytes = block_bytes + reading.max_record_bytes as u64;
        Batches { file, groups, group: None, page_bytes, block_bytes }
    }

    /// Returns the next rows, or `None` at the end of the piece.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) fn next(&mut self) -> Result<Option<BatchRows>, Error> {
        loop {
            let Some(open) = &mut self.group else {
                let Some(group) = self.groups.pop() else { return Ok(None) };
                match OpenGroup::new(&self.file, &group, self.page_bytes, self.block_bytes) {
                    Ok(open) => self.group = Some(open),
                    Err(reason) if group.rows.start == 0 => {
                        let rows = 0..group.place.rows;
                        return Ok(Some(Loss { rows, reason }.told(&group)));
                    }
                    Err(_) => {}
                }
                continue;
            };
            if let Some(rows) = open.next(&self.file)? {
                return Ok(Some(rows));
            }
            self.group = None;
        }
    }
}

impl OpenGroup {
    fn new(file: &File, group: &PieceGroup, page_bytes: u64, block_bytes: u64) -> Result<OpenGroup, String> {
        let (metadata, ranges) = file.group(group)?;
        let levels = file.levels(ProjectionMask::all())?;
        let row_bytes = metadata.row_group(0).total_byte_size().max(0) as u64 / group.place.rows;
        let columns_bytes = COLUMN_BYTES * ranges.len() as u64;
        let batch_bytes = page_bytes + columns_bytes.min(COLUMNS_BLOCKS * block_bytes);
        let fixed_bytes = metadata.row_group(0).columns().iter().map(schema::fixed_bytes).sum::<u64>();
        if fixed_bytes > batch_bytes {
            return Err(format!("a row of {fixed_bytes} bytes, where at most {batch_bytes} are read"));
        }
        let row_bytes = row_bytes.max(fixed_bytes);
        let chunks = Arc::new(Chunks::new(file.blob.clone(), ranges, block_bytes as usize / 4));
        let budget = Budget::new(page_bytes, batch_bytes);
        Ok(OpenGroup {
            columns: Columns { chunks, metadata, budget },
            levels,
            waiting: vec![group.rows.clone()],
            reader: None,
            batch_rows: (BATCH_BYTES / row_bytes.max(1)).clamp(1, MAX_BATCH_ROWS),
            damaged: false,
            lost: None,
            ready: None,
            group: group.clone(),
        })
    }

    /// Returns the next rows, or `None` at the end of the row group.
    fn next(&mut self, file: &File) -> Result<Option<BatchRows>, Error> {
        loop {
            if let Some((row, records)) = self.ready.take() {
                return Ok(Some(BatchRows::Batch { first_row: self.group.first_row + row, records }));
            }
            if self.reader.is_none() {
                let Some(rows) = self.waiting.pop() else { return self.take_lost(file) };
                match self.reader(&self.levels, rows.clone()) {
                    Ok(reader) => self.reader = Some(reader),
                    Err(failure) => self.cut(file, rows, failure)?,
                }
            }
            let Some(reader) = &mut self.reader else { continue };
            if reader.rows.is_empty() {
                self.reader = None;
                continue;
            }
            let row = reader.rows.start;
            self.columns.budget.refill(self.batch_rows.min(reader.rows.end - reader.rows.start));
            match reader.next() {
                Ok(records) => {
                    self.ready = Some((row, records));
                    if let Some(lost) = self.take_lost(file)? {
                        return Ok(Some(lost));
                    }
                }
                Err(reason) => {
                    let rows = reader.rows.clone();
                    self.reader = None;
                    let failure = self.failure(reason);
                    self.cut(file, rows, failure)?;
                }
            }
        }
    }

    fn reader(&self, levels: &FieldLevels, rows: Range<u64>) -> Result<SpanReader, DecodeFailure> {
        let whole = rows == (0..self.group.place.rows);
        let selection = (!whole).then(|| {
            let skipped = rows.start as usize;
            let selected = (rows.end - rows.start) as usize;
            RowSelection::from(vec![RowSelector::skip(skipped), RowSelector::select(selected)])
        });
        self.columns.budget.refill(self.batch_rows.min(rows.end - rows.start));
        let batch_rows = self.batch_rows as usize;
        let library = decode(|| {
            ParquetRecordBatchReader::try_new_with_row_groups(levels, &self.columns, batch_rows, selection)
        });
        library.map(|library| SpanReader { library, rows }).map_err(|reason| self.failure(reason))
    }

    fn failure(&self, reason: String) -> DecodeFailure {
        self.columns.chunks.take_failure().map_or(DecodeFailure::Data(reason), DecodeFailure::Store)
    }

    /// Cuts the next batch of `rows`, which failed, in two at a page of the faulty column, or gives its rows
    /// up. The rows behind the batch wait in either case.
    fn cut(&mut self, file: &File, rows: Range<u64>, failure: DecodeFailure) -> Result<(), Error> {
        let reason = match failure {
            DecodeFailure::Store(error) => return Err(Error::Store(error)),
            DecodeFailure::Data(reason) => reason,
        };
        let batch = rows.start..rows.end.min(rows.start + self.batch_rows);
        if batch.end < rows.end {
            self.waiting.push(batch.end..rows.end);
        }
        let exceeded = self.columns.budget.exceeded();
        if !std::mem::replace(&mut self.damaged, true) {
            // From now on, readers begin in the middle of the row group.
            self.columns.budget.extend(self.columns.passing_bytes().min(PASSING_BYTES));
        }
        let (cut, reason) = match self.at_fault(file, &batch)? {
            Some((column, reason)) => {
                let exceeded = self.columns.budget.exceeded();
                let PageStarts { mut rows, unknown_from, .. } = self.columns.page_starts(column);
                if unknown_from.is_some_and(|row| row <= batch.start) {
                    self.waiting.clear();
                    self.lose(batch.start..self.group.rows.end, reason);
                    return Ok(());
                }
                rows.extend(unknown_from);
                rows.retain(|start| batch.start < *start && *start < batch.end);
                let middle = || exceeded.then_some(batch.start.midpoint(batch.end));
                (rows.get(rows.len() / 2).copied().or_else(middle), reason)
            }
            // Each column can be decoded by itself, so fewer rows may need few enough pages.
            None if exceeded => (Some(batch.start.midpoint(batch.end)), reason),
            None => (None, reason),
        };
        match cut.filter(|cut| batch.start < *cut) {
            Some(cut) => self.waiting.extend([cut..batch.end, batch.start..cut]),
            None => self.lose(batch, reason),
        }
        Ok(())
    }

    /// Returns the first column whose values of these rows cannot be decoded, and the reason.
    fn at_fault(&self, file: &File, rows: &Range<u64>) -> Result<Option<(usize, String)>, Error> {
        let schema = file.footer.bare_schema();
        for column in 0..schema.num_columns() {
            let mask = ProjectionMask::leaves(schema, [column]);
            let one = file.levels(mask).map_err(DecodeFailure::Data);
            let read = one.and_then(|levels| self.reader(&levels, rows.clone())).and_then(|mut reader| {
                while !reader.rows.is_empty() {
                    reader.next().map_err(|reason| self.failure(reason))?;
                }
                Ok(())
            });
            match read {
                Ok(()) => {}
                Err(DecodeFailure::Store(error)) => return Err(Error::Store(error)),
                Err(DecodeFailure::Data(reason)) => {
                    let name = schema::escaped(schema.column(column).path().parts());
                    let told = reason.starts_with("column ");
                    let reason = if told { reason } else { format!("column \"{name}\": {reason}") };
                    return Ok(Some((column, reason)));
                }
            }
        }
        Ok(None)
    }

    /// Takes the loss that has come to its end. `None` if there is none, or if it began in the piece before,
    /// which rejects it.
    fn take_lost(&mut self, file: &File) -> Result<Option<BatchRows>, Error> {
        let Some(mut lost) = self.lost.take() else { return Ok(None) };
        let (rows, piece) = (&mut lost.rows, &self.group.rows);
        if rows.start > 0 && rows.start == piece.start {
            let before = rows.start - 1..rows.start;
            if self.at_fault(file, &before)?.is_some() {
                return Ok(None);
            }
        }
        if rows.end == piece.end {
            rows.end = self.end_of_loss(file, rows.end)?;
        }
        Ok(Some(lost.told(&self.group)))
    }

    /// Returns the end of a loss that comes up to `row`, and goes on in the next pieces if that row is lost too.
    fn end_of_loss(&self, file: &File, mut row: u64) -> Result<u64, Error> {
        let end = self.group.place.rows;
        while row < end {
            let Some((column, _)) = self.at_fault(file, &(row..row + 1))? else { break };
            let PageStarts { rows, unknown_from, .. } = self.columns.page_starts(column);
            let known = unknown_from.is_none_or(|from| row < from);
            let next = rows.into_iter().find(|start| *start > row);
            row = next.filter(|_| known).unwrap_or(end);
        }
        Ok(row)
    }

    fn lose(&mut self, rows: Range<u64>, reason: String) {
        match &mut self.lost {
            Some(lost) => lost.rows.end = rows.end,
            none => *none = Some(Loss { rows, reason }),
        }
    }
}

impl SpanReader {
    /// Returns the next batch, which is not empty.
    fn next(&mut self) -> Result<RecordBatch, String> {
        let left = self.rows.end - self.rows.start;
        let batch = decode(|| self.library.next().transpose())?;
        let read = batch.as_ref().map_or(0, RecordBatch::num_rows) as u64;
        match batch {
            Some(batch) if (1..=left).contains(&read) => {
                self.rows.start += read;
                Ok(batch)
            }
            _ => Err(format!("{read} rows where there should be {left}")),
        }
    }
}

impl Loss {
    fn told(self, group: &PieceGroup) -> BatchRows {
        let first = group.first_row + self.rows.start;
        let last = group.first_row + self.rows.end - 1;
        let which = if first == last { format!("row {first}") } else { format!("rows {first} to {last}") };
        let reason = format!("{which}, in row group {}: {}", group.index, self.reason);
        BatchRows::Lost { first_row: first, reason }
    }
}
