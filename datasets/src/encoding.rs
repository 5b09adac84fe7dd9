//! The encodings of Chinese text: UTF-8, and GB18030 with its subsets GBK and GB2312.

use std::borrow::Cow;
use std::str::FromStr;

use encoding_rs::{DecoderResult, GB18030};

/// An encoding that a user may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding(&'static encoding_rs::Encoding);

impl FromStr for Encoding {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = ["utf-8", "gb18030", "gbk", "big5", "utf-16le", "utf-16be"];
        match encoding_rs::Encoding::for_label(name.as_bytes()) {
            Some(encoding) if known.contains(&name) => Ok(Encoding(encoding)),
            _ => Err(format!("expected one of {}", known.join(", "))),
        }
    }
}

/// Bytes that are no text in any encoding we read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Illegal {
    /// Of the first illegal byte, from the start of what was to be decoded.
    pub offset: usize,
    /// Lower case, no full stop.
    pub reason: &'static str,
}

/// The name of the encoding that a file's first bytes announce, if it is UTF-16: that is not read.
pub(crate) fn utf16(head: &[u8]) -> Option<&'static str> {
    match head {
        [0xff, 0xfe, ..] => Some("UTF-16 (little endian), which is not read; convert it to UTF-8"),
        [0xfe, 0xff, ..] => Some("UTF-16 (big endian), which is not read; convert it to UTF-8"),
        _ => None,
    }
}

/// `bytes` without UTF-8's byte order mark.
pub(crate) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Decodes a text: UTF-8 (with or without byte order mark) where it is valid, else GB18030.
///
/// Strict: nothing is replaced. Byte 0x80 is the euro sign, as in code page 936; that is the one
/// extension. Text that is UTF-8 but for some damaged bytes is refused, because nearly all of it would
/// also decode as GB18030, to other characters. Cost: one pass and no copy for UTF-8.
pub(crate) fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, Illegal> {
    if let Some(reason) = utf16(bytes) {
        return Err(Illegal { offset: 0, reason });
    }
    let text = without_mark(bytes);
    let mark = bytes.len() - text.len();
    match std::str::from_utf8(text) {
        Ok(text) => Ok(Cow::Borrowed(text)),
        Err(error) if mark > 0 || mostly_utf8(text) => {
            Err(Illegal { offset: mark + error.valid_up_to(), reason: "not valid UTF-8" })
        }
        Err(_) => decode_gb18030(text).map(Cow::Owned),
    }
}

/// Whether most of the characters beyond ASCII are valid UTF-8, judged by the first few hundred.
///
/// In GBK text there are two to four breaks of UTF-8's rules to one character that keeps them by chance,
/// in damaged UTF-8 far fewer than one. Only texts of a handful of characters can be misjudged.
fn mostly_utf8(bytes: &[u8]) -> bool {
    let (mut valid, mut broken) = (0usize, 0usize);
    for chunk in bytes.utf8_chunks() {
        valid += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        broken += usize::from(!chunk.invalid().is_empty());
        if valid + broken >= 256 {
            break;
        }
    }
    valid > 2 * broken
}

fn decode_gb18030(bytes: &[u8]) -> Result<String, Illegal> {
    let mut decoder = GB18030.new_decoder_without_bom_handling();
    // Two bytes of GBK are at most three of UTF-8; more is reserved only where four-byte sequences ask for it.
    let mut text = String::with_capacity(bytes.len() + bytes.len() / 2 + 16);
    let mut read = 0;
    loop {
        let (result, more) = decoder.decode_to_string_without_replacement(&bytes[read..], &mut text, true);
        read += more;
        match result {
            DecoderResult::InputEmpty => return Ok(text),
            DecoderResult::OutputFull => text.reserve(text.capacity()),
            DecoderResult::Malformed(length, after) => {
                let offset = read.saturating_sub(usize::from(length) + usize::from(after));
                return Err(Illegal { offset, reason: "not valid GB18030, nor UTF-8" });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "新华社北京电 国家统计局十九日发布数据,前三季度国内生产总值同比增长百分之五点二。";

    fn gbk(text: &str) -> Vec<u8> {
        encoding_rs::GBK.encode(text).0.into_owned()
    }

    #[test]
    fn both_encodings_give_the_same_text_and_utf_8_is_not_copied() {
        assert!(matches!(decode(TEXT.as_bytes()), Ok(Cow::Borrowed(TEXT))));
        assert_eq!(decode(&gbk(TEXT)).unwrap(), TEXT);
        assert_eq!(decode(b"").unwrap(), "");
        let marked = format!("\u{feff}{TEXT}");
        assert_eq!(decode(marked.as_bytes()).unwrap(), TEXT);
    }

    #[test]
    fn characters_of_four_bytes_and_private_use_are_read() {
        for (bytes, text) in [
            (&b"\xa2\xe3"[..], "\u{20ac}"),
            (b"\x80", "\u{20ac}"),
            (b"\xaa\xa1", "\u{e000}"),
            (b"\x90\x30\x81\x30", "\u{10000}"),
        ] {
            assert_eq!(decode(bytes).as_deref(), Ok(text), "{bytes:x?}");
        }
        let rare = "\u{20000}".repeat(10_000); // four bytes in both
        assert_eq!(decode(&encoding_rs::GB18030.encode(&rare).0).unwrap(), rare);
    }

    #[test]
    fn the_first_illegal_byte_is_named() {
        let start = gbk(TEXT);
        for (bad, name) in [
            (&b"\xff"[..], "no lead byte"),
            (b"\xb0", "cut"),
            (b"\xb0\n", "a newline behind a lead byte"),
            (b"\x81\x30\x81", "four bytes cut"),
            (b"\x81\x30ab", "no third of four bytes"),
            (b"\x81\x30\x81a", "no fourth of four bytes"),
            (b"\xe3\x32\x9a\x36x", "four bytes beyond Unicode"),
        ] {
            let bytes = [&start[..], bad].concat();
            let illegal = decode(&bytes).unwrap_err();
            assert_eq!(
                (illegal.offset, illegal.reason),
                (start.len(), "not valid GB18030, nor UTF-8"),
                "{name}"
            );
        }
    }

    #[test]
    fn damaged_utf_8_is_not_taken_for_gb18030() {
        let middle = TEXT.len() / 2;
        for cut in middle..middle + 3 {
            let mut bytes = TEXT.as_bytes().to_vec();
            bytes.remove(cut);
            assert_eq!(decode(&bytes).unwrap_err().reason, "not valid UTF-8");
        }
        assert_eq!(
            decode(b"\xef\xbb\xbfab\xff").unwrap_err(),
            Illegal { offset: 5, reason: "not valid UTF-8" }
        );
    }

    #[test]
    fn utf_16_is_named() {
        assert!(decode(b"\xfe\xff\x65\xb0").unwrap_err().reason.contains("UTF-16"));
    }
}
