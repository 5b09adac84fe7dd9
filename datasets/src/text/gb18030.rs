//! GB18030 by table: the characters of one and two bytes, which are nearly all of any text.

use std::sync::LazyLock;

use encoding_rs::GB18030;

/// UTF-8 of each character of two bytes, by its lead byte (the low seven bits) and its second byte. An entry
/// holds the first byte of the UTF-8 in its lowest byte, and the length in its highest byte. It is 0 where
/// the two bytes are no character. The table has 128 KiB, and is made once by the decoder of encoding_rs.
static PAIRS: LazyLock<Box<[u32; 1 << 15]>> = LazyLock::new(|| {
    let mut pairs = Box::new([0; 1 << 15]);
    for lead in 0x81..=0xfe {
        for second in 0x40..=0xfe {
            let mut packed = [0; 4];
            let bytes = [lead, second];
            if let Some(text) = GB18030.decode_without_bom_handling_and_without_replacement(&bytes) {
                packed[..text.len()].copy_from_slice(text.as_bytes());
                packed[3] = text.len() as u8;
            }
            pairs[index(lead, second)] = u32::from_le_bytes(packed);
        }
    }
    pairs
});

fn index(lead: u8, second: u8) -> usize {
    usize::from(lead & 0x7f) << 8 | usize::from(second)
}

/// Decodes ASCII and characters of two bytes to the beginning of `buffer`, as UTF-8, and returns the length.
/// Returns `None` at anything else, such as a character of four bytes or an illegal one, which is left to the
/// slower decoder.
///
/// `buffer`: any contents; it grows to three bytes for each two of `bytes`.
pub(crate) fn decode(bytes: &[u8], buffer: &mut Vec<u8>) -> Option<usize> {
    let most = bytes.len() + bytes.len() / 2 + 4;
    if buffer.len() < most {
        buffer.resize(most, 0);
    }
    let pairs = &**PAIRS;
    let (mut at, mut rest) = (0, bytes);
    loop {
        rest = match rest {
            [byte, rest @ ..] if byte.is_ascii() => {
                buffer[at] = *byte;
                at += 1;
                rest
            }
            [lead, second, rest @ ..] => {
                // The lead bytes 0x80 and 0xff have no pairs, nor have second bytes below 0x40.
                let packed = pairs[index(*lead, *second)];
                if packed == 0 {
                    return None;
                }
                buffer[at..at + 4].copy_from_slice(&packed.to_le_bytes());
                at += (packed >> 24) as usize;
                rest
            }
            [_] => return None,
            [] => return Some(at),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    /// Decodes by the table.
    fn text(bytes: &[u8]) -> Option<String> {
        let mut buffer = Vec::new();
        let length = decode(bytes, &mut buffer)?;
        Some(String::from_utf8(buffer[..length].to_vec()).unwrap())
    }

    /// Decodes by encoding_rs.
    fn slowly(bytes: &[u8]) -> Option<String> {
        GB18030.decode_without_bom_handling_and_without_replacement(bytes).map(|text| text.into_owned())
    }

    #[test]
    fn every_byte_and_every_pair_of_bytes_is_as_encoding_rs_has_it() {
        let mut known = 0;
        for lead in 0..=255 {
            // A single 0x80 is the euro sign, which is left to the slower decoder.
            let one = slowly(&[lead]).filter(|_| lead != 0x80);
            assert_eq!(text(&[lead]), one, "{lead:x}");
            for second in 0..=255 {
                let two = slowly(&[lead, second]).filter(|_| lead != 0x80 && (second != 0x80 || lead > 0x80));
                assert_eq!(text(&[lead, second]), two, "{lead:x} {second:x}");
                known += usize::from(lead > 0x80 && two.is_some());
            }
        }
        assert_eq!(known, 126 * 190);
    }

    #[test]
    fn any_text_is_as_encoding_rs_has_it_or_left_to_it() {
        let mut random = Random(1);
        let mut decoded = 0;
        for _ in 0..20_000 {
            let mut bytes = Vec::new();
            for _ in 0..12 {
                let (lead, second) = (random.byte(), random.byte());
                match random.below(16) {
                    0 => bytes.push(lead),
                    1..6 => bytes.push(lead & 0x7f),
                    _ => bytes.extend([0x81 + lead % 126, 0x40 + second % 191]),
                }
            }
            if let Some(text) = text(&bytes) {
                assert_eq!(Some(text), slowly(&bytes), "{bytes:x?}");
                decoded += 1;
            }
        }
        assert!(decoded > 5_000, "only {decoded}");
    }
}
