//! The texts of an input, all of them in memory.

use anyhow::Result;
use cluster::Group;
use operators::Reject;

use crate::corpus::input::Input;
use crate::corpus::splits::{SplitReader, each_split};
use crate::progress::{Progress, Stage};

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
            while let Some(mut batch) = reader.next()? {
                rejects.extend(batch.take_rejects());
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
}
