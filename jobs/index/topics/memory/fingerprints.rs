//! Fingerprints in memory, which are found by any of their four blocks.

use std::array;

use crate::fingerprints::{MOST_TABLES, keys_of_word};

/// Number of fingerprints of a chunk, which fills a cache line.
const CHUNK_ENTRIES: usize = 5;
/// Stands for the text of an entry that is free.
const FREE: u32 = u32::MAX;
/// Number of fingerprints for each bucket from which on there are more buckets.
const MOST_PER_BUCKET: usize = 16;
/// Number of bits of a block by which buckets are made more, and at most.
const MORE_BITS: u32 = 2;
const MOST_BITS: u32 = 16;

/// Fingerprints of 64 bits. Each is in four tables, and in that of a block in the bucket of the first bits of that block:
///
/// ```text
/// table 1, bucket 0x2f    chunk 88: three fingerprints    chunk 17: five fingerprints
/// ```
///
/// There are four times as many buckets whenever the fingerprints are 16 times as many as the buckets of a table, until each
/// block has one of its own. A new fingerprint costs two accesses to memory for each table.
#[derive(Default)]
pub(super) struct MemoryFingerprints {
    count: usize,
    bucket_bits: u32,
    /// Place plus 1 of the newest chunk of each bucket, table after table; 0 if there is none.
    newest: Vec<u32>,
    chunks: Vec<Chunk>,
}

/// Some fingerprints of a bucket.
#[repr(align(64))]
struct Chunk {
    words: [u64; CHUNK_ENTRIES],
    /// Places of their texts.
    texts: [u32; CHUNK_ENTRIES],
    /// Place plus 1 of the chunk before it; 0 if there is none.
    earlier: u32,
}

impl MemoryFingerprints {
    /// Adds the fingerprint of a text.
    pub fn add(&mut self, word: u64, text: u32) {
        if self.newest.is_empty() {
            self.newest = vec![0; MOST_TABLES];
        }
        if self.count >= MOST_PER_BUCKET << self.bucket_bits && self.bucket_bits < MOST_BITS {
            self.make_more_buckets();
        }
        self.count += 1;
        for bucket in self.buckets(word) {
            let newest = &mut self.newest[bucket];
            let chunk = (*newest as usize).checked_sub(1).map(|at| &mut self.chunks[at]);
            let free = chunk.and_then(|chunk| {
                let entry = chunk.texts.iter().position(|text| *text == FREE)?;
                Some((chunk, entry))
            });
            if let Some((chunk, entry)) = free {
                (chunk.words[entry], chunk.texts[entry]) = (word, text);
            } else {
                let mut chunk =
                    Chunk { words: [0; CHUNK_ENTRIES], texts: [FREE; CHUNK_ENTRIES], earlier: *newest };
                (chunk.words[0], chunk.texts[0]) = (word, text);
                self.chunks.push(chunk);
                *newest = self.chunks.len() as u32;
            }
        }
    }

    /// Returns the buckets that a word belongs to.
    fn buckets(&self, word: u64) -> [usize; MOST_TABLES] {
        let keys = keys_of_word(word);
        array::from_fn(|table| {
            let bucket = keys[table].checked_shr(u64::BITS - self.bucket_bits).unwrap_or(0) as usize;
            table << self.bucket_bits | bucket
        })
    }

    fn make_more_buckets(&mut self) {
        let bucket_bits = self.bucket_bits + MORE_BITS;
        let newest = vec![0; MOST_TABLES << bucket_bits];
        let mut more = MemoryFingerprints { count: 0, bucket_bits, newest, chunks: Vec::new() };
        for bucket in 0..1 << self.bucket_bits {
            self.each_of(bucket, |word, text| more.add(word, text));
        }
        *self = more;
    }

    fn each_of(&self, bucket: usize, mut each: impl FnMut(u64, u32)) {
        let mut next = self.newest.get(bucket).copied().unwrap_or(0);
        while let Some(chunk) = (next as usize).checked_sub(1).map(|at| &self.chunks[at]) {
            let entries = chunk.words.iter().zip(&chunk.texts).take_while(|(_, text)| **text != FREE);
            entries.for_each(|(&word, &text)| each(word, text));
            next = chunk.earlier;
        }
    }

    /// Calls `each` with the distance and the text of each fingerprint that differs from `word` in at most `most` bits, up to
    /// four times. `most` is at most 3: then one of the blocks is equal.
    pub fn near(&self, word: u64, most: u32, mut each: impl FnMut(u32, u32)) {
        for bucket in self.buckets(word) {
            self.each_of(bucket, |other, text| {
                let distance = (word ^ other).count_ones();
                if distance <= most {
                    each(distance, text);
                }
            });
        }
    }

    /// Returns about how many bytes the fingerprints take.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.chunks[..]) + size_of_val(&self.newest[..])
    }
}

#[cfg(test)]
mod tests {
    use operators::hash::spread;

    use super::*;

    /// However many buckets there are, the fingerprints are those of a list.
    #[test]
    fn near_fingerprints_are_those_of_a_list() {
        let (mut table, mut list) = (MemoryFingerprints::default(), Vec::new());
        let assert_near = |table: &MemoryFingerprints, list: &[u64], word: u64| {
            for most in 0..=3 {
                let mut found = Vec::new();
                table.near(word, most, |distance, text| found.push((text, distance)));
                found.sort_unstable();
                found.dedup();
                let near = (0..).zip(list.iter().map(|other| (other ^ word).count_ones()));
                assert_eq!(found, near.filter(|(_, distance)| *distance <= most).collect::<Vec<_>>());
            }
        };
        for text in 0..3000u32 {
            // Some differ from earlier ones in a few bits, anywhere.
            let flipped =
                (0..text % 5).fold(0, |bits, bit| bits | 1 << (spread(u64::from(text * 8 + bit)) % 64));
            let word = spread(u64::from(text / 3)) ^ flipped;
            table.add(word, text);
            list.push(word);
            if text % 97 == 0 {
                assert_near(&table, &list, word);
            }
        }
        // Nothing is lost when buckets are made more.
        list.iter().step_by(7).for_each(|word| assert_near(&table, &list, *word));
        assert!(table.bucket_bits >= 8, "{}", table.bucket_bits);
    }
}
