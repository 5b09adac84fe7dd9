//! Reads a whole run and compares it with its summary.

use std::cmp::Ordering;

use super::block::RunBlock;
use super::leaf_bytes::{Dictionary, LeafBytes};
use super::reader::RunReader;
use super::source::{LeafReads, RunSource};
use crate::Error;

impl RunReader {
    /// Reads every block of the run, and compares checksums, the places of blocks, the order of rows, and
    /// what the summary says.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Damaged`] for the first block that is wrong.
    pub fn check(&self) -> Result<(), Error> {
        let source = &*self.source;
        let summary = &source.summary;
        let mut walk = Walk::new(source);
        walk.children(&source.root, source.height)?;
        let Walk { end, rows, first_key, last_key, .. } = walk;
        let found = (end, rows, &first_key[..], &last_key[..]);
        if found != (summary.root.offset, summary.rows, &summary.first_key, &summary.last_key) {
            return Err(source.damage(summary.root.offset, "its rows are not those of its summary"));
        }
        Ok(())
    }
}

/// A walk through all blocks in the order in which they were written.
struct Walk<'a> {
    source: &'a RunSource,
    leaves: LeafReads,
    bytes: LeafBytes,
    /// Offset of the end of the last block.
    end: u64,
    rows: u64,
    first_key: Vec<u64>,
    last_key: Vec<u64>,
}

impl Walk<'_> {
    fn new(source: &RunSource) -> Walk<'_> {
        Walk {
            source,
            leaves: LeafReads::sequential(),
            bytes: LeafBytes::default(),
            end: 0,
            rows: 0,
            first_key: Vec::new(),
            last_key: Vec::new(),
        }
    }

    /// Walks through the children of an index block.
    fn children(&mut self, parent: &RunBlock, level: u8) -> Result<(), Error> {
        let mut child = RunBlock::default();
        let mut key = vec![0; self.source.summary.shape.key_words];
        for row in 0..parent.rows() {
            let place = parent.place(row);
            parent.read_words(row, &mut key);
            let leaves = (level == 1).then_some(&mut self.leaves);
            self.source.read_block(place, level - 1, leaves, &mut child)?;
            if level > 1 {
                self.children(&child, level - 1)?;
            }
            let damage = |reason: &str| Err(self.source.damage(place.offset, reason));
            if place.offset != self.end {
                return damage("a block does not begin where the one before ends");
            }
            if child.compare(0, &key) != Ordering::Equal {
                return damage("a block does not begin with the key that its index has");
            }
            if level == 1 {
                let dictionary = self.source.dictionary_at(place.offset)?;
                self.rows(&child, dictionary).map_err(|reason| self.source.damage(place.offset, &reason))?;
            }
            self.end += place.bytes;
        }
        Ok(())
    }

    /// Walks through the rows of a leaf.
    ///
    /// # Errors
    /// The damage, in words.
    fn rows(&mut self, leaf: &RunBlock, dictionary: Option<&Dictionary>) -> Result<(), String> {
        let shape = self.source.summary.shape;
        for row in 0..leaf.rows() {
            let ascends = leaf.compare(row, &self.last_key) == Ordering::Greater;
            if self.rows > 0 && !ascends {
                return Err("the keys of its rows do not ascend".to_owned());
            }
            self.last_key.resize(shape.key_words, 0);
            leaf.read_words(row, &mut self.last_key);
            if self.rows == 0 {
                self.first_key.clone_from(&self.last_key);
            }
            self.rows += 1;
        }
        if shape.bytes { self.bytes.load(leaf, dictionary) } else { Ok(()) }
    }
}
