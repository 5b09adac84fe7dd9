//! Tells the encoding that has pairs of bytes as often as a text has them.

use encoding_rs::{BIG5, EUC_JP, EUC_KR, KOI8_R, SHIFT_JIS, WINDOWS_1251, WINDOWS_1252};

use crate::text::encoding::{Encoding, GB18030};

/// Numbers of the pairs of bytes of a text that GB18030, Big5, Shift_JIS, EUC-JP and EUC-KR would take for a character, by
/// kind, judged by the first 4,096.
///
/// A kind is a range of first bytes ([`FIRST_OF_KIND`]), and whether the second byte is above 0xA0. Each encoding has its
/// kinds, whatever the text says:
///
/// ```text
/// first byte                  81   84  A1  A4  A6   B0   C9   D0 …
/// simplified Chinese in GBK              80             501  151  191
/// traditional Chinese in Big5            60  175  385   382
/// Japanese in Shift_JIS      756  245
/// Japanese in EUC-JP                     52  704        192   52
/// Korean in EUC-KR                        3    1        990
/// Russian in KOI8-R                                     175  304  271     and 138 first bytes without a second one
/// ```
///
/// The encoding is found by Bayes' rule. A text is Chinese unless it would be one of a hundred thousand.
#[derive(Debug)]
pub(super) struct PairCounts {
    kinds: [[u32; 2]; KINDS],
    /// First bytes behind which no second byte comes.
    illegal: u32,
    /// Pairs whose second byte is a letter of ASCII.
    letters: u32,
}

/// Number of ranges of first bytes.
const KINDS: usize = 12;
/// First byte of each range.
const FIRST_OF_KIND: [u8; KINDS] = [0x81, 0x84, 0xa1, 0xa4, 0xa6, 0xb0, 0xc9, 0xd0, 0xd8, 0xe0, 0xf0, 0xf8];
/// Number of pairs that are counted.
const MOST_PAIRS: u32 = 4096;
/// Least share of pairs of any kind, in thousandths: for names, quotations and damage.
const RARE: f64 = 0.5;

/// Numbers of pairs of each kind in an encoding.
struct PairModel {
    encoding: Encoding,
    /// Probability of the encoding before anything is known of a text.
    prior: f64,
    /// Thousandths of all pairs with a low second byte, by kind.
    low: [u16; KINDS],
    /// Thousandths of all pairs with a high second byte.
    high: [u16; KINDS],
    /// Thousandths of first bytes without a second one. Real texts of GB18030 have two.
    illegal: u16,
}

/// Models of simplified, traditional and Japanese text in GB18030, and of the other encodings. Source: the texts of
/// docs/design/text-files.md.
static MODELS: [PairModel; 10] = [
    PairModel {
        encoding: GB18030,
        prior: 0.9,
        low: [1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0],
        high: [1, 1, 80, 2, 3, 500, 150, 190, 20, 20, 10, 1],
        illegal: 2,
    },
    PairModel {
        encoding: GB18030,
        prior: 0.1,
        low: [11, 66, 0, 0, 4, 39, 7, 49, 32, 44, 4, 2],
        high: [9, 64, 58, 1, 3, 345, 99, 161, 5, 6, 1, 1],
        illegal: 2,
    },
    PairModel {
        encoding: GB18030,
        prior: 1e-3,
        low: [3, 14, 0, 0, 37, 8, 0, 15, 4, 8, 0, 0],
        high: [1, 16, 14, 700, 0, 87, 36, 49, 0, 2, 0, 0],
        illegal: 2,
    },
    PairModel {
        encoding: Encoding(BIG5),
        prior: 0.2,
        low: [0, 0, 56, 63, 139, 139, 2, 2, 2, 2, 1, 0],
        high: [0, 0, 4, 112, 246, 243, 2, 2, 2, 2, 1, 0],
        illegal: 2,
    },
    PairModel {
        encoding: Encoding(SHIFT_JIS),
        prior: 1e-6,
        low: [389, 111, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0],
        high: [367, 134, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0],
        illegal: 2,
    },
    PairModel {
        encoding: Encoding(EUC_JP),
        prior: 1e-5,
        low: [0; KINDS],
        high: [0, 1, 52, 704, 0, 192, 52, 3, 2, 2, 1, 0],
        illegal: 2,
    },
    PairModel {
        encoding: Encoding(EUC_KR),
        prior: 1e-6,
        low: [0; KINDS],
        high: [0, 0, 3, 1, 0, 990, 1, 1, 1, 1, 1, 0],
        illegal: 2,
    },
    PairModel {
        encoding: Encoding(WINDOWS_1252),
        prior: 1e-6,
        low: [5, 40, 5, 5, 30, 30, 15, 15, 30, 350, 60, 100],
        high: [2, 30, 2, 2, 2, 2, 2, 2, 2, 2, 10, 2],
        illegal: 250,
    },
    PairModel {
        encoding: Encoding(WINDOWS_1251),
        prior: 1e-6,
        low: [0; KINDS],
        high: [0, 0, 0, 0, 0, 14, 17, 11, 2, 571, 200, 36],
        illegal: 147,
    },
    PairModel {
        encoding: Encoding(KOI8_R),
        prior: 1e-6,
        low: [0; KINDS],
        high: [0, 0, 1, 0, 0, 175, 304, 271, 66, 23, 17, 3],
        illegal: 138,
    },
];

impl PairCounts {
    /// Counts the pairs of a text. Characters of one byte and of four are passed over.
    pub fn of(bytes: &[u8]) -> Self {
        let mut counts = PairCounts { kinds: [[0; 2]; KINDS], illegal: 0, letters: 0 };
        let (mut rest, mut pairs) = (bytes, 0);
        while let [first, behind @ ..] = rest {
            rest = match (first, behind) {
                (..=0x80, _) => behind,
                (_, [b'0'..=b'9', 0x81..=0xfe, b'0'..=b'9', rest @ ..]) => rest,
                (0x81..=0xfe, [second @ 0x40..=0xfe, rest @ ..]) => {
                    let kind = FIRST_OF_KIND.partition_point(|least| least <= first) - 1;
                    counts.kinds[kind][usize::from(*second > 0xa0)] += 1;
                    counts.letters += u32::from(second.is_ascii_alphabetic());
                    pairs += 1;
                    rest
                }
                // The text may end within a character.
                (0x81..=0xfe, []) => behind,
                _ => {
                    counts.illegal += 1;
                    pairs += 1;
                    behind
                }
            };
            if pairs == MOST_PAIRS {
                break;
            }
        }
        counts
    }

    /// Returns the most probable encoding, and its probability.
    pub fn encoding(&self) -> (Encoding, f64) {
        let weights: Vec<_> =
            MODELS.iter().map(|model| (model.encoding, self.log_likelihood(model))).collect();
        let greatest = weights.iter().fold(f64::MIN, |greatest, (_, weight)| greatest.max(*weight));
        let probability = |of: Encoding| -> f64 {
            let part = |of: &(Encoding, f64)| (of.1 - greatest).exp();
            let all: f64 = weights.iter().map(part).sum();
            weights.iter().filter(|(encoding, _)| *encoding == of).map(part).sum::<f64>() / all
        };
        let encodings = MODELS.iter().map(|model| (model.encoding, probability(model.encoding)));
        encodings.max_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or((GB18030, 1.0))
    }

    /// Returns the logarithm of the probability of a model and of a text with these counts.
    fn log_likelihood(&self, model: &PairModel) -> f64 {
        let [low, high] = [0, 1].map(|side| self.kinds.iter().map(|kind| kind[side]).sum::<u32>());
        // A quarter of the characters of Big5 have a low second byte. Tables and kana in GB2312 have none.
        if model.encoding == Encoding(BIG5) && low * 10 < low + high {
            return f64::NEG_INFINITY;
        }
        // Rare characters of Chinese, such as those of insects, have the pairs of Cyrillic, but none without a second byte. A
        // third of the second bytes of Chinese are letters at most; nearly all are that stand behind é in cafés.
        let all = low + high + self.illegal;
        let is_spelled = self.letters * 10 >= all * 9;
        if model.encoding.0.is_single_byte() && self.illegal * 20 < all && !is_spelled {
            return f64::NEG_INFINITY;
        }
        let shares = model.low.iter().zip(&model.high).flat_map(|(low, high)| [low, high]);
        let counted = self.kinds.iter().flatten().zip(shares).filter(|(count, _)| **count > 0);
        let of_kind =
            |(&count, &share): (&u32, &u16)| f64::from(count) * (f64::from(share).max(RARE) / 1000.0).ln();
        model.prior.ln() + of_kind((&self.illegal, &model.illegal)) + counted.map(of_kind).sum::<f64>()
    }
}
