//! The footer of a parquet file. It is inspected before anything is decoded, then decoded row group by row
//! group.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use cluster::Blob;
use parquet::arrow::{ARROW_SCHEMA_META_KEY, parquet_to_arrow_schema};
use parquet::file::metadata::{
    KeyValue, ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy,
};
use parquet::file::reader::ChunkReader;
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor};

use super::chunks::Chunks;
use super::library::{decode, text};
use super::schema;
use super::thrift::{BadThrift, Thrift, ThriftType};
use crate::Error;

const MAGIC: &[u8; 4] = b"PAR1";
const ENCRYPTED_MAGIC: &[u8; 4] = b"PARE";
/// Length of what follows the footer: the footer's length, then the magic.
const TAIL_BYTES: u64 = 8;
/// Largest length of a footer, in units of [`Reading::block_bytes`](crate::Reading::block_bytes). The footer
/// is held as it is stored; the default allows some millions of column chunks.
const FOOTER_BLOCKS: u64 = 2;
/// Memory out of [`Reading::block_bytes`](crate::Reading::block_bytes) that each column counts for, in bytes.
/// The library decodes a schema into some hundred bytes a column, and a nested schema by recursion, so number
/// and depth are bounded too.
const SCHEMA_ELEMENT_BYTES: u64 = 1 << 10;
const MAX_SCHEMA_ELEMENTS: u64 = 100_000;
/// Number of the meaning interval in its older form.
const INTERVAL: i64 = 21;
const MAX_SCHEMA_DEPTH: usize = 64;

/// The footer of a file. Memory: the footer as it is stored, and the schema.
pub(super) struct Footer {
    /// Schema of the file.
    pub(super) schema: SchemaDescPtr,
    pub(super) key_values: Vec<KeyValue>,
    pub(super) groups: Vec<GroupPlace>,
    /// Whether the footer says that the whole file has no rows, in spite of its row groups. Readers differ in
    /// which of the two they believe.
    pub(super) denies_rows: bool,
    bytes: Bytes,
    /// Options for decoding row groups, with the [`schema::bare`] schema of the record batches, and without
    /// statistics, which nobody here needs.
    options: ParquetMetaDataOptions,
    bare: SchemaDescPtr,
}

/// A row group, as the undecoded bytes of the footer describe it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GroupPlace {
    pub(super) rows: u64,
    /// Claimed offset of its first page in the file, which is not checked here.
    pub(super) offset: u64,
    /// Range of its description in the footer.
    bytes: Range<usize>,
}

impl Footer {
    /// Reads the footer of a file.
    pub(super) fn read(blob: &Arc<dyn Blob>, block_bytes: u64) -> Result<Footer, Error> {
        let (bytes, start) = read_footer(blob, FOOTER_BLOCKS * block_bytes)?;
        let bad = |reason: &str| Error::data(blob.path(), start, format!("bad footer: {reason}"));
        let outline = Outline::of(&bytes, block_bytes).map_err(|error| match error {
            BadThrift::Short => bad("it does not end"),
            BadThrift::Invalid(reason) => bad(reason),
        })?;
        if outline.encrypted {
            return Err(Error::data(blob.path(), start, "the file is encrypted"));
        }
        let rows = outline.groups.iter().try_fold(0u64, |sum, group| sum.checked_add(group.rows));
        let rows = rows.ok_or_else(|| bad("too many rows"))?;
        if outline.rows != 0 && u64::try_from(outline.rows) != Ok(rows) {
            return Err(bad(&format!("{} rows, but {rows} in the row groups", outline.rows)));
        }
        decode(|| Footer::decode(bytes.clone(), outline)).map_err(|reason| bad(&reason))
    }

    fn decode(bytes: Bytes, outline: Outline) -> parquet::errors::Result<Footer> {
        let mut head = Vec::with_capacity(bytes.len() + 1 - outline.list.len());
        let mut at = 0;
        for left_out in outline.contradictions.iter().filter(|range| range.end <= outline.list.start) {
            head.extend_from_slice(&bytes[at..left_out.start]);
            at = left_out.end;
        }
        // An empty list replaces the row groups.
        head.extend_from_slice(&bytes[at..outline.list.start]);
        head.push(0x0c);
        head.extend_from_slice(&bytes[outline.list.end..]);
        let schema = ParquetMetaDataReader::decode_schema(&head)?;
        let bare = Arc::new(SchemaDescriptor::new(schema::bare(schema.root_schema())?));
        schema::encoded(schema.root_schema())?; // so that what is read can be written
        let options = ParquetMetaDataOptions::new()
            .with_schema(bare.clone())
            .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
        let metadata = ParquetMetaDataReader::decode_metadata_with_options(&head, Some(&options))?;
        let key_values = metadata.file_metadata().key_value_metadata().cloned().unwrap_or_default();
        if key_values.iter().any(|key_value| key_value.key == ARROW_SCHEMA_META_KEY) {
            // This schema is copied to the parts, which could not be read if it did not fit the columns.
            parquet_to_arrow_schema(&schema, Some(&key_values))?;
        }
        let denies_rows = outline.rows == 0 && outline.groups.iter().any(|group| group.rows > 0);
        Ok(Footer { schema, key_values, groups: outline.groups, denies_rows, bytes, options, bare })
    }

    /// Returns the schema of record batches.
    pub(super) fn bare_schema(&self) -> &SchemaDescriptor {
        &self.bare
    }

    /// Decodes one row group. Cost: proportional to its columns, however many row groups there are.
    pub(super) fn group(&self, place: &GroupPlace) -> Result<ParquetMetaData, String> {
        let mut footer = Vec::with_capacity(place.bytes.len() + 24);
        footer.extend_from_slice(b"\x15\x02\x26"); // field 1, the version: 1; field 3, the rows
        let mut rows = place.rows << 1;
        while rows >= 0x80 {
            footer.push(rows as u8 | 0x80);
            rows >>= 7;
        }
        footer.push(rows as u8);
        footer.extend_from_slice(b"\x19\x1c"); // field 4, the row groups: a list of one struct
        footer.extend_from_slice(&self.bytes[place.bytes.clone()]);
        footer.push(0);
        decode(|| ParquetMetaDataReader::decode_metadata_with_options(&footer, Some(&self.options)))
    }
}

/// Outline of a footer, read without decoding it: nothing is allocated that is larger than the footer.
///
/// Source: apache/parquet-format, src/main/thrift/parquet.thrift, `FileMetaData`.
struct Outline {
    rows: i64,
    groups: Vec<GroupPlace>,
    /// Range of the list of row groups.
    list: Range<usize>,
    /// Ranges of the newer form of the meaning of columns of intervals, in order.
    contradictions: Vec<Range<usize>>,
    encrypted: bool,
}

impl Outline {
    fn of(footer: &[u8], block_bytes: u64) -> Result<Outline, BadThrift> {
        let mut outline = Outline {
            rows: -1,
            groups: Vec::new(),
            list: 0..0,
            contradictions: Vec::new(),
            encrypted: false,
        };
        let mut thrift = Thrift::new(footer);
        let mut schema = false;
        thrift.fields(|thrift, number, kind| {
            match (number, kind) {
                (2, ThriftType::List) => {
                    outline.contradictions = check_schema(thrift, block_bytes)?;
                    schema = true;
                }
                (3, ThriftType::Integer) => outline.rows = thrift.integer()?,
                (4, ThriftType::List) => {
                    let start = thrift.position();
                    outline.groups = groups(thrift, block_bytes)?;
                    outline.list = start..thrift.position();
                }
                // Field 8 is the algorithm that encrypts columns where the footer itself is not encrypted.
                (8, _) => {
                    outline.encrypted = true;
                    return Ok(false);
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        match (schema, outline.list.is_empty()) {
            (false, _) => Err(BadThrift::Invalid("no schema")),
            (_, true) => Err(BadThrift::Invalid("no list of row groups")),
            _ => Ok(outline),
        }
    }
}

/// Checks and skips the schema: a tree in depth-first order, in which each element has the number of its
/// children.
///
/// Returns where columns of intervals have a meaning in the newer form too. There is no newer form for them, but parquet-mr
/// writes an empty one, by which the library refuses the file. Nothing is lost without it: parquet-mr reads the older form.
fn check_schema(thrift: &mut Thrift, block_bytes: u64) -> Result<Vec<Range<usize>>, BadThrift> {
    let (count, kind) = thrift.list()?;
    if kind != ThriftType::Struct {
        return Err(BadThrift::Invalid("no schema"));
    }
    if count > MAX_SCHEMA_ELEMENTS {
        return Err(BadThrift::Invalid("more than 100,000 columns"));
    }
    if count > block_bytes / SCHEMA_ELEMENT_BYTES {
        return Err(BadThrift::Invalid("more columns than fit into the memory; give more --memory"));
    }
    let mut waiting: Vec<i64> = Vec::new(); // children to come, for each open group
    let mut contradictions = Vec::new();
    for _ in 0..count {
        while waiting.last() == Some(&0) {
            waiting.pop();
        }
        if let Some(children) = waiting.last_mut() {
            *children -= 1;
        }
        let (mut children, mut interval, mut newer) = (0, false, None);
        thrift.fields(|thrift, number, kind| {
            match (number, kind) {
                (5, ThriftType::Integer) => children = thrift.integer()?,
                (6, ThriftType::Integer) => interval = thrift.integer()? == INTERVAL,
                (10, ThriftType::Struct) => {
                    // The byte before it says which field it is.
                    let start = thrift.position() - 1;
                    thrift.skip_struct()?;
                    newer = Some(start..thrift.position());
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        // Only the end of the element may follow, since fields are numbered by those before them.
        contradictions.extend(newer.filter(|newer| interval && newer.end + 1 == thrift.position()));
        if children > 0 {
            waiting.push(children);
        }
        if waiting.len() > MAX_SCHEMA_DEPTH {
            return Err(BadThrift::Invalid("columns nested in more than 64 groups"));
        }
    }
    Ok(contradictions)
}

fn groups(thrift: &mut Thrift, block_bytes: u64) -> Result<Vec<GroupPlace>, BadThrift> {
    let (count, kind) = thrift.list()?;
    // They are listed twice: in the file and in the piece.
    if count > block_bytes / (2 * size_of::<GroupPlace>() as u64) {
        return Err(BadThrift::Invalid("more row groups than fit into the memory; give more --memory"));
    }
    if count > 0 && kind != ThriftType::Struct {
        return Err(BadThrift::Invalid("row groups that are no structs"));
    }
    (0..count).map(|_| group(thrift)).collect()
}

fn group(thrift: &mut Thrift) -> Result<GroupPlace, BadThrift> {
    let start = thrift.position();
    let mut rows = -1;
    let mut offset = None;
    thrift.fields(|thrift, number, kind| {
        match (number, kind) {
            (1, ThriftType::List) => {
                let (count, kind) = thrift.list()?;
                if count > 0 && kind != ThriftType::Struct {
                    return Err(BadThrift::Invalid("column chunks that are no structs"));
                }
                if count > 0 {
                    offset = first_page(thrift)?;
                    (1..count).try_for_each(|_| thrift.skip_struct())?;
                }
            }
            (3, ThriftType::Integer) => rows = thrift.integer()?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let rows = u64::try_from(rows).map_err(|_| BadThrift::Invalid("a row group with no number of rows"))?;
    Ok(GroupPlace { rows, offset: offset.unwrap_or(0), bytes: start..thrift.position() })
}

/// Skips a column chunk, and returns the offset of its dictionary, or of its first data page if it has none.
fn first_page(thrift: &mut Thrift) -> Result<Option<u64>, BadThrift> {
    let (mut data, mut dictionary) = (None, None);
    thrift.fields(|thrift, number, kind| {
        if (number, kind) != (3, ThriftType::Struct) {
            return Ok(false);
        }
        thrift.fields(|thrift, number, kind| {
            match (number, kind) {
                (9, ThriftType::Integer) => data = Some(thrift.integer()?),
                (11, ThriftType::Integer) => dictionary = Some(thrift.integer()?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(true)
    })?;
    Ok(dictionary.or(data).and_then(|offset| u64::try_from(offset).ok()))
}

/// Returns the encoded footer and its offset.
fn read_footer(blob: &Arc<dyn Blob>, max_bytes: u64) -> Result<(Bytes, u64), Error> {
    let (path, bytes) = (blob.path(), blob.bytes());
    let read = |start: u64, length: u64| {
        let chunks = Chunks::new(blob.clone(), std::iter::once(start..start + length).collect(), 0);
        chunks.get_bytes(start, length as usize).map_err(|error| {
            chunks.take_failure().map_or_else(|| Error::data(path, start, text(&error)), Error::Store)
        })
    };
    let body_bytes = bytes
        .checked_sub(TAIL_BYTES)
        .filter(|&body_bytes| body_bytes >= MAGIC.len() as u64)
        .ok_or_else(|| Error::data(path, 0, "too short for a parquet file"))?;
    let tail = read(body_bytes, TAIL_BYTES)?;
    let (length, magic) = tail.split_at(4);
    if magic == ENCRYPTED_MAGIC {
        return Err(Error::data(path, body_bytes, "the file is encrypted"));
    }
    if magic != MAGIC {
        return Err(Error::data(path, body_bytes, "no parquet footer: the file is cut or not parquet"));
    }
    let length = u64::from(u32::from_le_bytes([length[0], length[1], length[2], length[3]]));
    let start = body_bytes
        .checked_sub(length)
        .ok_or_else(|| Error::data(path, body_bytes, format!("a footer of {length} bytes does not fit")))?;
    if length > max_bytes {
        let reason = format!("a footer of {length} bytes, where at most {max_bytes} are read");
        return Err(Error::data(path, start, reason));
    }
    Ok((read(start, length)?, start))
}
