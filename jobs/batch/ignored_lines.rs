//! Lines that stand in many documents and are left out of the comparison: counted by all processes, kept with the output,
//! and read back from there.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, RecordBatch, UInt64Array};
use bytes::Bytes;
use cluster::{Group, Stores};
use operators::hash::{self, Identity};
use operators::text::ignored_lines::{IgnoredLines, hash_lines};
use operators::{MergeCursor, SpillBudget, memory_plan};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde::{Deserialize, Serialize};

use super::finished::whole;
use runtime::cli::exit::WrongUse;
use runtime::corpus::run::Run;
use runtime::corpus::shared_sorts::SharedSorts;
use runtime::corpus::splits::{self, SplitReader};
use runtime::output::OutputFolder;
use runtime::progress::Stage;

/// Path of the list below an output.
const FILE: &str = "ignored-lines/part-00000.parquet";
/// Name of the column of hashes.
const HASHES: &str = "hash";
/// Name of the column of numbers of documents.
const DOCUMENTS: &str = "documents";

/// Number of sorts that the lines of a process are divided between, by ranges of their hashes.
const SORTS: usize = 16;
/// Number of lines that a process sends at once, about.
const ROUND_LINES: u64 = 1 << 18;

/// A line by its hash, and the number of documents that have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub(crate) struct CountedLine {
    hash: Identity,
    documents: u64,
}

/// The lines that a run leaves out of the comparison, ordered by their hashes.
#[derive(Clone, Debug, Default)]
pub struct CountedLines(Vec<CountedLine>);

/// Counts the lines of a corpus, and finds those that stand in many documents.
///
/// ```text
/// read     each process sorts the hashes of its lines, each line of a document once
/// merge    in each range of hashes, process 0 adds up what all processes have counted, and keeps what is enough
/// ```
///
/// Memory: the budget while lines are read. Process 0 then holds about 6 MB of each process, and the list of at most an
/// eighth of the budget. Disk: 16 bytes for each line of the corpus, without repeats in a document, beyond the budget.
pub(crate) struct LineCounter<'a> {
    pub run: &'a Run,
    /// Memory of this process.
    pub spill: SpillBudget,
}

impl LineCounter<'_> {
    /// Returns the lines that stand in at least `least` documents of the corpus.
    ///
    /// # Errors
    /// Those of reading and spilling; [`WrongUse`] when the lines are too many for the memory.
    pub fn count(&self, least: u64) -> Result<CountedLines> {
        let sorts = SharedSorts::<Identity>::new(SORTS, &self.spill);
        let pushed = AtomicU64::new(0);
        let Run { group, plan, reading, progress } = self.run;
        splits::each_split(plan, group, (progress, Stage::Count), |at, number, split| {
            let mut writer = sorts.writer();
            let mut lines = Vec::new();
            // The map stage reads these records again, and reports what cannot be read.
            let mut reader = SplitReader::new(number, split, reading, at);
            while let Some(batch) = reader.next_batch()? {
                for doc in batch.docs() {
                    hash_lines(doc.text, &mut lines);
                    pushed.fetch_add(lines.len() as u64, Ordering::Relaxed);
                    lines.iter().for_each(|&line| writer.push(range_of(line, SORTS as u64) as usize, line));
                }
            }
            writer.finish();
            Ok(())
        })?;
        merge(&sorts, pushed.into_inner(), least, (group, &self.spill))
    }
}

/// Adds up what all processes have counted, and keeps the lines that stand in `least` documents. `pushed`: the number of
/// lines in the sorts of this process. `spill`: its memory.
fn merge(
    sorts: &SharedSorts<Identity>,
    pushed: u64,
    least: u64,
    (group, spill): (&Group, &SpillBudget),
) -> Result<CountedLines> {
    let is_alone = group.processes() == 1;
    let rounds = group.all_reduce(pushed, |all| -> Result<u64> {
        let most = all.iter().max().copied().unwrap_or(0);
        // A process that is alone sends nothing.
        Ok(if is_alone { 1 } else { most.div_ceil(ROUND_LINES).max(1) })
    })?;
    let mut lines = LineCursor { sorts, next: 0, cursor: None };
    let mut list = Vec::new();
    let most = most_lines(spill);
    for round in 0..rounds {
        let mut mine = Vec::new();
        while let Some(line) = lines.next_if(|line| range_of(line, rounds) <= round)? {
            // Others may have the line too.
            mine.extend((!is_alone || line.documents >= least).then_some(line));
            if is_alone && mine.len() > most {
                break;
            }
        }
        list.extend(group.all_reduce(mine, |all| -> Result<_> { Ok(enough(all, least)) })?);
        if list.len() > most {
            bail!(WrongUse(format!(
                "more than {most} lines stand in {least} documents or more, and each takes {} bytes of memory: raise \
                 --ignore-lines or --memory",
                IgnoredLines::LINE_BYTES
            )));
        }
    }
    Ok(CountedLines(list))
}

/// Returns the number of lines that a list may have.
fn most_lines(process: &SpillBudget) -> usize {
    process.budget().map_or(usize::MAX, |bytes| bytes / memory_plan::LINE_LIST / IgnoredLines::LINE_BYTES)
}

/// Divides all hashes into `ranges` ranges of one size, and returns the number of the range that has a hash.
fn range_of(hash: Identity, ranges: u64) -> u64 {
    ((u128::from(hash.0) * u128::from(ranges)) >> 64) as u64
}

/// Adds up the counts of several processes, each sorted, and keeps what is enough.
fn enough(processes: Vec<Vec<CountedLine>>, least: u64) -> Vec<CountedLine> {
    let mut all = processes.concat();
    all.sort_unstable();
    let sums = all.chunk_by(|a, b| a.hash == b.hash).map(|same| CountedLine {
        hash: same[0].hash,
        documents: same.iter().map(|line| line.documents).sum(),
    });
    sums.filter(|line| line.documents >= least).collect()
}

/// Reads the lines of sorts in the order of their hashes, each with the number of its documents.
struct LineCursor<'a> {
    sorts: &'a SharedSorts<Identity>,
    /// Number of the next sort.
    next: usize,
    cursor: Option<MergeCursor<Identity>>,
}

impl LineCursor<'_> {
    /// Takes the next line if its hash is `wanted`.
    fn next_if(&mut self, wanted: impl Fn(Identity) -> bool) -> Result<Option<CountedLine>> {
        loop {
            if let Some(cursor) = &mut self.cursor {
                if let Some(hash) = cursor.next_if(|&hash| wanted(hash))? {
                    let mut documents = 1;
                    while cursor.next_if(|&next| next == hash)?.is_some() {
                        documents += 1;
                    }
                    return Ok(Some(CountedLine { hash, documents }));
                }
                if cursor.peek()?.is_some() {
                    return Ok(None);
                }
            }
            if self.next == self.sorts.count() {
                return Ok(None);
            }
            self.cursor = Some(MergeCursor::new(self.sorts.take(self.next)?));
            self.next += 1;
        }
    }
}

impl CountedLines {
    /// Returns the lines as the comparison needs them.
    pub fn ignored(&self) -> IgnoredLines {
        IgnoredLines::new(self.0.iter().map(|line| line.hash).collect())
    }

    /// Returns a number that tells lists apart.
    pub fn fingerprint(&self) -> u64 {
        hash::bytes(&self.0.iter().flat_map(|line| bytes_of(line.hash)).collect::<Vec<u8>>())
    }

    /// Returns an error if the list takes too much of the memory of a process.
    ///
    /// # Errors
    /// [`WrongUse`].
    pub fn check(&self, process: &SpillBudget) -> Result<()> {
        if self.0.len() > most_lines(process) {
            bail!(WrongUse(format!(
                "the list of ignored lines has {} lines, and each takes {} bytes of memory: raise --memory",
                self.0.len(),
                IgnoredLines::LINE_BYTES
            )));
        }
        Ok(())
    }

    /// Writes the list below an output.
    pub fn write(&self, folder: &OutputFolder) -> Result<()> {
        let mut file = folder.file(FILE)?;
        file.write_all(&self.encode()?)?;
        Ok(file.finish(self.0.len() as u64)?)
    }

    fn encode(&self) -> Result<Vec<u8>> {
        let hashes = self.0.iter().map(|line| Some(bytes_of(line.hash)));
        let hashes: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(hashes, 16)?);
        let documents: ArrayRef =
            Arc::new(UInt64Array::from_iter_values(self.0.iter().map(|line| line.documents)));
        let columns = [(HASHES, hashes, false), (DOCUMENTS, documents, false)];
        let batch = RecordBatch::try_from_iter_with_nullable(columns)?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))?;
        writer.write(&batch)?;
        Ok(writer.into_inner()?)
    }

    /// Reads the list that an earlier run has kept. `uri`: its file, or the output that holds it.
    ///
    /// # Errors
    /// [`WrongUse`] when there is none.
    pub fn read(stores: &Stores, uri: &str) -> Result<Self> {
        let (store, path) = stores.locate(uri)?;
        let path =
            if path.ends_with(".parquet") { path } else { format!("{}/{FILE}", path.trim_end_matches('/')) };
        let none =
            || WrongUse(format!("there is no list of ignored lines in \"{uri}\": its run left none out"));
        if !store.exists(&path)? {
            bail!(none());
        }
        parse(whole(store.as_ref(), &path)?.into()).with_context(none)
    }
}

/// Reads the file of a list.
fn parse(file: Bytes) -> Result<CountedLines> {
    let mut lines = Vec::new();
    for batch in ParquetRecordBatchReaderBuilder::try_new(file)?.build()? {
        let batch = batch?;
        let another = "its columns are others";
        let hashes = batch.column_by_name(HASHES).and_then(|column| column.as_fixed_size_binary_opt());
        let documents =
            batch.column_by_name(DOCUMENTS).and_then(|column| column.as_primitive_opt::<UInt64Type>());
        let (hashes, documents) = (hashes.context(another)?, documents.context(another)?);
        for row in 0..hashes.len() {
            let hash = hash_of(hashes.value(row)).context(another)?;
            lines.push(CountedLine { hash, documents: documents.value(row) });
        }
    }
    Ok(CountedLines(lines))
}

/// Returns the bytes of a hash, as SipHash gives them.
fn bytes_of((low, high): Identity) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&low.to_le_bytes());
    bytes[8..].copy_from_slice(&high.to_le_bytes());
    bytes
}

fn hash_of(bytes: &[u8]) -> Option<Identity> {
    let (low, high) = (bytes.first_chunk()?, bytes.last_chunk()?);
    (bytes.len() == 16).then(|| (u64::from_le_bytes(*low), u64::from_le_bytes(*high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_reads_back_as_itself() {
        for lines in [vec![], vec![((1, 2), 3), ((1, 3), 100), ((u64::MAX, 0), 7)]] {
            let lines: Vec<_> =
                lines.into_iter().map(|(hash, documents)| CountedLine { hash, documents }).collect();
            let list = CountedLines(lines.clone());
            assert_eq!(parse(list.encode().unwrap().into()).unwrap().0, lines);
        }
    }

    #[test]
    fn lines_come_in_order_and_in_rounds_with_or_without_spilling() {
        let folder = std::env::temp_dir();
        let hashes = (0..5000_u64).map(|i| (hash::spread(i % 700), i % 3));
        for budget in [None, Some(SORTS * 200)] {
            let sorts = SharedSorts::new(SORTS, &SpillBudget::new(&folder, budget));
            let mut writer = sorts.writer();
            hashes.clone().for_each(|hash| writer.push(range_of(hash, SORTS as u64) as usize, hash));
            writer.finish();
            let mut cursor = LineCursor { sorts: &sorts, next: 0, cursor: None };
            let mut lines = Vec::new();
            for round in 0..7 {
                while let Some(line) = cursor.next_if(|hash| range_of(hash, 7) <= round).unwrap() {
                    assert_eq!(range_of(line.hash, 7), round);
                    lines.push(line);
                }
            }
            assert!(lines.is_sorted() && lines.len() == 2100);
            assert_eq!(lines.iter().map(|line| line.documents).sum::<u64>(), 5000);
        }
    }

    #[test]
    fn lines_in_enough_documents_are_kept_while_they_fit() {
        let sorts = |budget| {
            let sorts = SharedSorts::new(SORTS, &SpillBudget::new(&std::env::temp_dir(), budget));
            let mut writer = sorts.writer();
            for i in 0..1000_u64 {
                let hash = (hash::spread(i), 0);
                (0..1 + i % 4).for_each(|_| writer.push(range_of(hash, SORTS as u64) as usize, hash));
            }
            writer.finish();
            sorts
        };
        let count = |bytes, least| {
            let spill = SpillBudget::new(&std::env::temp_dir(), bytes);
            merge(&sorts(bytes), 2500, least, (&Group::alone(1), &spill))
        };
        let fits = 250 * memory_plan::LINE_LIST * IgnoredLines::LINE_BYTES;
        for bytes in [None, Some(fits)] {
            let list = count(bytes, 4).unwrap();
            assert_eq!(list.0.len(), 250);
            assert!(list.0.is_sorted() && list.0.iter().all(|line| line.documents == 4));
        }
        let error = count(Some(fits), 3).unwrap_err().to_string();
        assert!(error.contains("more than 250 lines stand in 3 documents or more"), "{error}");
    }

    #[test]
    fn counts_of_processes_are_added_up() {
        let of = |lines: &[(u64, u64)]| {
            lines.iter().map(|&(low, documents)| CountedLine { hash: (low, 0), documents }).collect()
        };
        let all = enough(vec![of(&[(1, 1), (2, 2), (4, 1)]), of(&[(1, 2), (3, 3), (4, 1)])], 3);
        assert_eq!(all, of(&[(1, 3), (3, 3)]) as Vec<_>);
    }
}
