//! Recognition of UTF-16 without byte order mark.

use encoding_rs::{UTF_16BE, UTF_16LE};

use crate::text::encoding::Encoding;

/// Numbers of the 16-bit units of a text, read in one order of bytes.
#[derive(Default)]
struct UnitCounts {
    all: usize,
    /// Units of Latin, Greek, Cyrillic, Hebrew and Arabic: their high byte is 0 to 6, which is no character of a text in
    /// another encoding.
    low: usize,
    /// Han, kana, their punctuation, quotes and dashes, and full-width letters.
    wide: usize,
    /// Wide units whose high byte is that of kana, or is below 0x80. In UTF-16 half of all Han are there; text in
    /// Shift_JIS that is read in pairs has none.
    early: usize,
    /// Wide units that are hiragana or katakana.
    kana: usize,
    /// Hangul, other punctuation and signs.
    other: usize,
}

/// Recognises UTF-16 without byte order mark: most units are of scripts whose order of bytes shows. Returns `None` for any
/// other text. `bytes`: the beginning of a file, or all of it.
///
/// | text | a unit in LE | recognised by |
/// |---|---|---|
/// | Latin, Cyrillic, … | `61 00`, `3f 04` | a quarter of the high bytes are 0 to 6 |
/// | Chinese, Japanese, Korean | `2d 4e`, `42 30`, `00 ac` | at most one unit in 50 is of none of these scripts, and one byte in five is above 0x7F (one in 20 if a fifth of the units is kana, half of which have none) |
///
/// A text of less than 40 units without white space or a letter of ASCII is not recognised, since it may be GBK or Shift_JIS.
pub(crate) fn utf16_without_mark(bytes: &[u8]) -> Option<Encoding> {
    let high_bytes = bytes.iter().filter(|byte| !byte.is_ascii()).count();
    let is_text = |order: fn([u8; 2]) -> u16| {
        let of = UnitCounts::of(bytes, order);
        let rest = of.all - of.low - of.wide - of.other;
        let wide = (of.low > 0 || of.all >= 40)
            && high_bytes * (if of.kana * 5 >= of.all { 20 } else { 5 }) >= bytes.len()
            && (of.other * 50 <= of.all || of.low * 33 >= of.all)
            && (of.early * 5 >= of.all || of.low * 33 >= of.all);
        of.all > 0 && rest * 50 <= of.all && (of.low * 4 >= of.all || wide)
    };
    match [is_text(u16::from_le_bytes), is_text(u16::from_be_bytes)] {
        [true, false] => Some(Encoding(UTF_16LE)),
        [false, true] => Some(Encoding(UTF_16BE)),
        _ => None,
    }
}

impl UnitCounts {
    fn of(bytes: &[u8], order: fn([u8; 2]) -> u16) -> Self {
        let mut counts = UnitCounts::default();
        for unit in bytes.as_chunks().0 {
            let unit = order(*unit);
            counts.all += 1;
            match unit {
                0x09 | 0x0a | 0x0d | 0x20..0x7f | 0xa0..0x700 => counts.low += 1,
                0x2010..0x2040 | 0x3000..0x3100 | 0x4e00..0xa000 | 0xff00..0xfff0 => {
                    counts.wide += 1;
                    counts.early += usize::from(unit < 0x8000);
                    counts.kana += usize::from((0x3041..0x3100).contains(&unit));
                }
                0x1100..0x1200 | 0x1e00..0x2700 | 0xac00..0xd7a4 => counts.other += 1,
                _ => {}
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(text: &str, little: bool) -> Vec<u8> {
        text.encode_utf16()
            .flat_map(|unit| if little { unit.to_le_bytes() } else { unit.to_be_bytes() })
            .collect()
    }

    const TEXTS: [&str; 9] = [
        "新华社北京电国家统计局",
        "新华社北京电：国家统计局十九日发布数据，前三季度国内生产总值同比增长5.2%。\r\n",
        "臺灣大學校長表示，將於下週公布名單。",
        "これはテストの文書です。",
        "そのときのことは、いまでもときどきおもいだします。あのひとはなにもいわずに、ただわたしのかおをみていたのです。",
        "이것은 시험 문서입니다. 서울시는 다음 주에",
        "{\"id\": 1, \"text\": \"abc\"}\n",
        "Это проверка документа",
        "L'élève préféré à Noël",
    ];

    #[test]
    fn both_orders_of_bytes_are_recognised() {
        for text in TEXTS {
            for (little, encoding) in [(true, UTF_16LE), (false, UTF_16BE)] {
                let mut bytes = encoded(&format!("{text}\n"), little);
                assert_eq!(utf16_without_mark(&bytes), Some(Encoding(encoding)), "{text}");
                let long = encoded(&text.repeat(5), little);
                assert_eq!(utf16_without_mark(&long), Some(Encoding(encoding)), "five times {text}");
                bytes.push(b'x');
                assert_eq!(utf16_without_mark(&bytes), Some(Encoding(encoding)), "a part of {text}");
            }
        }
    }

    #[test]
    fn no_other_text_is_utf_16() {
        use encoding_rs::*;
        for encoding in [UTF_8, GB18030, BIG5, SHIFT_JIS, EUC_JP, EUC_KR, WINDOWS_1251, KOI8_R, WINDOWS_1252]
        {
            for text in TEXTS {
                let bytes = encoding.encode(text).0.repeat(3);
                for start in 0..4 {
                    assert_eq!(utf16_without_mark(&bytes[start..]), None, "{text} in {}", encoding.name());
                }
            }
        }
        for bytes in [
            &b""[..],
            b"a",
            b"\0\0\0\0",
            b"abc\0def\0ghi jkl\n",
            &(0..=255).cycle().take(9999).collect::<Vec<u8>>(),
        ] {
            assert_eq!(utf16_without_mark(bytes), None, "{bytes:?}");
        }
    }
}
