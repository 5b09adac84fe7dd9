//! Output files of one split, for formats whose records are copied as bytes.

use super::part::{PartKind, PartWriter};
use super::removal_log::Reasons;
use crate::{Error, Fate, Parts};

/// Writer of the kept and the removed records of a split, each as its own bytes, and of the removal log.
pub(crate) struct Copies<'a> {
    kept: PartWriter<'a>,
    removed: PartWriter<'a>,
    reasons: Reasons<'a>,
}

impl<'a> Copies<'a> {
    pub fn new(parts: &'a dyn Parts, extension: &'static str) -> Self {
        Copies {
            kept: PartWriter::new(parts, "kept", extension),
            removed: PartWriter::new(parts, "removed", extension),
            reasons: Reasons::new(parts),
        }
    }

    /// Copies a record as its fate says. Returns `false` if there is no fate, or if a record that is not
    /// `whole` is not to be rejected.
    pub fn put(
        &mut self,
        fate: Option<Fate>,
        kind: &PartKind,
        record: &[&[u8]],
        whole: bool,
    ) -> Result<bool, Error> {
        match fate {
            Some(Fate::Rejected) => {}
            Some(Fate::Kept) if whole => self.kept.write(kind, record)?,
            Some(Fate::Removed(removal)) if whole => {
                self.removed.write(kind, record)?;
                self.reasons.write(&removal)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Begins a kept part without records.
    pub fn keep_none(&mut self, kind: &PartKind) -> Result<bool, Error> {
        self.kept.begin(kind)?;
        Ok(true)
    }

    /// Finishes all parts.
    pub fn finish(self) -> Result<(), Error> {
        self.kept.finish()?;
        self.removed.finish()?;
        self.reasons.finish()
    }
}
