//! Counters of records by the hash of their key, which find keys that too many records share.

use crate::hash;

/// Number of bits of a hashed key by which records are counted.
pub(crate) const COUNTER_BITS: u32 = 16;

/// Counters of records by the hash of their key. Memory: 512 KB.
pub(crate) struct KeyCounters(pub Vec<u64>);

impl Default for KeyCounters {
    fn default() -> Self {
        KeyCounters(vec![0; 1 << COUNTER_BITS])
    }
}

impl KeyCounters {
    /// Counts a record by its hashed key.
    #[inline]
    pub fn add(&mut self, hashed: u64) {
        self.0[counter(hashed)] += 1;
    }

    /// Returns the largest count of keys that were not hashed before.
    pub fn largest_of(keys: impl Iterator<Item = u64>) -> u64 {
        let mut counters = KeyCounters::default();
        keys.for_each(|key| counters.add(hash::spread(key)));
        counters.0.into_iter().max().unwrap_or(0)
    }
}

/// Returns the counter of a hashed key: its high bits, because the low bits choose the worker.
pub(crate) fn counter(hashed: u64) -> usize {
    (hashed >> (64 - COUNTER_BITS)) as usize
}
