//! Recognises source code and its like, and writes its lines in one form.
//!
//! In prose punctuation is the same whether it is there or not. In code a bracket is another program, and so is a line
//! that moves into a loop. So code keeps all of its characters, and of white space what is read: that words are apart, and
//! where a line is deeper or less deep than the line before. The licence that many files begin with is set apart like what a
//! site has added, since files under one licence may have nothing else in common.

use super::cleaned::{CUT, END, SOURCE_MARK};
use super::normal::invisible;

/// Number of bytes of a text by which it is told to be code.
const HEAD: usize = 1 << 13;
/// Fewest letters of ASCII by which a text is told to be code.
const FEWEST_LETTERS: usize = 20;
/// In code there is at least one sign of syntax for so many letters.
const LETTERS_OF_A_SIGN: usize = 20;
/// Fewest signs of syntax of code.
const FEWEST_SIGNS: usize = 2;

/// Stands before a line that is deeper than the one before.
const DEEPER: char = '\u{6}';
/// Stands before a line that is less deep than the one before.
const LESS_DEEP: char = '\u{7}';

/// Whether a text is code: behind its licence the letters are of ASCII, and signs of syntax are frequent.
pub(super) fn is_source(text: &str) -> bool {
    let code = &text.as_bytes()[licence(text)..];
    let head = &code[..code.len().min(HEAD)];
    // Most texts of other scripts are told to be none by these two counts, which cost little.
    let letters = count(head, |byte| byte.is_ascii_alphabetic());
    let other = count(head, |byte| !byte.is_ascii());
    if letters < FEWEST_LETTERS || letters <= other {
        return false;
    }
    // A call or an index stands behind a name; other brackets are those of prose.
    let sign = |at: usize| match head[at] {
        b'(' | b'[' => at > 0 && head[at - 1].is_ascii_alphanumeric(),
        byte => matches!(byte, b'{' | b'}' | b';' | b'=' | b'_' | b'|' | b'\\' | b'&'),
    };
    let signs = (0..head.len()).filter(|&at| sign(at)).count();
    signs >= FEWEST_SIGNS && signs * LETTERS_OF_A_SIGN > letters
}

/// Returns how many bytes are of a kind. The sums of small pieces fit a byte, so that many bytes are added at once.
fn count(bytes: &[u8], of_kind: impl Fn(u8) -> bool) -> usize {
    let pieces = bytes.chunks(128);
    pieces.map(|piece| usize::from(piece.iter().map(|&byte| u8::from(of_kind(byte))).sum::<u8>())).sum()
}

/// Replaces `out` by the lines of code in one form, behind the mark of code, and with a licence at its head set apart.
pub(super) fn write(text: &str, out: &mut String) {
    out.clear();
    out.push(SOURCE_MARK);
    let (licence, rest) = text.split_at(licence(text));
    if !licence.is_empty() {
        out.push(CUT);
        write_lines(licence, out);
        out.push(END);
    }
    write_lines(rest, out);
}

/// Returns the length of the licence that code begins with: its first comment, if that speaks of a licence or of rights,
/// and something follows.
fn licence(text: &str) -> usize {
    let (mut end, mut within) = (0, false);
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        // What documents a module tells it from others.
        let documents = ["//!", "///", "/**", "/*!"].iter().any(|mark| trimmed.starts_with(mark));
        let hash =
            trimmed.strip_prefix('#').is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '#']));
        let begins = ["//", "/*", "--", ";;", "%"].iter().any(|mark| trimmed.starts_with(mark)) || hash;
        let first_line = end == 0 && (trimmed.starts_with("#!/") || trimmed.starts_with("/**"));
        if !(within || trimmed.is_empty() || begins && !documents || first_line) {
            break;
        }
        within = (within || trimmed.starts_with("/*")) && !trimmed.contains("*/");
        end += line.len();
    }
    let head = text[..end].to_ascii_lowercase();
    let speaks = ["licence", "license", "copyright", "all rights reserved", "spdx-"]
        .iter()
        .any(|word| head.contains(word));
    let follows = count(&text.as_bytes()[end..], |byte| byte.is_ascii_alphabetic()) >= FEWEST_LETTERS;
    if speaks && follows { end } else { 0 }
}

/// Appends lines of code in one form.
fn write_lines(text: &str, out: &mut String) {
    let (mut depth, mut first) = (0, true);
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() {
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let columns: usize = indent.chars().map(|c| if c == '\t' { 4 } else { 1 }).sum();
        if !first {
            out.push(match columns.cmp(&depth) {
                std::cmp::Ordering::Less => LESS_DEEP,
                std::cmp::Ordering::Equal => ' ',
                std::cmp::Ordering::Greater => DEEPER,
            });
        }
        (depth, first) = (columns, false);
        for c in trimmed.chars().filter(|&c| !invisible(c)) {
            match c.is_whitespace() {
                false => out.push(c),
                true if out.ends_with(' ') => {}
                true => out.push(' '),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut out = String::new();
        write(text, &mut out);
        out
    }

    #[test]
    fn code_is_told_from_prose() {
        for text in [
            "let cache: HashMap<u64, String> = HashMap::new();",
            "if (user && user.active) { show(menu); } else { hide(menu); }",
        ] {
            assert!(is_source(text), "{text}");
            assert!(is_source(&format!("// {}\n{text}", "Copyright of nobody. ".repeat(20))), "{text}");
        }
        for text in [
            "Clamp the blade, *then* file **every second** tooth; see [the guide](https://example.com/saw).",
            "We use cookies (a few) to improve your experience; by continuing you agree to our policy.",
            "函数f(x)=x+1；若a<b，则f(a)<f(b)",
            "(=_=)",
        ] {
            assert!(!is_source(text), "{text}");
        }
    }

    #[test]
    fn a_licence_is_set_apart() {
        let code = "use std::io;\n\nfn next(number: u8) -> u8 { number + 1 }";
        for (head, cut) in [
            ("// Copyright 2020 A. B.\n// All rights reserved.\n\n", true),
            ("/*\n * Licensed under the MIT License;\n * see LICENSE.\n */\n", true),
            ("# SPDX-License-Identifier: MIT\n#\n# Text.\n", true),
            ("/* (c) */ // Copyright\n//! Reads files.\n", true),
            ("// Adds one.\n", false),
            ("//! Licensed readers.\n", false),
            ("#include <license.h>\n", false),
        ] {
            let written = written(&format!("{head}{code}"));
            assert_eq!(written.contains(CUT), cut, "{head}");
            assert!(written.ends_with("use std::io; fn next(number: u8) -> u8 { number + 1 }"), "{written}");
            let stays = written.rsplit(END).next().unwrap().contains("Reads files");
            assert_eq!(stays, head.contains("Reads"), "{written}");
        }
        assert!(!written("// Copyright 2020 A. B.\n// All rights reserved.").contains(CUT));
    }

    #[test]
    fn the_depth_of_a_line_counts_and_its_width_does_not() {
        let [spaces, tab] = ["f(r) {\n  return r;\n}\n", "f(r) {  \n\treturn  r;\n\n}"].map(written);
        assert_eq!(spaces, tab);
        assert_ne!(
            written("for n in xs:\n    add(n)\n    print(n)"),
            written("for n in xs:\n    add(n)\nprint(n)")
        );
    }
}
