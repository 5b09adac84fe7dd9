//! Two texts with their differences marked, for a page; and the differences of two texts.

use std::time::{Duration, Instant};

use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};
use unicode_segmentation::UnicodeSegmentation;

use super::texts::ShownText;

/// Time after which differences are found only roughly.
const PATIENCE: Duration = Duration::from_secs(1);
/// Number of equal words that are shown on either side of a difference.
const CONTEXT: usize = 40;

/// A stretch of a text.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct MarkedStretch {
    pub text: String,
    /// Whether only this one of the two texts has it.
    pub marked: bool,
}

/// Returns the stretches of both texts. Long ones that both have are shortened.
pub(super) fn marked(a: &ShownText, b: &ShownText) -> [Vec<MarkedStretch>; 2] {
    let left_out = [a.left_out, b.left_out];
    let (a, b) = (words(&a.text), words(&b.text));
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
    for (stretches, left_out) in stretches.iter_mut().zip(left_out) {
        if left_out > 0 {
            let text = format!(" … and {left_out} characters more");
            stretches.push(MarkedStretch { text, marked: false });
        }
    }
    stretches
}

/// Returns the words of a text. Each Chinese character is a word.
pub fn words(text: &str) -> Vec<&str> {
    text.split_word_bounds().collect()
}

/// Compares the words of two texts, for one second at most.
pub fn differences(a: &[&str], b: &[&str]) -> Vec<DiffOp> {
    capture_diff_slices_deadline(Algorithm::Myers, a, b, Some(Instant::now() + PATIENCE))
}

fn shortened(words: &[&str]) -> String {
    match words.len().checked_sub(2 * CONTEXT).filter(|left_out| *left_out > CONTEXT) {
        Some(left_out) => {
            let head = &words[..CONTEXT];
            let tail = &words[words.len() - CONTEXT..];
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
        let marked = |a: &str, b: &str| marked(&ShownText::of(a), &ShownText::of(b));
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
