//! Merges segments, so that a query asks few files, and leaves out what is deleted or expired.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Result;
use cluster::Store;
use cluster::runs::MergedRuns;

use super::manifest::SegmentEntry;
use super::segment::{Segment, SegmentCursors, SegmentFiles, SegmentWriter};
use super::table::IndexTable;
use super::topic_files::TopicFiles;
use crate::index::fingerprints::{self, FingerprintFile};

/// About how many bytes a fingerprint takes in four tables.
const FINGERPRINT_BYTES: usize = 32;

/// The merging of segments that follow each other into one.
///
/// It knows what was deleted and expired when it began; what is deleted since then stays for the next merge.
pub(in crate::index) struct MergeJob {
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
pub(in crate::index) struct MergedSegment {
    pub entry: SegmentEntry,
    /// Deleted documents of which nothing is left.
    pub gone: Vec<u64>,
}

impl MergeJob {
    /// Merges. `pace` is called with the number of bytes of each row that is written. It may wait,
    /// and an error of it ends the merge.
    ///
    /// A text goes once its first document and all others are deleted or expired. Cost: reads and writes all rows of the
    /// segments once; memory: the texts whose first document is gone.
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
        let mut dead = DeadTexts { job: self, cursors, known: BTreeMap::new() };
        let mut writer = SegmentWriter::new(self.store.as_ref(), &self.folder, self.number);
        for table in IndexTable::ALL {
            let mut rows = MergedRuns::new(files.iter().filter_map(|files| files.run(table)));
            writer.table(table, |push| {
                while let Some(row) = rows.next_row()? {
                    self.files.check()?;
                    let stays = match table {
                        IndexTable::Identities => !dead.has(row.words[2])?,
                        IndexTable::Keys => !dead.has(row.words[3])?,
                        IndexTable::Sketches | IndexTable::Texts => !dead.has(row.words[0])?,
                        IndexTable::Documents => self.is_alive(row.words[0]),
                        IndexTable::Copies | IndexTable::Ids => self.is_alive(row.words[1]),
                    };
                    if stays {
                        push(row.words, row.bytes)?;
                        pace(8 * row.words.len() + row.bytes.len())?;
                    }
                }
                Ok(())
            })?;
        }
        let files: Vec<&FingerprintFile> =
            files.iter().filter_map(|files| files.fingerprints.as_ref()).collect();
        if let Some(first) = files.iter().map(|file| file.first_number()).min() {
            let entries = files.iter().map(|file| file.summary.entries).sum();
            writer.fingerprints(entries, (first, bounds.1), |file| {
                fingerprints::merge(&files, file, |number| {
                    self.files.check()?;
                    pace(FINGERPRINT_BYTES)?;
                    Ok(!dead.has(number)?)
                })
            })?;
        }
        // Expired documents are gone, so the segment begins behind them.
        let entry = writer.finish((bounds.0.max(self.oldest.min(bounds.1)), bounds.1))?;
        // The number of a text that has copies goes on being that of a deleted document.
        let stays = |number: &u64| dead.known.get(number) == Some(&false);
        let gone = self.deleted.iter().copied().filter(|number| !stays(number)).collect();
        Ok(MergedSegment { entry, gone })
    }

    fn is_alive(&self, number: u64) -> bool {
        number >= self.oldest && !self.deleted.contains(&number)
    }
}

/// Texts of which no document is left.
struct DeadTexts<'a> {
    job: &'a MergeJob,
    cursors: Vec<SegmentCursors>,
    /// Texts whose first document is gone, and whether all others are gone too.
    known: BTreeMap<u64, bool>,
}

impl DeadTexts<'_> {
    fn has(&mut self, text: u64) -> Result<bool> {
        if self.job.is_alive(text) {
            return Ok(false);
        }
        if let Some(&is_dead) = self.known.get(&text) {
            return Ok(is_dead);
        }
        let mut is_dead = true;
        for cursors in &mut self.cursors {
            cursors.rows(IndexTable::Copies, &[text], |words| {
                is_dead &= !self.job.is_alive(words[1]);
                is_dead
            })?;
        }
        self.known.insert(text, is_dead);
        Ok(is_dead)
    }
}
