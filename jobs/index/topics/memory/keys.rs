//! Keys of texts in memory, which are found by the bits that must be equal.

use std::collections::HashMap;
use std::iter;
use std::ops::Range;

use foldhash::fast::RandomState;
use operators::hash;

/// Number of bytes that a key takes, with its part of the hash table.
const KEY_BYTES: usize = 44;

/// Keys in the order in which they came, each with the place of the one before it that meets it.
///
/// A new key costs one access to the hash table, and a lookup one more for each key that meets.
#[derive(Default)]
pub(super) struct MemoryKeys {
    keys: Vec<MemoryKey>,
    /// For each key, the place plus 1 of the key before it with the same hash; 0 if there is none.
    earlier: Vec<u32>,
    /// Place of the newest key plus 1, by the hash of pass and chosen bits.
    newest: HashMap<u64, u32, RandomState>,
}

/// A key of a text.
#[derive(Clone, Copy)]
pub(crate) struct MemoryKey {
    /// The kept key, whose halves stand apart because they take less room so.
    pub high: u64,
    pub low: u64,
    pub pass: u32,
    /// Place of its text.
    pub text: u32,
}

impl MemoryKey {
    pub fn key(&self) -> u128 {
        u128::from(self.high) << 64 | u128::from(self.low)
    }
}

impl MemoryKeys {
    /// Adds a key that nobody looks up here.
    pub fn keep(&mut self, key: MemoryKey) {
        self.keys.push(key);
        self.earlier.push(0);
    }

    /// Adds a key. `first`: the least key that meets it.
    pub fn add(&mut self, key: MemoryKey, first: u128) {
        self.keys.push(key);
        let earlier = self.newest.insert(hash_of(key.pass, first), self.keys.len() as u32);
        self.earlier.push(earlier.unwrap_or(0));
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns about how many bytes the keys take.
    pub fn bytes(&self) -> usize {
        KEY_BYTES * self.keys.len()
    }

    /// Returns the keys at some places.
    pub fn slice(&self, places: Range<usize>) -> &[MemoryKey] {
        &self.keys[places]
    }

    /// Returns the keys of a pass from `first` to `last`, which are all that meet one of them.
    pub fn meet(&self, pass: u32, (first, last): (u128, u128)) -> impl Iterator<Item = &MemoryKey> {
        let place = |number: u32| (number as usize).checked_sub(1);
        let newest = self.newest.get(&hash_of(pass, first)).and_then(|&number| place(number));
        let places = iter::successors(newest, move |&at| place(self.earlier[at]));
        let keys = places.map(|at| &self.keys[at]);
        keys.filter(move |key| key.pass == pass && (first..=last).contains(&key.key()))
    }
}

fn hash_of(pass: u32, first: u128) -> u64 {
    hash::spread(hash::spread((first >> 64) as u64 ^ u64::from(pass)) ^ first as u64)
}
