//! Reads the rows of a run in the order of their keys.

use std::cmp::Ordering;
use std::sync::Arc;

use super::block::{BlockColumn, RunBlock};
use super::leaf_bytes::LeafBytes;
use super::source::{LeafReads, RunSource};
use crate::Error;

/// A row, as a cursor shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunRow<'a> {
    /// The words of the key and those of the value.
    pub words: &'a [u64],
    /// The bytes. They are empty if rows of the run have none.
    pub bytes: &'a [u8],
}

/// Some words of a row, each of which is unpacked when it is taken.
#[derive(Clone, Copy)]
pub struct PackedRow<'a, const COLUMNS: usize> {
    columns: &'a [BlockColumn<'a>; COLUMNS],
    row: usize,
}

impl<const COLUMNS: usize> PackedRow<'_, COLUMNS> {
    /// Returns the word of the column that was named as number `at`.
    ///
    /// # Panics
    /// When fewer columns were named.
    #[inline]
    pub fn word(&self, at: usize) -> u64 {
        self.columns[at].word(self.row)
    }
}

/// A cursor in a run. It reads little when it goes forward.
///
/// It holds one block of each level. A seek reads the blocks on the way to its row that it does not hold:
///
/// ```text
/// root              [ 10        50 ]           always held
/// index       [ 10  20  40 ]  [ 50  90 ]
/// leaf        10..  20..  40..  50..  90..
///
/// seek(25)    index 10, leaf 20
/// seek(28)    nothing: leaf 20 ends at 40
/// seek(95)    index 50, leaf 90
/// ```
///
/// Memory: a block of each level, a leaf decompressed, and up to 1 MiB that is read ahead.
pub struct RunCursor {
    source: Arc<RunSource>,
    /// The blocks below the root on the way to the leaf, which is the last. Index blocks may be those of the source.
    path: Vec<Arc<RunBlock>>,
    /// The child that the way takes from the root and from each index block of the path.
    children: Vec<usize>,
    /// Number of blocks of the path that are loaded.
    loaded: usize,
    /// The current row of the leaf, or the number of its rows if the next leaf has the current row.
    row: usize,
    /// Words of the current row, if it is `unpacked`.
    words: Vec<u64>,
    unpacked: bool,
    bytes: LeafBytes,
    /// Whether `bytes` are those of the leaf.
    bytes_loaded: bool,
    ended: bool,
    leaves: LeafReads,
    leaf_offset: u64,
}

impl RunCursor {
    pub(super) fn new(source: Arc<RunSource>) -> Self {
        let height = usize::from(source.height);
        RunCursor {
            path: (0..height).map(|_| Arc::default()).collect(),
            children: vec![0; height],
            loaded: 0,
            row: 0,
            words: vec![0; source.summary.shape.words()],
            unpacked: false,
            bytes: LeafBytes::default(),
            bytes_loaded: false,
            ended: source.root.rows() == 0,
            leaves: LeafReads::default(),
            leaf_offset: 0,
            source,
        }
    }

    /// Moves to the first row whose key is not less than `key`, be it ahead or behind. Words that `key` lacks count as
    /// zero. A key in the leaf of the cursor reads nothing.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Damaged`].
    pub fn look_up(&mut self, key: &[u64]) -> Result<(), Error> {
        let height = self.path.len();
        if self.loaded == height && !self.ended && self.leaf().compare(0, key) != Ordering::Greater {
            (self.row, self.unpacked) = (0, false);
            return self.seek(key);
        }
        self.children.fill(0);
        (self.loaded, self.row) = (0, 0);
        (self.unpacked, self.bytes_loaded) = (false, false);
        self.ended = self.source.root.rows() == 0;
        self.seek(key)
    }

    /// Moves to the first row whose key is not less than `key`. Words that `key` lacks count as zero. If the
    /// current row is such a row already, the cursor stays where it is.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Damaged`].
    pub fn seek(&mut self, key: &[u64]) -> Result<(), Error> {
        let height = self.path.len();
        if self.ended {
            return Ok(());
        }
        let has_row = self.loaded == height && self.row < self.leaf().rows();
        if has_row && self.leaf().compare(self.row, key) != Ordering::Less {
            return Ok(());
        }
        // Goes up to the lowest loaded block that reaches beyond the key.
        let mut depth = self.loaded;
        while depth > 0 && !self.reaches_beyond(depth, key) {
            depth -= 1;
        }
        while depth < height {
            let parent = self.parent(depth);
            let from = self.children[depth];
            let child = parent.search(key, from + 1, true) - 1;
            if child != from || self.loaded <= depth {
                self.leaves.follows = child == from + 1 && self.loaded == height;
                self.children[depth] = child;
                self.load(depth)?;
            }
            depth += 1;
        }
        let row = self.path[height - 1].search(key, self.row, false);
        self.unpacked &= row == self.row;
        self.row = row;
        Ok(())
    }

    /// Returns the current row, or `None` at the end.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Damaged`].
    pub fn peek_row(&mut self) -> Result<Option<RunRow<'_>>, Error> {
        let found = self.prepare()?;
        self.prepare_bytes()?;
        Ok(found.then(|| self.row_at(self.row)))
    }

    /// Returns the current row and moves behind it. Returns `None` at the end.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Damaged`].
    pub fn next_row(&mut self) -> Result<Option<RunRow<'_>>, Error> {
        let found = self.prepare()?;
        let row = self.row;
        self.prepare_bytes()?;
        if found {
            self.skip();
        }
        Ok(found.then(|| self.row_at(row)))
    }

    /// Gives each row from the current one on to `each`, until it returns false, and moves behind these rows. `last`:
    /// the greatest key that counts. `columns`: which words of a row are wanted; the key's come first.
    ///
    /// Cost: two comparisons of keys and a search for each leaf, and no more than the words that are taken from a row.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Damaged`].
    ///
    /// # Panics
    /// When a row has no such word.
    pub fn read_to<const COLUMNS: usize>(
        &mut self,
        last: &[u64],
        columns: [usize; COLUMNS],
        mut each: impl FnMut(PackedRow<'_, COLUMNS>) -> bool,
    ) -> Result<(), Error> {
        while self.prepare()? {
            let leaf = self.leaf();
            let end = leaf.search(last, self.row, true);
            let columns = &columns.map(|column| leaf.column(column));
            let mut rows = self.row..end;
            let stopped = !rows.all(|row| each(PackedRow { columns, row }));
            let ends_here = end < leaf.rows() || self.reaches_beyond(self.path.len(), last);
            self.unpacked &= rows.start == self.row;
            self.row = rows.start;
            if stopped || ends_here {
                break;
            }
        }
        Ok(())
    }

    /// Loads the leaf of the current row and unpacks its words. Returns false at the end.
    #[inline]
    pub(super) fn prepare(&mut self) -> Result<bool, Error> {
        if self.unpacked {
            return Ok(true);
        }
        while !self.ended {
            while self.loaded < self.path.len() {
                self.load(self.loaded)?;
            }
            let leaf = self.path.last().map_or(&self.source.root, |leaf| leaf);
            if self.row < leaf.rows() {
                leaf.read_words(self.row, &mut self.words);
                self.unpacked = true;
                return Ok(true);
            }
            self.ended = !self.leave_leaf();
        }
        Ok(false)
    }

    /// Returns the key of the current row, after [`RunCursor::prepare`] has returned true.
    #[inline]
    pub(super) fn key(&self) -> &[u64] {
        &self.words[..self.source.summary.shape.key_words]
    }

    /// Moves behind the current row, after [`RunCursor::prepare`] has returned true.
    #[inline]
    pub(super) fn skip(&mut self) {
        self.row += 1;
        self.unpacked = false;
    }

    /// Decompresses the bytes of the current row and of its leaf, if rows have bytes.
    fn prepare_bytes(&mut self) -> Result<(), Error> {
        if !self.source.summary.shape.bytes || self.bytes_loaded || self.ended {
            return Ok(());
        }
        let leaf = self.path.last().map_or(&self.source.root, |leaf| leaf);
        let dictionary = self.source.dictionary_at(self.leaf_offset)?;
        let loaded = self.bytes.load(leaf, dictionary);
        loaded.map_err(|reason| self.source.damage(self.leaf_offset, &reason))?;
        self.bytes_loaded = true;
        Ok(())
    }

    #[inline]
    fn row_at(&self, row: usize) -> RunRow<'_> {
        let has_bytes = self.source.summary.shape.bytes;
        RunRow { words: &self.words, bytes: if has_bytes { self.bytes.row(self.leaf(), row) } else { &[] } }
    }

    /// Returns the leaf. The path is never empty, because the root is an index block.
    #[inline]
    fn leaf(&self) -> &RunBlock {
        self.path.last().map_or(&self.source.root, |leaf| leaf)
    }

    /// Returns the block above the one of the path at `depth`.
    fn parent(&self, depth: usize) -> &RunBlock {
        depth.checked_sub(1).map_or(&self.source.root, |above| &self.path[above])
    }

    /// Returns whether the block behind the one of the path above `depth` begins with a key greater than
    /// `key`. If so, the block of the path contains the first row whose key is greater than `key`, or ends
    /// just before it.
    fn reaches_beyond(&self, depth: usize, key: &[u64]) -> bool {
        let parent = self.parent(depth - 1);
        let next = self.children[depth - 1] + 1;
        next < parent.rows() && parent.compare(next, key) == Ordering::Greater
    }

    /// Turns the path to the next leaf, which is to be loaded. Returns false if there is none.
    fn leave_leaf(&mut self) -> bool {
        let more = |depth: &usize| self.children[*depth] + 1 < self.parent(*depth).rows();
        let Some(depth) = (0..self.path.len()).rev().find(more) else { return false };
        self.children[depth] += 1;
        self.loaded = depth;
        self.leaves.follows = true;
        true
    }

    /// Loads the block of the path at `depth`, which is a child of the last loaded one.
    fn load(&mut self, depth: usize) -> Result<(), Error> {
        let level = (self.path.len() - 1 - depth) as u8;
        let place = self.parent(depth).place(self.children[depth]);
        (self.loaded, self.unpacked) = (depth, false);
        match level {
            0 => {
                let leaf = Arc::make_mut(&mut self.path[depth]);
                self.source.read_block(place, 0, Some(&mut self.leaves), leaf)?;
            }
            _ => self.source.index_block(place, level, &mut self.path[depth])?,
        }
        self.loaded = depth + 1;
        match self.children.get_mut(depth + 1) {
            Some(child) => *child = 0,
            None => {
                (self.row, self.bytes_loaded) = (0, false);
                self.leaf_offset = place.offset;
            }
        }
        Ok(())
    }
}
