//! Stores whose blocks are paragraphs, of which only those that are new are cut further or compared.

use super::ledger::BlockLedger;
use super::store::{BlockStore, FoundBlocks};
use crate::text::units::Unit;

/// Store that keeps each different paragraph once. A paragraph is a line, with the newline that ends it.
pub(super) trait ParagraphStore<'a> {
    /// Returns the number of a paragraph that was kept.
    fn number_of(&self, paragraph: &str) -> Option<u32>;
    /// Keeps a paragraph that is new and begins at `at` in its text, and returns its number. Notes in `found` what earlier
    /// blocks have of it.
    fn keep(&mut self, paragraph: &'a str, at: usize, found: &mut FoundBlocks) -> u32;
    /// Returns the ledger of the store.
    fn counts(&self) -> &BlockLedger;
    /// Returns the ledger of the store, to change it.
    fn counts_mut(&mut self) -> &mut BlockLedger;
}

impl<'a, S: ParagraphStore<'a>> BlockStore<'a> for S {
    fn add(&mut self, text: &'a str) -> FoundBlocks {
        let mut found = FoundBlocks::default();
        let mut at = 0;
        self.counts_mut().read(text);
        for paragraph in Unit::Line.of(text) {
            let number = match self.number_of(paragraph) {
                Some(number) => {
                    found.equal(at..at + paragraph.len());
                    number
                }
                None => self.keep(paragraph, at, &mut found),
            };
            self.counts_mut().refer(number);
            at += paragraph.len();
        }
        found
    }

    fn ledger(&self) -> &BlockLedger {
        self.counts()
    }
}
