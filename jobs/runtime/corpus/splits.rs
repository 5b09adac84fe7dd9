//! Reads the splits of this worker, batch by batch, for every reading of the corpus.

use std::borrow::Cow;

use anyhow::Result;
use cluster::Group;
use datasets::{Error, MissingField, Reader, Reading};
use operators::{DocBatch, DocId, Priority};

use super::at_once::each_with;
use super::plan::Plan;
use super::sample::Sample;
use super::split::Split;
use super::unopened_piece::UnopenedPiece;
use crate::progress::{Progress, Stage, StageTimer};

/// Returns the splits that worker `index` of `peers` reads: those whose numbers are `index` modulo `peers`.
pub fn splits_of(plan: &Plan, index: usize, peers: usize) -> impl Iterator<Item = (u32, &Split)> {
    let before = (index + peers - plan.first_split as usize % peers) % peers;
    plan.numbered().skip(before).step_by(peers)
}

/// Returns the number of the process whose workers read a split.
pub fn process_of(split: u32, group: &Group) -> usize {
    split as usize % group.all_workers() / group.workers()
}

/// Calls `work` for each split of this process that is not of the reference, as [`each_split`] does. Those of the
/// reference count as read.
pub fn each_input_split<T: Send>(
    plan: &Plan,
    group: &Group,
    stage: (&Progress, Stage),
    work: impl Fn(&StageTimer, u32, &Split) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let results = each_split(plan, group, stage, |at, number, split| {
        if plan.is_reference(number) {
            split.pieces.iter().for_each(|piece| at.done(piece.bytes()));
            return Ok(None);
        }
        work(at, number, split).map(Some)
    })?;
    Ok(results.into_iter().flatten().collect())
}

/// Calls `work` for each split of this process, on as many threads as it has workers, and returns the results
/// in the order of the splits. Each worker enters `stage`.
///
/// # Errors
/// Those of [`each_with`].
pub fn each_split<T: Send>(
    plan: &Plan,
    group: &Group,
    (progress, stage): (&Progress, Stage),
    work: impl Fn(&StageTimer, u32, &Split) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let mine = plan.numbered().filter(|&(number, _)| process_of(number, group) == group.index());
    let mine: Vec<(u32, &Split)> = mine.collect();
    let first = group.index() * group.workers();
    let worker = |index| progress.worker_at(first + index, stage);
    // Workers that have nothing to do take part too, or the stage would look as if all were busy.
    (mine.len()..group.workers()).for_each(|index| drop(worker(index)));
    each_with(group.workers(), &mine, worker, |at, &(number, split)| {
        at.split(number, split.uri(), || work(at, number, split))
    })
}

/// Reads a split, batch by batch. Documents outside the sample of the split are left out.
///
/// An error in the data ends the reading of a piece and counts as one rejected record. A file that cannot be
/// opened is one rejected record, however many pieces it has.
pub struct SplitReader<'a> {
    number: u32,
    split: &'a Split,
    reading: Cow<'a, Reading>,
    /// Id and priority of all documents, where they are columns of the partition.
    of_partition: (Option<String>, Option<Priority>),
    at: &'a StageTimer<'a>,
    sample: Option<Sample>,
    /// Number of pieces that were opened.
    opened: usize,
    /// Reader of the last of them, until its end.
    reader: Option<Box<dyn Reader>>,
    /// Ordinal of the next record.
    next_record: u64,
    without_field: Option<MissingField>,
}

impl<'a> SplitReader<'a> {
    /// Begins to read a split.
    pub fn new(number: u32, split: &'a Split, reading: &'a Reading, at: &'a StageTimer<'a>) -> Self {
        let sample = split.sample.clone();
        let of_partition = split.partition_values(reading);
        let reading = split.reading(reading);
        let (opened, reader, next_record, without_field) = (0, None, 0, None);
        SplitReader {
            number,
            split,
            reading,
            of_partition,
            at,
            sample,
            opened,
            reader,
            next_record,
            without_field,
        }
    }

    /// Returns the next batch, or `None` at the end of the split.
    pub fn next_batch(&mut self) -> Result<Option<DocBatch>> {
        let mut batch = DocBatch::new(self.number, self.next_record);
        let end = match self.reader.take() {
            Some(reader) => self.fill(reader, &mut batch)?,
            None => match self.split.pieces.get(self.opened) {
                Some(_) => self.open(&mut batch)?,
                None => return Ok(None),
            },
        };
        let records = batch.next_record() - self.next_record;
        self.next_record = batch.next_record();
        self.at.read(records, batch.text_bytes() as u64);
        if end {
            self.at.done(self.split.pieces[self.opened - 1].bytes());
        }
        let (id, priority) = &self.of_partition;
        batch.give_all(id.as_deref(), *priority);
        if let Some(sample) = &mut self.sample {
            batch.retain(|doc| sample.holds(doc));
        }
        Ok(Some(batch))
    }

    /// Returns the path of the file that the last batch is of.
    pub fn path(&self) -> String {
        let piece = self.opened.checked_sub(1).and_then(|opened| self.split.pieces.get(opened));
        piece.map_or(String::new(), UnopenedPiece::uri)
    }

    /// Leaves the files before that of a document unread, where each file is one record. So a few documents
    /// of very many files cost as many requests, and only their texts are extracted.
    pub fn pass_files_before(&mut self, doc: DocId) {
        if !self.split.format.file_is_record() || self.reader.is_some() {
            return;
        }
        while DocId::new(self.number, self.next_record) < doc && self.opened < self.split.pieces.len() {
            self.at.done(self.split.pieces[self.opened].bytes());
            self.opened += 1;
            self.next_record += 1;
        }
    }

    /// Returns the first file that lacks a field that was asked for, itself or in a record.
    pub fn without_field(self) -> Option<MissingField> {
        self.without_field
    }

    /// Opens the next piece, and returns whether it ends at once, because it cannot be opened.
    fn open(&mut self, batch: &mut DocBatch) -> Result<bool> {
        let piece = &self.split.pieces[self.opened];
        self.opened += 1;
        match self.split.format.open(&piece.open()?, &self.reading) {
            Ok(reader) => self.fill(reader, batch),
            Err(error) => {
                let field = end(error, piece.speaks_for_file().then_some(batch))?;
                self.without_field = self.without_field.take().or(field);
                Ok(true)
            }
        }
    }

    /// Fills a batch, and returns whether the piece ends.
    fn fill(&mut self, mut reader: Box<dyn Reader>, batch: &mut DocBatch) -> Result<bool> {
        let filled = reader.fill(batch);
        if let Some(of) = reader.recognised() {
            self.at.warn_of_encoding(&of);
        }
        let (more, field) = match filled {
            Ok(true) => (true, None),
            Ok(false) => (false, reader.without_field()),
            Err(error) => (false, end(error, Some(batch))?.or_else(|| reader.without_field())),
        };
        self.without_field = self.without_field.take().or(field);
        self.reader = more.then_some(reader);
        Ok(!more)
    }
}

/// Handles the error that ends a piece, of which no more is to be read. An error in the data becomes a reject
/// in `batch`, if there is a batch; any other error is returned as `Err` and ends the job.
///
/// Returns the missing field, which is the user's fault if no other file has the field.
pub fn end(error: Error, batch: Option<&mut DocBatch>) -> Result<Option<MissingField>> {
    let (path, offset, reason, missing) = match error {
        Error::Data { path, offset, reason } => (path, offset, reason, None),
        Error::Field(missing) => {
            let reason = format!("no field \"{}\"; it has {}", missing.field, missing.found.join(", "));
            (missing.path.clone(), 0, reason, Some(missing))
        }
        Error::Store(_) => return Err(error.into()),
    };
    batch.into_iter().for_each(|batch| batch.reject(&path, offset, &reason, b""));
    Ok(missing)
}
