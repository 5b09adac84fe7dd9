//! The sets of texts that were compared lately.

use std::collections::{HashMap, VecDeque};

use anyhow::Result;

/// Largest number of bytes of sets that are kept.
const MOST_BYTES: usize = 48 << 20;

/// Sets by which texts are compared, of those whose sets were made last. The documents that stay of a family are compared with each new
/// one of it, and to make the sets of a text takes ten times as long as to compare them.
#[derive(Default)]
pub(super) struct TextSets {
    by_text: HashMap<u64, Vec<u64>>,
    /// The texts, in the order in which they came.
    order: VecDeque<u64>,
    bytes: usize,
}

impl TextSets {
    /// Returns the sets of a text. `make`: makes them if they are not known.
    pub fn of(&mut self, text: u64, make: impl FnOnce() -> Result<Vec<u64>>) -> Result<&[u64]> {
        if !self.by_text.contains_key(&text) {
            let sets = make()?;
            self.bytes += size_of_val(&sets[..]);
            self.by_text.insert(text, sets);
            self.order.push_back(text);
            while self.bytes > MOST_BYTES
                && self.order.len() > 1
                && let Some(oldest) = self.order.pop_front()
            {
                self.bytes -= self.by_text.remove(&oldest).map_or(0, |sets| size_of_val(&sets[..]));
            }
        }
        Ok(&self.by_text[&text])
    }

    /// Returns the number of bytes of all sets.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
