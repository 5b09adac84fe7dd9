//! Writes what is in memory as segments, and merges segments.
//!
//! Both are jobs that another thread may run while the index answers and changes. Each begins and ends under the lock of
//! whoever shares the index:
//!
//! ```text
//! index     begin_flush  query  insert  query  insert  finish_flush
//! job                    '------- write -----'
//! ```

use std::collections::BTreeSet;

use anyhow::Result;

use super::index_folder::{IndexFolder, LOG_FLOOR, LogFloor};
use super::topics::{FlushJob, MergeJob, MergedSegment, SegmentEntry, Topic};
use runtime::output::write_sealed;

/// Number of bytes of documents in memory up to which a topic may stay in the log when others are written.
const SMALL_BYTES: usize = 1 << 20;
/// Number of files of the log from whose beginning on topics may stay there.
const KEPT_FILES: usize = 8;

/// A flush of topics that have changed.
pub(super) struct Flush {
    pub jobs: Vec<FlushJob>,
    floor: LogFloor,
}

impl IndexFolder {
    /// Returns about how many bytes of documents are in memory and not being flushed.
    pub(super) fn memory_bytes(&self) -> usize {
        self.topics.values().map(|topic| topic.memory_bytes()).sum()
    }

    /// Writes what is in memory as segments, merges segments of about equal size, and removes the log. `keep`: as for
    /// [`IndexFolder::begin_flush`].
    pub(super) fn flush(&mut self, keep: usize) -> Result<()> {
        let flush = self.write_memory(keep)?;
        for name in flush.jobs.iter().map(|job| &job.topic) {
            while let Some(job) = self.begin_merge(name) {
                let merged = job.run(|_| Ok(()))?;
                self.finish_merge(&job, merged)?;
            }
        }
        Ok(())
    }

    /// Does the same without merging.
    pub(super) fn write_memory(&mut self, keep: usize) -> Result<Flush> {
        let flush = self.begin_flush(keep)?;
        for job in &flush.jobs {
            let entry = job.write(&self.keys)?;
            self.finish_flush_of(job, entry)?;
        }
        self.finish_flush(&flush)?;
        Ok(flush)
    }

    /// Merges all segments of each topic into one, without what is deleted or expired.
    pub fn compact(&mut self) -> Result<()> {
        self.flush(0)?;
        for topic in self.topics.values_mut() {
            let segments = topic.segments.len();
            if segments > 1 || topic.has_dead_rows() {
                let job = topic.merge_job(0..segments);
                job.map_or(Ok(()), |job| topic.replace(&job, job.run(|_| Ok(()))?))?;
            }
        }
        Ok(())
    }

    /// Begins to write what is in memory as segments. All changes so far become durable. `keep`: the number of bytes of
    /// documents of small topics that may stay in memory and in the log, since a segment for each of thousands of topics
    /// would be thousands of files of a few documents.
    pub(super) fn begin_flush(&mut self, keep: usize) -> Result<Flush> {
        // The folder may be the right one and have another owner, if somebody has removed the lock.
        self.check_place()?;
        let log = self.log()?;
        let mut log = log.lock();
        log.commit()?;
        self.show(log.next());
        log.begin_file()?;
        let next_change = log.next();
        let kept = self.topics_that_stay(keep, log.first_of_last(KEPT_FILES));
        let changed =
            self.topics.values_mut().filter(|topic| topic.is_changed() && !kept.contains(&topic.name));
        let jobs: Vec<FlushJob> = changed.map(|topic| topic.freeze(next_change)).collect::<Result<_>>()?;
        // A table that an earlier flush could not write comes first, and lacks the latest changes.
        let written = jobs.iter().map(FlushJob::next_change);
        let kept = self.topics.values().filter_map(Topic::changed_from);
        let from = written.chain(kept).min().unwrap_or(next_change);
        Ok(Flush { jobs, floor: LogFloor { from } })
    }

    /// Returns the smallest topics whose changes are in the last files of the log, from `oldest` on, and whose documents
    /// have at most `keep` bytes together.
    fn topics_that_stay(&self, keep: usize, oldest: u64) -> BTreeSet<String> {
        let may_stay = |topic: &&Topic| {
            let is_recent = topic.changed_from().is_some_and(|from| from >= oldest);
            is_recent && !topic.is_frozen() && topic.memory_bytes() < SMALL_BYTES
        };
        let mut small: Vec<&Topic> = self.topics.values().filter(may_stay).collect();
        small.sort_by_key(|topic| topic.memory_bytes());
        let mut bytes = 0;
        let fits = |topic: &&&Topic| {
            bytes += topic.memory_bytes();
            bytes <= keep
        };
        small.iter().take_while(fits).map(|topic| topic.name.clone()).collect()
    }

    /// Takes over the segment that a job of a flush has written.
    pub(super) fn finish_flush_of(&mut self, job: &FlushJob, entry: Option<SegmentEntry>) -> Result<()> {
        self.topics.get_mut(&job.topic).map_or(Ok(()), |topic| topic.install(job, entry))
    }

    /// Removes the files of the log that no topic needs any more.
    pub(super) fn finish_flush(&mut self, flush: &Flush) -> Result<()> {
        if flush.floor < self.floor {
            // A later flush has ended before this one.
            return Ok(());
        }
        self.floor = flush.floor;
        let path = format!("{}/{LOG_FLOOR}", self.path);
        write_sealed(self.store.as_ref(), &path, &self.path, &self.floor)?;
        Ok(self.log()?.lock().remove_before(self.floor.from)?)
    }

    /// Returns the topics that have many segments of about equal size.
    pub(super) fn topics_to_merge(&self) -> Vec<String> {
        let many = self.topics.iter().filter(|(_, topic)| !topic.tier().is_empty());
        many.map(|(name, _)| name.clone()).collect()
    }

    /// Begins to merge segments of a topic; `None` if it has too few of about equal size.
    pub(super) fn begin_merge(&mut self, topic: &str) -> Option<MergeJob> {
        let topic = self.topics.get_mut(topic)?;
        topic.merge_job(topic.tier())
    }

    /// Takes over a merged segment.
    pub(super) fn finish_merge(&mut self, job: &MergeJob, merged: MergedSegment) -> Result<()> {
        self.topics.get_mut(&job.topic).map_or(Ok(()), |topic| topic.replace(job, merged))
    }
}
