//! Tells how characters are treated, whatever stands beside them. The table of classes is that of docs/design/identity.md.

use unicode_normalization::char::is_combining_mark;

use crate::text::entities::{WRITTEN_GREATER, WRITTEN_LESS};

/// How a character is treated.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum CharClass {
    /// Punctuation and white space: it separates words, and is the same as any other.
    Gap,
    /// A letter or digit of a script that puts spaces between words.
    Spaced,
    /// A letter, digit or mark of any other script, or a sign that always counts.
    Letter,
    /// A Chinese numeral, which may be a number.
    Numeral,
    /// A sign that counts only between, before or behind certain characters.
    Sign,
    /// A pictograph or a question mark: it is set apart, since it colours a text and is added at will.
    Aside,
    /// A mark that readers add or omit at will: it is dropped, and separates nothing.
    Optional,
}

/// Returns how a character is treated.
pub(super) fn class_of(c: char) -> CharClass {
    match c {
        '一' | '二' | '三' | '四' | '五' | '六' | '七' | '八' | '九' | '十' | '百' | '千' | '零' | '两'
        | '〇' | '兩' => CharClass::Numeral,
        '壹' | '贰' | '叁' | '肆' | '伍' | '陆' | '柒' | '捌' | '玖' | '拾' | '佰' | '仟' | '貳' | '參'
        | '陸' => CharClass::Numeral,
        // Arabic and Hebrew vowel marks, and the bar that stretches an Arabic word.
        '\u{64B}'..='\u{652}'
        | '\u{670}'
        | '\u{640}'
        | '\u{591}'..='\u{5BD}'
        | '\u{5BF}'
        | '\u{5C1}'..='\u{5C7}' => CharClass::Optional,
        '.' | ',' | ':' | '-' | '−' | '‐' | '‑' | '‒' | '–' | '~' | '〜' | '+' | '<' | '>' | '=' | '*'
        | '/' | '|' | '&' | '^' | '!' | '%' | '٪' | '#' | '$' | WRITTEN_LESS | WRITTEN_GREATER => {
            CharClass::Sign
        }
        // Operators and other signs of mathematics, currencies, degrees, and what stands for an illegal byte.
        '±'
        | '×'
        | '÷'
        | '¬'
        | '°'
        | '‰'
        | '‱'
        | '¢'..='¥'
        | '\u{20A0}'..='\u{20CF}'
        | '\u{2200}'..='\u{22FF}'
        | 'µ'
        | '\u{FFFD}'
        | '№' => CharClass::Letter,
        '?'
        | '؟'
        | '\u{1F000}'..='\u{1FAFF}'
        | '\u{2600}'..='\u{27BF}'
        | '\u{2B50}'
        | '\u{2B55}'
        | '\u{231A}'
        | '\u{231B}' => CharClass::Aside,
        _ if is_of_spaced_script(c) => CharClass::Spaced,
        _ if is_letter(c) || is_combining_mark(c) => CharClass::Letter,
        _ => CharClass::Gap,
    }
}

/// Returns the European digit of the same value as a digit of another script.
pub(super) fn digit_value(c: char) -> Option<char> {
    // The zeros of Unicode's decimal digits: ten characters that follow each other in order.
    const ZEROS: [u32; 43] = [
        0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6, 0xE50,
        0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40,
        0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0x104A0, 0x11066, 0x110F0, 0x11136,
        0x111D0, 0x112F0, 0x11450, 0x1E950,
    ];
    let code = c as u32;
    if matches!(code, 0..0x660 | 0x2000..0xA620) {
        return None;
    }
    let value = ZEROS.iter().find_map(|zero| code.checked_sub(*zero).filter(|&value| value < 10))?;
    char::from_digit(value, 10)
}

/// Whether a character is a letter or digit. Common Chinese characters and punctuation need no search in
/// Unicode's tables.
pub(crate) fn is_letter(c: char) -> bool {
    match c {
        '\u{4E00}'..='\u{9FFF}' => true,
        '\u{2000}'..='\u{206F}' | '\u{3000}'..='\u{3004}' | '\u{3008}'..='\u{3020}' => false,
        _ => c.is_alphanumeric(),
    }
}

/// Whether a character is a letter or digit of a script that puts spaces between words: Latin, Greek,
/// Cyrillic, Armenian, and European digits.
pub(crate) fn is_of_spaced_script(c: char) -> bool {
    matches!(c, '\0'..'\u{590}' | '\u{1E00}'..'\u{2000}')
        && (c.is_alphanumeric() && !matches!(c, '²' | '³' | '¹' | '¼'..='¾')
            || matches!(c, '\u{300}'..'\u{370}'))
}
