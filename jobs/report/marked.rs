//! Two texts with their differences marked, for a page.

use serde::Serialize;
use similar::DiffOp;

use crate::commands::side_by_side::{differences, words};

/// Number of characters of a text that are shown at most.
const MOST_CHARS: usize = 2_000;
/// Number of equal words that are shown on either side of a difference.
const CONTEXT: usize = 40;

/// A stretch of a text.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct MarkedStretch {
    pub text: String,
    /// Whether only this one of the two texts has it.
    pub marked: bool,
}

/// Returns the stretches of both texts. Long ones that both have are shortened, and long texts cut.
pub(super) fn marked(a: &str, b: &str) -> [Vec<MarkedStretch>; 2] {
    let [(a, cut_a), (b, cut_b)] = [a, b].map(cut);
    let (a, b) = (words(a), words(b));
    let mut stretches = [Vec::new(), Vec::new()];
    for op in differences(&a, &b) {
        let marked = !matches!(op, DiffOp::Equal { .. });
        for (stretches, words) in stretches.iter_mut().zip([&a[op.old_range()], &b[op.new_range()]]) {
            if !words.is_empty() {
                stretches.push(MarkedStretch {
                    text: if marked { words.concat() } else { shortened(words) },
                    marked,
                });
            }
        }
    }
    for (stretches, cut) in stretches.iter_mut().zip([cut_a, cut_b]) {
        if cut > 0 {
            stretches.push(MarkedStretch { text: format!(" … and {cut} characters more"), marked: false });
        }
    }
    stretches
}

/// Cuts a text, and returns the number of characters that are left out.
pub(super) fn cut(text: &str) -> (&str, usize) {
    match text.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => (&text[..end], text[end..].chars().count()),
        None => (text, 0),
    }
}

fn shortened(words: &[&str]) -> String {
    match words.len().checked_sub(2 * CONTEXT).filter(|left_out| *left_out > CONTEXT) {
        Some(left_out) => {
            let (head, tail) = (&words[..CONTEXT], &words[words.len() - CONTEXT..]);
            format!("{} … {left_out} words that both have … {}", head.concat(), tail.concat())
        }
        None => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(stretches: &[MarkedStretch]) -> String {
        let show = |stretch: &MarkedStretch| {
            if stretch.marked { format!("[{}]", stretch.text) } else { stretch.text.clone() }
        };
        stretches.iter().map(show).collect()
    }

    #[test]
    fn what_differs_is_marked_and_the_rest_is_shortened() {
        let [a, b] = marked("今天是晴天", "今天是雨天气");
        assert_eq!((shown(&a).as_str(), shown(&b).as_str()), ("今天是[晴]天", "今天是[雨]天[气]"));
        let long = "文".repeat(1_000);
        let [a, b] = marked(&format!("{long}甲"), &format!("{long}乙"));
        assert!(
            shown(&a).ends_with("文[甲]") && shown(&b).contains(" … 920 words that both have … "),
            "{}",
            shown(&b)
        );
        let [a, _] = marked(&"字".repeat(5_000_000), "");
        assert!(shown(&a).ends_with("字] … and 4998000 characters more"));
    }
}
