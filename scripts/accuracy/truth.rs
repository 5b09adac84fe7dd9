//! The referee: finds every pair of documents whose sets of character 5-grams have a Jaccard similarity of at
//! least 0.8.
//!
//! The program shares nothing with the job that it judges; `run` compiles it with `rustc`.
//!
//!     truth CORPUS OUT
//!
//! CORPUS has a text on each line, in UTF-8. A gram is five Unicode scalar values; a text of fewer is one
//! gram. OUT/texts gets the number of each document's text (equal texts have one number, counted by first
//! occurrence). OUT/pairs gets the pairs of different texts, as `a b` with a < b.
//!
//! The result is exact: grams are compared as they are and not by a hash, and similarities as fractions.
//! Three rules save work and lose no pair:
//!
//! - Equal texts are compared once.
//! - A text has no partner if fewer than 80 % of its grams occur in other texts. Occurrences are counted in a
//!   sketch, which can only count too many.
//! - In any fixed order of grams, the first n - ceil(0.8 n) + 1 grams of a text hold a gram of each partner
//!   (Chaudhuri, Ganti, Kaushik, "A Primitive Operator for Similarity Joins in Data Cleaning", ICDE 2006).

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};

/// Up to five scalar values of 21 bits, and above them their number.
type Gram = u128;

const WIDTH: usize = 5;
const SKETCH_BITS: u32 = 26;
const ODD: Gram = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835; // 2^128 over the golden ratio, to spread grams over slots

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [corpus, out] = &arguments[..] else { panic!("truth CORPUS OUT") };
    let corpus = fs::read_to_string(corpus)?;

    let mut numbers = HashMap::new();
    let mut texts = Vec::new();
    let mut text_of_document = Vec::new();
    for text in corpus.split_terminator('\n') {
        let number = *numbers.entry(text).or_insert_with(|| {
            texts.push(text);
            texts.len() - 1
        });
        text_of_document.push(number);
    }
    let pairs = similar(&texts);

    fs::create_dir_all(out)?;
    let mut file = BufWriter::new(File::create(format!("{out}/texts"))?);
    for number in &text_of_document {
        writeln!(file, "{number}")?;
    }
    let mut file = BufWriter::new(File::create(format!("{out}/pairs"))?);
    for (a, b) in &pairs {
        writeln!(file, "{a} {b}")?;
    }
    Ok(())
}

/// Returns the distinct grams of a text in ascending order.
fn grams(text: &str) -> Vec<Gram> {
    let scalars: Vec<Gram> = text.chars().map(|scalar| scalar as Gram).collect();
    let width = scalars.len().min(WIDTH);
    let pack = |window: &[Gram]| window.iter().fold(width as Gram, |gram, scalar| gram << 21 | scalar);
    let mut grams: Vec<Gram> = if width == 0 { vec![0] } else { scalars.windows(width).map(pack).collect() };
    grams.sort_unstable();
    grams.dedup();
    grams
}

/// Returns all pairs of different texts at 0.8 or above, in ascending order.
fn similar(texts: &[&str]) -> Vec<(usize, usize)> {
    let survivors = with_shared_grams(texts);
    let mut sets = ranked(&survivors, texts);
    sets.sort_by_key(|(_, set)| set.len());

    let mut pairs = Vec::new();
    let mut postings: HashMap<u32, Vec<usize>> = HashMap::new();
    let mut last_met = vec![usize::MAX; sets.len()];
    for (this, (number, set)) in sets.iter().enumerate() {
        for gram in &set[..prefix(set.len())] {
            let earlier = postings.entry(*gram).or_default();
            for &other in earlier.iter() {
                let (other_number, other_set) = &sets[other];
                if last_met[other] != this && at_least(other_set.len(), set.len()) {
                    last_met[other] = this;
                    let common = common(set, other_set);
                    if at_least(common, set.len() + other_set.len() - common) {
                        pairs.push((*number.min(other_number), *number.max(other_number)));
                    }
                }
            }
            earlier.push(this);
        }
    }
    pairs.sort_unstable();
    pairs
}

/// Whether `part / whole` is 0.8 or more.
fn at_least(part: usize, whole: usize) -> bool {
    5 * part >= 4 * whole
}

/// Returns the length of the prefix of a set of `size` grams. Every partner has at least one gram of the
/// prefix.
fn prefix(size: usize) -> usize {
    size - (4 * size).div_ceil(5) + 1
}

/// Returns the numbers of the texts that may have a partner.
fn with_shared_grams(texts: &[&str]) -> Vec<usize> {
    let slot = |gram: &Gram| (gram.wrapping_mul(ODD) >> (Gram::BITS - SKETCH_BITS)) as usize;
    let mut met = vec![0u8; 1 << SKETCH_BITS];
    for text in texts {
        for gram in grams(text) {
            let count = &mut met[slot(&gram)];
            *count = count.saturating_add(1);
        }
    }
    let shared = |text: &str| {
        let grams = grams(text);
        at_least(grams.iter().filter(|gram| met[slot(gram)] > 1).count(), grams.len())
    };
    (0..texts.len()).filter(|&number| shared(texts[number])).collect()
}

/// Returns the set of each text, in which each gram is replaced by its rank, in ascending order. The rarest
/// gram has the lowest rank.
fn ranked(numbers: &[usize], texts: &[&str]) -> Vec<(usize, Vec<u32>)> {
    let mut all: Vec<Gram> = numbers.iter().flat_map(|&number| grams(texts[number])).collect();
    all.sort_unstable();
    let mut by_count: Vec<(usize, Gram)> =
        all.chunk_by(|a, b| a == b).map(|same| (same.len(), same[0])).collect();
    drop(all);
    by_count.sort_unstable();
    let ranks: HashMap<Gram, u32> = (0..).zip(&by_count).map(|(rank, (_, gram))| (*gram, rank)).collect();
    let set = |&number: &usize| {
        let mut set: Vec<u32> = grams(texts[number]).iter().map(|gram| ranks[gram]).collect();
        set.sort_unstable();
        (number, set)
    };
    numbers.iter().map(set).collect()
}

/// Counts the values that two ascending lists share.
fn common(a: &[u32], b: &[u32]) -> usize {
    let (mut i, mut j, mut common) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        common += usize::from(a[i] == b[j]);
        let step = (usize::from(a[i] <= b[j]), usize::from(b[j] <= a[i]));
        (i, j) = (i + step.0, j + step.1);
    }
    common
}
