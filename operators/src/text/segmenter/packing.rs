//! Packs a dictionary into a blob. The build script uses this file too.
//!
//! A blob is a run of 64-bit numbers: how many codes there are, how many frequencies, the sum of the
//! frequencies of all words, the character of each code, the frequencies (that of number 0 means nothing), the
//! [`Prefix`] of each code as a first character, and the prefixes of two and more characters. The latter are a
//! double array: prefix `p` with character `c` behind it is found at `p.base() + c` if the code there is that
//! of `c`. No two prefixes have one base, so the code tells what belongs to whom.
//!
//! Source: Aoe, "An Efficient Digital Search Algorithm by Using a Double-Array Structure", IEEE TSE 1989.

use std::collections::BTreeMap;

use super::entry::{BASES, FIRST_ALPHANUMERIC, FIRST_OTHER, Prefix, SEPARATOR, Stored};

/// One more than the highest character. Arrays by character are quick even where nothing is optimised.
const CHARS: usize = char::MAX as usize + 1;

/// A beginning of words, while the table is built.
struct Node {
    parent: usize,
    code: u16,
    frequency: u16,
    base: usize,
}

/// Packs words with their frequencies. `words` are sorted, and each is there once. Returns `None` for more than
/// 65,535 characters, as many different frequencies or some 16 million beginnings of words.
///
/// Cost: 0.1 CPU seconds for 350,000 words, and 1 without optimisation.
pub fn pack(words: &[(&str, u64)]) -> Option<Vec<Stored>> {
    let chars = chars_by_code(words);
    let mut codes = vec![0; CHARS];
    for (&c, code) in chars.iter().zip(0..=u16::MAX).skip(FIRST_ALPHANUMERIC.into()) {
        codes[c as usize] = code;
    }
    let mut numbers: BTreeMap<u64, u16> = words.iter().map(|&(_, frequency)| (frequency, 0)).collect();
    numbers.values_mut().zip(1..=u16::MAX).for_each(|(number, n)| *number = n);
    if chars.len() > u16::MAX.into() || numbers.len() > u16::MAX.into() {
        return None;
    }
    let mut nodes = nodes(words, &codes, &numbers);
    let children = children(&nodes);
    let slots = place(&mut nodes, &children)? + chars.len();

    let mut roots = vec![Prefix::default(); chars.len()];
    let mut prefixes = vec![Prefix::default(); slots];
    for (node, children) in nodes.iter().zip(&children).skip(1) {
        let mut prefix = Prefix::new(node.code, node.frequency, node.base);
        children.iter().for_each(|&child| prefix.follow(nodes[child].code));
        match node.parent {
            0 => roots[usize::from(node.code)] = prefix,
            parent => prefixes[nodes[parent].base + usize::from(node.code)] = prefix,
        }
    }
    let total = words.iter().map(|(_, frequency)| frequency).sum();
    let header = [chars.len() as u64, numbers.len() as u64 + 1, total];
    let chars = chars.iter().map(|&c| u64::from(u32::from(c)));
    let frequencies = std::iter::once(0).chain(numbers.into_keys());
    let prefixes = roots.into_iter().chain(prefixes).map(|prefix| prefix.0);
    Some(header.into_iter().chain(chars).chain(frequencies).chain(prefixes).map(u64::to_le_bytes).collect())
}

/// Returns the characters of the words in the order of their codes: what is frequent in texts comes first, so
/// that it lies together in memory. The codes that stand for no character have a NUL.
fn chars_by_code(words: &[(&str, u64)]) -> Vec<char> {
    let alphanumeric = ('0'..='9').chain('A'..='Z').chain('a'..='z');
    let mut counts = vec![0; CHARS];
    for (word, frequency) in words {
        word.chars().for_each(|c| counts[c as usize] += frequency + 1);
    }
    let others = ('\0'..=char::MAX).filter(|&c| counts[c as usize] != 0 && !c.is_ascii_alphanumeric());
    let mut others: Vec<(u64, char)> = others.map(|c| (u64::MAX - counts[c as usize], c)).collect();
    others.sort_unstable();
    let chars: Vec<char> = (0..FIRST_ALPHANUMERIC).map(|_| '\0').chain(alphanumeric).collect();
    assert_eq!(chars.len(), usize::from(FIRST_OTHER));
    chars.into_iter().chain(others.into_iter().map(|(_, c)| c)).collect()
}

/// Returns the beginnings of all words, each behind its own beginning. The first is the empty one.
fn nodes(words: &[(&str, u64)], codes: &[u16], numbers: &BTreeMap<u64, u16>) -> Vec<Node> {
    let mut nodes = vec![Node { parent: 0, code: SEPARATOR, frequency: 0, base: 0 }];
    // The characters of the word before, and the node with which each ends.
    let mut path = Vec::<(char, usize)>::new();
    for (word, frequency) in words {
        let same = path.iter().zip(word.chars()).take_while(|((before, _), c)| before == c).count();
        path.truncate(same);
        for c in word.chars().skip(same) {
            let parent = path.last().map_or(0, |&(_, node)| node);
            path.push((c, nodes.len()));
            nodes.push(Node { parent, code: codes[c as usize], frequency: 0, base: 0 });
        }
        if let Some(&(_, last)) = path.last() {
            nodes[last].frequency = numbers[frequency];
        }
    }
    nodes
}

/// Returns the nodes that follow each node by one character.
fn children(nodes: &[Node]) -> Vec<Vec<usize>> {
    let mut children = vec![Vec::new(); nodes.len()];
    nodes.iter().enumerate().skip(1).for_each(|(child, node)| children[node.parent].push(child));
    children
}

/// Gives a base to each node with children but the first, and returns the highest.
///
/// The nodes with most children come first. Those with one child, which are the most, fill the gaps.
fn place(nodes: &mut [Node], children: &[Vec<usize>]) -> Option<usize> {
    let mut parents: Vec<usize> = (1..nodes.len()).filter(|&node| !children[node].is_empty()).collect();
    parents.sort_by_key(|&node| usize::MAX - children[node].len());
    let mut gaps = Gaps::new();
    let (mut block, mut size) = (0, 0);
    for node in parents {
        let mut codes: Vec<usize> = children[node].iter().map(|&child| nodes[child].code.into()).collect();
        codes.sort_unstable();
        if codes.len() != size {
            (block, size) = (0, codes.len());
        }
        let base = match codes[..] {
            [code] => gaps.base_of_one(code)?,
            _ => gaps.base_of_some(&codes, &mut block)?,
        };
        gaps.take(base, &codes);
        nodes[node].base = base;
    }
    nodes.iter().map(|node| node.base).max()
}

/// Slots and bases that are not taken, a bit for each, in words of 64.
struct Gaps {
    slots: Vec<u64>,
    bases: Vec<u64>,
    /// No word of slots before this has a gap.
    first: usize,
    /// No gap before this slot is looked at for a node with one child.
    next: usize,
}

impl Gaps {
    fn new() -> Self {
        let slots = vec![u64::MAX; (BASES + usize::from(u16::MAX)) / 64 + 2];
        let mut bases = vec![u64::MAX; BASES / 64];
        bases[0] -= 1;
        Gaps { slots, bases, first: 0, next: 0 }
    }

    fn take(&mut self, base: usize, codes: &[usize]) {
        self.bases[base / 64] &= !(1 << (base % 64));
        for slot in codes.iter().map(|code| base + code) {
            self.slots[slot / 64] &= !(1 << (slot % 64));
        }
        while self.slots[self.first] == 0 {
            self.first += 1;
        }
    }

    /// Returns the first base from `block` on that leaves a gap for every code, and moves `block` to its own.
    /// Sixty-four bases are tried at once.
    fn base_of_some(&self, codes: &[usize], block: &mut usize) -> Option<usize> {
        while *block < self.bases.len() {
            let mut fit = self.bases[*block];
            for code in codes {
                let word = *block + code / 64;
                let bit = code % 64;
                // Two shifts, since one by 64 is not allowed.
                fit &= self.slots[word] >> bit | self.slots[word + 1] << 1 << (63 - bit);
                if fit == 0 {
                    break;
                }
            }
            if fit != 0 {
                return Some(*block * 64 + fit.trailing_zeros() as usize);
            }
            *block += 1;
        }
        None
    }

    /// Returns the base by which a code takes an early gap. A gap that many have refused is not looked at again.
    fn base_of_one(&mut self, code: usize) -> Option<usize> {
        const MOST_REFUSED: usize = 8;
        let mut slot = self.next.max(self.first * 64);
        let mut refused = 0;
        loop {
            let word = self.slots.get(slot / 64)? >> (slot % 64);
            if word == 0 {
                slot = (slot / 64 + 1) * 64;
                continue;
            }
            slot += word.trailing_zeros() as usize;
            let base = slot.wrapping_sub(code);
            if self.bases.get(base / 64).is_some_and(|bases| bases >> (base % 64) & 1 == 1) {
                return Some(base);
            }
            if slot > code && base >= BASES {
                return None;
            }
            slot += 1;
            refused += 1;
            if refused == MOST_REFUSED {
                self.next = slot;
            }
        }
    }
}
