//! Recognition of the encoding of a text without byte order mark. docs/design/0007 says how often it errs.

use encoding_rs::{BIG5, UTF_8};

use super::encoding::{Encoding, GB18030};

/// Recognises the encoding of a text without byte order mark. Returns `None` for pure ASCII.
pub(crate) fn recognise(bytes: &[u8]) -> Option<Encoding> {
    if bytes.is_ascii() {
        return None;
    }
    Some(if mostly_utf8(bytes) {
        Encoding(UTF_8)
    } else if probably_big5(bytes) {
        Encoding(BIG5)
    } else {
        GB18030
    })
}

/// Returns whether most of the characters beyond ASCII are valid UTF-8, judged by the first 256 or so.
///
/// GBK text has two to four violations of UTF-8 for one character that is valid by chance; damaged UTF-8 has
/// far fewer than one. Only texts of a handful of characters can be misjudged.
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

/// Returns whether text that is either Big5 or GB18030 is Big5. Both encodings have characters of two bytes:
///
/// | encoding | first byte | second byte |
/// |---|---|---|
/// | Big5 | 0xA1 and above | below 0x7F in a quarter of the characters or more; never 0x7F to 0xA0 |
/// | GB2312, nearly all of simplified text | above 0x80 | never below 0xA1 |
/// | the rest of GBK, for traditional text | above 0x80 | all values alike |
///
/// Text is Big5 if a tenth of its pairs have a low second byte, and at most a twentieth are impossible in
/// Big5. Source: measured in docs/design/0007.
fn probably_big5(bytes: &[u8]) -> bool {
    let (mut pairs, mut low, mut not_big5) = (0usize, 0, 0);
    let mut rest = bytes;
    while let [lead, second, ..] = rest {
        let pair = *lead > 0x80 && *second >= 0x40;
        if pair {
            pairs += 1;
            low += usize::from(*second < 0x7f);
            not_big5 += usize::from(*lead < 0xa1 || (0x7f..0xa1).contains(second));
        }
        rest = &rest[if pair { 2 } else { 1 }..];
    }
    low * 10 >= pairs.max(1) && not_big5 * 20 <= pairs
}

/// Returns whether bytes are valid UTF-8 with at least three characters of three bytes or more, as Chinese
/// characters have.
///
/// Characters of two bytes do not count, because pairs of GBK's bytes are often valid as such: the GBK of 谢谢
/// is two Cyrillic letters. The check costs next to nothing for other text, which violates UTF-8 within a few
/// characters.
pub(crate) fn surely_utf8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| text.chars().filter(|c| c.len_utf8() > 2).nth(2).is_some())
}

/// Returns whether bytes are no text: more than 1 in 20 is a control character that texts do not have.
///
/// Random bytes have 1 in 10. Some texts of a real corpus have 1 zero byte in 30, where characters were lost.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    let control = |byte: &&u8| matches!(byte, 0..=8 | 14..=26 | 28..=31 | 127);
    let controls = bytes.iter().filter(control).count();
    controls > 2 + bytes.len() / 20
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "新华社北京电 国家统计局十九日发布数据,前三季度国内生产总值同比增长百分之五点二。";

    #[test]
    fn binary_is_told_from_text_with_a_stray_control_character() {
        assert!(is_binary(&[0; 100]) && is_binary(&(0..=255).cycle().take(5000).collect::<Vec<u8>>()));
        assert!(!is_binary(b"\x1a") && !is_binary(TEXT.as_bytes()) && !is_binary(&BIG5.encode(TEXT).0));
        let holes = [TEXT.as_bytes(), b"\0\0\0\0"].concat().repeat(10);
        assert!(!is_binary(&holes), "{} bytes", holes.len());
        assert!(!is_binary(b"") && !is_binary(&[TEXT.as_bytes(), b"\0\0"].concat()));
    }

    #[test]
    fn gbk_and_big5_versions_of_the_shared_texts_are_told_apart() {
        let Some(files) = crate::testing::corpus_files("corpora/category-tree") else { return };
        let gbk = files
            .iter()
            .map(|(_, bytes)| &bytes[..])
            .filter(|bytes| !bytes.is_ascii() && !mostly_utf8(bytes));
        let mut texts = 0;
        for bytes in gbk {
            assert_eq!(recognise(bytes), Some(GB18030));
            let text = encoding_rs::GB18030.decode_without_bom_handling(bytes).0;
            // Big5 lacks some of these characters.
            let known = text.chars().filter(|&c| !BIG5.encode(c.encode_utf8(&mut [0; 4])).2);
            let big5 = BIG5.encode(&known.collect::<String>()).0.into_owned();
            assert_eq!(recognise(&big5), Some(Encoding(BIG5)));
            texts += 1;
        }
        assert!(texts > 850, "only {texts}");
    }
}
