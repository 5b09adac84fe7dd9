//! Reads a packed dictionary.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use super::entry::{Prefix, Stored};

/// A blob, as `packing` describes it. The default one is borrowed.
pub struct Table {
    blob: Cow<'static, [Stored]>,
    codes: usize,
    frequencies: usize,
}

/// The blob of jieba's dictionary, which the program has in 2.5 MB. All workers share it. Cost of the first use: some 5 ms, and 6.2 MB.
static DICTIONARY: LazyLock<&[Stored]> = LazyLock::new(|| {
    let packed = include_bytes!(concat!(env!("OUT_DIR"), "/dictionary.lz4"));
    #[expect(clippy::expect_used, reason = "the build script has compressed it")]
    let blob = lz4_flex::decompress_size_prepended(packed).expect("the dictionary is whole");
    blob.leak().as_chunks().0
});

const HEADER: usize = 3;

impl Table {
    /// Returns the table of jieba's dictionary, which the build script has packed.
    pub fn of_jieba() -> Self {
        Table::new(Cow::Borrowed(*DICTIONARY))
    }

    /// Returns the table of a blob.
    pub fn new(blob: Cow<'static, [Stored]>) -> Self {
        let (codes, frequencies) = (number(&blob[0]) as usize, number(&blob[1]) as usize);
        Table { blob, codes, frequencies }
    }

    /// Returns the sum of the frequencies of all words.
    pub fn total(&self) -> u64 {
        number(&self.blob[2])
    }

    /// Returns the characters in the order of their codes. A code of no character has a NUL.
    pub fn chars(&self) -> impl Iterator<Item = char> {
        let chars = &self.blob[HEADER..HEADER + self.codes];
        chars.iter().map(|stored| char::from_u32(number(stored) as u32).unwrap_or_default())
    }

    /// Returns the frequencies by their numbers. Number 0 is that of no word.
    pub fn frequencies(&self) -> impl Iterator<Item = u64> {
        self.blob[HEADER + self.codes..][..self.frequencies].iter().map(number)
    }

    /// Returns the prefixes of one character by their codes.
    pub fn roots(&self) -> impl Iterator<Item = Prefix> {
        self.blob[HEADER + self.codes + self.frequencies..][..self.codes].iter().map(prefix)
    }

    /// Returns the prefixes of more characters, to be read by [`prefix`].
    pub fn prefixes(&self) -> &[Stored] {
        &self.blob[HEADER + 2 * self.codes + self.frequencies..]
    }

    /// Returns every word with its frequency.
    ///
    /// The base of a prefix is where the prefix stands less its code, and the one other prefix with that base
    /// is its beginning. So a word is read from its end.
    pub fn words(&self) -> HashMap<String, u64> {
        let chars: Vec<char> = self.chars().collect();
        let frequencies: Vec<u64> = self.frequencies().collect();
        let codes = self.roots().enumerate().filter(|(_, root)| *root != Prefix::default());
        // Every prefix, with the base of its beginning; no base is 0.
        let first = codes.map(|(_, root)| (0, root));
        let others = self.prefixes().iter().map(prefix).enumerate();
        let others = others.filter(|(_, found)| *found != Prefix::default());
        let all: Vec<(usize, Prefix)> =
            first.chain(others.map(|(at, found)| (at - usize::from(found.code()), found))).collect();
        let mut of_base = vec![(0, Prefix::default()); self.prefixes().len()];
        for &(before, found) in &all {
            of_base[found.base()] = (before, found);
        }
        let words = all.into_iter().filter(|(_, found)| found.frequency() != 0);
        words
            .map(|(mut before, found)| {
                let mut word = vec![chars[usize::from(found.code())]];
                while before != 0 {
                    let (base, found) = of_base[before];
                    word.push(chars[usize::from(found.code())]);
                    before = base;
                }
                (word.iter().rev().collect(), frequencies[usize::from(found.frequency())])
            })
            .collect()
    }
}

fn number(stored: &Stored) -> u64 {
    u64::from_le_bytes(*stored)
}

/// Reads a prefix.
#[inline]
pub fn prefix(stored: &Stored) -> Prefix {
    Prefix(u64::from_le_bytes(*stored))
}
