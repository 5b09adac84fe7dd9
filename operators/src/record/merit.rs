//! Numbers by which a keep order may prefer one document to another.

/// Numbers of a document that keep orders compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merit {
    /// Length of the text before it was cleaned, in characters.
    pub chars: u64,
    /// Priority; the default if no keep order asks for one.
    pub priority: Priority,
}

/// A finite number as bits that have the order of numbers. The default comes before all of them.
///
/// ```text
/// -2.5    3ffbffffffffffff    all bits of a negative number are inverted
/// -0, 0   8000000000000000    the first bit of any other number is set
/// 1       bff0000000000000
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Priority(pub u64);

impl Priority {
    /// Priority of the least finite number.
    pub const LEAST: Priority = Priority(!f64::MIN.to_bits());

    /// Makes the priority of a number. Returns `None` if it is not finite.
    pub fn new(number: f64) -> Option<Self> {
        let bits = (number + 0.0).to_bits(); // -0 becomes 0
        let ordered = if number < 0.0 { !bits } else { bits | 1 << 63 };
        number.is_finite().then_some(Priority(ordered))
    }

    /// Returns the number; `None` for the default, which is none.
    pub fn number(self) -> Option<f64> {
        let bits = if self.0 >> 63 == 1 { self.0 & !(1 << 63) } else { !self.0 };
        (self != Priority::default()).then(|| f64::from_bits(bits))
    }

    /// Makes the priority of a number in decimal notation, such as `-2.5` or `1e9`, which may have white space
    /// around it. Returns `None` if the text is no such number.
    pub fn of_text(text: &str) -> Option<Self> {
        text.trim().parse().ok().and_then(Self::new)
    }

    /// Makes the priority of a number, or of a date or time such as `2026-11-27` or `2026-11-27 08:30:00`, whose digits are
    /// read as one number. Later dates of one form come later. Returns `None` for any other text.
    pub fn of_text_or_date(text: &str) -> Option<Self> {
        let is_date = text.contains('-') && text.bytes().filter(u8::is_ascii_digit).count() <= 15;
        let digits = || text.replace(['-', ':', ' ', 'T', '.'], "");
        Self::of_text(text).or_else(|| is_date.then(|| Self::of_text(&digits())).flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_have_the_order_of_numbers() {
        let numbers = [f64::MIN, -1e9, -2.5, -1.0, -5e-324, 0.0, 5e-324, 0.5, 1.0, 1.5, 2e9, f64::MAX];
        let priorities = numbers.map(|number| Priority::new(number).unwrap());
        assert!(priorities.is_sorted_by(|a, b| a < b), "{priorities:x?}");
        assert!(Priority::default() < priorities[0]);
        assert_eq!(priorities.map(|priority| priority.number().unwrap()), numbers);
        assert_eq!(Priority::default().number(), None);
        assert_eq!(priorities[0], Priority::LEAST);
        assert_eq!([-0.0, 0.0].map(Priority::new), [Some(Priority(1 << 63)); 2]);
        assert_eq!(Priority::new(-2.5), Some(Priority(0x3ffb_ffff_ffff_ffff)));
    }

    #[test]
    fn a_text_has_a_priority_if_it_is_a_finite_number() {
        for text in ["7", "7.0", " 7\t", "+7", "0.7e1", "700E-2"] {
            assert_eq!(Priority::of_text(text), Priority::new(7.0), "{text:?}");
        }
        assert_eq!(Priority::of_text("-0"), Priority::of_text("0"));
        assert_eq!(Priority::of_text_or_date("2026-11-27"), Priority::new(20_261_127.0));
        assert_eq!(Priority::of_text_or_date("2026-11-27 08:30"), Priority::new(202_611_270_830.0));
        assert_eq!(Priority::of_text_or_date("-7.5"), Priority::new(-7.5));
        assert_eq!(["cn", "a-7", "20:26"].map(Priority::of_text_or_date), [None; 3]);
        for text in ["", " ", "seven", "7 8", "0x7", "1,000", "NaN", "inf", "-Infinity", "1e999", "true"] {
            assert_eq!(Priority::of_text(text), None, "{text:?}");
        }
    }
}
