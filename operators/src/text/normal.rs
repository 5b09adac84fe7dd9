//! The normal form of characters that every cleaning begins with, by a table, which is fast because nearly all
//! characters of a text are normal already.
//!
//! It is Unicode's NFKC, but for compatibility forms that change the meaning: superscripts, subscripts and fractions
//! stay as they are (10² is not 102), and numbers in circles are set apart (第①②题). Radicals that stand for characters
//! become these (⻔ is 门), and characters that are not shown are dropped. Source: docs/design/identity.md.

use std::sync::Arc;

use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// Entry of the table: the character needs its neighbours to be normalised, or becomes several characters.
const SLOW: u16 = 0;
/// Entry of the table: the character is dropped. (No character stays or becomes U+0001.)
const DROP: u16 = 1;
/// Entry of the table: white space that becomes a space. (No character stays or becomes U+0002.)
const SPACE: u16 = 2;

/// Appends the normal form of a text to `out`.
///
/// A character whose entry in the table is itself is copied. Any other character is replaced by its entry, or
/// normalised together with its neighbours where the entry is [`SLOW`]; the results of both are appended by `push`.
pub(super) fn normalise(table: &[u16], text: &str, out: &mut String, push: impl Fn(&mut String, char)) {
    let rule = |c: char| table.get(c as usize).copied().unwrap_or(SLOW);
    let mut rest = text;
    loop {
        // Nearly all characters stay as they are. Pass over them, and copy them at once.
        let (mut at, mut last) = (0, None);
        let stop = loop {
            if begins_with_han(&rest.as_bytes()[at..]) {
                last = Some(at);
                at += 3;
                continue;
            }
            if rest.as_bytes().get(at).is_some_and(u8::is_ascii_graphic) {
                last = Some(at);
                at += 1;
                continue;
            }
            let Some(c) = rest[at..].chars().next() else { break None };
            let rule = rule(c);
            if u32::from(rule) != c as u32 {
                break Some((at, c, rule));
            }
            last = Some(at);
            at += c.len_utf8();
        };
        let Some((at, c, replacement)) = stop else { break };
        let after = at + c.len_utf8();
        // A character that needs its neighbours is normalised with the one before it and with all such
        // characters after it.
        let slow_next = rest[after..].chars().next().is_some_and(|c| rule(c) == SLOW);
        let start = if replacement == SLOW { last.unwrap_or(at) } else { at };
        out.push_str(&rest[..start]);
        if replacement != SLOW && !slow_next {
            let c = if replacement == SPACE { Some(' ') } else { char::from_u32(replacement.into()) };
            c.into_iter().for_each(|c| push(out, c));
            rest = &rest[after..];
        } else {
            let end = rest[after..].find(|c| rule(c) != SLOW).map_or(rest.len(), |length| after + length);
            each_normal(&rest[start..end], |c| push(out, c));
            rest = &rest[end..];
        }
    }
    out.push_str(rest);
}

/// Whether the text begins with one of U+4E00 to U+9FFF. These are nearly all Chinese characters; each has
/// three bytes in UTF-8 and is its own normal form.
#[inline]
fn begins_with_han(text: &[u8]) -> bool {
    matches!(text, [first, second, _, ..] if matches!(u16::from_be_bytes([*first, *second]), 0xE4B8..=0xE9BF))
}

/// Calls `push` with each character of the normal form of a text: the definition, without a table.
pub(super) fn each_normal(text: &str, mut push: impl FnMut(char)) {
    let mut rest = text;
    while let Some(at) = rest.find(|c| special(c).is_some()) {
        rest[..at].nfkc().for_each(&mut push);
        let c = rest[at..].chars().next().unwrap_or_default();
        match special(c).unwrap_or(Special::Itself) {
            Special::Itself => push(c),
            Special::Is(character) => push(character),
            Special::SetApart => {
                push(' ');
                std::iter::once(c).nfkc().for_each(&mut push);
                push(' ');
            }
            Special::Power(power) => {
                let mut unit: Vec<char> = std::iter::once(c).nfkc().collect();
                unit.pop();
                unit.into_iter().chain([power]).for_each(&mut push);
            }
        }
        rest = &rest[at + c.len_utf8()..];
    }
    rest.nfkc().for_each(push);
}

/// Treatment of a character whose NFKC form is not wanted.
enum Special {
    /// The character stays.
    Itself,
    /// The character is a radical that stands for this one.
    Is(char),
    /// The NFKC form is set apart by spaces, since the digits of two such characters are not one number.
    SetApart,
    /// The last digit of the NFKC form, as of ㎡, is this power.
    Power(char),
}

/// Returns what becomes of a character whose NFKC form has another meaning, or falls short; `None` for all others.
fn special(c: char) -> Option<Special> {
    Some(match c {
        // Superscripts and subscripts, fractions, and signs of trade.
        '²' | '³' | '¹' | 'ª' | 'º' | '¼'..='¾' | '\u{2070}'..='\u{209C}' | '⅐'..='⅟' | '↉' | '™' | '℠' => {
            Special::Itself
        }
        '①'..='⒛' | '⓪' | '㉑'..='㉟' | '㊱'..='㊿' => Special::SetApart,
        '㍸' | '㎟'..='㎢' | '㎨' | '㎯' => Special::Power('²'),
        '㍹' | '㎣'..='㎦' => Special::Power('³'),
        '\u{2E80}'..='\u{2EFF}' => Special::Is(of_radical(c)?),
        _ => return None,
    })
}

/// Returns the table for [`normalise`]: an entry for each character of the basic plane. White space stays as it is.
pub(super) fn rules() -> Arc<[u16]> {
    (0..=u16::MAX).map(rule).collect()
}

/// Returns the same table, but all white space becomes a space.
pub(super) fn spaced_rules() -> Arc<[u16]> {
    let spaced = |code: u16| match rule(code) {
        SLOW => SLOW,
        rule if char::from_u32(rule.into()).is_some_and(char::is_whitespace) => SPACE,
        rule => rule,
    };
    (0..=u16::MAX).map(spaced).collect()
}

/// Returns the entry of a character of the basic plane.
fn rule(code: u16) -> u16 {
    match char::from_u32(code.into()) {
        Some(c) if invisible(c) => DROP,
        Some(c) => alone(c).and_then(|only| u16::try_from(only as u32).ok()).unwrap_or(SLOW),
        None => SLOW,
    }
}

/// Returns the normal form of a character, if that is one character whatever its neighbours are.
fn alone(c: char) -> Option<char> {
    let (mut only, mut count) = (None, 0);
    each_normal(c.encode_utf8(&mut [0; 4]), |c| {
        only = Some(c);
        count += 1;
    });
    let only = only.filter(|_| count == 1)?;
    let alone = canonical_combining_class(only) == 0
        && canonical_combining_class(c) == 0
        && (is_nfc_quick(std::iter::once(only)) == IsNormalized::Yes);
    (alone && !invisible(only)).then_some(only)
}

/// Radicals that scanners and fonts write for characters, and these characters. NFKC knows those of the block of
/// Kangxi radicals, but of this one only two. Source: the names of Unicode's block U+2E80 to U+2EFF.
const RADICALS: &str = "⺁厂⺅亻⺇几⺉刂⺊卜⺋㔾⺒巳⺓幺⺕彐⺖忄⺘扌⺙攵⺛旡⺜曰⺝月⺞歺⺟母⺠民⺡氵⺣灬⺤爫⺦丬⺧牛⺨犭⺩王⺪疋⺫目⺬示⺭礻⺮竹⺯糸⺰纟⺱罓⺲罒⺵网⺷羊⺸羊⺹耂⺻聿⺼月⺽臼⺾艹⺿艹⻀艹⻁虎⻂衤⻃覀⻄西⻅见⻆角⻇角⻈讠⻉贝⻊足⻋车⻌辶⻍辶⻎辶⻏阝⻐钅⻑长⻒镸⻓长⻔门⻕阜⻖阝⻗雨⻘青⻙韦⻚页⻛风⻜飞⻝食⻞食⻟飠⻠饣⻡首⻢马⻣骨⻤鬼⻥鱼⻦鸟⻧卤⻨麦⻩黄⻪黾⻫斉⻬齐⻭歯⻮齿⻯竜⻰龙⻱龟⻲亀⻳龟";

/// Returns the character that a radical stands for.
fn of_radical(c: char) -> Option<char> {
    let mut pairs = RADICALS.chars();
    while let (Some(radical), Some(character)) = (pairs.next(), pairs.next()) {
        if radical == c {
            return Some(character);
        }
    }
    None
}

/// Whether a character is not shown: a control character that is not white space, a mark of direction or joining, a
/// filler, a selector of variants. They are Unicode's Default_Ignorable_Code_Point, and marks of annotations.
pub(super) fn invisible(c: char) -> bool {
    let mark = matches!(c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{3164}'
        | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}'
        | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}');
    mark || c.is_control() && !c.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(text: &str) -> String {
        let mut out = String::new();
        normalise(&rules(), text, &mut out, |out, c| out.extend(Some(c).filter(|&c| !invisible(c))));
        out
    }

    #[test]
    fn what_is_passed_over_as_chinese_is_three_bytes_that_stay() {
        let han = |c: &char| begins_with_han(c.to_string().as_bytes());
        assert!(('\0'..=char::MAX).filter(han).eq('\u{4E00}'..='\u{9FFF}'));
        let stays = |c: char| rule(c as u16) == c as u16 && c.len_utf8() == 3;
        assert_eq!(('\u{4E00}'..='\u{9FFF}').find(|&c| !stays(c)), None);
        assert_eq!(('!'..='~').find(|&c| rule(c as u16) != c as u16 || !c.is_ascii_graphic()), None);
    }

    #[test]
    fn powers_and_fractions_keep_their_meaning() {
        for (text, expected) in [
            ("10²平方米 10⁶ H₂O 1½", "10²平方米 10⁶ H₂O 1½"),
            ("35㎡ 2㎢ 5㎥ 3㎏", "35m² 2km² 5m³ 3kg"),
            ("第①②题⒑", "第 1  2 题 10. "),
            ("Ａ１，ﬁ㍿", "A1,fi株式会社"),
            ("⻔⺠⻑⼈", "门民长人"),
        ] {
            assert_eq!(normal(text), expected);
        }
    }

    #[test]
    fn characters_that_are_not_shown_go() {
        for c in "\u{200B}\u{2062}\u{2068}\u{206A}\u{180E}\u{34F}\u{61C}\u{FE0F}\u{E0020}\u{115F}\u{3164}\u{FFF9}\u{FFA0}".chars() {
            assert_eq!(normal(&format!("中{c}文a{c}b")), "中文ab", "{c:?}");
        }
    }
}
