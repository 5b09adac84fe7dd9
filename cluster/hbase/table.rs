//! Reading and changing the cells of a table.

use std::ops::Range;

use super::address::HBaseAddress;
use super::connections::{Connections, GatewayLimits};
use super::gateway::{
    TBloomFilterType, TColumn, TColumnFamilyDescriptor, TColumnValue, TCompareOp, TDataBlockEncoding,
    TDelete, TGet, TMutation, TPut, TResult, TRowMutations, TScan, TTHBaseServiceSyncClient,
    TTableDescriptor, TTableName, TTimeRange,
};
use cluster::Error;

/// The one column family of a table.
pub const FAMILY: &[u8] = b"f";
/// Largest number of cells that are put or deleted by one request.
const CELLS_OF_A_REQUEST: usize = 2000;
/// Largest number of bytes of cells that are put or deleted by one request.
const BYTES_OF_A_REQUEST: usize = 1 << 22;

/// A cell of a table, in the one family that there is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableCell {
    /// Key of its row.
    pub row: Vec<u8>,
    /// Name of its column.
    pub qualifier: Vec<u8>,
    /// Time in milliseconds since 1970. The writer gives it: clocks of region servers play no part.
    pub time: u64,
    /// Value.
    pub value: Vec<u8>,
}

/// A row that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableRow {
    /// The first cells of a row, at most this many.
    First(Vec<u8>, usize),
    /// The first cells of a row behind a qualifier, at most this many.
    Behind(Vec<u8>, Vec<u8>, usize),
    /// The cells with these qualifiers, if they exist.
    Columns(Vec<u8>, Vec<Vec<u8>>),
}

/// A table of HBase. Any number of threads may share it.
///
/// Whatever HBase acknowledges is in its write-ahead log. Every request is made again when its answer does not come
/// (see [`GatewayLimits`]), so a change may be made several times, and once more after a later change of the same cells.
/// Memory: the cells of a request and its answer.
pub struct HBaseTable {
    path: String,
    name: Vec<u8>,
    connections: Connections,
}

impl HBaseTable {
    /// Names a table. A connection is made by the first request.
    pub fn new(address: &HBaseAddress, limits: GatewayLimits) -> Self {
        HBaseTable {
            path: address.to_string(),
            name: address.table.as_bytes().to_vec(),
            connections: Connections::new(&address.gateway, limits),
        }
    }

    /// Whether the table exists.
    ///
    /// # Errors
    /// [`Error::Io`] when the gateway gives no answer, as for all that follows.
    pub fn exists(&self) -> Result<bool, Error> {
        self.connections.request(&self.path, "look for", |client| client.table_exists(self.full_name()))
    }

    /// Creates the table with a region for what lies before, between and behind the keys of `splits`. Returns whether it
    /// did not exist before.
    pub fn create(&self, splits: &[Vec<u8>]) -> Result<bool, Error> {
        if self.exists()? {
            return Ok(false);
        }
        let family = TColumnFamilyDescriptor {
            name: FAMILY.to_vec(),
            bloomn_filter_type: Some(TBloomFilterType::ROW),
            data_block_encoding: Some(TDataBlockEncoding::FAST_DIFF),
            max_versions: Some(1),
        };
        let table = TTableDescriptor { table_name: self.full_name(), columns: Some(vec![family]) };
        let created = self
            .connections
            .request(&self.path, "create", |client| client.create_table(table.clone(), splits.to_vec()));
        match created {
            Ok(()) => Ok(true),
            // An earlier attempt has created it, or another process at the same time.
            Err(_) if self.exists()? => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Removes the table with all of its cells.
    pub fn remove(&self) -> Result<(), Error> {
        let disabled =
            self.connections.request(&self.path, "disable", |client| client.disable_table(self.full_name()));
        // It may be disabled already. If not, the next request fails.
        drop(disabled);
        let removed =
            self.connections.request(&self.path, "remove", |client| client.delete_table(self.full_name()));
        match removed {
            Err(error) if self.exists()? => Err(error),
            _ => Ok(()),
        }
    }

    /// Reads rows by one request. Returns the cells of each, in the order of their qualifiers.
    pub fn rows(&self, rows: &[TableRow]) -> Result<Vec<Vec<TableCell>>, Error> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let gets: Vec<TGet> = rows.iter().map(TableRow::get).collect();
        let results = self
            .connections
            .request(&self.path, "read", |client| client.get_multiple(self.name.clone(), gets.clone()))?;
        if results.len() != rows.len() {
            let reason = format!("{} rows were asked for, and {} came", rows.len(), results.len());
            return Err(Error::Damaged { path: self.path.clone(), offset: 0, reason });
        }
        let cells = |(row, result): (&TableRow, TResult)| cells_of(row.key(), result.column_values);
        Ok(rows.iter().zip(results).map(cells).collect())
    }

    /// Reads the rows from a key on and before another, at most `most` of them. `times`: leaves out cells of other times.
    pub fn scan(
        &self,
        keys: Range<&[u8]>,
        times: Option<Range<u64>>,
        most: usize,
    ) -> Result<Vec<Vec<TableCell>>, Error> {
        let most = i32::try_from(most).unwrap_or(i32::MAX);
        let scan = TScan {
            start_row: Some(keys.start.to_vec()),
            stop_row: Some(keys.end.to_vec()),
            caching: Some(most),
            time_range: times
                .map(|times| TTimeRange { min_stamp: stamp(times.start), max_stamp: stamp(times.end) }),
        };
        let results = self.connections.request(&self.path, "read", |client| {
            client.get_scanner_results(self.name.clone(), scan.clone(), most)
        })?;
        let cells = |result: TResult| cells_of(&result.row.unwrap_or_default(), result.column_values);
        Ok(results.into_iter().map(cells).collect())
    }

    /// Writes cells, in no order. When this returns, all of them are durable; when it fails, some may be.
    pub fn put(&self, cells: &[TableCell]) -> Result<(), Error> {
        for cells in requests(cells) {
            let puts: Vec<TPut> = cells.iter().map(TableCell::put).collect();
            self.connections.request(&self.path, "write to", |client| {
                client.put_multiple(self.name.clone(), puts.clone())
            })?;
        }
        Ok(())
    }

    /// Deletes cells, in no order, and hides what is written to them later with the same time or an earlier one.
    pub fn delete(&self, cells: &[TableCell]) -> Result<(), Error> {
        for cells in requests(cells) {
            let deletes: Vec<TDelete> = cells.iter().map(TableCell::deletion).collect();
            self.connections.request(&self.path, "delete from", |client| {
                client.delete_multiple(self.name.clone(), deletes.clone())
            })?;
        }
        Ok(())
    }

    /// Writes a cell whose column has none yet. Returns whether it did, or an earlier attempt.
    pub fn put_if_absent(&self, cell: &TableCell) -> Result<bool, Error> {
        let put = self.connections.request(&self.path, "write to", |client| {
            let TableCell { row, qualifier, .. } = cell.clone();
            // No value stands for no cell.
            let none = Vec::new();
            client.check_and_put(self.name.clone(), row, FAMILY.to_vec(), qualifier, none, cell.put())
        })?;
        Ok(put || self.has(cell)?)
    }

    /// Deletes a cell if it is there with its value. Returns whether it was. If an answer was lost, an attempt before may
    /// have deleted it although this returns `false`.
    pub fn delete_if_present(&self, cell: &TableCell) -> Result<bool, Error> {
        self.connections.request(&self.path, "delete from", |client| {
            let TableCell { row, qualifier, value, .. } = cell.clone();
            client.check_and_delete(
                self.name.clone(),
                row,
                FAMILY.to_vec(),
                qualifier,
                value,
                cell.deletion(),
            )
        })
    }

    /// Puts another cell of the same row in the place of a cell, in one step, if that is there with its value. Returns
    /// whether the other is there now, from this attempt or from an earlier one.
    pub fn replace(&self, cell: &TableCell, by: &TableCell) -> Result<bool, Error> {
        let mutations = vec![TMutation::Put(by.put()), TMutation::DeleteSingle(cell.deletion())];
        let mutations = TRowMutations { row: cell.row.clone(), mutations };
        let replaced = self.connections.request(&self.path, "write to", |client| {
            let TableCell { row, qualifier, value, .. } = cell.clone();
            let table = self.name.clone();
            let family = FAMILY.to_vec();
            client.check_and_mutate(
                table,
                row,
                family,
                qualifier,
                TCompareOp::EQUAL,
                value,
                mutations.clone(),
            )
        })?;
        Ok(replaced || self.has(by)?)
    }

    fn has(&self, cell: &TableCell) -> Result<bool, Error> {
        let row = TableRow::Columns(cell.row.clone(), vec![cell.qualifier.clone()]);
        Ok(self.rows(&[row])?.iter().flatten().any(|found| found == cell))
    }

    fn full_name(&self) -> TTableName {
        match self.name.iter().position(|&byte| byte == b':') {
            Some(at) => {
                TTableName { ns: Some(self.name[..at].to_vec()), qualifier: self.name[at + 1..].to_vec() }
            }
            None => TTableName { ns: None, qualifier: self.name.clone() },
        }
    }
}

impl TableRow {
    /// Returns the key of the row.
    pub fn key(&self) -> &[u8] {
        let (TableRow::First(key, _) | TableRow::Behind(key, _, _) | TableRow::Columns(key, _)) = self;
        key
    }

    fn get(&self) -> TGet {
        let mut get =
            TGet { row: self.key().to_vec(), columns: None, filter_string: None, store_limit: None };
        match self {
            TableRow::First(_, most) => get.store_limit = i32::try_from(*most).ok(),
            TableRow::Behind(_, qualifier, most) => {
                get.store_limit = i32::try_from(*most).ok();
                // In the language of filters, a quote within quotes is written twice.
                let mut quoted = Vec::with_capacity(qualifier.len());
                for &byte in qualifier {
                    quoted.extend(std::iter::repeat_n(byte, if byte == b'\'' { 2 } else { 1 }));
                }
                let mut filter = b"ColumnRangeFilter('".to_vec();
                filter.extend(quoted);
                filter.extend(b"', false, '', false)");
                get.filter_string = Some(filter);
            }
            TableRow::Columns(_, qualifiers) => {
                let column = |qualifier: &Vec<u8>| TColumn {
                    family: FAMILY.to_vec(),
                    qualifier: Some(qualifier.clone()),
                    timestamp: None,
                };
                get.columns = Some(qualifiers.iter().map(column).collect());
            }
        }
        get
    }
}

impl TableCell {
    fn put(&self) -> TPut {
        let TableCell { row, qualifier, time, value } = self.clone();
        let value = TColumnValue { family: FAMILY.to_vec(), qualifier, value, timestamp: Some(stamp(time)) };
        TPut { row, column_values: vec![value] }
    }

    fn deletion(&self) -> TDelete {
        let TableCell { row, qualifier, time, .. } = self.clone();
        let column =
            TColumn { family: FAMILY.to_vec(), qualifier: Some(qualifier), timestamp: Some(stamp(time)) };
        TDelete { row, columns: Some(vec![column]) }
    }

    fn bytes(&self) -> usize {
        self.row.len() + self.qualifier.len() + self.value.len()
    }
}

/// Returns a time as HBase has it.
fn stamp(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

fn cells_of(row: &[u8], columns: Vec<TColumnValue>) -> Vec<TableCell> {
    let cell = |column: TColumnValue| TableCell {
        row: row.to_vec(),
        qualifier: column.qualifier,
        time: column.timestamp.and_then(|time| u64::try_from(time).ok()).unwrap_or(0),
        value: column.value,
    };
    columns.into_iter().map(cell).collect()
}

/// Cuts cells into those of one request each.
fn requests(cells: &[TableCell]) -> impl Iterator<Item = &[TableCell]> {
    let mut left = cells;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |cell: &&TableCell| {
            bytes += cell.bytes();
            bytes <= BYTES_OF_A_REQUEST
        };
        let count = left.iter().take(CELLS_OF_A_REQUEST).take_while(fits).count().max(1);
        let (now, later) = left.split_at_checked(count)?;
        left = later;
        Some(now)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(bytes: usize) -> TableCell {
        TableCell { qualifier: vec![0; bytes], ..TableCell::default() }
    }

    #[test]
    fn cells_are_cut_into_requests_by_number_and_bytes() {
        let lengths = |cells: &[TableCell]| requests(cells).map(<[TableCell]>::len).collect::<Vec<_>>();
        assert_eq!(lengths(&[]), [0; 0]);
        assert_eq!(lengths(&vec![cell(1); 4100]), [2000, 2000, 100]);
        assert_eq!(
            lengths(&[cell(1), cell(BYTES_OF_A_REQUEST), cell(BYTES_OF_A_REQUEST + 1), cell(1)]),
            [1, 1, 1, 1]
        );
    }

    #[test]
    fn a_quote_in_a_qualifier_is_written_twice() {
        let get = TableRow::Behind(b"r".to_vec(), b"a'b\0".to_vec(), 7).get();
        let filter = get.filter_string.unwrap();
        assert_eq!(
            (&*filter, get.store_limit),
            (&b"ColumnRangeFilter('a''b\0', false, '', false)"[..], Some(7))
        );
    }
}
