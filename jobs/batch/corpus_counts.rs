//! Statistics of the corpus that a method needs: counted by the workers, kept with the output, and read back
//! from there.

use std::io::Write;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use bytes::Bytes;
use cluster::{Group, Stores};
use datasets::Reading;
use operators::hash;
use operators::method::Spec;
use operators::text::Cleaner;
use operators::text::document_frequencies::{Count, Statistics};
use operators::text::features::{Features, Lexicon};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use super::finished::whole;
use runtime::cli::exit::WrongUse;
use runtime::corpus::at_once::each;
use runtime::corpus::plan::Plan;
use runtime::corpus::run::Run;
use runtime::corpus::splits::{self, SplitReader};
use runtime::output::OutputFolder;
use runtime::progress::{Progress, Stage};

/// Path of the statistics below an output.
const FILE: &str = "statistics/part-00000.parquet";
/// Name of the only column.
const COUNTS: &str = "documents";
/// Key of the metadata for the number of documents.
const DOCUMENTS: &str = "corpus_documents";
/// Key of the metadata for what was counted.
const COUNTED: &str = "counted";

/// Returns what a method counts, as the file says it: statistics of anything else would weigh features
/// wrongly.
fn counted(method: &Spec, lexicon: &Lexicon) -> Option<String> {
    let (clean, features) = method.counted()?;
    let words = format!("{}\0{}", lexicon.stop_words, lexicon.user_words);
    Some(format!("features={features},clean={clean},words={:016x}", hash::bytes(words.as_bytes())))
}

/// Reads the statistics that an earlier run has kept. `uri`: their file, or the output that holds it.
///
/// # Errors
/// [`WrongUse`] when the method counts nothing, or something else.
pub fn read(stores: &Stores, uri: &str, method: &Spec, lexicon: &Lexicon) -> Result<Statistics> {
    let Some(wanted) = counted(method, lexicon) else {
        bail!(WrongUse(format!(
            "--statistics \"{uri}\" is of no use: the method \"{method}\" counts nothing"
        )));
    };
    let (store, path) = stores.locate(uri)?;
    let path = if path.ends_with(".parquet") { path } else { format!("{path}/{FILE}") };
    match parse(whole(store.as_ref(), &path)?.into()) {
        Ok((counted, statistics)) if counted == wanted => Ok(statistics),
        Ok((counted, _)) => bail!(WrongUse(format!(
            "the statistics in \"{uri}\" are of {counted}, but the method needs those of {wanted}"
        ))),
        Err(error) => bail!(WrongUse(format!("there are no statistics in \"{uri}\": {error:#}"))),
    }
}

/// Returns the statistics that an output was made with; empty if its method needs none.
pub fn of_output(stores: &Stores, uri: &str, method: &Spec, lexicon: &Lexicon) -> Result<Statistics> {
    match method.counted() {
        None => Ok(Statistics::default()),
        Some(_) => read(stores, &format!("{uri}/{FILE}"), method, lexicon),
    }
}

/// Reads a file of statistics: what was counted, and the counts.
fn parse(file: Bytes) -> Result<(String, Statistics)> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file)?;
    let metadata = Arc::clone(builder.metadata());
    let values = || metadata.file_metadata().key_value_metadata().into_iter().flatten();
    let value = |key: &str| {
        let found = values().find(|value| value.key == key).and_then(|value| value.value.clone());
        found.with_context(|| format!("its metadata lacks \"{key}\""))
    };
    let mut statistics = Statistics { documents: value(DOCUMENTS)?.parse()?, counts: Vec::new() };
    for batch in builder.build()? {
        let batch = batch?;
        let counts = batch.column_by_name(COUNTS).and_then(|column| column.as_primitive_opt::<UInt32Type>());
        statistics.counts.extend(counts.context("its column is another")?.values());
    }
    if statistics.counts.len() != Statistics::COUNTERS {
        bail!("it has {} rows", statistics.counts.len());
    }
    Ok((value(COUNTED)?, statistics))
}

/// Counts the features of the corpus, unless the user has given statistics, which are returned as they are.
pub fn count_unless_given(
    given: Option<Statistics>,
    method: &Spec,
    lexicon: &Lexicon,
    run: &Run,
) -> Result<Statistics> {
    match given {
        Some(statistics) => Ok(statistics),
        None => count(method, lexicon, (&run.plan, &run.reading), &run.group, &run.progress),
    }
}

/// Counts the features that the method needs statistics of, which takes one reading of the corpus. Returns
/// empty statistics without reading if it needs none.
pub fn count(
    method: &Spec,
    lexicon: &Lexicon,
    (plan, reading): (&Plan, &Reading),
    group: &Group,
    progress: &Progress,
) -> Result<Statistics> {
    let mut all = Statistics::default();
    let Some((clean, features)) = method.counted() else { return Ok(all) };
    let cleaner = Cleaner::new(clean);
    let features = Features::new(features, lexicon)?;
    let workers: Vec<usize> = (0..group.workers()).collect();
    let counted = each(workers.len(), &workers, |index| {
        let mut count = Count::new(cleaner.clone(), features.clone());
        let worker = group.index() * group.workers() + index;
        let at = progress.worker_at(worker, Stage::Count);
        for (number, split) in splits::splits_of(plan, worker, group.all_workers()) {
            // The map stage reads these records again, and reports what cannot be read.
            at.split(number, split.uri(), || {
                let mut reader = SplitReader::new(number, split, reading, &at);
                while let Some(batch) = reader.next_batch()? {
                    count.batch(&batch);
                }
                Ok(())
            })?;
        }
        Ok(count.finish())
    })?;
    counted.into_iter().for_each(|statistics| all.add(statistics));
    group.all_reduce(all, |processes| {
        let mut all = Statistics::default();
        processes.into_iter().for_each(|statistics| all.add(statistics));
        Ok(all)
    })
}

/// Writes `statistics/`, if the method needs statistics.
pub fn write(folder: &OutputFolder, method: &Spec, lexicon: &Lexicon, statistics: &Statistics) -> Result<()> {
    let Some((bytes, rows)) = encode(method, lexicon, statistics)? else { return Ok(()) };
    let mut file = folder.file(FILE)?;
    file.write_all(&bytes)?;
    Ok(file.finish(rows)?)
}

/// Returns the file of statistics and the number of its rows, or `None` if the method needs none.
pub fn encode(method: &Spec, lexicon: &Lexicon, statistics: &Statistics) -> Result<Option<(Vec<u8>, u64)>> {
    let Some(counted) = counted(method, lexicon) else { return Ok(None) };
    let counts: ArrayRef = Arc::new(UInt32Array::from_iter_values(statistics.counts.iter().copied()));
    let batch = RecordBatch::try_from_iter_with_nullable([(COUNTS, counts, false)])?;
    let metadata = [(DOCUMENTS, statistics.documents.to_string()), (COUNTED, counted)];
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(
            metadata.map(|(key, value)| KeyValue::new(key.to_owned(), value)).to_vec(),
        ))
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    Ok(Some((writer.into_inner()?, batch.num_rows() as u64)))
}
