//! The traits of a block method and of the store that it opens.

use std::ops::Range;

use super::ledger::BlockLedger;

/// Block method. It decides how texts are cut into blocks, and which blocks are kept.
///
/// Implementations: `exact.rs` has three, `rabin.rs`, `gear.rs`, `peng2017.rs` and `paragraph_delta.rs` one each.
pub trait BlockMethod: Sync {
    /// Returns the name of the method, as in a spec.
    fn name(&self) -> &'static str;
    /// Returns the form of its specs for people, such as `fsp:SIZE`.
    fn form(&self) -> &'static str;
    /// Returns the specs that a comparison lists.
    fn examples(&self) -> &[&'static str];
    /// Opens an empty store. `parameter`: the part of the spec behind the colon.
    ///
    /// # Errors
    /// The parameter that was expected, if this is another one.
    fn open<'a>(&self, parameter: Option<&str>) -> Result<Box<dyn BlockStore<'a> + 'a>, String>;
}

/// Keeps texts of a corpus block by block, and counts what that takes. Texts are borrowed, so that blocks can be
/// compared byte by byte.
///
/// Memory: the kept data, and 16 to 100 bytes a different block.
pub trait BlockStore<'a> {
    /// Adds the next text. Returns the parts of it that earlier blocks have, of this text or another one.
    fn add(&mut self, text: &'a str) -> FoundBlocks;
    /// Returns what was read and what is kept.
    fn ledger(&self) -> &BlockLedger;
}

/// Ranges of a text, in bytes, that a store has found in earlier blocks. Both lists are ordered and without overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundBlocks {
    /// Ranges of which no bytes are kept, since an earlier block has the same ones.
    pub left_out: Vec<Range<usize>>,
    /// Blocks that the method takes for equal or similar to an earlier block, whether or not bytes are left out.
    pub taken: Vec<Range<usize>>,
}

impl FoundBlocks {
    /// Notes a block that is left out as a whole.
    pub(super) fn equal(&mut self, block: Range<usize>) {
        self.left_out.push(block.clone());
        self.taken.push(block);
    }
}
