//! Recognition of the encoding of a text without byte order mark. docs/design/text-files.md says how often it errs.

mod pair_counts;
mod utf16;

use encoding_rs::{BIG5, UTF_8};

use self::pair_counts::PairCounts;
pub(crate) use self::utf16::utf16_without_mark;
use super::encoding::{Encoding, GB18030};

/// An encoding as it was recognised by the bytes of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recognition {
    pub encoding: Encoding,
    /// Probability that the text is in this encoding, in thousandths. That of UTF-8 and of the encodings of Chinese is given
    /// as 1000, since a text is in one of them unless much speaks for another one; 0 if another one is not known.
    pub sureness: u16,
}

impl Recognition {
    /// Least sureness with which a text is read.
    const LEAST_SURENESS: u16 = 990;

    fn sure(encoding: Encoding) -> Self {
        Recognition { encoding, sureness: 1000 }
    }

    /// Whether the text may be read.
    pub fn is_sure(self) -> bool {
        self.sureness >= Self::LEAST_SURENESS
    }

    /// Whether the user is told of a file in this encoding, because the program expects Chinese text.
    pub fn is_foreign(self) -> bool {
        self.sureness < 1000
    }

    /// Returns why the text is not read, if the encoding is too unsure.
    pub fn doubt(self) -> Option<String> {
        (!self.is_sure()).then(|| match self.sureness {
            0 => format!(
                "in an encoding of one byte for a character, such as {}, which only --encoding can name",
                self.encoding.name()
            ),
            _ => format!(
                "in {} with a probability of {}, which is too low to read it: --encoding names the encoding",
                self.encoding.name(),
                self.percent()
            ),
        })
    }

    /// Returns the sureness as people read it, such as `99.9 %`.
    pub fn percent(self) -> String {
        format!("{}.{} %", self.sureness / 10, self.sureness % 10)
    }
}

/// Recognises the encoding of a text without byte order mark. Returns `None` for pure ASCII.
pub(crate) fn recognise(bytes: &[u8]) -> Option<Recognition> {
    if bytes.is_ascii() {
        return None;
    }
    if mostly_utf8(bytes) {
        return Some(Recognition::sure(Encoding(UTF_8)));
    }
    let pairs = PairCounts::of(bytes);
    let (encoding, probability) = pairs.encoding();
    Some(if [GB18030, Encoding(BIG5)].contains(&encoding) {
        Recognition::sure(encoding)
    } else if encoding.0.is_single_byte() {
        // Those of one script differ in a few signs.
        Recognition { encoding, sureness: 0 }
    } else {
        // A probability that is rounded up to 1 would be that of Chinese.
        Recognition { encoding, sureness: ((probability * 1000.0) as u16).min(999) }
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

    const KOREAN: &str = "이것은 시험 문서입니다. 서울시는 다음 주에 새로운 계획을 발표한다고 밝혔다.";
    const JAPANESE: &str = "これはテストの文書です。東京都は来週、新しい計画を発表すると明らかにした。";
    const RUSSIAN: &str =
        "Это проверка документа. Правительство объявило о новом плане развития страны на следующие годы.";
    const FRENCH: &str = "L'élève préféré a été régénéré à la fin de l'été; où êtes-vous allés après ça, Zoë? \
                          Là-bas, très tôt. Ça été créé à côté, hélas, et ils ont tous été très déçus après.";

    fn recognised(text: &str, encoding: &'static encoding_rs::Encoding) -> Recognition {
        recognise(&encoding.encode(text).0).unwrap()
    }

    #[test]
    fn japanese_and_korean_are_recognised_and_not_taken_for_chinese() {
        for (text, encoding) in [
            (JAPANESE, encoding_rs::SHIFT_JIS),
            (JAPANESE, encoding_rs::EUC_JP),
            (KOREAN, encoding_rs::EUC_KR),
        ] {
            let found = recognised(&text.repeat(2), encoding);
            assert_eq!(found.encoding, Encoding(encoding), "{found:?}");
            assert!(found.is_foreign() && found.is_sure(), "{found:?}");
        }
    }

    #[test]
    fn texts_of_one_byte_for_a_character_are_not_read() {
        for (text, encoding) in [
            (RUSSIAN, encoding_rs::WINDOWS_1251),
            (RUSSIAN, encoding_rs::KOI8_R),
            (FRENCH, encoding_rs::WINDOWS_1252),
            ("The council met again about the cafés of the city. ", encoding_rs::WINDOWS_1252),
            ("Die Oberbürgermeisterin hört zu. ", encoding_rs::WINDOWS_1252),
        ] {
            assert!(!recognised(&text.repeat(12), encoding).is_sure(), "{}", encoding.name());
        }
    }

    #[test]
    fn chinese_stays_chinese_however_short_it_is() {
        for text in [
            "啊",
            "白菜和饼干",
            "蟋蟀蜻蜓橄榄",
            "饕餮魑魅魍魉",
            "ありがとうございます",
            "爸爸八百半杯白饭",
            "の",
            "これ",
            "テスト新闻",
            "발표",
            "朱镕基",
            "陶喆",
            "不可能把北京的东西放到那里",
            "臺灣大學校長",
            "髙橋",
            "繁體測試:檔案",
        ] {
            let found = recognised(text, encoding_rs::GB18030);
            assert_eq!(found, Recognition::sure(GB18030), "{text}");
        }
        let damaged = [&encoding_rs::GB18030.encode(TEXT).0[..], b"\xff \xb0 \x81 "].concat();
        assert_eq!(recognise(&damaged), Some(Recognition::sure(GB18030)));
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
            assert_eq!(recognise(bytes), Some(Recognition::sure(GB18030)));
            let text = encoding_rs::GB18030.decode_without_bom_handling(bytes).0;
            // Big5 lacks some of these characters.
            let known = text.chars().filter(|&c| !BIG5.encode(c.encode_utf8(&mut [0; 4])).2);
            let big5 = BIG5.encode(&known.collect::<String>()).0.into_owned();
            assert_eq!(recognise(&big5), Some(Recognition::sure(Encoding(BIG5))));
            texts += 1;
        }
        assert!(texts > 850, "only {texts}");
    }
}
