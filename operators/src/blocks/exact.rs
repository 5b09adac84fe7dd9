//! Methods that keep each different block once: blocks of one size, sentences, paragraphs and whole files.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::ledger::BlockLedger;
use super::store::{BlockMethod, BlockStore, FoundBlocks};
use crate::text::units::Unit;

/// Store that keeps each different block once. Blocks are the same if their bytes are.
///
/// Cost: one hash and one comparison of each byte.
pub(super) struct ExactStore<'a, C> {
    /// Cuts a text into blocks that together are the text.
    cut: C,
    /// Numbers of the kept blocks.
    kept: HashMap<&'a [u8], u32>,
    ledger: BlockLedger,
}

impl<'a, C: Fn(&'a str) -> Vec<&'a [u8]> + 'a> ExactStore<'a, C> {
    /// Opens an empty store of the blocks that `cut` makes.
    pub fn open(cut: C) -> Box<dyn BlockStore<'a> + 'a> {
        Box::new(ExactStore { cut, kept: HashMap::new(), ledger: BlockLedger::default() })
    }
}

impl<'a, C: Fn(&'a str) -> Vec<&'a [u8]>> BlockStore<'a> for ExactStore<'a, C> {
    fn add(&mut self, text: &'a str) -> FoundBlocks {
        let mut found = FoundBlocks::default();
        let mut at = 0;
        self.ledger.read(text);
        for block in (self.cut)(text) {
            let number = match self.kept.entry(block) {
                Entry::Vacant(place) => *place.insert(self.ledger.keep(block)),
                Entry::Occupied(place) => {
                    found.equal(at..at + block.len());
                    *place.get()
                }
            };
            self.ledger.refer(number);
            at += block.len();
        }
        found
    }

    fn ledger(&self) -> &BlockLedger {
        &self.ledger
    }
}

/// Reads a size of blocks from `least` to `most` bytes: digits, then perhaps K or M.
pub(super) fn size_of_blocks(parameter: Option<&str>, least: usize, most: usize) -> Result<usize, String> {
    let size = parameter.and_then(|text| {
        let digits = text.trim_end_matches(['K', 'M']);
        let unit = match &text[digits.len()..] {
            "" => 1,
            "K" => 1 << 10,
            "M" => 1 << 20,
            _ => return None,
        };
        digits.parse::<usize>().ok()?.checked_mul(unit)
    });
    let size = size.filter(|size| (least..=most).contains(size));
    size.ok_or_else(|| format!("SIZE from {least} to {most} bytes, such as 4K"))
}

/// Refuses a parameter for a method that has none.
pub(super) fn no_parameter(parameter: Option<&str>) -> Result<(), String> {
    parameter.map_or(Ok(()), |_| Err("without a parameter".to_owned()))
}

/// `file`: a text is one block.
pub(super) struct WholeFiles;

impl BlockMethod for WholeFiles {
    fn name(&self) -> &'static str {
        "file"
    }

    fn form(&self) -> &'static str {
        "file"
    }

    fn examples(&self) -> &[&'static str] {
        &["file"]
    }

    fn open<'a>(&self, parameter: Option<&str>) -> Result<Box<dyn BlockStore<'a> + 'a>, String> {
        no_parameter(parameter)?;
        Ok(ExactStore::open(|text: &'a str| vec![text.as_bytes()]))
    }
}

/// `fsp:SIZE`: blocks of a fixed size, and a shorter one at the end of a text. One byte that is inserted changes all
/// blocks behind it. Source: Peng 2017, section 1.2.1.
pub(super) struct FixedBlocks;

impl BlockMethod for FixedBlocks {
    fn name(&self) -> &'static str {
        "fsp"
    }

    fn form(&self) -> &'static str {
        "fsp:SIZE"
    }

    fn examples(&self) -> &[&'static str] {
        &["fsp:4K"]
    }

    fn open<'a>(&self, parameter: Option<&str>) -> Result<Box<dyn BlockStore<'a> + 'a>, String> {
        let size = size_of_blocks(parameter, 1, 1 << 30)?;
        Ok(ExactStore::open(move |text: &'a str| text.as_bytes().chunks(size).collect()))
    }
}

/// `paragraph` and `sentence`: a block is a line or a sentence, with the characters that end it.
///
/// A paragraph ends with a newline, which is how text is extracted from Word files and how Peng 2017, section 2.1, reads
/// text files.
pub(super) struct UnitBlocks {
    /// The only spec, which is the name of the method.
    pub specs: [&'static str; 1],
    pub unit: Unit,
}

impl BlockMethod for UnitBlocks {
    fn name(&self) -> &'static str {
        self.specs[0]
    }

    fn form(&self) -> &'static str {
        self.specs[0]
    }

    fn examples(&self) -> &[&'static str] {
        &self.specs
    }

    fn open<'a>(&self, parameter: Option<&str>) -> Result<Box<dyn BlockStore<'a> + 'a>, String> {
        no_parameter(parameter)?;
        let unit = self.unit;
        Ok(ExactStore::open(move |text: &'a str| unit.of(text).map(str::as_bytes).collect()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::single_range_in_vec_init, reason = "these are lists of ranges")]

    use super::*;

    const SENTENCES: UnitBlocks = UnitBlocks { specs: ["sentence"], unit: Unit::Sentence };
    const PARAGRAPHS: UnitBlocks = UnitBlocks { specs: ["paragraph"], unit: Unit::Line };

    fn saved(method: &dyn BlockMethod, parameter: Option<&str>, texts: &[&str]) -> (u64, Vec<FoundBlocks>) {
        let mut store = method.open(parameter).unwrap();
        let found = texts.iter().map(|text| store.add(text)).collect();
        (store.ledger().bytes_in() - store.ledger().data_bytes(), found)
    }

    #[test]
    fn a_repeated_block_is_kept_once() {
        let texts = ["一。二。\n一。", "二。一。\n"];
        let (bytes, found) = saved(&SENTENCES, None, &texts);
        assert_eq!(bytes, 6 + 6 + 6 + 1, "一。 of the first text, and all of the second");
        assert_eq!(found[0].left_out, [13..19]);
        assert_eq!(found[1].left_out, [0..6, 6..12, 12..13]);
        assert_eq!(saved(&PARAGRAPHS, None, &texts).0, 0);
        assert_eq!(saved(&WholeFiles, None, &["一", "一", "二"]).0, 3);
    }

    #[test]
    fn fixed_blocks_lose_what_lies_behind_an_insertion() {
        let (bytes, found) = saved(&FixedBlocks, Some("4"), &["abcdefghijkl", "abcdXefghijkl"]);
        assert_eq!((bytes, &found[1].left_out[..]), (4, &[0..4][..]));
    }

    #[test]
    fn blocks_and_references_are_counted() {
        let mut store = SENTENCES.open(None).unwrap();
        store.add("一。二。");
        store.add("一。三。");
        let ledger = store.ledger();
        assert_eq!((ledger.bytes_in(), ledger.blocks(), ledger.references()), (24, 3, 4));
        assert_eq!(ledger.data(), "一。二。三。".as_bytes());
    }
}
