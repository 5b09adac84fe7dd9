//! Copies of texts in which pieces are inserted at random.

use std::ops::Range;

use crate::hash;

/// Copy of a text in which pieces of other text are inserted, and the places of these pieces. Source: Peng 2017, section 3,
/// second and third experiment, which insert "disturbances" into files. Their number and length are not given.
///
/// ```text
/// text        今天天气很好。
/// pieces      甲乙, 丙
/// copy        今天甲乙天气丙很好。        inserted 6..12 and 18..21
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disturbed {
    /// The copy.
    pub text: String,
    /// Ranges of the copy, in bytes, that are not of the text, in their order.
    pub inserted: Vec<Range<usize>>,
}

impl Disturbed {
    /// Inserts each piece at a place of its own, chosen by `seed` among all places between characters. Pieces at the same
    /// place follow each other.
    pub fn new(text: &str, pieces: &[&str], seed: u64) -> Self {
        let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let place = |number: u64| {
            let random = hash::spread(hash::spread(seed) ^ number);
            ends[((u128::from(random) * ends.len() as u128) >> 64) as usize]
        };
        let mut places: Vec<_> = (0..).zip(pieces).map(|(number, piece)| (place(number), *piece)).collect();
        places.sort_by_key(|&(place, _)| place);
        let mut copy = String::new();
        let mut inserted = Vec::new();
        let mut done = 0;
        for (place, piece) in places {
            copy.push_str(&text[done..place]);
            inserted.push(copy.len()..copy.len() + piece.len());
            copy.push_str(piece);
            done = place;
        }
        copy.push_str(&text[done..]);
        Disturbed { text: copy, inserted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_without_what_was_inserted_is_the_text() {
        let text = "今天天气很好，我们去北京。";
        for seed in 0..50 {
            let copy = Disturbed::new(text, &["甲乙", "x", "丙"], seed);
            let mut rest = copy.text.clone();
            copy.inserted.iter().rev().for_each(|range| drop(rest.drain(range.clone())));
            assert_eq!(rest, text);
            let mut pieces: Vec<_> = copy.inserted.iter().map(|range| &copy.text[range.clone()]).collect();
            pieces.sort_unstable();
            assert_eq!(pieces, ["x", "丙", "甲乙"]);
        }
        assert_eq!(Disturbed::new(text, &["x"], 3), Disturbed::new(text, &["x"], 3));
        assert_ne!(Disturbed::new(text, &["x"], 3), Disturbed::new(text, &["x"], 4));
        assert_eq!(Disturbed::new("", &["x"], 3).text, "x");
    }
}
