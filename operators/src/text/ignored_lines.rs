//! Lines that are left out when texts are compared.

use std::sync::Arc;

use super::Cleaner;
use super::units::Unit;
use crate::hash::{Identity, Secret};

/// Lines that stand in many documents of a corpus, such as navigation and footers, by their hashes. A line is hashed
/// without the white space at its ends, and an empty line has no hash.
///
/// ```text
/// document           ignored    compared
/// Home | News        yes
/// Rain in the north             Rain in the north
/// Imprint            yes
/// ```
///
/// A document of which nothing would be left is compared whole.
///
/// Memory: 16 bytes for each line. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct IgnoredLines(Arc<[Identity]>);

impl IgnoredLines {
    /// Bytes that a line takes.
    pub const LINE_BYTES: usize = size_of::<Identity>();

    /// Makes a list of the hashes of lines, in any order.
    pub fn new(mut hashes: Vec<Identity>) -> Self {
        hashes.sort_unstable();
        hashes.dedup();
        IgnoredLines(hashes.into())
    }

    /// Returns the number of lines.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether a line is one of them. Cost: 1 ns a byte, and some 100 ns to look it up among a million.
    pub fn has(&self, line: &str) -> bool {
        hash(&public_key(), line).is_some_and(|hash| self.0.binary_search(&hash).is_ok())
    }

    /// Writes a text to `rest` without these lines. Returns whether the text has any of them, and anything else.
    fn leave_out(&self, text: &str, rest: &mut String) -> bool {
        rest.clear();
        Unit::Line.of(text).filter(|line| !self.has(line)).for_each(|line| rest.push_str(line));
        rest.len() < text.len() && !rest.trim().is_empty()
    }
}

/// Replaces the contents of `hashes` by the hashes of the lines of a text, each once.
pub fn hash_lines(text: &str, hashes: &mut Vec<Identity>) {
    let key = public_key();
    hashes.clear();
    hashes.extend(Unit::Line.of(text).filter_map(|line| hash(&key, line)));
    hashes.sort_unstable();
    hashes.dedup();
}

fn hash(key: &Secret, line: &str) -> Option<Identity> {
    let line = line.trim();
    (!line.is_empty()).then(|| key.identity(line))
}

/// Key of the hashes of lines. It is no secret, so that the list of one run can be used by another. Whoever makes a line
/// with the hash of an ignored one has only his own line ignored.
fn public_key() -> Secret {
    Secret::of_words([0, 0])
}

/// A text, cleaned. Documents are identical by the whole of it, and are compared by a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanedText<'a> {
    /// The whole text.
    pub whole: &'a str,
    /// The text without the lines that are ignored; the whole text if none are or nothing would be left.
    pub compared: &'a str,
}

impl<'a> From<&'a str> for CleanedText<'a> {
    /// Returns a text that is compared whole.
    fn from(text: &'a str) -> Self {
        CleanedText { whole: text, compared: text }
    }
}

/// Cleans texts, and leaves lines out of what is compared.
#[derive(Clone)]
pub struct LineCleaner {
    cleaner: Cleaner,
    ignored: Option<Ignored>,
}

#[derive(Clone)]
struct Ignored {
    lines: IgnoredLines,
    /// Cleaner of what is left.
    cleaner: Cleaner,
    rest: String,
}

impl LineCleaner {
    /// Makes a cleaner. `ignored`: the lines to leave out, if any.
    pub fn new(cleaner: Cleaner, ignored: Option<IgnoredLines>) -> Self {
        let ignored = ignored.filter(|lines| lines.count() > 0);
        let ignored = ignored.map(|lines| Ignored { lines, cleaner: cleaner.clone(), rest: String::new() });
        LineCleaner { cleaner, ignored }
    }

    /// Whether the cleaning reads code in its own way, and marks it.
    pub fn knows_code(&self) -> bool {
        self.cleaner.knows_code()
    }

    /// Returns the cleaned text. Cost: that of cleaning; with ignored lines up to twice, and that of hashing.
    pub fn clean<'a>(&'a mut self, text: &'a str) -> CleanedText<'a> {
        let whole = self.cleaner.clean(text);
        let rest = self.ignored.as_mut().and_then(|ignored| ignored.rest_of(text));
        CleanedText { whole, compared: rest.unwrap_or(whole) }
    }

    /// Returns the part of the cleaned text that is compared.
    pub fn compared<'a>(&'a mut self, text: &'a str) -> &'a str {
        match self.ignored.as_mut().and_then(|ignored| ignored.rest_of(text)) {
            Some(rest) => rest,
            None => self.cleaner.clean(text),
        }
    }
}

impl Ignored {
    /// Returns what is left of a text, cleaned; `None` if the whole text is compared.
    fn rest_of(&mut self, text: &str) -> Option<&str> {
        if !self.lines.leave_out(text, &mut self.rest) {
            return None;
        }
        Some(self.cleaner.clean(&self.rest)).filter(|rest| !rest.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Clean;

    fn ignoring(lines: &[&str]) -> LineCleaner {
        let (mut hashes, mut all) = (Vec::new(), Vec::new());
        for line in lines {
            hash_lines(line, &mut hashes);
            all.append(&mut hashes);
        }
        LineCleaner::new(Cleaner::new(Clean::Nfkc), Some(IgnoredLines::new(all)))
    }

    #[test]
    fn ignored_lines_are_left_out_whatever_white_space_is_at_their_ends() {
        let mut cleaner = ignoring(&["Home", "Imprint  "]);
        let text = "  Home\r\nRain\n\nin the north\nHome\n\tImprint";
        let cleaned = cleaner.clean(text);
        assert_eq!(cleaned.whole, "Home Rain in the north Home Imprint");
        assert_eq!(cleaned.compared, "Rain in the north");
        assert_eq!(cleaner.compared(text), "Rain in the north");
        assert_eq!(cleaner.compared("Home page\n"), "Home page");
    }

    #[test]
    fn a_text_of_which_nothing_would_be_left_is_compared_whole() {
        let mut cleaner = ignoring(&["Home", "Imprint"]);
        for text in ["Home\nImprint", "Home\n\n \nHome\n", "", "\n", "Home\n\u{200B}\n"] {
            let cleaned = cleaner.clean(text);
            assert_eq!(cleaned.whole, cleaned.compared, "{text:?}");
            assert_eq!(cleaner.compared(text), Cleaner::new(Clean::Nfkc).clean(text), "{text:?}");
        }
    }

    #[test]
    fn a_document_has_a_line_once_and_no_empty_ones() {
        let mut hashes = Vec::new();
        hash_lines("a\n a \nb\n\n \n", &mut hashes);
        assert_eq!(hashes.len(), 2);
        hash_lines("\n", &mut hashes);
        assert_eq!(hashes, []);
    }
}
