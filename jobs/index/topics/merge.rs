//! Merges segments, so that a query asks few files, and leaves out what is deleted or expired.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::Result;
use cluster::runs::{MergedRuns, RunReader, newest_tier};

use super::table::IndexTable;
use super::topic::Topic;
use super::topic_reader::TopicReader;

/// Number of documents below which segments count as equally large.
const SMALL_DOCUMENTS: u64 = 1 << 12;

/// Merges the newest segments of a topic, if four or more are about equally large ([`newest_tier`]).
pub(in crate::index) fn merge_tier(topic: &mut Topic) -> Result<()> {
    let documents: Vec<u64> = topic.segments.iter().map(|segment| segment.entry.documents).collect();
    let end = documents.len();
    merge(topic, end - newest_tier(&documents, SMALL_DOCUMENTS)..end)
}

/// Merges segments of a topic that follow each other into one.
///
/// A text goes once its first document and all others are deleted or expired. Cost: reads and writes all rows of the
/// segments once; memory: the texts whose first document is gone.
pub(in crate::index) fn merge(topic: &mut Topic, merged: Range<usize>) -> Result<()> {
    let segments = &topic.segments[merged.clone()];
    let (Some(first), Some(last)) = (segments.first(), segments.last()) else { return Ok(()) };
    let bounds = (first.entry.first, last.entry.end);
    let mut dead = DeadTexts { topic, reader: TopicReader::new(topic), known: BTreeMap::new() };
    let mut writer = topic.segment_writer();
    for table in IndexTable::ALL {
        let runs: Vec<&RunReader> = segments.iter().rev().filter_map(|segment| segment.run(table)).collect();
        let mut rows = MergedRuns::new(runs);
        writer.table(table, |push| {
            while let Some(row) = rows.next_row()? {
                let stays = match table {
                    IndexTable::Identities => !dead.has(row.words[2])?,
                    IndexTable::Keys => !dead.has(row.words[3])?,
                    IndexTable::Sketches | IndexTable::Texts => !dead.has(row.words[0])?,
                    IndexTable::Documents => topic.is_alive(row.words[0]),
                    IndexTable::Copies | IndexTable::Ids => topic.is_alive(row.words[1]),
                };
                if stays {
                    push(row.words, row.bytes)?;
                }
            }
            Ok(())
        })?;
    }
    // Expired documents are gone, so the segment begins behind them.
    let entry = writer.finish((bounds.0.max(topic.oldest.min(bounds.1)), bounds.1))?;
    // The number of a text that has copies goes on being that of a deleted document.
    let known = dead.known;
    let stays = |number: &u64| known.get(number) == Some(&false);
    let gone: Vec<u64> =
        topic.deleted.range(bounds.0..bounds.1).copied().filter(|number| !stays(number)).collect();
    topic.replace(merged, entry, &gone)
}

/// Texts of which no document is left.
struct DeadTexts<'a> {
    topic: &'a Topic,
    reader: TopicReader<'a>,
    /// Texts whose first document is gone, and whether all others are gone too.
    known: BTreeMap<u64, bool>,
}

impl DeadTexts<'_> {
    fn has(&mut self, text: u64) -> Result<bool> {
        if self.topic.is_alive(text) {
            return Ok(false);
        }
        if let Some(&is_dead) = self.known.get(&text) {
            return Ok(is_dead);
        }
        let is_dead = !self.reader.has_copies(text)?;
        self.known.insert(text, is_dead);
        Ok(is_dead)
    }
}
