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
/// Code has at least one sign of syntax for this many letters.
const LETTERS_OF_A_SIGN: usize = 20;
/// Fewest signs of syntax of code.
const FEWEST_SIGNS: usize = 2;

/// Stands before a line that is deeper than the one before.
const DEEPER: char = '\u{6}';
/// Stands before a line that is less deep than the one before.
const LESS_DEEP: char = '\u{7}';

/// Whether a text is code: it begins with a licence in comments as of C, or behind its licence the letters are of ASCII, and
/// signs of syntax are frequent.
pub(super) fn is_source(text: &str) -> bool {
    let licence = licence(text);
    if licence > 0 && text.trim_start().starts_with('/') {
        return true;
    }
    let head = &text[licence..];
    let head = &head[..head.floor_char_boundary(HEAD)];
    // Most texts of other scripts are told to be none by these two counts, which cost little.
    let letters = count(head.as_bytes(), |byte| byte.is_ascii_alphabetic());
    let other = count(head.as_bytes(), |byte| !byte.is_ascii());
    if letters < FEWEST_LETTERS || letters <= other {
        return false;
    }
    // Links have the signs of code in every text.
    let (mut letters, mut other, mut signs) = (0, 0, 0);
    for word in head.split_inclusive(|c: char| c.is_ascii_whitespace()).filter(|word| !word.contains("://")) {
        letters += count(word.as_bytes(), |byte| byte.is_ascii_alphabetic());
        other += count(word.as_bytes(), |byte| !byte.is_ascii());
        signs += signs_of(word.as_bytes());
    }
    letters >= FEWEST_LETTERS
        && letters > other
        && signs >= FEWEST_SIGNS
        && signs * LETTERS_OF_A_SIGN > letters
}

/// Returns how many signs of syntax a word has, with the white space behind it.
fn signs_of(word: &[u8]) -> usize {
    let beside = |at: usize, step: isize| at.checked_add_signed(step).and_then(|at| word.get(at));
    let sign = |at: usize| match word[at] {
        // A call or an index stands behind a name; other brackets are those of prose.
        b'(' | b'[' => beside(at, -1).is_some_and(u8::is_ascii_alphanumeric),
        // A sentence goes on behind a semicolon, and a table has bars between spaces.
        b';' => beside(at, 1) != Some(&b' '),
        b'|' => beside(at, -1).is_some() || beside(at, 1).is_some_and(|byte| !byte.is_ascii_whitespace()),
        byte => matches!(byte, b'{' | b'}' | b'=' | b'_' | b'\\' | b'&'),
    };
    (0..word.len()).filter(|&at| sign(at)).count()
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

/// Returns the length of the licence that code begins with: of its first comment the lines that name who holds the rights, and
/// the paragraphs in the words of a licence, up to the first paragraph of other words. Nothing if no code follows.
fn licence(text: &str) -> usize {
    if !text.trim_start().starts_with(['/', '#']) {
        return 0;
    }
    let (mut end, mut at, mut within, mut in_words) = (0, 0, false, false);
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        let comment =
            within || trimmed.starts_with("/*") && !trimmed.starts_with("/**") || begins_comment(trimmed);
        if !comment && !trimmed.is_empty() {
            break;
        }
        let closes = trimmed.find("*/");
        // Code may follow on the line that ends the comment.
        if closes.is_some_and(|close| close + "*/".len() < trimmed.len()) {
            break;
        }
        within = (within || trimmed.starts_with("/*")) && closes.is_none();
        at += line.len();
        let lower = trimmed.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let empty = !trimmed.contains(|c: char| c.is_ascii_alphanumeric());
        in_words = !empty && (in_words || has(&LICENCE_WORDS));
        if in_words || has(&["copyright", "(c)", "all rights reserved", "license", "licence", "spdx-"]) {
            end = at;
        } else if !empty {
            break;
        }
    }
    let follows =
        end > 0 && count(&text.as_bytes()[end..], |byte| byte.is_ascii_alphabetic()) >= FEWEST_LETTERS;
    if follows { end } else { 0 }
}

/// Words with which paragraphs of licences begin.
const LICENCE_WORDS: [&str; 14] = [
    "permission is hereby granted",
    "permission to use, copy",
    "redistribution and use",
    "the above copyright",
    "is distributed in the hope",
    "redistributions ",
    "neither the name",
    "licensed under",
    "licensed to",
    "unless required by applicable law",
    "without warrant",
    "is provided ",
    "is free software",
    "you should have received a copy",
];

/// Whether a line is a comment of one line, but no documentation and no line for a preprocessor.
fn begins_comment(line: &str) -> bool {
    if let Some(rest) = line.strip_prefix("//") {
        return !rest.starts_with(['!', '/']);
    }
    const DIRECTIVES: [&str; 9] =
        ["define", "include", "if", "elif", "else", "endif", "undef", "pragma", "error"];
    let Some(rest) = line.strip_prefix('#').filter(|rest| rest.is_empty() || rest.starts_with(' ')) else {
        return false;
    };
    !DIRECTIVES.iter().any(|word| rest.trim_start().starts_with(word))
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
        assert!(is_source("// Copyright 2020 A. B.\n\n//! Tests of all that is not public.\n\nmod tests;"));
        for text in [
            "I do not support it. https://example.com/view_all?user_id=17&post_id=99&utm_source=feed_a",
            "The nurse wrote it; the doctor signed it; the lab kept it; the state read it; the drug is safe.",
            "| year | people |\n|  | |\n| nineteen | none |\n| twenty | all of them |",
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
            ("# SPDX-License-Identifier: MIT\n#\n", true),
            ("// Copyright (c)\n//! Reads files.\n", true),
            ("// Copyright A. B.\n// Reads files.\n", true),
            ("/* License: MIT */ let a = read(b);\n", false),
            ("--license_count;\n", false),
            ("# define LICENSE 1\n", false),
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
