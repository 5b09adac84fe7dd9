//! Texts of one encoding that were read as another: Chinese, Japanese or Korean bytes as Western letters.
//!
//! A document whose font says nothing about its encoding, or lies about it, gives such text. It would be a document of no
//! language.
//!
//! ```text
//! 关于印发   as GBK         ¹ØÓÚÓ¡·¢     four and more letters beyond ASCII behind each other
//! 中文资讯   as UTF-8       ä¸­æ–‡èµ„è®¯   the same
//! привет     as KOI8-R      ÐÒÉ×ÅÔ       the same
//! 這是測試   as Big5        ³o¬O´ú¸Õ     pairs that begin with ¡ to Æ, of which a letter of ASCII may be the second
//! テスト     as Shift_JIS   ƒeƒXƒg       pairs that begin with ‚, ƒ and other signs of Windows-1252
//! ```
//!
//! No language of Western letters has four letters beyond ASCII in a row but for a rare word (Estonian jäääär), nor three
//! such pairs in a row.

/// Least number of characters of misread stretches for which a text is refused, if they are a fifth of it.
const MANY: usize = 40;
/// The same, if they are half of it.
const MOST: usize = 8;
/// Greatest number of characters of a stretch that are looked at together.
const STRETCH: usize = 256;
/// Number of characters of an example in a message.
const SHOWN: usize = 12;

/// Returns why a text is none, if much of it is bytes of one encoding that were read as another. Cost: up to
/// [`STRETCH`] steps for each character.
pub(super) fn refusal(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let chars: Vec<char> = text.chars().filter(|c| *c != '\u{fffd}').collect();
    let (mut misread, mut first, mut at) = (0, None, 0);
    while at < chars.len() {
        // A long stretch that is none, such as a line of dots, is looked at again from each of its characters.
        let rest = &chars[at..chars.len().min(at + STRETCH)];
        let length = [letters(rest), pairs(rest, big5_pair, |_| true), pairs(rest, shift_jis_pair, is_kana)];
        let length = length.into_iter().max().unwrap_or(0);
        if length > 0 {
            first.get_or_insert(at);
            misread += length;
        }
        at += length.max(1);
    }
    let all = chars.iter().filter(|c| !c.is_whitespace()).count();
    if !(misread >= MANY && misread * 5 >= all || misread >= MOST && misread * 2 >= all) {
        return None;
    }
    let misread = misread.min(all);
    let example: String = chars[first?..].iter().take(SHOWN).collect();
    Some(format!(
        "no text: {misread} of {all} characters look like bytes of another encoding read as Western letters, such as \
         \"{example}\""
    ))
}

/// Returns the byte of Windows-1252 or Latin-1 that is read as a character beyond ASCII.
fn byte(c: char) -> Option<u8> {
    match c {
        '\u{80}'..='\u{ff}' => Some(c as u32 as u8),
        _ => SIGNS.chars().position(|sign| sign == c).map(|at| 0x80 + at as u8),
    }
}

/// The characters of Windows-1252 from 0x80 to 0x9F; U+0081 and so on where it has none.
const SIGNS: &str = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ";

/// Returns the length of the stretch of characters beyond ASCII at the beginning, if it is four or more, of three kinds or
/// more, and half of it or more are not signs such as quotes and dashes. Otherwise returns 0.
fn letters(chars: &[char]) -> usize {
    let stretch = || chars.iter().map_while(|&c| byte(c));
    let length = stretch().count();
    let is_letter = |byte: &u8| *byte > 0xa0;
    let mut kinds: Vec<u8> = stretch().filter(is_letter).take(MANY).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let enough = length >= 4 && kinds.len() >= 3 && stretch().filter(is_letter).count() * 2 >= length;
    if enough { length } else { 0 }
}

/// Returns the length of the pairs at the beginning, if they are of three kinds or more and a third of their first bytes
/// are `typical`. Otherwise returns 0.
fn pairs(chars: &[char], is_pair: fn(u8, u8) -> bool, typical: fn(u8) -> bool) -> usize {
    let as_byte = |c: char| if c.is_ascii() { Some(c as u8) } else { byte(c) };
    let pair = |pair: &&[char]| is_pair(as_byte(pair[0]).unwrap_or(0), as_byte(pair[1]).unwrap_or(0));
    let stretch = || chars.chunks_exact(2).take_while(pair);
    let typical = stretch().filter(|pair| as_byte(pair[0]).is_some_and(typical)).count();
    let mut kinds: Vec<&[char]> = stretch().take(MANY).collect();
    kinds.sort_unstable();
    kinds.dedup();
    match stretch().count() {
        count if kinds.len() >= 3 && typical * 3 >= count => 2 * count,
        _ => 0,
    }
}

/// Whether two bytes are a character of Big5 that is often used.
fn big5_pair(first: u8, second: u8) -> bool {
    (0xa1..=0xc6).contains(&first) && matches!(second, 0x40..=0x7e | 0xa1..=0xfe)
}

/// Whether two bytes are a character of Shift_JIS.
fn shift_jis_pair(first: u8, second: u8) -> bool {
    matches!(first, 0x81..=0x9f | 0xe0..=0xea) && matches!(second, 0x40..=0x7e | 0x80..=0xfc)
}

/// Whether a byte begins punctuation or kana in Shift_JIS.
fn is_kana(first: u8) -> bool {
    (0x81..=0x83).contains(&first)
}

#[cfg(test)]
mod tests {
    use encoding_rs::*;

    use super::*;

    const CHINESE: &str =
        "关于印发2026年工作要点的通知：各单位要认真贯彻落实，切实加强领导，确保完成全年任务。";
    const TRADITIONAL: &str = "這是測試文件，臺灣大學校長表示將於下週公布名單，請各單位配合辦理相關事項。";
    const JAPANESE: &str = "これはテストの文書です。東京都は来週、新しい計画を発表すると明らかにした。";
    const KOREAN: &str = "이것은 시험 문서입니다. 서울시는 다음 주에 새로운 계획을 발표한다고 밝혔다.";
    const RUSSIAN: &str = "Это проверка документа. Правительство объявило о новом плане развития.";

    fn misread(text: &str, encoding: &'static Encoding) -> [String; 2] {
        let bytes = encoding.encode(text).0;
        let latin_1 = bytes.iter().map(|&byte| char::from(byte)).collect();
        [latin_1, WINDOWS_1252.decode_without_bom_handling(&bytes).0.into_owned()]
    }

    #[test]
    fn texts_in_another_encoding_are_refused() {
        for (text, encoding) in [
            (CHINESE, GB18030),
            (CHINESE, UTF_8),
            (TRADITIONAL, BIG5),
            (TRADITIONAL, GB18030),
            (TRADITIONAL, UTF_8),
            (JAPANESE, SHIFT_JIS),
            (JAPANESE, EUC_JP),
            (JAPANESE, UTF_8),
            (KOREAN, EUC_KR),
            (KOREAN, UTF_8),
            (RUSSIAN, WINDOWS_1251),
            (RUSSIAN, KOI8_R),
            (RUSSIAN, UTF_8),
        ] {
            for misread in misread(text, encoding) {
                assert!(refusal(&misread).is_some(), "{} {misread}", encoding.name());
                let page = format!("{misread}\nPage 12 of 30, printed on 2026-11-27, total 1,234.50\n");
                assert!(refusal(&page).is_some(), "{} {page}", encoding.name());
            }
            assert_eq!(refusal(text), None);
        }
        let reason = refusal(&misread("关于印发通知", GB18030)[0]).unwrap();
        assert!(reason.ends_with("12 of 12 characters look like bytes of another encoding read as Western letters, such as \"¹ØÓÚÓ¡·¢Í¨Öª\""), "{reason}");
    }

    #[test]
    fn western_texts_are_not_taken_for_misread_ones() {
        for text in [
            "L’élève préféré a régénéré l’hétérogénéité : « Où êtes-vous allés, Zoë ? — À Noël… », ÉLÈVE DÉGÉNÉRÉ",
            "Die Größe der Süßölflächen: „Äußerst übermäßig“ – Öl, Füße, Straßenübergänge. GRÖẞE",
            "Tôi là người Việt Nam; chúng tôi đã đến đây để học tập và làm việc, ăn uống rất ngon: ầ ế ộ ữ ỵ.",
            "Það er þó ægifögur sjón þegar öðruvísi þæfðir íþróttaálfar þíða ísinn í Reykjavík. ÞÆR ÁÐUR",
            "El niño comió jalapeños. ¡¿Qué?! ¿¡Cómo!? Ñandú, pingüino, ÁÉÍÓÚ 1.º 2.ª",
            "A ação não é só opção; vocês também põem coração às mãos. «Às vezes», SÃO JOSÉ, AÇÕES",
            "Jäääär on öö-ülikooli jäääre juures. Hääyöaie, riiuu-yö-äänestys, töölööläinen. ÄÄÄÄÄ öööö",
            "Blåbærsyltetøy på Ærø; æøå ÆØÅ, så ærlig — ›nå‹ »ja« …",
            "Příliš žluťoučký kůň úpěl ďábelské ódy. Zażółć gęślą jaźń. Łódź",
            "Ţară în această dimineaţă, Çiğdem güneşli gün, Ğöğüs, ÇÖÜŞ",
            "Καλημέρα κόσμε. Доброе утро, мир. שלום עולם",
            "··········· 1 ———————— §§§§§§§ ©®™ ××××× °C ±±±±± «»«»«» …………",
            "½ ¼ ¾ x² + y³ = 1°, 5µm ± 3%, £5 €7 ¥9 ¢3 ¹²³",
        ] {
            for times in [1, 20] {
                assert_eq!(refusal(&text.repeat(times)), None, "{text}");
            }
        }
    }

    #[test]
    fn a_text_that_mentions_misread_letters_is_accepted() {
        let [gbk, _] = misread("关于印发2026年工作", GB18030);
        let [_, japanese] = misread("これはテスト", SHIFT_JIS);
        for mention in [gbk, japanese] {
            for text in [
                format!(
                    "The name of the file is shown as {mention}, which is what such programs make of it."
                ),
                format!(
                    "文件名显示为{mention}，这是因为程序把一种编码读成了另一种编码，应该怎么解决这样的问题？"
                ),
            ] {
                assert_eq!(refusal(&text), None, "{text}");
            }
        }
    }
}
