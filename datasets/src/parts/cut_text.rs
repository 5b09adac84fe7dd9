//! Texts out of which parts are cut.

use std::ops::Range;

/// Returns a text without these ranges of its bytes, which are in order and do not overlap. Returns `None` if one of
/// them is no range of characters of the text.
///
/// ```text
/// text "abcdef", ranges 1..2 and 4..6    gives "acd"
/// ```
pub(crate) fn without(text: &str, cuts: &[Range<usize>]) -> Option<String> {
    let mut kept = String::with_capacity(text.len());
    let mut end = 0;
    for cut in cuts {
        kept.push_str(text.get(end..cut.start)?);
        end = text.get(cut.clone()).map(|_| cut.end)?;
    }
    kept.push_str(text.get(end..)?);
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_at_characters_only() {
        assert_eq!(without("abcdef", &[1..2, 4..6]).unwrap(), "acd");
        assert_eq!(without("新华社", &[0..3, 3..6]).unwrap(), "社");
        assert_eq!(without("新华社", &[]).unwrap(), "新华社");
        for cuts in [[0..3, 4..6], [0..3, 3..10], [3..6, 0..3]] {
            assert_eq!(without("新华社", &cuts), None);
        }
    }
}
