//! Groups of records, as they lie in the files of a log.

use xxhash_rust::xxh3::xxh3_64;

/// First bytes of a file.
pub(super) const MAGIC: &[u8; 8] = b"DDJLOG01";
/// First bytes of a group, by which groups are found behind damaged bytes.
pub(super) const MARKER: [u8; 4] = *b"\xC5grp";
/// Number of bytes of a group in front of its records.
///
/// ```text
/// 0..4     the marker
/// 4..12    checksum of all that follows
/// 12..16   length of the records
/// 16..24   number of the first record
/// ```
pub(super) const HEADER_BYTES: usize = 24;
/// Ending of the names of files.
const SUFFIX: &str = ".log";

/// Returns the name of the file whose first record has this number.
pub(super) fn file_name(first: u64) -> String {
    format!("{first:020}{SUFFIX}")
}

/// Returns the number of the first record of a file, by the name of the file; `None` if no file of a log has such a name.
pub(super) fn first_record_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SUFFIX).filter(|digits| digits.len() == 20)?;
    digits.parse().ok()
}

/// Begins a group, whose header is filled in by [`seal`].
pub(super) fn begin(group: &mut Vec<u8>) {
    group.clear();
    group.resize(HEADER_BYTES, 0);
}

/// Adds a record to a group.
pub(super) fn push(group: &mut Vec<u8>, record: &[u8]) {
    group.extend((record.len() as u32).to_le_bytes());
    group.extend_from_slice(record);
}

/// Fills in the header of a group. `first`: the number of its first record.
pub(super) fn seal(group: &mut [u8], first: u64) {
    let bytes = (group.len() - HEADER_BYTES) as u32;
    group[..4].copy_from_slice(&MARKER);
    group[12..16].copy_from_slice(&bytes.to_le_bytes());
    group[16..24].copy_from_slice(&first.to_le_bytes());
    let checksum = xxh3_64(&group[12..]);
    group[4..12].copy_from_slice(&checksum.to_le_bytes());
}

/// A whole group at the start of some bytes.
pub(super) struct RecordGroup<'a> {
    /// Number of its first record.
    pub first: u64,
    records: &'a [u8],
}

impl<'a> RecordGroup<'a> {
    /// Reads the group at the start of `bytes`; `None` if there is no whole one with the right checksum.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let header = bytes.first_chunk::<HEADER_BYTES>()?;
        let word = |at: usize| u64::from_le_bytes(*header[at..].first_chunk().unwrap_or(&[0; 8]));
        let records = word(12) as u32 as usize;
        let group = bytes.get(..HEADER_BYTES + records)?;
        let whole = header[..4] == MARKER && word(4) == xxh3_64(&group[12..]);
        whole.then(|| RecordGroup { first: word(16), records: &group[HEADER_BYTES..] })
    }

    /// Returns the number of bytes of the group.
    pub fn bytes(&self) -> usize {
        HEADER_BYTES + self.records.len()
    }

    /// Returns the records in order, up to the first that does not lie in the group.
    pub fn records(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest = self.records;
        std::iter::from_fn(move || {
            let length = rest.split_off(..4)?.first_chunk().map(|length| u32::from_le_bytes(*length))?;
            rest.split_off(..length as usize)
        })
    }
}
