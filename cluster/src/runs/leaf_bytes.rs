//! The bytes of rows in leaves, compressed with the bytes of the first leaf as a dictionary.

use zstd::bulk::Decompressor;

use super::block::{MAX_BYTES, RunBlock, clear};

/// Largest number of bytes that zstd makes of one. A block of its format has up to 128 KiB and takes 4 bytes.
const MOST_EXPANSION: usize = 1 << 15;
/// Number of bytes of a dictionary, and of the leaf that it is made of.
pub(super) const DICTIONARY_BYTES: usize = 1 << 15;

/// Dictionary for zstd: the bytes of the first leaf of a run, whose phrases all other leaves of the run can refer to.
///
/// Small leaves are quick to decompress, but have few repetitions of their own. Leaves of 4 KiB of Chinese text take
/// 10 µs for 42 of leaves of 16 KiB, and with the dictionary they are 7 % shorter instead of 27 % longer
/// (docs/design/nightly.md).
pub(super) struct Dictionary(pub Vec<u8>);

impl Dictionary {
    /// Makes the dictionary of a run. `first`: the bytes of its first leaf.
    pub fn of(first: &[u8]) -> Self {
        // A dictionary that begins with the magic of zstd would be taken for tables instead of contents.
        let mut dictionary = vec![0];
        dictionary.extend_from_slice(&first[..first.len().min(DICTIONARY_BYTES)]);
        Dictionary(dictionary)
    }
}

/// The bytes of the rows of one leaf.
#[derive(Default)]
pub(super) struct LeafBytes {
    /// Decompressed bytes. They are empty if the leaf has its bytes as they are.
    decompressed: Vec<u8>,
    is_compressed: bool,
    /// The end of the bytes of each row.
    ends: Vec<usize>,
    /// For the first leaf of a run, and for those that have its dictionary.
    decompressors: [Option<Decompressor<'static>>; 2],
}

impl LeafBytes {
    /// Decompresses the bytes of a leaf. `dictionary`: that of its run, but for the first leaf. All calls give the
    /// dictionary of one run.
    ///
    /// # Errors
    /// The damage, in words. No more memory is taken than the leaf can decompress to.
    pub fn load(&mut self, leaf: &RunBlock, dictionary: Option<&Dictionary>) -> Result<(), String> {
        let mut end = 0usize;
        self.ends.clear();
        for row in 0..leaf.rows() {
            end = end.saturating_add(usize::try_from(leaf.byte_length(row)).unwrap_or(usize::MAX));
            self.ends.push(end);
        }
        let stored = leaf.tail();
        self.is_compressed = stored.len() != end;
        clear(&mut self.decompressed);
        if !self.is_compressed {
            return Ok(());
        }
        if stored.len() > end || end > MAX_BYTES || end / MOST_EXPANSION > stored.len() {
            return Err("the lengths of rows do not fit their block".to_owned());
        }
        let decompressor = match &mut self.decompressors[usize::from(dictionary.is_some())] {
            Some(decompressor) => decompressor,
            none => {
                let dictionary = dictionary.map_or(&[][..], |dictionary| &dictionary.0);
                none.insert(Decompressor::with_dictionary(dictionary).map_err(|error| error.to_string())?)
            }
        };
        self.decompressed.reserve(end);
        let read = decompressor.decompress_to_buffer(stored, &mut self.decompressed);
        match read.map_err(|error| error.to_string())? {
            read if read == end => Ok(()),
            read => Err(format!("a block has {read} bytes of rows instead of {end}")),
        }
    }

    /// Returns the bytes of all rows of the leaf that was loaded last.
    pub fn all<'a>(&'a self, leaf: &'a RunBlock) -> &'a [u8] {
        if self.is_compressed { &self.decompressed } else { leaf.tail() }
    }

    /// Returns the bytes of a row of the leaf that was loaded last.
    pub fn row<'a>(&'a self, leaf: &'a RunBlock, row: usize) -> &'a [u8] {
        let bytes = self.all(leaf);
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &bytes[start..self.ends[row]]
    }
}
