//! A split of the input: pieces of files that one worker reads at a time.

use std::borrow::Cow;

use cluster::{InputFile, TablePartition};
use datasets::{Format, Reading};
use operators::Priority;

use super::sample::Sample;
use super::unopened_piece::UnopenedPiece;

/// Split: pieces of one format that one worker reads at a time.
pub struct Split {
    /// Format of all its files, by which its records are read and written.
    pub format: &'static dyn Format,
    /// Files, or parts of one file, in the order of their records.
    pub pieces: Vec<UnopenedPiece>,
    /// Whether it is of the reference.
    pub is_reference: bool,
    /// Sample of its documents to be read; `None` for all.
    pub sample: Option<Sample>,
}

impl Split {
    /// Returns the name of its first file, for people.
    pub fn uri(&self) -> String {
        self.pieces.first().map_or(String::new(), UnopenedPiece::uri)
    }

    /// Returns the partition of a table that its records are of.
    pub fn partition(&self) -> TablePartition<'_> {
        TablePartition::of(self.pieces.first().map_or("", UnopenedPiece::name))
    }

    /// Whether a file of this format may share the split with its other files.
    pub(super) fn may_take(&self, file: &InputFile, format: &dyn Format) -> bool {
        self.format.name() == format.name()
            && self.partition().folders() == TablePartition::of(&file.name).folders()
    }

    /// Returns how its records are read: without a field that is a column of the partition.
    pub fn reading<'r>(&self, reading: &'r Reading) -> Cow<'r, Reading> {
        let (id, priority) = self.partition_values(reading);
        // All documents of a reference stay, so none of them needs a priority.
        let drops_priority = priority.is_some() || self.is_reference && reading.priority.is_some();
        if id.is_none() && !drops_priority {
            return Cow::Borrowed(reading);
        }
        let mut own = reading.clone();
        own.id = own.id.filter(|_| id.is_none());
        own.priority = own.priority.filter(|_| !drops_priority);
        Cow::Owned(own)
    }

    /// Returns the id and the priority that all records have by their partition, where it has those columns.
    pub fn partition_values(&self, reading: &Reading) -> (Option<String>, Option<Priority>) {
        let value = |field: &Option<String>| self.partition().value(field.as_deref()?);
        (value(&reading.id), value(&reading.priority).and_then(|text| Priority::of_text_or_date(&text)))
    }

    /// Returns the same split, which notes sums of what is read of it.
    pub fn noting(&self) -> Self {
        let pieces = self.pieces.iter().map(UnopenedPiece::noting).collect();
        Split { pieces, format: self.format, is_reference: self.is_reference, sample: self.sample.clone() }
    }

    /// Returns the sums that were noted, piece by piece.
    pub fn sums(&self) -> Vec<Vec<(u64, u64)>> {
        self.pieces.iter().map(UnopenedPiece::sums).collect()
    }

    /// Takes over the sums of what an earlier run has read of the split.
    pub fn restore(&self, sums: &[Vec<(u64, u64)>]) -> Result<(), cluster::Error> {
        self.pieces.iter().zip(sums).try_for_each(|(piece, sums)| piece.restore(sums))
    }
}
