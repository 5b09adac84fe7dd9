//! Reads a finished output of `dedup`: its tables, and the input that it was made of.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use arrow_array::{Array, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use bytes::Bytes;
use cluster::{BlobReader, Store, Stores};
use operators::text::features::Lexicon;
use operators::{DocId, Reject, Similarity};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::options::{DedupOptions, Within};
use runtime::cli::configuration::Configuration;
use runtime::cli::exit::WrongUse;
use runtime::cli::piped::STANDARD;
use runtime::corpus::input::Input;
use runtime::corpus::plan::PLACES;
use runtime::output::rejects::RejectLine;
use runtime::output::summary::{Counters, InputEntry, RemovedShare};
use runtime::output::tables::{TableFormat, read_text_table};

/// Returns why an output has no `_SUCCESS`. `looked`: whether that was found, which below a file is an error.
///
/// # Errors
/// Those of the store.
fn why_unfinished(
    store: &dyn Store,
    output: &str,
    looked: Result<bool, cluster::Error>,
) -> Result<&'static str> {
    if !store.exists(output)? {
        return Ok("does not exist");
    }
    if store.children(output)?.first().is_some_and(|entry| entry.path == output) {
        return Ok("is a file, which has no pairs: an output of dedup that is a folder has them");
    }
    looked?;
    Ok("is no finished output: it has no _SUCCESS")
}

/// Output of `dedup` or `rethreshold` that has its `_SUCCESS`.
pub struct Finished {
    /// Its address, as the user wrote it.
    pub uri: String,
    store: Arc<dyn Store>,
    path: String,
    /// Content of its `_SUCCESS`, as far as readers need it.
    pub success: Success,
}

/// Members of `_SUCCESS` that are read back.
#[derive(Deserialize)]
pub struct Success {
    /// Options and inputs of the run that wrote the output.
    pub configuration: Configuration<DedupOptions>,
    /// Counters of that run, as its user has seen them.
    pub counters: Counters,
    #[serde(default)]
    reference: Vec<InputEntry>,
    input: Vec<InputEntry>,
    /// Documents read and removed, by the length of their texts; empty if the run did not read them.
    #[serde(default)]
    pub removed_by_length: Vec<RemovedShare>,
    /// The rule by which its records have their places.
    places: u32,
}

/// A `_SUCCESS` that belongs to a version of a state.
#[derive(Deserialize)]
struct OfNight {
    #[serde(rename = "state")]
    _state: IgnoredAny,
}

/// Row of `pairs/`.
#[derive(Clone, Debug, PartialEq)]
pub struct PairRow {
    /// Id of the document that comes first in the corpus.
    pub a: String,
    /// Id of the document that comes later in the corpus.
    pub b: String,
    /// Positions of `a` and `b` in the corpus.
    pub places: (DocId, DocId),
    /// Distance, if the method has one.
    pub hamming: Option<u32>,
    /// Similarity, if it was measured.
    pub similarity: Option<Similarity>,
    /// Whether the cleaned texts are equal.
    pub identical: bool,
}

/// Row of `clusters/`.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberRow {
    /// Id of the document that the row is about.
    pub id: String,
    /// Name of the cluster: the id of the document that stays, or of the first one of a component.
    pub cluster: String,
    /// Position of the document in the corpus.
    pub place: DocId,
    /// Length of the text, in characters.
    pub characters: u64,
    /// Kept document in whose favour it was removed, the similarity if it was measured, and the reason;
    /// `None` if it stays.
    pub removed: Option<(String, Option<Similarity>, String)>,
}

impl Finished {
    /// Reads `_SUCCESS`.
    ///
    /// # Errors
    /// [`WrongUse`] when there is none, or another version has written it.
    pub fn open(stores: &Stores, uri: &str) -> Result<Self> {
        let (store, path) = stores.locate(uri)?;
        let folder = path.trim_end_matches('/');
        let file = format!("{folder}/_SUCCESS");
        let looked = store.exists(&file);
        if !matches!(looked, Ok(true)) {
            bail!(WrongUse(format!("\"{uri}\" {}", why_unfinished(store.as_ref(), folder, looked)?)));
        }
        let json = whole(store.as_ref(), &file)?;
        if serde_json::from_slice::<OfNight>(&json).is_ok() {
            bail!(WrongUse(format!(
                "\"{uri}\" is the output of a night, whose pairs may name documents of other nights: read its tables, or \
                 those that \"nightly export\" writes"
            )));
        }
        let success: Success = serde_json::from_slice(&json).map_err(|error| {
            WrongUse(format!("\"{uri}\" is no output of dedup of this version: _SUCCESS: {error}"))
        })?;
        if success.places != PLACES {
            bail!(WrongUse(format!(
                "\"{uri}\" was written by a version that cut its input into other splits"
            )));
        }
        Ok(Finished { uri: uri.to_owned(), store, path, success })
    }

    /// Returns all that `_SUCCESS` says.
    pub fn summary(&self) -> Result<Value> {
        Ok(serde_json::from_slice(&whole(self.store.as_ref(), &format!("{}/_SUCCESS", self.path))?)?)
    }

    /// Returns the options of the run.
    pub fn options(&self) -> &DedupOptions {
        &self.success.configuration.options
    }

    /// Whether the run had a reference.
    pub fn has_reference(&self) -> bool {
        self.success.counters.reference.is_some()
    }

    /// Whether the document at a place is of the reference, which stays as it is.
    pub fn is_reference(&self, place: DocId) -> bool {
        let splits = self.success.counters.reference.map_or(0, |reference| reference.splits);
        u64::from(place.split()) < splits
    }

    /// Whether two documents, at these places in the order of the corpus, may be a pair.
    pub fn compares(&self, low: DocId, high: DocId) -> bool {
        let within = self.options().within != Some(Within::No);
        !self.is_reference(high) && (within || self.is_reference(low))
    }

    /// Reads the stop words and the user dictionary again.
    pub fn lexicon(&self) -> Result<Lexicon> {
        self.options().input.words.lexicon_below(&self.success.configuration.directory)
    }

    /// Plans the input again, to be read by `workers` threads.
    ///
    /// # Errors
    /// When the input now has other files, or files of other lengths.
    pub fn input(&self, workers: usize) -> Result<Input> {
        let Configuration { options, inputs, directory, .. } = &self.success.configuration;
        if inputs.iter().chain(&options.against).any(|input| input == STANDARD) {
            bail!(WrongUse(format!(
                "the input of \"{}\" was piped in, so its texts cannot be read again: a file can be",
                self.uri
            )));
        }
        let plan = options.input.plan_against(&Stores::below(directory), &options.against, inputs);
        let plan = plan.with_context(|| format!("could not find the input of \"{}\" again", self.uri))?;
        let (reference, of_input) = plan.files_by_side();
        let sides =
            [("reference", &self.success.reference, reference), ("input", &self.success.input, of_input)];
        for (side, then, now) in sides {
            let now: Vec<InputEntry> = now.iter().map(InputEntry::of).collect();
            if let Some(change) = change(then, &now) {
                bail!("the {side} of \"{}\" has changed since: {change}", self.uri);
            }
        }
        Ok(Input { reading: options.reading(&plan)?, plan, workers })
    }

    /// Calls `each` with every pair, cluster by cluster; in each, identical documents come before other pairs.
    ///
    /// Memory: one part of the table at a time.
    pub fn pairs(&self, mut each: impl FnMut(PairRow)) -> Result<()> {
        self.rows("pairs", |batch| {
            let text = |name| column::<StringArray>(batch, name);
            let place = |name| column::<UInt64Array>(batch, name);
            let (a, b, low, high) = (text("a")?, text("b")?, place("a_place")?, place("b_place")?);
            let hamming: &UInt32Array = column(batch, "hamming")?;
            let similarity: &Float64Array = column(batch, "similarity")?;
            let identical: &BooleanArray = column(batch, "identical")?;
            for row in 0..batch.num_rows() {
                each(PairRow {
                    a: a.value(row).to_owned(),
                    b: b.value(row).to_owned(),
                    places: (DocId(low.value(row)), DocId(high.value(row))),
                    hamming: hamming.is_valid(row).then(|| hamming.value(row)),
                    similarity: similarity_of(similarity, row),
                    identical: identical.value(row),
                });
            }
            Some(())
        })
    }

    /// Calls `each` with every document of a cluster, ordered by cluster and position.
    ///
    /// Memory: one part of the table at a time.
    pub fn members(&self, mut each: impl FnMut(MemberRow)) -> Result<()> {
        self.rows("clusters", |batch| {
            let text = |name| column::<StringArray>(batch, name);
            let number = |name| column::<UInt64Array>(batch, name);
            let (id, cluster, of, reason) =
                (text("id")?, text("cluster")?, text("duplicate_of")?, text("reason")?);
            let (characters, place) = (number("characters")?, number("place")?);
            let similarity: &Float64Array = column(batch, "similarity")?;
            for row in 0..batch.num_rows() {
                each(MemberRow {
                    id: id.value(row).to_owned(),
                    cluster: cluster.value(row).to_owned(),
                    place: DocId(place.value(row)),
                    characters: characters.value(row),
                    removed: reason.is_valid(row).then(|| {
                        let similarity = similarity_of(similarity, row);
                        (of.value(row).to_owned(), similarity, reason.value(row).to_owned())
                    }),
                });
            }
            Some(())
        })
    }

    /// Calls `each` with every rejected record, in the order of the corpus, until it fails.
    pub fn rejects(&self, mut each: impl FnMut(Reject) -> Result<()>) -> Result<()> {
        let folder = format!("{}/rejects", self.path);
        if !self.store.exists(&folder)? {
            return Ok(());
        }
        for file in self.store.list(&folder)? {
            let unreadable = || format!("could not read \"{}{}\"", self.store.prefix(), file.path);
            let lines = BufReader::new(BlobReader::new(self.store.open(&file.path)?, 0, u64::MAX));
            for line in lines.split(b'\n') {
                let line =
                    serde_json::from_slice(&line.with_context(unreadable)?).with_context(unreadable)?;
                let RejectLine { uri: path, offset, reason, head, place: doc } = line;
                each(Reject { doc, path, offset, reason, head })?;
            }
        }
        Ok(())
    }

    /// Calls `each` with every batch of rows of a table. If `each` returns `None`, a column is missing.
    fn rows(&self, table: &str, mut each: impl FnMut(&RecordBatch) -> Option<()>) -> Result<()> {
        for file in self.store.list(&format!("{}/{table}", self.path))? {
            let unreadable = || format!("could not read \"{}{}\"", self.store.prefix(), file.path);
            let format = self.options().write.output_format;
            if format != TableFormat::Parquet {
                let rows = BlobReader::new(self.store.open(&file.path)?, 0, u64::MAX);
                let rows = read_text_table(format, rows).with_context(unreadable)?;
                if rows.num_rows() > 0 {
                    let columns = each(&rows);
                    columns
                        .with_context(|| format!("{}: it was written by another version", unreadable()))?;
                }
                continue;
            }
            let bytes = Bytes::from(whole(self.store.as_ref(), &file.path)?);
            let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).and_then(|reader| reader.build());
            for batch in reader.with_context(unreadable)? {
                let columns = each(&batch.with_context(unreadable)?);
                columns.with_context(|| format!("{}: it was written by another version", unreadable()))?;
            }
        }
        Ok(())
    }
}

/// Returns the first file that differs, and how.
fn change(then: &[InputEntry], now: &[InputEntry]) -> Option<String> {
    let lengths = |files: &[InputEntry]| -> BTreeMap<String, u64> {
        files.iter().map(|file| (file.uri.clone(), file.bytes)).collect()
    };
    let (then, now) = (lengths(then), lengths(now));
    let gone = then.iter().find_map(|(uri, bytes)| match now.get(uri) {
        None => Some(format!("\"{uri}\" is gone")),
        Some(now) if now != bytes => Some(format!("\"{uri}\" had {bytes} bytes and has {now}")),
        Some(_) => None,
    });
    let new = || now.keys().find(|uri| !then.contains_key(*uri)).map(|uri| format!("\"{uri}\" is new"));
    gone.or_else(new)
}

/// Returns all bytes of a file.
pub fn whole(store: &dyn Store, path: &str) -> Result<Vec<u8>> {
    let blob = store.open(path)?;
    let mut bytes = vec![0; blob.bytes() as usize];
    let read = blob.read_full_at(0, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}

fn column<'a, T: 'static>(batch: &'a RecordBatch, name: &str) -> Option<&'a T> {
    batch.column_by_name(name)?.as_any().downcast_ref()
}

fn similarity_of(column: &Float64Array, row: usize) -> Option<Similarity> {
    let millionths = || (column.value(row) * 1e6).round() as usize;
    column.is_valid(row).then(|| Similarity::ratio(millionths(), 1_000_000))
}
