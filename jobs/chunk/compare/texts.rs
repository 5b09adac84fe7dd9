//! The texts of an input, all of them in memory.

use anyhow::Result;
use cluster::Group;
use operators::text::units::Unit;
use operators::{Reject, hash};

use runtime::corpus::input::Input;
use runtime::corpus::splits::{SplitReader, each_split};
use runtime::progress::{Progress, Stage};

/// Texts of an input in the order of their positions, and its rejected records.
pub(super) struct InputTexts {
    pub texts: Vec<String>,
    /// Number of rejected records.
    pub rejected: u64,
    /// The first of them.
    pub first_reject: Option<Reject>,
}

impl InputTexts {
    /// Reads an input. Memory: all of its texts.
    pub fn read(input: &Input, progress: &Progress) -> Result<Self> {
        let group = Group::alone(input.workers);
        let splits = each_split(&input.plan, &group, (progress, Stage::Read), |at, number, split| {
            let (mut texts, mut rejects) = (Vec::new(), Vec::new());
            let mut reader = SplitReader::new(number, split, &input.reading, at);
            while let Some(mut batch) = reader.next_batch()? {
                rejects.extend(batch.take_rejects().into_iter().filter(|reject| !reject.is_dropped()));
                texts.extend(batch.docs().map(|doc| doc.text.to_owned()));
            }
            Ok((texts, rejects))
        })?;
        let mut all = InputTexts { texts: Vec::new(), rejected: 0, first_reject: None };
        for (texts, rejects) in splits {
            all.texts.extend(texts);
            all.rejected += rejects.len() as u64;
            all.first_reject = all.first_reject.or(rejects.into_iter().next());
        }
        Ok(all)
    }

    /// Returns the bytes of all texts.
    pub fn bytes(&self) -> u64 {
        self.texts.iter().map(|text| text.len() as u64).sum()
    }

    /// Returns a text of `bytes` bytes, or up to 3 less: texts from a random one on, each of which ends with a newline, and the
    /// first ones behind the last. It is shorter if all of them are.
    pub fn piece(&self, bytes: usize, seed: u64) -> String {
        let first = hash::spread(seed).checked_rem(self.texts.len() as u64).unwrap_or(0) as usize;
        let mut piece = String::new();
        for text in self.texts[first..].iter().chain(&self.texts[..first]) {
            if piece.len() >= bytes {
                break;
            }
            piece.push_str(text);
            if !text.ends_with('\n') {
                piece.push('\n');
            }
        }
        piece.truncate(piece.floor_char_boundary(bytes));
        piece
    }

    /// Returns the different sentences of more than 9 bytes, in the order of their bytes.
    ///
    /// Memory: 16 bytes for each sentence of the texts.
    pub fn sentences(&self) -> Vec<&str> {
        let all = self.texts.iter().flat_map(|text| Unit::Sentence.of(text));
        let mut sentences: Vec<_> = all.filter(|sentence| sentence.len() > 9).collect();
        sentences.sort_unstable();
        sentences.dedup();
        sentences
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_begins_with_any_text_and_has_its_size() {
        let texts = ["一。一。\n", "二。", "三。"].map(str::to_owned).to_vec();
        let texts = InputTexts { texts, rejected: 0, first_reject: None };
        let pieces: Vec<_> = (0..20).map(|seed| texts.piece(22, seed)).collect();
        for expected in ["一。一。\n二。\n", "二。\n三。\n一。", "三。\n一。一。\n"] {
            assert!(pieces.iter().any(|piece| piece.starts_with(expected)), "{expected} {pieces:?}");
        }
        assert!(pieces.iter().all(|piece| (19..=22).contains(&piece.len())), "{pieces:?}");
        assert_eq!((texts.bytes(), texts.piece(100, 1).len()), (25, 27));
        assert_eq!(InputTexts { texts: Vec::new(), ..texts }.piece(5, 1), "");
    }
}
