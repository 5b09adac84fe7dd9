//! Lays out two texts side by side, with their differences marked.

use std::io;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use similar::DiffOp;
use terminal_size::{Width, terminal_size};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use runtime::report::marked::{differences, words};

/// Layout of two texts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextLayout {
    /// Width of the terminal, in columns.
    pub width: usize,
    /// Whether differences are coloured; else they are put in `[-` `-]` and `{+` `+}`.
    pub colour: bool,
    /// Whether long stretches that both texts have are shown too.
    pub whole: bool,
}

/// Width if the output is no terminal, in columns.
const WIDTH: usize = 120;
/// Gap between the two texts.
const GAP: &str = " │ ";
/// Number of equal words that are shown on either side of a difference.
const CONTEXT: usize = 24;

/// Stretch of a text, and the style in which it is shown.
type Stretch = (String, Style);

/// Styles of the words that only one of the texts has. The underline makes white space visible, and shows
/// differences also without colours.
const STYLES: [Style; 2] =
    [AnsiColor::Red.on_default().underline(), AnsiColor::Green.on_default().underline()];
/// Brackets around these words where there are no colours.
const BRACKETS: [[&str; 2]; 2] = [["[-", "-]"], ["{+", "+}"]];

/// Returns the stretches that only one of two texts has: those of the first, and those of the second.
pub(crate) fn only_in_one(a: &str, b: &str) -> [Vec<String>; 2] {
    let (a, b) = (words(a), words(b));
    let mut only = [Vec::new(), Vec::new()];
    for op in differences(&a, &b).into_iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
        for (side, stretch) in only.iter_mut().zip([&a[op.old_range()], &b[op.new_range()]]) {
            side.extend((!stretch.is_empty()).then(|| stretch.concat()));
        }
    }
    only
}

impl TextLayout {
    /// Returns the layout for the terminal, in this width if the user named one.
    pub fn of_terminal(width: Option<usize>, whole: bool) -> Self {
        let of_terminal = || terminal_size().map(|(Width(width), _)| usize::from(width));
        TextLayout {
            width: width.or_else(of_terminal).unwrap_or(WIDTH),
            colour: AutoStream::choice(&io::stdout()) != ColorChoice::Never,
            whole,
        }
    }

    /// Returns the line of two headings, each cut to its column.
    pub fn headings(&self, left: &str, right: &str) -> String {
        let cut = |text: &str| self.wrap(&[(visible(text), Style::new())]).swap_remove(0);
        [cut(left), cut(right)].join(GAP)
    }

    /// Returns the lines that show both texts.
    pub fn lines(&self, a: &str, b: &str) -> Vec<String> {
        let (a, b) = (visible(a), visible(b));
        let (a, b) = (words(&a), words(&b));
        let ops = differences(&a, &b);
        let mut lines = Vec::new();
        let mut pieces = [Vec::new(), Vec::new()];
        for (at, op) in ops.iter().enumerate() {
            let (old, new) = (&a[op.old_range()], &b[op.new_range()]);
            if !matches!(op, DiffOp::Equal { .. }) {
                pieces[0].extend(self.marked(old, 0));
                pieces[1].extend(self.marked(new, 1));
                continue;
            }
            // Nothing differs before the first stretch or after the last.
            let before = if at == 0 { 0 } else { CONTEXT };
            let after = if at + 1 == ops.len() { 0 } else { CONTEXT };
            let hidden = old.len().saturating_sub(before + after);
            let mut rest = old;
            if hidden > CONTEXT && ops.len() > 1 && !self.whole {
                pieces.iter_mut().for_each(|side| side.push((old[..before].concat(), Style::new())));
                lines.extend(self.rows(&mut pieces));
                lines.push(format!("… {hidden} words that both have …"));
                rest = &old[before + hidden..];
            }
            pieces.iter_mut().for_each(|side| side.push((rest.concat(), Style::new())));
        }
        lines.extend(self.rows(&mut pieces));
        lines
    }

    /// Marks words that only the text of this side has: 0 for the left, 1 for the right.
    fn marked(&self, words: &[&str], side: usize) -> Option<Stretch> {
        let text = words.concat();
        let [open, close] = BRACKETS[side];
        let marked = match self.colour {
            true => (text, STYLES[side]),
            false => (format!("{open}{text}{close}"), Style::new()),
        };
        (!words.is_empty()).then_some(marked)
    }

    /// Takes the pieces of both sides, and lays them out from the same line on.
    fn rows(&self, pieces: &mut [Vec<Stretch>; 2]) -> Vec<String> {
        if pieces.iter().flatten().all(|(text, _)| text.is_empty()) {
            pieces.iter_mut().for_each(Vec::clear);
            return Vec::new();
        }
        let [left, right] = pieces.each_mut().map(|side| self.wrap(&std::mem::take(side)));
        let blank = " ".repeat(self.column());
        let side = |lines: &[String], at| lines.get(at).unwrap_or(&blank).clone();
        let rows = left.len().max(right.len());
        (0..rows).map(|at| [side(&left, at), side(&right, at)].join(GAP).trim_end().to_owned()).collect()
    }

    /// Returns the width of the column of one text.
    fn column(&self) -> usize {
        (self.width.saturating_sub(GAP.width()) / 2).max(8)
    }

    /// Wraps pieces into one or more lines of exactly the width of a column.
    fn wrap(&self, pieces: &[Stretch]) -> Vec<String> {
        let column = self.column();
        let mut lines = Vec::new();
        let mut line = String::new();
        let mut used = 0;
        for (text, style) in pieces {
            line.push_str(&style.render().to_string());
            for character in text.graphemes(true) {
                let width = character.width();
                if used + width > column {
                    line.push_str(&style.render_reset().to_string());
                    line.push_str(&" ".repeat(column.saturating_sub(used)));
                    lines.push(std::mem::replace(&mut line, style.render().to_string()));
                    used = 0;
                }
                line.push_str(character);
                used += width;
            }
            line.push_str(&style.render_reset().to_string());
        }
        if used > 0 || lines.is_empty() {
            line.push_str(&" ".repeat(column.saturating_sub(used)));
            lines.push(line);
        }
        lines
    }
}

/// Returns a text on one line, without characters that control a terminal or turn the direction of a line.
fn visible(text: &str) -> String {
    let visible = |c: char| match c {
        '\n' => '↵',
        '\t' => '→',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => {
            char::REPLACEMENT_CHARACTER
        }
        c => c,
    };
    text.replace("\r\n", "\n").chars().map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(width: usize) -> TextLayout {
        TextLayout { width, colour: false, whole: false }
    }

    #[test]
    fn what_differs_is_marked_on_its_own_side() {
        assert_eq!(layout(43).lines("今天天气好", "今天气很好"), ["今天[-天-]气好       │ 今天气{+很+}好"]);
        assert_eq!(layout(43).lines("same", "same"), ["same                 │ same"]);
        assert_eq!(layout(43).lines("one two", "one 2"), ["one [-two-]          │ one {+2+}"]);
    }

    #[test]
    fn a_chinese_character_takes_two_columns() {
        // Each side has 9 columns: four characters and a space.
        let lines = layout(21).lines("一二三四五六", "一二三四五六");
        assert_eq!(lines, ["一二三四  │ 一二三四", "五六      │ 五六"]);
        for width in 19..40 {
            let lines = layout(width).lines(&"一a二".repeat(20), &"一b二é".repeat(20));
            assert!(lines.iter().all(|line| line.width() <= width), "{width}: {lines:?}");
        }
    }

    #[test]
    fn colours_end_with_their_line() {
        let lines = TextLayout { colour: true, ..layout(21) }.lines("甲", "一二三四五");
        let green = |text: &str| format!("\u{1b}[4m\u{1b}[32m{text}\u{1b}[0m");
        assert!(lines[0].ends_with(&format!("{} ", green("一二三四")).trim_end()), "{lines:?}");
        assert!(lines[1].ends_with(&green("五")), "{lines:?}");
        assert!(lines[0].starts_with("\u{1b}[4m\u{1b}[31m甲\u{1b}[0m"), "{lines:?}");
    }

    #[test]
    fn long_stretches_that_both_have_are_left_out() {
        let long = "字".repeat(200);
        let (a, b) = (format!("{long}甲{long}"), format!("{long}乙{long}"));
        let lines = layout(240).lines(&a, &b);
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0], "… 176 words that both have …");
        assert_eq!(lines[2], lines[0]);
        assert!(lines[1].contains("字[-甲-]字") && lines[1].contains("字{+乙+}字"));
        assert_eq!(lines[1].matches('字').count(), 4 * 24);
        let whole = TextLayout { whole: true, ..layout(240) }.lines(&a, &b);
        assert_eq!(whole.concat().matches('字').count(), 800);
        assert_eq!(layout(240).lines(&long, &long).concat().matches('字').count(), 400);
    }

    #[test]
    fn a_terminal_obeys_nothing_of_a_text() {
        let lines = layout(80).lines("a\u{1b}[2Jb\r\nc\td\u{202E}", "");
        assert_eq!(lines.concat().trim_end_matches([' ', '│']), "[-a\u{fffd}[2Jb↵c→d\u{fffd}-]");
    }
}
