//! Names of local files as text, whatever their bytes.
//!
//! Unix allows any bytes but `/` and NUL in a name. We keep names as text: a byte that is not UTF-8 becomes a
//! private-use character, U+10F780 to U+10F7FF for the bytes 0x80 to 0xFF, and back. Where a name really has
//! such a character, each byte of that character is encoded the same way. So each name has one text, and no
//! two names have the same text. The idea is that of Python's `surrogateescape` (PEP 383), whose lone
//! surrogates no UTF-8 can hold.
//!
//! | bytes of the name | text | in messages |
//! |---|---|---|
//! | `63 61 66 C3 A9` (UTF-8) | `caf` and U+00E9 | unchanged |
//! | `63 61 66 E9` (Latin-1) | `caf` and U+10F7E9 | `caf\xE9` |
//! | `F4 8F 9F A9` (U+10F7E9 itself) | U+10F7F4, U+10F78F, U+10F79F, U+10F7A9 | `\xF4\x8F\x9F\xA9` |

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::ops::Deref;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use super::error::Error;

/// Path of a file below a folder. No name between its `/` is empty, `.` or `..`. So the path never leads out
/// of the folder, and output files and document ids that are named after it stay distinct.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameBelow(String);

impl NameBelow {
    /// Checks a name.
    ///
    /// # Errors
    /// [`Error::BadName`] when the name could lead out of the folder.
    pub fn new(name: &str) -> Result<Self, Error> {
        if name.split('/').any(|part| matches!(part, "" | "." | "..")) {
            let reason =
                "a file's name below its folder has no empty part, no \".\" and no \"..\"".to_owned();
            return Err(Error::BadName { name: name.to_owned(), reason });
        }
        Ok(NameBelow(name.to_owned()))
    }
}

impl Deref for NameBelow {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Character that would stand for byte 0.
const BASE: u32 = 0x10F700;

/// Returns the text of a local path or name.
pub fn text_of_path(path: &OsStr) -> String {
    if let Some(text) = path.to_str().filter(|text| !text.contains(stands_for_byte)) {
        return text.to_owned();
    }
    let mut text = String::with_capacity(2 * path.len());
    for chunk in path.as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match stands_for_byte(c) {
                true => text.extend(c.encode_utf8(&mut [0; 4]).bytes().filter_map(character)),
                false => text.push(c),
            }
        }
        text.extend(chunk.invalid().iter().copied().filter_map(character));
    }
    text
}

/// Returns the local path of a text, the inverse of [`text_of_path`].
pub fn path_of_text(text: &str) -> PathBuf {
    if !text.contains(stands_for_byte) {
        return text.into();
    }
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match stands_for_byte(c) {
            true => bytes.push((c as u32 - BASE) as u8),
            false => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    OsString::from_vec(bytes).into()
}

/// Returns a text that contains names as one line for messages, with `\xE9` for a byte that is not UTF-8,
/// `\n` for a newline, and an escape for each other control character, which a terminal would obey.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(|c: char| stands_for_byte(c) || c.is_control()) {
        return text.into();
    }
    let mut line = String::with_capacity(2 * text.len());
    for c in text.chars() {
        match c {
            c if stands_for_byte(c) => drop(write!(line, "\\x{:02X}", c as u32 - BASE)),
            c if c.is_control() => line.extend(c.escape_default()),
            c => line.push(c),
        }
    }
    line.into()
}

/// Returns whether a character stands for a byte. Bytes below 0x80 are always valid UTF-8, so no character
/// stands for them.
fn stands_for_byte(c: char) -> bool {
    (BASE + 0x80..=BASE + 0xFF).contains(&(c as u32))
}

fn character(byte: u8) -> Option<char> {
    char::from_u32(BASE + u32::from(byte))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_has_a_text_of_its_own_that_leads_back_to_it() {
        let mut names: Vec<Vec<u8>> = (0..=255).map(|byte| vec![b'a', byte, b'b']).collect();
        let other: [&[u8]; 8] = [
            b"",
            b"/plain/\n",
            "中文".as_bytes(),
            &"中文".as_bytes()[1..],
            b"\xed\xa0\x80",
            b"\xff\xfe\xf4\x90",
            "\u{10F7E9}".as_bytes(),
            "\u{10F77F}\u{10F780}\u{10F7FF}\u{10F800}".as_bytes(),
        ];
        names.extend(other.map(<[u8]>::to_vec));
        let mut texts = BTreeSet::new();
        for name in &names {
            let text = text_of_path(OsStr::from_bytes(name));
            assert_eq!(path_of_text(&text).as_os_str().as_bytes(), name, "{text:?}");
            assert!(texts.insert(text), "{name:?}");
        }
        assert_eq!(text_of_path(OsStr::from_bytes(b"caf\xe9")), "caf\u{10F7E9}");
        assert!(texts.contains("中文") && texts.contains("/plain/\n"));
    }

    #[test]
    fn a_name_below_a_folder_leads_nowhere_else() {
        for name in ["", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a/."] {
            assert!(NameBelow::new(name).is_err(), "{name}");
        }
        for name in ["a", "a/b", "...", "a/..b/.c", "中/文"] {
            assert_eq!(&*NameBelow::new(name).unwrap(), name);
        }
    }

    #[test]
    fn people_see_bytes_and_controls_escaped() {
        assert_eq!(one_line("caf\u{10F7E9}\n\u{1b}[2J é"), "caf\\xE9\\n\\u{1b}[2J é");
        assert_eq!(one_line("a\\xE9"), "a\\xE9");
    }
}
