//! Cuts texts into lines, sentences and paragraphs.

use std::iter;

use serde::{Deserialize, Serialize};

/// A part of a text that is compared or cut out as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Ends with a newline.
    Line,
    /// Ends with one of `。？！?!` or a newline. Source: Peng 2017, section 2.1, which names `。?!` and ends a paragraph
    /// with a newline.
    Sentence,
    /// Ends with the last newline before a line that has a character other than white space, if there is an empty line
    /// between them.
    Paragraph,
}

impl Unit {
    /// Returns the units of a text in order. Each has the characters that end it, so all of them together are the text.
    pub fn of(self, text: &str) -> impl Iterator<Item = &str> {
        let mut rest = text;
        iter::from_fn(move || {
            let end = match self {
                Unit::Line => rest.find('\n').map_or(rest.len(), |at| at + 1),
                Unit::Sentence => sentence(rest),
                Unit::Paragraph => paragraph(rest),
            };
            let (unit, behind) = rest.split_at(end);
            rest = behind;
            Some(unit).filter(|unit| !unit.is_empty())
        })
    }
}

/// Returns the length of the first sentence of a text.
fn sentence(text: &str) -> usize {
    let ends = |c: char| matches!(c, '。' | '？' | '！' | '?' | '!' | '\n');
    text.char_indices().find(|&(_, c)| ends(c)).map_or(text.len(), |(at, c)| at + c.len_utf8())
}

/// Returns the length of the first paragraph of a text, with the empty lines behind it.
fn paragraph(text: &str) -> usize {
    let (mut at, mut is_after_empty, mut has_text) = (0, false, false);
    for line in text.split_inclusive('\n') {
        let is_empty = line.trim().is_empty();
        if is_after_empty && has_text && !is_empty {
            break;
        }
        has_text |= !is_empty;
        is_after_empty = is_empty;
        at += line.len();
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn units(unit: Unit, text: &str) -> Vec<&str> {
        unit.of(text).collect()
    }

    #[test]
    fn units_end_where_they_should() {
        let text = "一。二？！三\n\n \n四 a!b?";
        assert_eq!(units(Unit::Line, text), ["一。二？！三\n", "\n", " \n", "四 a!b?"]);
        assert_eq!(units(Unit::Sentence, text), ["一。", "二？", "！", "三\n", "\n", " \n", "四 a!", "b?"]);
        assert_eq!(units(Unit::Paragraph, text), ["一。二？！三\n\n \n", "四 a!b?"]);
        assert_eq!(units(Unit::Paragraph, "\na\nb\n\n"), ["\na\nb\n\n"]);
        assert_eq!(units(Unit::Line, ""), [""; 0]);
    }

    proptest! {
        #[test]
        fn units_together_are_the_text(text in "[ab。？!\n ]{0,40}") {
            for unit in [Unit::Line, Unit::Sentence, Unit::Paragraph] {
                prop_assert_eq!(units(unit, &text).concat(), &*text);
            }
        }
    }
}
