//! Generated texts, and copies of texts with disturbances.

use std::iter;

use datasets::Synthetic;
use operators::blocks::Disturbed;
use operators::hash;
use operators::text::units::Unit;

use super::measured::MeasuredCorpus;

/// Number of characters of the pieces that are inserted: from 1 to this.
const PIECE_CHARS: usize = 20;

/// A text and its copy with disturbances.
pub(super) struct DisturbedPair {
    text: String,
    copy: Disturbed,
}

/// Returns a text of at most `bytes` bytes, and at least `bytes` less 3: generated documents, each followed by a newline.
pub(super) fn generated_text(bytes: usize, seed: u64) -> String {
    let docs = Synthetic { documents: u64::MAX, seed }.docs().filter(|doc| doc.duplicate.is_none());
    let mut text = String::new();
    for doc in docs {
        text.push_str(&doc.text);
        text.push('\n');
        if text.len() >= bytes {
            break;
        }
    }
    text.truncate(text.floor_char_boundary(bytes));
    text
}

/// Returns at least `count` different sentences of generated text, in the order of their bytes.
pub(super) fn generated_sentences(count: usize, seed: u64) -> Vec<String> {
    let mut bytes = 64 * count;
    loop {
        let text = generated_text(bytes, seed);
        let mut sentences: Vec<_> = Unit::Sentence.of(&text).filter(|sentence| sentence.len() > 9).collect();
        sentences.sort_unstable();
        sentences.dedup();
        if sentences.len() >= count {
            return sentences.into_iter().map(str::to_owned).collect();
        }
        bytes *= 2;
    }
}

impl DisturbedPair {
    /// Makes `count` pairs, each with another text, which `text_of_seed` makes. The pieces that are inserted are parts of
    /// generated text.
    pub fn make(insertions: usize, seed: u64, count: u64, text_of_seed: impl Fn(u64) -> String) -> Vec<Self> {
        let seeds = (0..count).map(|trial| hash::spread(hash::spread(seed) ^ trial));
        let pair = |seed: u64| {
            let text = text_of_seed(seed);
            let other: Vec<char> = generated_text(insertions * 4 * PIECE_CHARS, !seed).chars().collect();
            let pieces: Vec<String> = other
                .chunks(PIECE_CHARS)
                .zip(0..insertions as u64)
                .map(|(chars, number)| {
                    let length = 1 + hash::spread(seed ^ number) as usize % chars.len();
                    chars[..length].iter().collect()
                })
                .collect();
            let pieces: Vec<_> = pieces.iter().map(String::as_str).collect();
            let copy = Disturbed::new(&text, &pieces, seed);
            DisturbedPair { text, copy }
        };
        seeds.map(pair).collect()
    }

    /// Returns the text and its copy as one corpus. All of the copy but the insertions is a duplicate.
    pub fn corpus(&self) -> MeasuredCorpus<'_> {
        let Disturbed { text: copy, inserted } = &self.copy;
        let starts = iter::once(0).chain(inserted.iter().map(|range| range.end));
        let ends = inserted.iter().map(|range| range.start).chain([copy.len()]);
        let known = starts.zip(ends).map(|(start, end)| start..end).collect();
        MeasuredCorpus { texts: vec![&self.text, copy], duplicates: vec![Vec::new(), known] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_their_size_and_depend_on_the_seed_alone() {
        let text = generated_text(10_000, 1);
        assert!((9_997..=10_000).contains(&text.len()), "{}", text.len());
        assert_eq!(generated_text(10_000, 1), text);
        assert_ne!(generated_text(10_000, 2), text);
        let sentences = generated_sentences(300, 1);
        assert!(sentences.len() >= 300 && sentences.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_copy_has_its_insertions_and_the_text() {
        let pairs = DisturbedPair::make(10, 1, 2, |seed| generated_text(5_000, seed));
        assert_ne!(pairs[0].text, pairs[1].text);
        for pair in &pairs {
            assert_eq!(pair.copy.inserted.len(), 10);
            let corpus = pair.corpus();
            let known: String =
                corpus.duplicates[1].iter().map(|range| &corpus.texts[1][range.clone()]).collect();
            assert_eq!(known, pair.text);
        }
    }
}
