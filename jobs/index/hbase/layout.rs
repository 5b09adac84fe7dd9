//! The cells of a document.

use anyhow::{Context, Result, bail};
use hbase::TableCell;
use xxhash_rust::xxh3::xxh3_64;

use crate::topics::PreparedDoc;

/// Number of partitions, which are the regions that a table begins with.
pub(super) const PARTITIONS: u8 = 64;
/// Largest distance of two fingerprints that are found: one half of them differs in at most one bit.
pub(super) const MOST_BITS: u32 = 3;
/// Number of the table of ids, behind the tables of the two halves of a fingerprint.
const ID_TABLE: u8 = 2;
/// Number of bytes of the hash of an id.
const ID_HASH: usize = 16;
/// Number of bytes of a token.
const TOKEN: usize = 12;

/// A document that was added, or is being added. Of two documents the earlier one is the lesser.
///
/// ```text
/// row                                                       qualifier                          value
/// partition | topic | 0 | 0 | first half of the fingerprint  second half | token | id          none
/// partition | topic | 0 | 1 | second half                    first half | token | id           none
/// partition | topic | 0 | 2 | hash of the id                 state | fingerprint | token | id  state
/// ```
///
/// A document is there if its cell in the third row, the *id row*, has the state `k`. It is written last and deleted
/// first, so what a crash leaves in the other rows is never believed. All cells have the time of the document. Size: 3
/// cells of some 50 bytes, the name of the topic and the id, before HBase compresses them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HBaseDoc {
    /// Time of the insertion by the clock of its process, in milliseconds since 1970.
    pub time: u64,
    /// Tells documents with one id and one fingerprint from each other.
    pub token: DocToken,
    pub fingerprint: u64,
    pub id: String,
}

/// Number of a document in its process, and a number that the process has drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct DocToken {
    pub number: u32,
    pub process: u64,
}

/// Whether a document is there, or only on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DocState {
    /// Its process has not decided yet whether it is new, or has died before it did.
    Pending,
    /// The document is in the index.
    Kept,
}

impl DocToken {
    fn bytes(self) -> [u8; TOKEN] {
        let mut bytes = [0; TOKEN];
        bytes[..4].copy_from_slice(&self.number.to_be_bytes());
        bytes[4..].copy_from_slice(&self.process.to_be_bytes());
        bytes
    }

    fn of_bytes(bytes: [u8; TOKEN]) -> Self {
        let [n0, n1, n2, n3, process @ ..] = bytes;
        DocToken { number: u32::from_be_bytes([n0, n1, n2, n3]), process: u64::from_be_bytes(process) }
    }
}

impl DocState {
    fn byte(self) -> u8 {
        match self {
            DocState::Pending => b'p',
            DocState::Kept => b'k',
        }
    }
}

/// Returns the fingerprint of a document. An index that keeps no texts takes it as the identity.
pub(super) fn fingerprint_of(doc: &PreparedDoc) -> u64 {
    doc.keys.identity.0
}

impl HBaseDoc {
    /// Returns the cells by which the document is found.
    pub fn key_cells(&self, topic: &str) -> [TableCell; 2] {
        [0, 1].map(|table| {
            let (key, rest) = halves(table, self.fingerprint);
            let qualifier = [&rest.to_be_bytes()[..], &self.token.bytes(), self.id.as_bytes()].concat();
            TableCell { row: key_row(topic, table, key), qualifier, time: self.time, value: Vec::new() }
        })
    }

    /// Returns the cell of a state.
    pub fn id_cell(&self, topic: &str, state: DocState) -> TableCell {
        let state = [state.byte()];
        let fingerprint = self.fingerprint.to_be_bytes();
        let qualifier = [&state[..], &fingerprint, &self.token.bytes(), self.id.as_bytes()].concat();
        TableCell { row: id_row(topic, &self.id), qualifier, time: self.time, value: state.to_vec() }
    }

    /// Reads a cell of one of the first two tables.
    ///
    /// # Errors
    /// When this program has not written the cell.
    pub fn of_key_cell(cell: TableCell) -> Result<Self> {
        let read = |cell: &TableCell| {
            let (front, &key) = cell.row.split_last_chunk::<4>()?;
            let (&rest, behind) = cell.qualifier.split_first_chunk::<4>()?;
            let (&token, id) = behind.split_first_chunk::<TOKEN>()?;
            let (key, rest) = (u32::from_be_bytes(key), u32::from_be_bytes(rest));
            let fingerprint = match front.last()? {
                0 => u64::from(key) << 32 | u64::from(rest),
                1 => u64::from(rest) << 32 | u64::from(key),
                _ => return None,
            };
            let id = str::from_utf8(id).ok()?.to_owned();
            Some(HBaseDoc { time: cell.time, token: DocToken::of_bytes(token), fingerprint, id })
        };
        read(&cell).with_context(|| strange(&cell))
    }

    /// Reads a cell of an id row.
    ///
    /// # Errors
    /// When this program has not written the cell.
    pub fn of_id_cell(cell: &TableCell) -> Result<(Self, DocState)> {
        let read = |cell: &TableCell| {
            let (state, behind) = cell.qualifier.split_first()?;
            let state = [DocState::Pending, DocState::Kept].into_iter().find(|of| of.byte() == *state)?;
            let (&fingerprint, behind) = behind.split_first_chunk::<8>()?;
            let (&token, id) = behind.split_first_chunk::<TOKEN>()?;
            let id = str::from_utf8(id).ok()?.to_owned();
            let (token, fingerprint) = (DocToken::of_bytes(token), u64::from_be_bytes(fingerprint));
            Some((HBaseDoc { time: cell.time, token, fingerprint, id }, state))
        };
        read(cell).with_context(|| strange(cell))
    }
}

fn strange(cell: &TableCell) -> String {
    format!("the table has a cell that no index writes, in the row {:?}", cell.row.escape_ascii().to_string())
}

/// Returns the half of a fingerprint that is the key of a table, and the other one.
fn halves(table: u8, fingerprint: u64) -> (u32, u32) {
    let first = (fingerprint >> 32) as u32;
    let second = fingerprint as u32;
    if table == 0 { (first, second) } else { (second, first) }
}

fn key_row(topic: &str, table: u8, key: u32) -> Vec<u8> {
    in_partition(&[&tail(topic, table)[..], &key.to_be_bytes()].concat())
}

/// Returns the row of an id. Ids may have any length, and rows may not.
pub(super) fn id_row(topic: &str, id: &str) -> Vec<u8> {
    let hash = blake3::hash(id.as_bytes());
    in_partition(&[&tail(topic, ID_TABLE)[..], &hash.as_bytes()[..ID_HASH]].concat())
}

/// Returns what the rows of a topic and table have in common behind the partition. The name of a topic has no byte 0.
fn tail(topic: &str, table: u8) -> Vec<u8> {
    [topic.as_bytes(), &[0, table]].concat()
}

/// Puts the partition of a row before it. Rows of all tables and topics are spread over all partitions.
fn in_partition(tail: &[u8]) -> Vec<u8> {
    let partition = (xxh3_64(tail) % u64::from(PARTITIONS)) as u8;
    [&[partition], tail].concat()
}

/// Returns the rows in which all fingerprints are that differ from one in at most `within` bits.
///
/// One of the two halves has at most half of the differing bits. So two rows are enough within one bit, and within three the
/// keys that differ in one bit come to them: 2 × 33 = 66 rows.
pub(super) fn rows_near(topic: &str, fingerprint: u64, within: u32) -> Vec<Vec<u8>> {
    let flips = if within < 2 { 0 } else { u32::BITS };
    let near = |table: u8| {
        let (key, _) = halves(table, fingerprint);
        let flipped = (0..flips).map(move |bit| key ^ 1 << bit);
        std::iter::once(key).chain(flipped).map(move |key| key_row(topic, table, key))
    };
    [0, 1].into_iter().flat_map(near).collect()
}

/// Returns the first key of the id rows of a topic in a partition, and the first key behind them.
pub(super) fn id_rows(partition: u8, topic: &str) -> (Vec<u8>, Vec<u8>) {
    let row = |table| [&[partition][..], &tail(topic, table)].concat();
    (row(ID_TABLE), row(ID_TABLE + 1))
}

/// Returns the topic that a row is of.
///
/// # Errors
/// When this program has not written the row.
pub(super) fn topic_of_row(row: &[u8]) -> Result<String> {
    let end = row.iter().skip(1).position(|&byte| byte == 0);
    let topic = end.and_then(|end| str::from_utf8(&row[1..=end]).ok());
    match topic {
        Some(topic) => Ok(topic.to_owned()),
        None => bail!("the table has a row that no index writes: {:?}", row.escape_ascii().to_string()),
    }
}

/// Returns the keys at which a new table is cut.
pub(super) fn split_keys() -> Vec<Vec<u8>> {
    (1..PARTITIONS).map(|partition| vec![partition]).collect()
}

/// Gives documents their times and tokens, in the order in which they come.
pub(super) struct DocStamps {
    /// A number that no other process has, which is a part of its tokens.
    pub process: u64,
    number: u32,
    time: u64,
}

impl DocStamps {
    /// `process`: a number that no other process has.
    pub fn new(process: u64) -> Self {
        DocStamps { process, number: 0, time: 0 }
    }

    /// Stamps a document that comes now, in milliseconds since 1970. Times do not go back when the clock does.
    pub fn stamp(&mut self, doc: &PreparedDoc, now: u64) -> HBaseDoc {
        self.time = self.time.max(now);
        let time = self.time;
        let token = self.token();
        HBaseDoc { time, token, fingerprint: fingerprint_of(doc), id: doc.id.clone() }
    }

    /// Returns a token that no other document with its id and fingerprint has.
    pub fn token(&mut self) -> DocToken {
        let token = DocToken { number: self.number, process: self.process };
        self.number = self.number.wrapping_add(1);
        token
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn doc(fingerprint: u64, id: &str) -> HBaseDoc {
        let token = DocToken { number: 7, process: u64::MAX - 1 };
        HBaseDoc { time: 1_700_000_000_123, token, fingerprint, id: id.to_owned() }
    }

    proptest! {
        /// Whoever looks within some bits meets each fingerprint that differs in no more, in one of the two tables.
        #[test]
        fn fingerprints_within_the_distance_share_a_row(
            fingerprint: u64, flips in vec(0..64, 0..=MOST_BITS as usize), topic in "[a-z新]{1,6}"
        ) {
            let other = flips.iter().fold(fingerprint, |other, bit| other ^ 1u64 << bit);
            for within in (fingerprint ^ other).count_ones()..=MOST_BITS {
                let rows = rows_near(&topic, fingerprint, within);
                prop_assert_eq!(rows.len(), if within < 2 { 2 } else { 66 });
                prop_assert!(doc(other, "").key_cells(&topic).iter().any(|cell| rows.contains(&cell.row)));
            }
        }

        #[test]
        fn cells_are_read_as_they_were_written(fingerprint: u64, id: String, topic in "[a-z新]{1,6}") {
            let doc = doc(fingerprint, &id);
            for cell in doc.key_cells(&topic) {
                prop_assert!(cell.row[0] < PARTITIONS);
                prop_assert_eq!(&topic_of_row(&cell.row).unwrap(), &topic);
                prop_assert_eq!(&HBaseDoc::of_key_cell(cell).unwrap(), &doc);
            }
            for state in [DocState::Pending, DocState::Kept] {
                let cell = doc.id_cell(&topic, state);
                let (start, end) = id_rows(cell.row[0], &topic);
                prop_assert!((start..end).contains(&cell.row));
                prop_assert_eq!(HBaseDoc::of_id_cell(&cell).unwrap(), (doc.clone(), state));
            }
        }
    }

    #[test]
    fn a_strange_cell_is_an_error() {
        let [cell, _] = doc(5, "a").key_cells("news");
        for (row, qualifier) in [
            (vec![1], cell.qualifier.clone()),
            (cell.row.clone(), cell.qualifier[..15].to_vec()),
            (cell.row.clone(), [&cell.qualifier[..], &[0xff]].concat()),
            (id_row("news", "a"), cell.qualifier.clone()),
        ] {
            let strange = TableCell { row, qualifier, ..cell.clone() };
            assert!(HBaseDoc::of_key_cell(strange).is_err());
        }
        let id_cell = doc(5, "a").id_cell("news", DocState::Kept);
        for qualifier in [vec![], b"x".to_vec(), id_cell.qualifier[..20].to_vec()] {
            assert!(HBaseDoc::of_id_cell(&TableCell { qualifier, ..id_cell.clone() }).is_err());
        }
    }

    #[test]
    fn topics_whose_names_begin_alike_have_rows_of_their_own() {
        let (start, end) = id_rows(3, "new");
        let row = [&[3][..], b"news", &[0, ID_TABLE], &[9; 16]].concat();
        assert!(!(start..end).contains(&row));
    }
}
