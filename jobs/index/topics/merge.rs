//! Merges segments, so that a query asks few files, and leaves out what is deleted or expired.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Result;
use cluster::Store;
use cluster::runs::MergedRuns;

use super::living_texts::{LivingDocs, LivingTexts};
use super::manifest::SegmentEntry;
use super::segment::{Segment, SegmentFiles, SegmentWriter};
use super::table::IndexTable;
use super::topic_files::TopicFiles;
use crate::fingerprints::{self, FingerprintFile};

/// About how many bytes a fingerprint takes in four tables.
const FINGERPRINT_BYTES: usize = 32;

/// The merging of segments that follow each other into one.
///
/// It knows what was deleted and expired when it began; what is deleted since then stays for the next merge.
pub(crate) struct MergeJob {
    pub(super) store: Arc<dyn Store>,
    pub topic: String,
    pub(super) folder: String,
    pub(super) number: u64,
    pub(super) segments: Vec<Arc<Segment>>,
    /// Documents with lower numbers have expired.
    pub(super) oldest: u64,
    pub(super) deleted: BTreeSet<u64>,
    pub files: Arc<TopicFiles>,
}

/// A segment that takes the place of others.
pub(crate) struct MergedSegment {
    pub entry: SegmentEntry,
    /// Deleted documents of which nothing is left.
    pub gone: Vec<u64>,
}

impl MergeJob {
    /// Merges. `pace` is called with the number of bytes of each row that is written. It may wait,
    /// and an error of it ends the merge.
    ///
    /// [`LivingTexts`] says which texts stay. Cost: reads and writes all rows of the segments once; memory: that of
    /// [`LivingTexts`].
    ///
    /// # Errors
    /// Those of the store, and when the topic is dropped meanwhile.
    pub fn run(&self, pace: impl FnMut(usize) -> Result<()>) -> Result<MergedSegment> {
        self.files.write(|| self.merge(pace))
    }

    fn merge(&self, mut pace: impl FnMut(usize) -> Result<()>) -> Result<MergedSegment> {
        let segments = &self.segments;
        let bounds = (segments[0].entry.first, segments[segments.len() - 1].entry.end);
        let cursors = segments.iter().map(|segment| segment.cursors()).collect::<Result<_>>()?;
        let files: Vec<&SegmentFiles> =
            segments.iter().rev().map(|segment| segment.files()).collect::<Result<_>>()?;
        let docs = LivingDocs { oldest: self.oldest, deleted: &self.deleted };
        let mut texts = LivingTexts::new(docs, cursors);
        let mut writer = SegmentWriter::new(self.store.as_ref(), &self.folder, self.number);
        // The rows by which equal texts are known come first: identities, or else fingerprints.
        let by_identity = files.iter().any(|files| files.run(IndexTable::Identities).is_some());
        let prints: Vec<&FingerprintFile> =
            files.iter().filter_map(|files| files.fingerprints.as_ref()).collect();
        if by_identity {
            self.merge_table(IndexTable::Identities, &files, &mut writer, &mut pace, |row| {
                texts.stays_with([row[0], row[1]], row[2])
            })?;
        }
        if let Some(first) = prints.iter().map(|file| file.first_number()).min() {
            let entries = prints.iter().map(|file| file.summary.entries).sum();
            writer.fingerprints(entries, (first, bounds.1), |file| {
                fingerprints::merge(&prints, file, |word, text| {
                    self.files.check()?;
                    pace(FINGERPRINT_BYTES)?;
                    if by_identity { texts.stays(text) } else { texts.stays_with([word, 0], text) }
                })
            })?;
        }
        self.merge_table(IndexTable::Keys, &files, &mut writer, &mut pace, |row| match row[0] {
            0 if !by_identity => texts.stays_with([row[1], row[2]], row[3]),
            _ => texts.stays(row[3]),
        })?;
        for table in [IndexTable::Sketches, IndexTable::Texts] {
            self.merge_table(table, &files, &mut writer, &mut pace, |row| texts.stays(row[0]))?;
        }
        self.merge_table(IndexTable::Documents, &files, &mut writer, &mut pace, |row| {
            let [number, _, back] = row else { return Ok(false) };
            *back = *number - texts.text_of(*number - *back);
            Ok(docs.has(*number))
        })?;
        self.merge_copies(&files, &mut writer, &mut pace, (docs, &mut texts))?;
        self.merge_table(IndexTable::Ids, &files, &mut writer, &mut pace, |row| Ok(docs.has(row[1])))?;
        self.merge_table(IndexTable::Priorities, &files, &mut writer, &mut pace, |row| Ok(docs.has(row[0])))?;
        // Expired documents are gone, so the segment begins behind them.
        let entry = writer.finish((bounds.0.max(self.oldest.min(bounds.1)), bounds.1))?;
        // The number of a text that has copies goes on being that of a deleted document.
        let gone = self.deleted.iter().copied().filter(|number| !texts.names_a_text(*number)).collect();
        Ok(MergedSegment { entry, gone })
    }

    /// Writes the rows of a table that stay. `stays` may change the words behind the key.
    fn merge_table(
        &self,
        table: IndexTable,
        files: &[&SegmentFiles],
        writer: &mut SegmentWriter,
        mut pace: impl FnMut(usize) -> Result<()>,
        mut stays: impl FnMut(&mut [u64]) -> Result<bool>,
    ) -> Result<()> {
        let mut rows = MergedRuns::new(files.iter().filter_map(|files| files.run(table)));
        let mut words = Vec::new();
        writer.table(table, |push| {
            while let Some(row) = rows.next_row()? {
                self.files.check()?;
                words.clear();
                words.extend(row.words);
                if stays(&mut words)? {
                    push(&words, row.bytes)?;
                    pace(8 * words.len() + row.bytes.len())?;
                }
            }
            Ok(())
        })
    }

    /// Writes the copies: those of texts that stay, and those that join an earlier text.
    fn merge_copies(
        &self,
        files: &[&SegmentFiles],
        writer: &mut SegmentWriter,
        mut pace: impl FnMut(usize) -> Result<()>,
        (docs, texts): (LivingDocs, &mut LivingTexts),
    ) -> Result<()> {
        let joined = texts.joined_copies()?;
        let mut joined = joined.iter().peekable();
        let mut rows = MergedRuns::new(files.iter().filter_map(|files| files.run(IndexTable::Copies)));
        writer.table(IndexTable::Copies, |push| {
            let mut push = |row: &[u64]| {
                pace(8 * row.len())?;
                push(row, b"")
            };
            while let Some(row) = rows.next_row()? {
                self.files.check()?;
                while let Some(earlier) = joined.next_if(|joined| joined[..] < *row.words) {
                    push(earlier)?;
                }
                if docs.has(row.words[1]) && texts.text_of(row.words[0]) == row.words[0] {
                    push(row.words)?;
                }
            }
            joined.try_for_each(|row| push(row))
        })
    }
}
