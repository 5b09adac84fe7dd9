//! Numbers in Chinese characters, as far as they count or date something: 二〇二〇年, 十二月三日, 贰佰元整.
//!
//! A reader takes 三年 and 3年 for the same, and 三年 and 八年 not. 一起, 统一 and 入伍 are words, so a numeral is a number
//! only before a unit, behind 第, or where several make one number. Source: docs/design/identity.md.

use super::char_set::CharSet;

/// Largest number of characters of a numeral that is read.
const LONGEST: usize = 12;

/// Units before which a single numeral is a number.
static UNITS: CharSet = CharSet::new(
    "年月日号点时分秒元块角圆万亿岁天周次届条章节页个名人只件台辆吨斤里米度级楼层室路倍成家位种项口本部集场票份颗套间篇回期季代等课题步折站局连营师班组版例",
);
/// Units before which a formal numeral is always a number.
static MONEY: CharSet = CharSet::new("元圆角");

/// Returns the number that a text begins with and its length in bytes; `None` if it begins with none.
///
/// `simple`: gives the simplified form of a character. `ordinal`: whether 第 stands before the text.
pub(super) fn number(text: &str, simple: impl Fn(char) -> char, ordinal: bool) -> Option<(u64, usize)> {
    let mut digits = [0u8; LONGEST];
    let mut bytes = 0;
    let mut count = 0;
    let mut formal = false;
    let mut rest = text.chars();
    let next = loop {
        let Some(c) = rest.next() else { break None };
        let Some((value, is_formal)) = numeral(simple(c)) else { break Some(simple(c)) };
        if count == LONGEST {
            return None;
        }
        digits[count] = value;
        formal |= is_formal;
        count += 1;
        bytes += c.len_utf8();
    };
    let digits = &digits[..count];
    let counts = next.is_some_and(|c| UNITS.contains(c));
    let several = count > 1 && digits.iter().any(|&digit| digit >= 10 || digit == 0);
    let wanted = match formal {
        true => counts && several || next.is_some_and(|c| MONEY.contains(c)),
        false => counts || several || ordinal,
    };
    let value = value(digits).filter(|_| wanted && count > 0)?;
    Some((value, bytes))
}

/// Whether a character may begin a number.
pub(super) fn is_numeral(c: char) -> bool {
    numeral(c).is_some()
}

/// Returns the value of a numeral, where 10, 100 and 1,000 are 10, 11 and 12, and whether it is of the formal ones that
/// documents of money use.
fn numeral(c: char) -> Option<(u8, bool)> {
    Some(match c {
        '〇' | '零' => (0, false),
        '一' => (1, false),
        '二' | '两' => (2, false),
        '三' => (3, false),
        '四' => (4, false),
        '五' => (5, false),
        '六' => (6, false),
        '七' => (7, false),
        '八' => (8, false),
        '九' => (9, false),
        '十' => (10, false),
        '百' => (11, false),
        '千' => (12, false),
        '壹' => (1, true),
        '贰' => (2, true),
        '叁' => (3, true),
        '肆' => (4, true),
        '伍' => (5, true),
        '陆' => (6, true),
        '柒' => (7, true),
        '捌' => (8, true),
        '玖' => (9, true),
        '拾' => (10, true),
        '佰' => (11, true),
        '仟' => (12, true),
        _ => return None,
    })
}

/// Returns the value of numerals, digit by digit (二〇二〇) or with 十, 百 and 千; `None` if they are out of order.
fn value(numerals: &[u8]) -> Option<u64> {
    if numerals.iter().all(|&numeral| numeral < 10) {
        return Some(numerals.iter().fold(0, |sum, &digit| 10 * sum + u64::from(digit)));
    }
    let mut sum = 0;
    let mut digit = None;
    let mut least = u64::MAX;
    for &numeral in numerals {
        if numeral < 10 {
            if digit.is_some_and(|digit| digit != 0) {
                return None;
            }
            digit = Some(u64::from(numeral));
            continue;
        }
        let ten = 10u64.pow(u32::from(numeral) - 9);
        if ten >= least {
            return None;
        }
        sum += digit.filter(|&digit| digit != 0).unwrap_or(1) * ten;
        (digit, least) = (None, ten);
    }
    Some(sum + digit.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numerals_before_a_unit_are_numbers() {
        for (text, expected) in [
            ("二〇二〇年", Some(2020)),
            ("三年", Some(3)),
            ("十一月", Some(11)),
            ("二十六日", Some(26)),
            ("三百零五人", Some(305)),
            ("两千块", Some(2000)),
            ("千米", Some(1000)),
            ("十五", Some(15)),
            ("贰佰元整", Some(200)),
            ("伍仟捌佰元", Some(5800)),
            ("一起", None),
            ("伍先生", None),
            ("陆路", None),
            ("三三两两", None),
            ("一", None),
            ("年", None),
            ("五十十个", None),
        ] {
            assert_eq!(number(text, |c| c, false).map(|(value, _)| value), expected, "{text}");
        }
        assert_eq!(number("二次会议", |c| c, true), Some((2, 3)));
        assert_eq!(number("三，", |c| c, true), Some((3, 3)));
    }

    #[test]
    fn a_number_ends_before_its_unit() {
        assert_eq!(number("二十六日举行", |c| c, false), Some((26, "二十六".len())));
    }
}
