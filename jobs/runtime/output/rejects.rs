//! Rejected records: those of a job that could not be read. They lie in the map outputs of their splits, and
//! only their numbers and the first of them are held in memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::Write;

use anyhow::{Result, bail};
use datasets::{LineNumbers, Reading};
use operators::{DocBatch, DocId, Reject};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::OutputFolder;
use super::map_output::{self, MapOutputs};
use super::summary::RejectReason;
use crate::cli::exit::{AllRejected, Guarded};
use crate::corpus::plan::Plan;

/// Numbers of rejected records, the first of them, and the kinds of reasons.
///
/// Memory: some 50 bytes for each split with rejects, and a record of at most 2 KB for each of `Rejects::KINDS` kinds.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Rejects {
    by_split: BTreeMap<u32, u64>,
    first: Option<Reject>,
    /// Numbers of those that the user wants to leave out, which are no fault of the input.
    #[serde(default)]
    dropped: BTreeMap<u32, u64>,
    /// Numbers of rejects by their reason without its numbers, and the last reject of each kind, which is one of the input if
    /// the input has such rejects. Kinds beyond [`Rejects::KINDS`] are left out.
    kinds: BTreeMap<String, (u64, Reject)>,
    /// Whether the reasons already name the lines.
    numbered: bool,
}

impl Rejects {
    /// Number of kinds of reasons that are counted.
    const KINDS: usize = 16;

    /// Returns no rejects, for rejects whose reasons already name the lines.
    pub fn numbered() -> Self {
        Rejects { numbered: true, ..Rejects::default() }
    }

    /// Counts one reject.
    pub fn add(&mut self, reject: &Reject) {
        *self.by_split.entry(reject.doc.split()).or_default() += 1;
        if reject.is_dropped() {
            *self.dropped.entry(reject.doc.split()).or_default() += 1;
            return;
        }
        if self.first.as_ref().is_none_or(|first| reject.doc < first.doc) {
            self.first = Some(reject.clone());
        }
        self.add_kind(reject.reason.replace(|c: char| c.is_ascii_digit(), ""), 1, reject);
    }

    fn add_kind(&mut self, kind: String, count: u64, last: &Reject) {
        let is_full = self.kinds.len() >= Rejects::KINDS;
        match self.kinds.entry(kind) {
            Entry::Occupied(mut entry) => {
                let (of_kind, known) = entry.get_mut();
                *of_kind += count;
                if known.doc < last.doc {
                    known.clone_from(last);
                }
            }
            Entry::Vacant(entry) if !is_full => drop(entry.insert((count, last.clone()))),
            Entry::Vacant(_) => {}
        }
    }

    /// Adds other rejects.
    pub fn join(&mut self, other: Rejects) {
        for (split, count) in other.by_split {
            *self.by_split.entry(split).or_default() += count;
        }
        for (kind, (count, last)) in other.kinds {
            self.add_kind(kind, count, &last);
        }
        let both = self.first.take().into_iter().chain(other.first);
        self.first = both.min_by_key(|reject| reject.doc);
        for (split, count) in other.dropped {
            *self.dropped.entry(split).or_default() += count;
        }
        self.numbered |= other.numbered;
    }

    /// Returns the number of rejects.
    pub fn count(&self) -> u64 {
        self.by_split.values().sum()
    }

    /// Returns the number of rejects that the user wants to leave out.
    pub fn dropped(&self) -> u64 {
        self.dropped.values().sum()
    }

    /// Returns the number of the others.
    pub fn faults(&self) -> u64 {
        self.count() - self.dropped()
    }

    /// Returns the number of rejects in the splits before `split`.
    pub fn count_before(&self, split: u32) -> u64 {
        self.by_split.range(..split).map(|(_, count)| count).sum()
    }

    /// Whether a split has rejects.
    pub fn any_of(&self, split: u32) -> bool {
        self.by_split.contains_key(&split)
    }

    /// Returns the first reject.
    pub fn first(&self) -> Option<&Reject> {
        self.first.as_ref()
    }

    /// Returns the kinds of reasons with the last reject of each, the commonest first.
    pub fn reasons(&self) -> Vec<RejectReason> {
        let of_kind = |(records, reject): &(u64, Reject)| RejectReason {
            records: *records,
            reason: if self.numbered { reject.reason_without_line() } else { &reject.reason }.to_owned(),
            uri: reject.path.clone(),
            offset: reject.offset,
            head: reject.head.clone(),
        };
        let mut reasons: Vec<RejectReason> = self.kinds.values().map(of_kind).collect();
        reasons.sort_by_key(|reason| Reverse(reason.records));
        reasons
    }

    /// Returns an error if records of the input were rejected and none was read. It shows the commonest reason with an example.
    ///
    /// `docs`: the number of documents of the input that were read. The splits of the input come behind those of a reference.
    pub fn check_some_read(&self, docs: u64, plan: &Plan, reading: &Reading) -> Result<()> {
        let of_input = plan.reference_splits;
        let count = self.count() - self.count_before(of_input);
        let dropped: u64 = self.dropped.range(of_input..).map(|(_, count)| count).sum();
        if docs > 0 || count == dropped {
            return Ok(());
        }
        let kinds = self.kinds.values().filter(|(_, last)| last.doc.split() >= of_input);
        let commonest = kinds.max_by_key(|(count, last)| (*count, Reverse(last.doc))).cloned();
        let Some((of_kind, example)) = commonest else {
            bail!(AllRejected(format!("every record was rejected ({count}), so nothing was written")))
        };
        // Some of a kind may be of the reference.
        let of_them = if of_input == 0 { format!(" ({of_kind} of them)") } else { String::new() };
        let head = example.head.trim_end();
        // The first bytes of a file that is no text tell nobody anything.
        let is_text = |c: char| c != '\u{fffd}' && (!c.is_control() || c.is_whitespace());
        let begins = match !head.is_empty() && head.chars().all(is_text) {
            true => format!("; it begins with {head:?}"),
            false => String::new(),
        };
        let example = self.in_words(&example, plan, reading);
        bail!(AllRejected(format!(
            "every record was rejected ({count}), so nothing was written; the commonest reason{of_them}: {example}{begins}"
        )))
    }

    /// Returns an error if there are more rejects than the user allows.
    pub fn check(&self, max: Option<u64>, plan: &Plan, reading: &Reading) -> Result<()> {
        let Some(max) = max.filter(|max| self.faults() > *max) else { return Ok(()) };
        let count = self.faults();
        let first = self.first_in_words(plan, reading).unwrap_or_default();
        bail!(Guarded(format!(
            "{count} records were rejected, more than --max-rejects {max}; the first: {first}"
        )))
    }

    /// Says where the first reject lies, and why it was rejected, if there is one that the user does not want to leave out. Cost: reads its
    /// file up to there to count lines, unless that is known.
    pub fn first_in_words(&self, plan: &Plan, reading: &Reading) -> Option<String> {
        self.first.as_ref().map(|first| self.in_words(first, plan, reading))
    }

    fn in_words(&self, reject: &Reject, plan: &Plan, reading: &Reading) -> String {
        let mut reject = reject.clone();
        if !self.numbered {
            // If the file is gone or has changed since, the reason stays without its line.
            let _ = LineNumbering::new(plan, reading).number(&mut reject);
        }
        let Reject { path, offset, reason, .. } = reject;
        format!("\"{path}\" at {offset}: {reason}")
    }

    /// Writes a part of `rejects/` in the order of the corpus, if there are rejects.
    pub fn write(
        &self,
        folder: &OutputFolder,
        part: u32,
        outputs: &MapOutputs,
        plan: &Plan,
        reading: &Reading,
    ) -> Result<()> {
        if self.by_split.is_empty() {
            return Ok(());
        }
        let mut file = folder.file(&format!("rejects/part-{part:05}.jsonl"))?;
        let mut lines = LineNumbering::new(plan, reading);
        let mut records = 0;
        for &split in self.by_split.keys() {
            outputs.open_rejects(split)?.read(|mut reject| {
                if !self.numbered {
                    lines.number(&mut reject)?;
                }
                let Reject { doc: place, path: uri, offset, reason, head } = reject;
                let mut line = serde_json::to_vec(&RejectLine { uri, offset, reason, head, place })?;
                line.push(b'\n');
                records += 1;
                Ok(file.write_all(&line)?)
            })?;
        }
        Ok(file.finish(records)?)
    }
}

/// Line of `rejects/`.
#[derive(Deserialize, Serialize)]
pub struct RejectLine {
    /// Path of the file that has the record, with the prefix of its store.
    pub uri: String,
    /// Offset of the record in decompressed bytes, or the number of its row or record.
    pub offset: u64,
    /// Reason in lower case, with the line before it if the format has lines.
    pub reason: String,
    /// First bytes of the record as text, at most [`Reject::HEAD_BYTES`].
    pub head: String,
    /// Position that the record would have had in the corpus as a document.
    pub place: DocId,
}

/// Writer of the rejects of a split into a map output, so that none is held. The map output is made with the
/// first reject.
pub struct SplitRejectsWriter<'a> {
    outputs: &'a MapOutputs,
    split: u32,
    writer: Option<map_output::MapOutputWriter>,
    rejects: Rejects,
}

impl<'a> SplitRejectsWriter<'a> {
    /// Begins with no reject of this split.
    pub fn new(outputs: &'a MapOutputs, split: u32) -> Self {
        SplitRejectsWriter { outputs, split, writer: None, rejects: Rejects::default() }
    }

    /// Writes the rejects of a batch, which follow those before.
    pub fn take(&mut self, batch: &mut DocBatch) -> Result<()> {
        batch.take_rejects().iter().try_for_each(|reject| self.push(reject))
    }

    /// Writes one reject, which follows those before.
    pub fn push(&mut self, reject: &Reject) -> Result<()> {
        self.rejects.add(reject);
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(self.outputs.create(self.split, 0)?),
        };
        writer.reject(reject)?;
        writer.write()
    }

    /// Ends the map output, and returns the number and the first of its rejects.
    pub fn finish(self) -> Result<Rejects> {
        self.writer.map_or(Ok(()), |writer| writer.finish(()))?;
        Ok(self.rejects)
    }
}

/// Counter of the rejects of a process while it reads, so that a run with too many of them stops early.
pub struct RejectLimit<'a> {
    max: Option<u64>,
    plan: &'a Plan,
    reading: &'a Reading,
    so_far: Mutex<Rejects>,
}

impl<'a> RejectLimit<'a> {
    /// Allows up to `max` rejects; any number for `None`.
    pub fn new(max: Option<u64>, plan: &'a Plan, reading: &'a Reading) -> Self {
        RejectLimit { max, plan, reading, so_far: Mutex::default() }
    }

    /// Counts more rejects. Cost: goes through the counts of all splits with rejects if there is a limit.
    ///
    /// # Errors
    /// [`Guarded`] when there are now more than allowed.
    pub fn count(&self, more: &Rejects) -> Result<()> {
        if self.max.is_none() || more.first.is_none() {
            return Ok(());
        }
        let mut so_far = self.so_far.lock();
        so_far.join(more.clone());
        so_far.check(self.max, self.plan, self.reading)
    }
}

/// Numbering of rejects: puts the line before the reason of each reject of a format that has lines (`line 17:
/// ...`).
///
/// A worker that reads the middle of a file does not know how many lines lie before, and counting them for
/// each piece would take time quadratic in the length of the file. So each file with rejects is read once
/// more after all else, up to its last reject.
pub(crate) struct LineNumbering<'a> {
    plan: &'a Plan,
    reading: &'a Reading,
    path: String,
    /// Line numbers of the file at `path`, if its format has lines.
    numbers: Option<LineNumbers>,
}

impl<'a> LineNumbering<'a> {
    /// Numbers rejects in the files of a plan.
    pub fn new(plan: &'a Plan, reading: &'a Reading) -> Self {
        LineNumbering { plan, reading, path: String::new(), numbers: None }
    }

    /// Puts the line into the reason of a reject. Must be called in the order of the corpus.
    pub fn number(&mut self, reject: &mut Reject) -> Result<()> {
        if reject.reason.ends_with(Reject::BY_RECORD) {
            return Ok(());
        }
        if self.path != reject.path {
            self.path.clone_from(&reject.path);
            self.numbers = self.open(reject)?;
        }
        if let Some(numbers) = &mut self.numbers {
            reject.reason = format!("line {}: {}", numbers.of(reject.offset)?, reject.reason);
        }
        Ok(())
    }

    fn open(&self, reject: &Reject) -> Result<Option<LineNumbers>> {
        let split = self.plan.split(reject.doc.split());
        let Some(piece) = split.pieces.iter().find(|piece| piece.is_of(&reject.path)) else {
            return Ok(None);
        };
        match split.format.line_numbers(&piece.whole_file()?, self.reading) {
            Err(error) if !error.is_data() => Err(error.into()),
            numbers => Ok(numbers.ok().flatten()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use cluster::Stores;
    use operators::DocId;

    use super::*;

    #[test]
    fn a_reject_is_named_without_its_line_if_its_file_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl").to_str().unwrap().to_owned();
        fs::write(&path, "bad\nworse\n").unwrap();
        let plan =
            Plan::new(&Stores::new(), &[], std::slice::from_ref(&path), None, None, folder.path()).unwrap();
        let mut rejects = Rejects::default();
        rejects.add(&Reject {
            doc: DocId::new(0, 1),
            path: path.clone(),
            offset: 4,
            reason: "no object".to_owned(),
            head: "worse".to_owned(),
        });
        let said = || rejects.first_in_words(&plan, &Reading::default()).unwrap();
        assert_eq!(said(), format!("\"{path}\" at 4: line 2: no object"));
        fs::remove_file(&path).unwrap();
        assert_eq!(said(), format!("\"{path}\" at 4: no object"));
    }
}
