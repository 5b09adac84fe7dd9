//! Deltas: a block as copies from another one and bytes in between.

use std::collections::HashMap;
use std::ops::Range;

/// Number of bytes by which places of the base are found; a copy has at least as many.
const SEED: usize = 4;
/// Most places of a seed that are tried.
const MOST_PLACES: usize = 32;

/// Block as a delta against a base.
///
/// ```text
/// base     今天天气很好。
/// block    明天天气很好！
/// delta    insert 明, copy 15 bytes from 3 on, insert ！       1 + 3, 2 and 1 + 3 bytes
/// ```
///
/// A delta is a list of instructions. Each begins with a number, twice its length in bytes and one more for a copy. The
/// bytes of an insertion follow. Behind a copy stands its start, counted from the end of the copy before: a negative
/// number n as -2n - 1, any other as 2n. Numbers are LEB128: seven bits a byte, the lowest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// The instructions.
    pub bytes: Vec<u8>,
    /// Ranges of the block that are copied.
    pub copied: Vec<Range<usize>>,
}

impl Delta {
    /// Makes the delta of a block against a base. At each place the longest copy is taken.
    ///
    /// Cost: the bytes of both, and up to 32 comparisons at each byte of the block that is not copied. Memory: some 40 bytes
    /// a byte of the base, for the time of the call.
    pub fn new(base: &[u8], block: &[u8]) -> Self {
        let mut places = HashMap::<&[u8], Vec<usize>>::new();
        for (at, seed) in base.windows(SEED).enumerate() {
            let places = places.entry(seed).or_default();
            if places.len() < MOST_PLACES {
                places.push(at);
            }
        }
        let mut delta = Delta::default();
        // The bytes of the block before `done` are in the delta; `expected` is the end of the last copy in the base.
        let (mut at, mut done, mut expected) = (0, 0, 0);
        while at + SEED <= block.len() {
            let rest = &block[at..];
            let found = places.get(&rest[..SEED]).into_iter().flatten();
            let longest = found.map(|&from| (same(base[from..].iter(), rest.iter()), from)).max_by_key(
                // Among equally long copies, the one that begins where the last one ended takes the fewest
                // bytes.
                |&(length, from)| (length, std::cmp::Reverse(from.abs_diff(expected))),
            );
            let Some((length, from)) = longest else {
                at += 1;
                continue;
            };
            let before = same(base[..from].iter().rev(), block[done..at].iter().rev());
            delta.insert(&block[done..at - before]);
            delta.copy(from - before, expected, at - before..at + length);
            (at, done, expected) = (at + length, at + length, from + length);
        }
        delta.insert(&block[done..]);
        delta
    }

    fn insert(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            write_number(&mut self.bytes, bytes.len() << 1);
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn copy(&mut self, from: usize, expected: usize, block: Range<usize>) {
        write_number(&mut self.bytes, block.len() << 1 | 1);
        let step = if from < expected { (expected - from) * 2 - 1 } else { (from - expected) * 2 };
        write_number(&mut self.bytes, step);
        self.copied.push(block);
    }
}

/// Returns the block whose delta against `base` this is; `None` if the bytes are no such delta.
pub fn restore(base: &[u8], mut delta: &[u8]) -> Option<Vec<u8>> {
    let mut block = Vec::new();
    let mut expected = 0usize;
    while !delta.is_empty() {
        let number = read_number(&mut delta)?;
        let length = number >> 1;
        if number & 1 == 0 {
            block.extend_from_slice(delta.get(..length)?);
            delta = &delta[length..];
        } else {
            let step = read_number(&mut delta)?;
            let from = match step & 1 {
                0 => expected.checked_add(step >> 1)?,
                _ => expected.checked_sub((step >> 1) + 1)?,
            };
            expected = from.checked_add(length)?;
            block.extend_from_slice(base.get(from..expected)?);
        }
    }
    Some(block)
}

/// Returns how many items two sequences have in common before they differ.
fn same<'a>(a: impl Iterator<Item = &'a u8>, b: impl Iterator<Item = &'a u8>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).count()
}

fn write_number(to: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

fn read_number(from: &mut &[u8]) -> Option<usize> {
    let (mut number, mut shift) = (0usize, 0);
    loop {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        let bits = usize::from(byte & 0x7f);
        if shift >= usize::BITS || bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::single_range_in_vec_init, reason = "these are lists of ranges")]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_has_the_instructions_that_it_says() {
        let (base, block) = ("今天天气很好。", "明天天气很好！");
        let delta = Delta::new(base.as_bytes(), block.as_bytes());
        assert_eq!(delta.copied, [3..18]);
        let expected = [&[6][..], "明".as_bytes(), &[31, 6, 6], "！".as_bytes()].concat();
        assert_eq!(delta.bytes, expected);
        assert_eq!(restore(base.as_bytes(), &delta.bytes).unwrap(), block.as_bytes());
    }

    #[test]
    fn damaged_deltas_are_none() {
        for delta in [&[4, b'x'][..], &[3], &[21, 0], &[3, 1], &[0x80], &[0xff; 11]] {
            assert_eq!(restore(b"base", delta), None, "{delta:?}");
        }
        assert_eq!(restore(b"base", &[]).unwrap(), b"");
    }

    proptest! {
        #[test]
        fn a_delta_gives_the_block_again(base in "[ab今天]{0,60}", block in "[ab今天]{0,60}") {
            let delta = Delta::new(base.as_bytes(), block.as_bytes());
            prop_assert_eq!(restore(base.as_bytes(), &delta.bytes).unwrap(), block.as_bytes());
            let copied = delta.copied.iter().map(|range| range.len()).sum::<usize>();
            prop_assert!(copied <= block.len());
        }

        #[test]
        fn any_bytes_are_applied_or_refused_without_a_panic(delta in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = restore(b"some base", &delta);
        }
    }
}
