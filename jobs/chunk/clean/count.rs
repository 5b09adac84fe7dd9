//! The first reading of the corpus, which collects the units of all texts.

use anyhow::{Result, anyhow};
use datasets::{MissingField, Reading};
use operators::hash::Secret;
use operators::text::units::Unit;
use operators::{Doc, Similarity, UnitOccurrence, UnitPlace};

use super::doc_names::DocNames;
use super::options::CleanOptions;
use runtime::corpus::shared_sorts::{SharedSorts, SortWriter, sort_of};
use runtime::corpus::split::Split;
use runtime::corpus::splits::SplitReader;
use runtime::output::rejects::{Rejects, SplitRejectsWriter};
use runtime::progress::StageTimer;

/// Collector of the units of a corpus. Units of one text meet in one sort, whichever document they are in.
pub(super) struct UnitCounter<'a> {
    pub reading: &'a Reading,
    pub options: &'a CleanOptions,
    pub secret: &'a Secret,
    pub units: &'a SharedSorts<UnitOccurrence>,
    pub names: &'a DocNames,
}

/// Counts of the records and units that were read of a split, or of all splits.
#[derive(Default)]
pub(super) struct UnitCensus {
    pub docs: u64,
    pub text_bytes: u64,
    /// Number of documents whose illegal bytes were replaced.
    pub replaced: u64,
    /// Number of units that are not white space.
    pub units: u64,
    /// Number of these that are long enough to be cut.
    pub long_units: u64,
    pub rejects: Rejects,
    pub without_field: Option<MissingField>,
}

impl UnitCensus {
    /// Adds what was read of another split.
    pub fn join(&mut self, other: UnitCensus) {
        self.docs += other.docs;
        self.text_bytes += other.text_bytes;
        self.replaced += other.replaced;
        self.units += other.units;
        self.long_units += other.long_units;
        self.rejects.join(other.rejects);
        self.without_field = self.without_field.take().or(other.without_field);
    }
}

impl UnitCounter<'_> {
    /// Reads one split.
    pub fn split(
        &self,
        at: &StageTimer,
        number: u32,
        split: &Split,
        mut rejects: SplitRejectsWriter,
    ) -> Result<UnitCensus> {
        let mut census = UnitCensus::default();
        let mut writer = self.units.writer();
        let mut held = Vec::new();
        let mut reader = SplitReader::new(number, split, self.reading, at);
        while let Some(mut batch) = reader.next_batch()? {
            for doc in batch.docs() {
                self.document(&doc, &mut held, &mut writer, &mut census)?;
            }
            census.docs += batch.docs().len() as u64;
            census.text_bytes += batch.text_bytes() as u64;
            census.replaced += batch.replaced();
            rejects.take(&mut batch)?;
        }
        writer.finish();
        census.rejects = rejects.finish()?;
        census.without_field = reader.without_field();
        Ok(census)
    }

    /// Adds the units of a document. `held`: a buffer.
    fn document(
        &self,
        doc: &Doc,
        held: &mut Vec<UnitOccurrence>,
        writer: &mut SortWriter<UnitOccurrence>,
        census: &mut UnitCensus,
    ) -> Result<()> {
        held.clear();
        let units = self.long_units(doc, held)?;
        census.units += units;
        census.long_units += held.len() as u64;
        if held.is_empty() {
            return Ok(());
        }
        let name = self.names.add(doc.doc.split(), doc.id, units)?;
        for unit in held {
            unit.place.name = name;
            writer.push(sort_of(unit.identity, self.units.count()), *unit);
        }
        Ok(())
    }

    /// Appends the units of a document that are long enough. Returns the number of all that are not white space.
    fn long_units(&self, doc: &Doc, held: &mut Vec<UnitOccurrence>) -> Result<u64> {
        let CleanOptions { unit, min_chars, .. } = *self.options;
        let (mut units, mut start) = (0, 0);
        for unit in Unit::of(unit, doc.text) {
            let compared = unit.trim();
            units += u64::from(!compared.is_empty());
            if !compared.is_empty() && has_chars(compared, min_chars as usize) {
                let fits =
                    |bytes: usize| u32::try_from(bytes).map_err(|_| anyhow!("a text has more than 4 GiB"));
                held.push(UnitOccurrence {
                    identity: self.secret.identity(compared),
                    place: UnitPlace { doc: doc.doc, start: fits(start)?, name: 0 },
                    bytes: fits(unit.len())?,
                    similarity: Similarity::ONE,
                });
            }
            start += unit.len();
        }
        Ok(units)
    }
}

/// Whether a text has at least `least` characters. A character has one to four bytes.
fn has_chars(text: &str, least: usize) -> bool {
    text.len() >= least && (text.len() >= 4 * least || text.chars().count() >= least)
}
