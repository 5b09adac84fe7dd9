//! Letters and digits of a text, and the tables that tell them from all other characters.

use std::sync::Arc;

/// Properties of a character, as bits. A character outside of the table has none or `KEPT` alone.
type LetterClass = u8;
/// The character is a letter or digit.
const KEPT: LetterClass = 1;
/// The character belongs to a word of a spaced script.
const SPACED: LetterClass = 2;
/// The character is a particle, which is kept only on request.
const PARTICLE: LetterClass = 4;

/// Extracts the letters and digits of texts. Clones share one table of 64 KiB.
#[derive(Clone)]
pub(crate) struct Letters {
    fates: Arc<[LetterClass]>,
    buffer: Vec<u8>,
}

impl Letters {
    pub fn new() -> Self {
        let fate = |code: u16| match char::from_u32(code.into()) {
            Some(c) if is_particle(c) => PARTICLE,
            Some(c) if is_of_spaced_script(c) => KEPT | SPACED,
            Some(c) => LetterClass::from(is_letter(c)),
            None => 0,
        };
        Letters { fates: (0..=u16::MAX).map(fate).collect(), buffer: Vec::new() }
    }

    /// Replaces `out` by the letters and digits of a text, with a space where other characters separated two
    /// words.
    ///
    /// `particles`: whether particles are kept. They colour a sentence and are added or omitted at will.
    /// Cost: about 1 ns a byte. The properties of a character advance the place where the next one is
    /// written, without a branch.
    pub fn take(&mut self, text: &str, particles: bool, out: &mut String) {
        // A character that is not kept may be written behind the last one that is.
        let most = text.len() + char::MAX.len_utf8();
        if self.buffer.len() < most {
            self.buffer.resize(most, 0);
        }
        let keeping = if particles { KEPT | PARTICLE } else { KEPT };
        let (mut at, mut gap, mut last_spaced) = (0, 0, 0);
        for c in text.chars() {
            let fate = self.fates.get(c as usize).copied().unwrap_or_else(|| LetterClass::from(is_letter(c)));
            let kept = LetterClass::from(fate & keeping != 0);
            let spaced = fate >> 1 & 1;
            self.buffer[at] = b' ';
            at += usize::from(gap & spaced & last_spaced);
            let length = c.encode_utf8(&mut self.buffer[at..at + 4]).len();
            at += length & usize::from(kept).wrapping_neg();
            gap = 1 - kept;
            last_spaced = spaced | last_spaced & gap;
        }
        out.clear();
        out.push_str(simdutf8::basic::from_utf8(&self.buffer[..at]).unwrap_or_default());
    }
}

fn is_particle(c: char) -> bool {
    matches!(c, '的' | '了' | '啊' | '呀' | '啦' | '吧' | '呢' | '哦' | '哇' | '咯')
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
    matches!(c, '\0'..'\u{590}' | '\u{1E00}'..'\u{2000}') && c.is_alphanumeric()
}

/// Whether a cleaned text has at least two units. A unit is a word of a spaced script, or any other character
/// but the space.
pub(crate) fn two_units(text: &str) -> bool {
    let mut chars = text.chars();
    match chars.next() {
        None => false,
        Some(first) if !is_of_spaced_script(first) => chars.next().is_some(),
        Some(_) => chars.any(|c| !is_of_spaced_script(c)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition: runs of letters, with a space between two of them where both sides are of spaced
    /// scripts.
    fn slowly(text: &str, particles: bool) -> String {
        let kept = |c: char| is_letter(c) && (particles || !is_particle(c));
        text.split(|c| !kept(c)).filter(|run| !run.is_empty()).fold(String::new(), |out, run| {
            let words = out.ends_with(is_of_spaced_script) && run.starts_with(is_of_spaced_script);
            out + if words { " " } else { "" } + run
        })
    }

    #[test]
    fn letters_are_those_of_unicode() {
        assert_eq!(('\0'..=char::MAX).find(|&c| is_letter(c) != c.is_alphanumeric()), None);
    }

    proptest! {
        #[test]
        fn letters_are_those_of_the_runs_between(
            text in prop::collection::vec(
                prop_oneof![any::<char>(), prop::sample::select("中文的了啊ab1é。, \n𠀀😀ก".chars().collect::<Vec<_>>())],
                0..40,
            ).prop_map(|chars| chars.into_iter().collect::<String>()),
            particles: bool,
        ) {
            let (mut letters, mut out) = (Letters::new(), "rest of another".to_owned());
            letters.take(&text, particles, &mut out);
            prop_assert_eq!(out, slowly(&text, particles));
        }
    }
}
