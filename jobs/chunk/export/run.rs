//! The job: writes a part for each split, and commits them.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use datasets::{Container, Content, FORMATS, Format, Piece};
use operators::{DocBatch, Reject};

use super::export_split::ExportSplit;
use super::options::ExportOptions;
use super::summary::{ExportCounters, ExportSummary};
use crate::name_filter::NameFilter;
use crate::store::{ChunkStore, ContentReader, SnapshotFile, SnapshotManifest, SnapshotReader};
use runtime::corpus::plan::Plan;
use runtime::corpus::split::Split;
use runtime::corpus::splits::end;
use runtime::corpus::whole_file::WholeFile;
use runtime::output::rejects::SplitRejectsWriter;
use runtime::output::{FileList, JobEnd, OutputFolder, OutputJob};
use runtime::progress::usage::ResourceUsage;
use runtime::progress::{Stage, StageTimer, Watched, seconds};

/// Everything that the steps of an export share.
pub(super) struct ExportRun<'a> {
    pub job: &'a OutputJob<'a>,
    pub store: &'a ChunkStore,
    pub snapshots: &'a [SnapshotManifest],
    pub splits: Vec<ExportSplit>,
    pub options: &'a ExportOptions,
    pub container: Container,
    pub max_rejects: Option<u64>,
}

/// Returns the splits as the output sees them. They have no pieces, since no file of theirs lies in a store of files.
///
/// # Errors
/// When no format has one document a file.
pub(super) fn plan_of(splits: &[ExportSplit]) -> Result<Plan> {
    let empty = |_: &ExportSplit| {
        let format = whole_format("", b"")?;
        Ok(Split { format, pieces: Vec::new(), is_reference: false, sample: None })
    };
    Ok(Plan { splits: splits.iter().map(empty).collect::<Result<_>>()?, ..Plan::nothing() })
}

impl ExportRun<'_> {
    /// Returns what is shown of the job.
    pub fn watched(&self) -> Result<Watched> {
        let OutputJob { common, run, name, output, configuration, .. } = self.job;
        Ok(Watched {
            input_files: self.splits.iter().map(|split| split.files).sum(),
            input_bytes: self.splits.iter().map(|split| split.bytes).sum(),
            ..run.plan.watched(&common.progress, name, output, configuration, 0)?
        })
    }

    /// Writes and commits the output.
    ///
    /// Memory: for each worker frames of 48 MiB, the longest file twice, and 96 MiB more if its streams were undone.
    ///
    /// # Errors
    /// Those of the store and of the output. Then nothing of the output is visible.
    pub fn work(&self, folder: &OutputFolder) -> Result<JobEnd<ExportSummary>> {
        let progress = &self.job.run.progress;
        let (exported, rejected) =
            self.job.write_splits(folder, (Stage::Export, self.max_rejects), |at, number, _, rejects| {
                self.split(folder, at, number, rejects)
            })?;
        let mut counters = ExportCounters {
            snapshots: self.snapshots.len() as u64,
            splits: self.splits.len() as u64,
            rejected,
            ..ExportCounters::default()
        };
        exported.into_iter().for_each(|of_split| counters.add(of_split));
        let summary = ExportSummary {
            version: env!("CARGO_PKG_VERSION"),
            configuration: self.job.configuration.clone(),
            snapshots: self.snapshots.iter().map(|snapshot| snapshot.name.clone()).collect(),
            counters,
            process: ResourceUsage::measure(),
            seconds: BTreeMap::from([("whole", seconds(self.job.start.elapsed()))]),
            stages: progress.rows(),
        };
        progress.worker(0).enter(Stage::Commit);
        self.job.commit(folder, &summary, FileList::default())?;
        Ok(JobEnd { summary: Some(summary), others: Vec::new(), rejected: rejected > 0 })
    }

    /// Writes the part of one split, even where all of its files are rejected.
    fn split(
        &self,
        folder: &OutputFolder,
        at: &StageTimer,
        number: u32,
        rejects: &mut SplitRejectsWriter,
    ) -> Result<ExportCounters> {
        let split = self.splits[number as usize];
        let mut counters = ExportCounters::default();
        let name = format!("exported/part-{number:05}{}", self.container.extension());
        let seed = self.snapshots.get(split.snapshot).map_or("", |snapshot| snapshot.name.as_str());
        let mut writer =
            self.container.create(folder.file(&name)?, Content::Text, &format!("{seed} {}", split.first))?;
        if split.files > 0 {
            let manifest = &self.snapshots[split.snapshot];
            let mut files = SnapshotReader::open(self.store, manifest)?;
            files.seek(split.first)?;
            let mut contents = ContentReader::new(self.store, &self.job.run.reading.extractors);
            let mut wanted = NameFilter::new(&self.options.names);
            let mut next = 0;
            for _ in split.first..split.end {
                let file = files.next()?.context("the list of files of a snapshot ends too early")?;
                if !wanted.takes(&file.name) {
                    continue;
                }
                let mut batch = DocBatch::new(number, next);
                self.file(&mut contents, manifest, &file, &mut batch)?;
                next = batch.next_record();
                for doc in batch.docs() {
                    writer.append(doc.id, doc.text.as_bytes())?;
                    counters.files += 1;
                }
                counters.input_files += 1;
                counters.input_bytes += file.bytes;
                counters.bytes += batch.text_bytes() as u64;
                counters.replaced += batch.replaced();
                at.read(1, batch.text_bytes() as u64);
                at.done(file.bytes);
                rejects.take(&mut batch)?;
            }
        }
        writer.finish()?;
        Ok(counters)
    }

    /// Adds the text of a file to `batch`, or rejects the file.
    fn file(
        &self,
        contents: &mut ContentReader,
        manifest: &SnapshotManifest,
        file: &SnapshotFile,
        batch: &mut DocBatch,
    ) -> Result<()> {
        let id =
            if self.options.all { format!("{}/{}", manifest.name, file.name) } else { file.name.clone() };
        let most = self.job.run.reading.max_record_bytes;
        if file.bytes > most as u64 {
            batch.reject(&id, 0, format!("the file is longer than {most} bytes"), b"");
            return Ok(());
        }
        let mut bytes = Vec::new();
        // The hash of all bytes is right, or there is an error.
        match contents.write(manifest, file, &mut bytes) {
            Err(error) if ContentReader::is_damage(&error) => {
                batch.reject(&id, 0, format!("it cannot be restored: {error:#}"), b"");
                return Ok(());
            }
            written => written?,
        }
        let format = whole_format(&file.name, &bytes[..bytes.len().min(Reject::HEAD_BYTES)])?;
        let piece = Piece::whole(Arc::new(WholeFile { path: id.clone(), bytes }), id);
        let mut reader = format.open(&piece, &self.job.run.reading)?;
        if let Err(error) = reader.fill(batch) {
            end(error, Some(batch))?;
        }
        Ok(())
    }
}

/// Returns the format of files of one document each that recognises a file; the last of them, plain text, if none does.
fn whole_format(name: &str, head: &[u8]) -> Result<&'static dyn Format> {
    let mut whole = FORMATS.iter().copied().filter(|format| format.file_is_record());
    let last = whole.clone().next_back().context("no format has one document a file")?;
    Ok(whole.find(|format| format.recognises(name, head)).unwrap_or(last))
}
