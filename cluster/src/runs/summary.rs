//! The shape of a run, and the summary by which it is opened.

use serde::{Deserialize, Serialize};

/// Largest number of words in a key and value together.
const MAX_WORDS: usize = 32;

/// The shape of the rows of a run: the words of a key, the words of a value, and whether bytes follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct RunShape {
    /// Number of words in a key, at least one.
    pub key_words: usize,
    /// Number of words in a value.
    pub value_words: usize,
    /// Whether a row has bytes.
    pub bytes: bool,
}

impl RunShape {
    /// Makes a shape of these numbers of words.
    pub const fn new(key_words: usize, value_words: usize, bytes: bool) -> Self {
        RunShape { key_words, value_words, bytes }
    }

    /// Returns the number of words in a row: those of the key and those of the value.
    pub fn words(&self) -> usize {
        self.key_words + self.value_words
    }

    /// Returns the number of columns of a leaf: the words, and the length of the bytes if there are any.
    pub(super) fn columns(&self) -> usize {
        self.words() + usize::from(self.bytes)
    }

    /// Returns whether a run can have this shape: a key has a word, and a row has at most 32 words.
    pub(super) fn is_possible(&self) -> bool {
        let words = self.key_words.saturating_add(self.value_words);
        self.key_words > 0 && words <= MAX_WORDS
    }
}

/// Place of a block in a run, and the checksum of its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct BlockPlace {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// XXH3 of the bytes, 64 bits.
    pub checksum: u64,
}

/// Facts of a finished run that its owner keeps elsewhere. Nobody can open the run without them, and every
/// byte of the file is covered by the checksum of the root.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct RunSummary {
    /// The shape of the rows.
    pub shape: RunShape,
    /// Number of rows.
    pub rows: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// The root block, which ends the file.
    pub root: BlockPlace,
    /// Key of the first row. It is empty if there are no rows.
    pub first_key: Vec<u64>,
    /// Key of the last row. It is empty if there are no rows.
    pub last_key: Vec<u64>,
}
