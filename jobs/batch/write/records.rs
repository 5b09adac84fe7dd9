//! Divides the records of a corpus into those that are kept and those that are not.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::iter;

use anyhow::Result;
use datasets::{PartOutput, Parts, Reading, Writer};
use operators::DocId;
use serde::{Deserialize, Serialize};

use super::ids::write_ids;
use super::options::{Only, WriteOptions};
use crate::verdicts::{RecordFates, Verdicts};
use runtime::corpus::run::Run;
use runtime::corpus::split::Split;
use runtime::corpus::splits;
use runtime::output::{FileList, OutputFolder, SplitParts, TaskManifest, Written};
use runtime::progress::{Stage, StageTimer};

/// Number of input files up to which each is a source of its own. Of more, the folders are.
const FILES: usize = 20;

/// Records and files that one process, or all together, have written of the splits.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct WrittenSplits {
    /// Numbers of kept, removed and rejected records of all splits together.
    pub all: Written,
    /// The same by the file or folder that the records came from.
    pub by_source: BTreeMap<String, Written>,
    /// The files that hold the records.
    pub files: FileList,
}

impl WrittenSplits {
    /// Adds what others have written.
    pub fn add(&mut self, other: WrittenSplits) -> Result<()> {
        self.all.add(other.all);
        for (source, written) in other.by_source {
            self.by_source.entry(source).or_default().add(written);
        }
        self.files.add(other.files)
    }
}

/// Writes the records of the splits of this process.
pub fn write(
    Run { group, plan, reading, progress }: &Run,
    verdicts: &Verdicts,
    folder: &OutputFolder,
    options: &WriteOptions,
) -> Result<WrittenSplits> {
    let by_file = plan.files_by_side().1.len() <= FILES;
    let outputs = folder.map_outputs();
    let results = splits::each_input_split(plan, group, (progress, Stage::Write), |at, number, split| {
        let mut verdicts = verdicts.of_split(number, outputs.open_rejects(number)?)?;
        let decided = verdicts.hash();
        if let Some(task) = folder.finished_task(number, decided)? {
            split.pieces.iter().for_each(|piece| at.done(piece.bytes()));
            return Ok(task);
        }
        let mut task = TaskManifest { decided, ..TaskManifest::default() };
        let parts = SplitParts::new(folder, number, split.partition()).with_rejected(options.write_rejected);
        if options.only == Some(Only::Ids) {
            let to = (&parts as &dyn Parts, folder.table_format);
            write_ids((split, number), reading, &mut verdicts, to, at, &mut task)?;
        } else {
            let to: &dyn Parts = if options.dry_run { &NoParts } else { &parts };
            write_split((split, number), reading, &mut verdicts, to, at, &mut task)?;
        }
        task.files = parts.files();
        if !by_file {
            task.by_source = by_folder(std::mem::take(&mut task.by_source));
        }
        folder.task(number, &task)?;
        Ok(task)
    })?;
    folder.write_held()?;
    let mut all = WrittenSplits::default();
    for TaskManifest { written, by_source, files, .. } in results {
        all.add(WrittenSplits { all: written, by_source, files })?;
    }
    Ok(all)
}

/// Adds up what was written of the files of each folder.
fn by_folder(by_file: BTreeMap<String, Written>) -> BTreeMap<String, Written> {
    let mut folders = BTreeMap::<String, Written>::new();
    for (file, written) in by_file {
        let folder = file.rfind('/').map_or(file.as_str(), |slash| &file[..=slash]);
        folders.entry(folder.to_owned()).or_default().add(written);
    }
    folders
}

/// Parts that go nowhere.
struct NoParts;

/// A part that goes nowhere.
struct NoPart;

impl Parts for NoParts {
    fn part(&self, _folder: &str, _extension: &str) -> Result<Box<dyn PartOutput>, datasets::Error> {
        Ok(Box::new(NoPart))
    }

    fn named(&self, _folder: &str, _name: &str) -> Result<Box<dyn PartOutput>, datasets::Error> {
        Ok(Box::new(NoPart))
    }
}

impl Write for NoPart {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl PartOutput for NoPart {
    fn finish(self: Box<Self>, _records: u64) -> Result<(), cluster::Error> {
        Ok(())
    }
}

/// Writes the records of one split to parts as their fates say, and notes their numbers in `task`.
pub fn write_split(
    (split, number): (&Split, u32),
    reading: &Reading,
    fates: &mut impl RecordFates,
    parts: &dyn Parts,
    at: &StageTimer,
    task: &mut TaskManifest,
) -> Result<()> {
    let reading = split.reading(reading);
    let mut writer = split.format.writer(parts, &reading);
    let mut next = 0;
    for unopened in &split.pieces {
        let piece = unopened.open()?;
        let written = task.by_source.entry(unopened.uri()).or_default();
        let first = next;
        let mut each = iter::from_fn(|| {
            let fate = fates.next(DocId::new(number, next));
            next += 1;
            written.count(&fate);
            Some(fate)
        });
        let divided = writer.divide(&piece, &mut each);
        fates.check()?;
        if let Err(error) = divided {
            // The error that ended the first reading of the piece ends this one too. It was counted as a
            // rejected record, but for a file that cannot be opened only in its first piece.
            let counted = fates.next_rejected(DocId::new(number, next));
            if !error.is_data() || !counted && (next > first || unopened.speaks_for_file()) {
                return Err(error.into());
            }
            next += u64::from(counted);
            written.rejected += u64::from(counted);
        }
        fates.check()?;
        at.read(next - first, unopened.bytes());
        at.done(unopened.bytes());
    }
    task.by_source.values().for_each(|written| task.written.add(*written));
    if fates.stands_for_all() {
        keep_none(split, parts, writer.as_mut())?;
    }
    Ok(writer.finish()?)
}

/// Puts a part without a record into `kept`, for its readers. If the format of the input has none, the part
/// is a file that readers skip.
pub fn keep_none(split: &Split, parts: &dyn Parts, writer: &mut dyn Writer) -> Result<()> {
    for piece in &split.pieces {
        match writer.keep_none(&piece.open()?) {
            Ok(true) => return Ok(()),
            Err(error) if !error.is_data() => return Err(error.into()),
            _ => {}
        }
    }
    Ok(parts.named("kept", "_empty")?.finish(0)?)
}
