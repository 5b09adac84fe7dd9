//! The second reading of the corpus, which copies the records without what is cut out of their texts.

use anyhow::{Error, Result};
use datasets::{Fate, Removal};
use operators::{DocId, MergeCursor, RepeatedUnit};

use super::doc_names::DocNames;
use super::span_table::{CutSpan, KeptSpan, SpanTable};
use batch::verdicts::RecordFates;
use runtime::output::split_rejects::SplitRejects;

/// Reason of the removal of a document of which nothing would be left.
const REASON: &str = "repeated";

/// Counts of the units that were cut out of the texts of a split, or of all splits.
#[derive(Clone, Copy, Default)]
pub(super) struct CutCounts {
    /// Number of documents that are kept with a shorter text.
    pub docs: u64,
    /// Number of units that were cut out of them.
    pub units: u64,
    /// Number of bytes of these units.
    pub bytes: u64,
    /// Number of bytes of the texts of documents of which nothing would be left, without their white space.
    pub removed_bytes: u64,
}

impl CutCounts {
    /// Adds the counts of another split.
    pub fn add(&mut self, other: CutCounts) {
        self.docs += other.docs;
        self.units += other.units;
        self.bytes += other.bytes;
        self.removed_bytes += other.removed_bytes;
    }
}

/// Fates of the records of one split, with what is cut out of their texts.
pub(super) struct SplitCuts<'a> {
    /// Units that go, from the first of this split on.
    pub repeats: &'a mut MergeCursor<RepeatedUnit>,
    pub names: &'a DocNames,
    /// Rejected records of the split, if there are any.
    pub rejected: Option<SplitRejects>,
    pub spans: SpanTable<'a>,
    pub counts: CutCounts,
    /// Error after which the fates are unknown.
    pub failed: Option<Error>,
}

impl SplitCuts<'_> {
    fn fate(&mut self, doc: DocId) -> Result<Fate> {
        if self.pass_rejected(doc)? {
            return Ok(Fate::Rejected);
        }
        let mut units = Vec::new();
        while let Some(unit) = self.repeats.next_if(|unit| unit.place.doc == doc)? {
            units.push(unit);
        }
        let Some(first) = units.first() else { return Ok(Fate::Kept) };
        let name = self.names.read(doc.split(), first.place.name)?;
        let mut keeper = None;
        for unit in &units {
            let kept = unit.kept.map(|kept| -> Result<_> {
                let id = self.names.read(kept.doc.split(), kept.name)?.id;
                Ok(KeptSpan { id, place: kept.doc, offset: kept.start, similarity: unit.similarity })
            });
            let kept = kept.transpose()?;
            if keeper.is_none() {
                keeper = kept.as_ref().map(|kept| kept.id.clone());
            }
            let offset = unit.place.start;
            let bytes = unit.bytes;
            self.spans.push(CutSpan { id: name.id.clone(), place: doc, offset, bytes, kept })?;
        }
        let bytes = units.iter().map(|unit| u64::from(unit.bytes)).sum::<u64>();
        if units.len() as u64 == name.units {
            self.counts.removed_bytes += bytes;
            let duplicate_of = keeper.unwrap_or_default();
            let id = name.id;
            let cluster = duplicate_of.clone();
            let reason = REASON.into();
            return Ok(Fate::Removed(Removal { id, duplicate_of, similarity: None, cluster, reason }));
        }
        self.counts.docs += 1;
        self.counts.units += units.len() as u64;
        self.counts.bytes += bytes;
        let range = |unit: &RepeatedUnit| {
            let start = unit.place.start as usize;
            start..start + unit.bytes as usize
        };
        Ok(Fate::Cut(units.iter().map(range).collect()))
    }

    fn pass_rejected(&mut self, doc: DocId) -> Result<bool> {
        self.rejected.as_mut().map_or(Ok(false), |rejected| rejected.pass(doc))
    }

    /// Returns a result, and keeps the first error for [`RecordFates::check`].
    fn known<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.failed = self.failed.take().or(Some(error))).ok()
    }
}

impl RecordFates for SplitCuts<'_> {
    fn next(&mut self, doc: DocId) -> Fate {
        let fate = self.fate(doc);
        self.known(fate).unwrap_or(Fate::Kept)
    }

    fn next_rejected(&mut self, doc: DocId) -> bool {
        let rejected = self.pass_rejected(doc);
        self.known(rejected).unwrap_or(false)
    }

    fn check(&mut self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }
}
