//! Adds words of the user to a dictionary, by the rules of jieba-rs's `add_word`.

use std::collections::HashMap;

use super::entry::{Stored, joins};
use super::packing;

/// A dictionary that can be changed.
pub struct Vocabulary {
    /// Frequencies by word.
    pub frequencies: HashMap<String, u64>,
    total: u64,
    /// Number of bytes of the longest word.
    longest: usize,
}

impl Vocabulary {
    /// Makes a dictionary of words with their frequencies.
    pub fn new(frequencies: HashMap<String, u64>) -> Self {
        let total = frequencies.values().sum();
        let longest = frequencies.keys().map(String::len).max().unwrap_or(0);
        Vocabulary { frequencies, total, longest }
    }

    /// Adds a word, or replaces its frequency. Without one, it gets the least that makes it more likely than
    /// its parts.
    pub fn add(&mut self, word: &str, frequency: Option<u32>) {
        let frequency = frequency.map_or_else(|| self.sufficient(word), u64::from);
        let before = self.frequencies.insert(word.to_owned(), frequency).unwrap_or(0);
        self.total = self.total + frequency - before;
        self.longest = self.longest.max(word.len());
    }

    /// Packs the dictionary. Returns `None` if it is too large for that.
    pub fn pack(&self) -> Option<Vec<Stored>> {
        let mut words: Vec<(&str, u64)> =
            self.frequencies.iter().map(|(word, &frequency)| (word.as_str(), frequency)).collect();
        words.sort_unstable();
        packing::pack(&words)
    }

    fn sufficient(&self, word: &str) -> u64 {
        let frequency = |word: &str| self.frequencies.get(word).copied().unwrap_or(1);
        let total = (self.total as f64).ln();
        // Floats are summed in this order: another could round to another frequency.
        let parts = self.parts(word).into_iter();
        let likelihood = parts.fold(0.0, |sum, part| sum + (frequency(part) as f64).ln() - total);
        ((likelihood + total).exp() as u64 + 1).max(frequency(word))
    }

    /// Cuts a text without a table: every piece of it is looked up. For words, which are short.
    fn parts<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let total = (self.total as f64).ln();
        let bounds: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        // By character: the weight of the best words from there, and the length of the first of these.
        let mut best = vec![(0.0, 1); bounds.len()];
        for start in (0..bounds.len() - 1).rev() {
            let block = text[bounds[start]..].find(|c| !joins(c)).unwrap_or(text.len() - bounds[start]);
            let block = &text[bounds[start]..bounds[start] + block];
            let mut found = None;
            for end in start + 1..bounds.len() {
                let length = bounds[end] - bounds[start];
                if length > block.len().min(self.longest) {
                    break;
                }
                if let Some(&frequency) = self.frequencies.get(&block[..length]) {
                    let weight = (frequency as f64).ln() - total + best[end].0;
                    if found.is_none_or(|(before, _)| weight >= before) {
                        found = Some((weight, end - start));
                    }
                }
            }
            if !block.is_empty() {
                best[start] = found.unwrap_or((0.0 - total + best[start + 1].0, 1));
            }
        }
        let is_single = |at: usize| best[at].1 == 1 && text.as_bytes()[bounds[at]].is_ascii_alphanumeric();
        let mut parts = Vec::new();
        let mut start = 0;
        while start < bounds.len() - 1 {
            let mut end = start + best[start].1;
            while is_single(start) && end < bounds.len() - 1 && is_single(end) {
                end += 1;
            }
            parts.push(&text[bounds[start]..bounds[end]]);
            start = end;
        }
        parts
    }
}
