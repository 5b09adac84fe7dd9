//! Traditional characters and their simplified forms, and the syllables of Chinese characters.
//!
//! Both tables are packed by the build script, from the packages ferrous-opencc (OpenCC's table of characters) and
//! pinyin.

/// Pairs of a traditional character and its simplified form, two bytes each.
static SIMPLIFIED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/simplified.bin"));
/// The syllable of each character from U+3400 to U+9FFF, two bytes each; 0 if none is known.
static SYLLABLES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/syllables.bin"));
/// First character of the table of syllables.
const FIRST: u32 = 0x3400;

/// Returns each traditional character with its simplified form.
pub(super) fn simplified() -> impl Iterator<Item = (u16, u16)> {
    let (pairs, _) = SIMPLIFIED.as_chunks();
    pairs.iter().map(|&[a, b, c, d]| (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])))
}

/// Whether two different Chinese characters are read as the same syllable, tones aside, as 门 and 们 are.
pub(crate) fn sound_alike(a: char, b: char) -> bool {
    let syllable = |c: char| {
        let (syllables, _) = SYLLABLES.as_chunks();
        (c as u32).checked_sub(FIRST).and_then(|at| syllables.get(at as usize)).copied().unwrap_or([0; 2])
    };
    syllable(a) != [0; 2] && syllable(a) == syllable(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traditional_characters_become_simplified_ones() {
        let of = |c: char| simplified().find(|&(from, _)| u32::from(from) == c as u32).map(|(_, to)| to);
        for (traditional, simple) in [('門', '门'), ('後', '后'), ('裡', '里'), ('強', '强')] {
            assert_eq!(of(traditional), Some(simple as u16));
        }
        for same in ['门', '后', '妳', '著'] {
            assert_eq!(of(same), None, "{same}");
        }
    }

    #[test]
    fn characters_sound_alike_by_their_syllable_without_tone() {
        assert!(sound_alike('门', '们') && sound_alike('在', '再') && sound_alike('买', '卖'));
        assert!(!sound_alike('虎', '鼠') && !sound_alike('a', 'a') && !sound_alike('あ', 'あ'));
    }
}
