//! The input of jobs that fingerprint or compare: the options by which it is read, and the count of its
//! documents.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use cluster::{Group, Stores, path_of_text, text_of_path};
use datasets::{CsvChar, CsvReading, Encoding, Error, Extractors, MissingField, NullText, Reading};
use operators::DocId;
use operators::text::features::Lexicon;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

use super::plan::Plan;
use super::splits::{self, SplitReader};
use super::unopened_piece::UnopenedPiece;
use crate::cli::configuration::optional_text;
use crate::cli::exit::WrongUse;
#[cfg(feature = "cli")]
use crate::cli::headings::{INPUT, METHOD, RESOURCES};
use crate::cli::piped::PipedInputs;
use crate::cli::terminal::say;
use crate::cli::values::{OnBadText, OnNullText, YesOrNo, text_of_file};
#[cfg(feature = "cli")]
use crate::cli::values::{paths, record_size, size};
use crate::progress::{Progress, ProgressOptions, Stage, Watch};

/// Options by which the input is read.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(rename_all = "kebab-case")]
pub struct InputOptions {
    /// Format of the input; recognised by name and content by default
    #[cfg_attr(feature = "cli", arg(help_heading = INPUT, long))]
    pub format: Option<String>,
    /// Field that holds a document's id [default: id where there is one, else file and position]
    #[cfg_attr(feature = "cli", arg(help_heading = INPUT, long, value_name = "FIELD"))]
    pub id_field: Option<String>,
    /// Field that holds a document's text [default: text]
    ///
    /// In Parquet, doc.body.text is a field inside of structs, and \. is a dot that belongs to a name. A
    /// column can also be given by its whole name, without any such care.
    #[cfg_attr(feature = "cli", arg(help_heading = INPUT, long, value_name = "FIELD"))]
    pub text_field: Option<String>,
    /// Encoding of texts, where the format does not fix it: utf-8, gb18030, gbk, big5, utf-16le, utf-16be, shift_jis, euc-jp,
    /// euc-kr, windows-1251, windows-1252 or koi8-r
    ///
    /// By default the encoding is recognised, file by file. Values that are bytes (BytesWritable, binary
    /// columns) are read as UTF-8.
    #[cfg_attr(feature = "cli", arg(help_heading = INPUT, long, value_name = "NAME"))]
    #[serde(with = "optional_text")]
    pub encoding: Option<Encoding>,
    /// Character between the fields of CSV, or tab; by default the one by which the header has the field of the text
    #[cfg_attr(feature = "cli", arg(help_heading = INPUT, hide_short_help = true, long, value_name = "CHAR"))]
    #[serde(default, with = "optional_text", skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<CsvChar>,
    /// Character around fields of CSV that hold delimiters [default: "]
    #[cfg_attr(feature = "cli", arg(help_heading = INPUT, hide_short_help = true, long, value_name = "CHAR"))]
    #[serde(default, with = "optional_text", skip_serializing_if = "Option::is_none")]
    pub quote: Option<CsvChar>,
    /// Character before a quote that belongs to a field of CSV, besides a second quote, such as \ for what Spark writes
    #[cfg_attr(feature = "cli", arg(help_heading = INPUT, hide_short_help = true, long, value_name = "CHAR"))]
    #[serde(default, with = "optional_text", skip_serializing_if = "Option::is_none")]
    pub escape: Option<CsvChar>,
    /// Whether the first record of CSV names the fields, which are _c0, _c1 and so on otherwise [default: yes]
    #[cfg_attr(feature = "cli", arg(help_heading = INPUT, hide_short_help = true, long, value_name = "WHETHER"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<YesOrNo>,
    /// Treatment of a null in the place of a text, in JSON and Parquet [default: reject]
    #[cfg_attr(feature = "cli", arg(help_heading = INPUT, hide_short_help = true, long, value_name = "HOW"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub null_text: Option<OnNullText>,
    /// Treatment of a text with bytes that its encoding does not allow
    ///
    /// An output has the record's own bytes either way. The counters say how many texts were mended.
    #[cfg_attr(feature = "cli", arg(help_heading = INPUT, hide_short_help = true, long, value_name = "HOW", default_value = "reject"))]
    pub on_bad_text: OnBadText,
    /// Reject records that are longer than this, as they are stored or once decompressed
    ///
    /// The default is 128M; with --memory it is at most a 16th of the memory of each worker.
    #[cfg_attr(feature = "cli", arg(help_heading = INPUT, hide_short_help = true, long, value_name = "SIZE", value_parser = record_size))]
    #[serde(with = "optional_text")]
    pub max_record_bytes: Option<u64>,
    /// Limit of the bytes of the blocks that records lie in, besides a longest record: set by `--memory`.
    #[cfg_attr(feature = "cli", arg(skip))]
    #[serde(with = "optional_text")]
    pub block_bytes: Option<u64>,
    /// Options of the words that texts are cut into.
    #[cfg_attr(feature = "cli", command(flatten))]
    #[serde(flatten)]
    pub words: WordOptions,
    /// Approximate number of bytes of records, decompressed, that one worker reads at a time, such as 64M
    ///
    /// Each split becomes one part of a corpus that is written. The default is a 16th part of the input, at
    /// least 8M and at most 32M.
    #[cfg_attr(feature = "cli", arg(help_heading = RESOURCES, hide_short_help = true, long, value_name = "SIZE", value_parser = size))]
    #[serde(with = "optional_text")]
    pub split_size: Option<u64>,
    /// Folder for temporary files; by default the system's
    ///
    /// It holds what does not fit into --memory, and the decompressed contents of compressed files that several
    /// workers read.
    #[cfg_attr(feature = "cli", arg(help_heading = RESOURCES, long, value_name = "DIR", value_parser = paths()))]
    #[serde(skip)]
    pub local_dir: Option<String>,
}

impl InputOptions {
    /// Finds the input files and cuts them into splits.
    pub fn plan(&self, stores: &Stores, inputs: &[String]) -> Result<Plan> {
        self.plan_against(stores, &[], inputs)
    }

    /// The same with the files of a reference, which is empty if there is none. Pipes are copied.
    ///
    /// # Errors
    /// Those of [`Plan::new`] and [`PipedInputs::copy`]; [`WrongUse`] if a pipe should have fields and is of no format with fields.
    pub fn plan_against(&self, stores: &Stores, against: &[String], inputs: &[String]) -> Result<Plan> {
        let mut piped = PipedInputs::default();
        let against = self.copy_pipes(&mut piped, against)?;
        let inputs = self.copy_pipes(&mut piped, inputs)?;
        let has_fields = self.text_field.is_some() || self.id_field.is_some() || self.delimiter.is_some();
        if piped.are_lines && (has_fields || self.header.is_some()) {
            bail!(WrongUse(format!(
                "what is piped in is of no format with the field \"{}\" that its first bytes tell: name it with --format",
                self.text_name()
            )));
        }
        piped.name_in(stores);
        let format = self.format.as_deref();
        let local = self.local_folder();
        let plan = Plan::new(stores, &against, &inputs, format, self.split_size, &local)?;
        Ok(Plan { piped, ..plan })
    }

    /// Returns inputs with copies in the place of pipes.
    ///
    /// # Errors
    /// Those of [`PipedInputs::copy`].
    pub fn copy_pipes(&self, piped: &mut PipedInputs, inputs: &[String]) -> Result<Vec<String>> {
        let told_by = self.format.is_none().then(|| self.text_name());
        piped.copy(inputs, told_by, &self.local_folder())
    }

    fn text_name(&self) -> &str {
        self.text_field.as_deref().unwrap_or("text")
    }

    /// Returns the folder for temporary files.
    pub fn local_folder(&self) -> PathBuf {
        self.local_dir.as_deref().map_or_else(env::temp_dir, path_of_text)
    }

    /// Fills in the limits of records that the user left open. `limits`: the longest record and the bytes of
    /// the blocks of records that `--memory` allows, if it is given.
    pub fn limit_records(&mut self, limits: Option<(u64, u64)>) {
        let (record, block) =
            limits.unwrap_or((Reading::MAX_RECORD_BYTES as u64, Reading::BLOCK_BYTES as u64));
        self.max_record_bytes.get_or_insert(record);
        self.block_bytes = Some(block);
    }

    /// Returns how the records of the input are read.
    pub fn reading(&self) -> Result<Reading> {
        Ok(Reading {
            id: self.id_field.clone(),
            text: self.text_field.clone(),
            numbers: false,
            null_text: self.null_text.map_or_else(NullText::default, NullText::from),
            priority: None,
            encoding: self.encoding,
            bad_text: self.on_bad_text.into(),
            max_record_bytes: self.max_record_bytes.map_or(Reading::MAX_RECORD_BYTES, |bytes| bytes as usize),
            block_bytes: self.block_bytes.map_or(Reading::BLOCK_BYTES, |bytes| bytes as usize),
            csv: CsvReading {
                delimiter: self.delimiter,
                quote: self.quote,
                escape: self.escape,
                no_header: self.header == Some(YesOrNo::No),
            },
            extractors: Arc::new(Extractors::of_this_program()?),
        })
    }

    /// Plans an input that `workers` threads will read.
    pub fn open(&self, inputs: &[String], workers: usize) -> Result<Input> {
        Ok(Input { plan: self.plan(&Stores::new(), inputs)?, reading: self.reading()?, workers })
    }

    /// Reads the files of the user's own words.
    ///
    /// # Errors
    /// When there are such files and texts are not cut into words.
    pub fn lexicon(&self, cuts_words: bool) -> Result<Lexicon> {
        if !cuts_words && (self.words.stop_words.is_some() || self.words.user_dict.is_some()) {
            bail!(WrongUse(
                "--stop-words and --user-dict are for features=jieba, which this does not use".into()
            ));
        }
        self.words.lexicon_below("")
    }
}

/// Options of the words that texts are cut into.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(rename_all = "kebab-case")]
pub struct WordOptions {
    /// File of words that are no features, one word a line
    #[cfg_attr(feature = "cli", arg(help_heading = METHOD, hide_short_help = true, long, value_name = "FILE"))]
    pub stop_words: Option<String>,
    /// jieba's user dictionary: a word, its frequency and its tag on each line
    #[cfg_attr(feature = "cli", arg(help_heading = METHOD, hide_short_help = true, long, value_name = "FILE"))]
    pub user_dict: Option<String>,
}

impl WordOptions {
    /// Reads these files, whose names are relative to `directory`.
    pub fn lexicon_below(&self, directory: &str) -> Result<Lexicon> {
        let words = |file: &Option<String>| {
            let Some(file) = file else { return Ok(String::new()) };
            let path = path_of_text(directory).join(path_of_text(file));
            text_of_file(&text_of_path(path.as_os_str()))
        };
        Ok(Lexicon { stop_words: words(&self.stop_words)?, user_words: words(&self.user_dict)? })
    }
}

/// The line that is said of a pipe of which the first bytes tell no format.
pub const PIPED_LINES: &str =
    "what is piped in is read as plain lines, since it begins as no other format does: --format names one";

/// Returns the hash of the user's stop words and dictionary, by which later runs are told to have the same.
pub fn hash_of_words(lexicon: &Lexicon) -> String {
    let words = xxh3_128(format!("{}\0{}", lexicon.stop_words, lexicon.user_words).as_bytes()) as u64;
    format!("{words:016x}")
}

/// Number of documents, bytes and rejected records of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Number of documents.
    pub documents: u64,
    /// Number of bytes of their texts, in UTF-8.
    pub text_bytes: u64,
    /// Number of rejected records, without those that the user wants to leave out.
    pub rejected: u64,
}

impl Census {
    /// Counts an input. Cost: one reading of the input.
    pub fn of(input: &Input, progress: &Progress) -> Result<Self> {
        let mut all = Census::default();
        let mut without_field: Option<MissingField> = None;
        let counts = splits::each_split(
            &input.plan,
            &Group::alone(input.workers),
            (progress, Stage::Census),
            |at, number, split| {
                let mut census = Census::default();
                let mut reader = SplitReader::new(number, split, &input.reading, at);
                while let Some(mut batch) = reader.next_batch()? {
                    census.documents += batch.docs().len() as u64;
                    census.text_bytes += batch.text_bytes() as u64;
                    census.rejected +=
                        batch.take_rejects().iter().filter(|reject| !reject.is_dropped()).count() as u64;
                }
                Ok((census, reader.without_field()))
            },
        )?;
        for (census, without) in counts {
            all.documents += census.documents;
            all.text_bytes += census.text_bytes;
            all.rejected += census.rejected;
            without_field = without_field.or(without);
        }
        match without_field {
            Some(missing) if all.documents == 0 => bail!(Error::Field(missing)), // a name that no file knows is misspelt
            _ => Ok(all),
        }
    }
}

/// Planned input, and how it is read.
pub struct Input {
    /// Splits of the files that are read.
    pub plan: Plan,
    /// Fields, encoding and limits by which the records are read.
    pub reading: Reading,
    /// Number of threads that read splits at the same time.
    pub workers: usize,
}

/// Document of the input.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InputDocument {
    /// Position in the corpus.
    pub place: DocId,
    /// Value of the id field, or the file and the position where there is none.
    pub id: String,
    /// Text as it was read, before it is cleaned.
    pub text: String,
    /// Path of its file.
    pub path: Arc<str>,
}

impl Input {
    /// Begins to watch a command that reads this input and writes no output. Returns the counts of its workers
    /// too. `asked`: what the user asked for, for the events.
    ///
    /// # Errors
    /// Those of [`Plan::watched`] and [`Watch::begin`].
    pub fn watch(
        &self,
        options: &ProgressOptions,
        command: &'static str,
        asked: &Value,
    ) -> Result<(Watch, Arc<Progress>)> {
        let watched = self.plan.watched(options, command, "", asked, 0)?;
        let progress = Arc::default();
        if self.plan.piped.are_lines && !options.quiet {
            say(PIPED_LINES);
        }
        Ok((Watch::begin(options, watched, &progress)?, progress))
    }

    /// Reads the documents at these positions, sorted by position.
    pub fn at(&self, positions: &[DocId], progress: &Progress) -> Result<Vec<InputDocument>> {
        let mut positions = positions.to_vec();
        positions.sort_unstable();
        positions.dedup();
        let found = self.documents(
            |split| {
                let of_split = positions.partition_point(|position| position.split() < split);
                positions.get(of_split).is_some_and(|position| position.split() == split)
            },
            |position, _| positions.binary_search(&position).is_ok(),
            progress,
        )?;
        if found.len() < positions.len() {
            bail!("a document of the output was not found again; did the input change since?");
        }
        Ok(found)
    }

    /// Reads the documents with these ids, sorted by position. Cost: reads the whole input.
    pub fn with_ids(&self, ids: &[&str], progress: &Progress) -> Result<Vec<InputDocument>> {
        self.documents(|_| true, |_, id| ids.contains(&id), progress)
    }

    /// Reads the documents that `document` asks for, in the splits that `split` asks for, sorted by position.
    pub fn documents(
        &self,
        split: impl Fn(u32) -> bool + Sync,
        document: impl Fn(DocId, &str) -> bool + Sync,
        progress: &Progress,
    ) -> Result<Vec<InputDocument>> {
        let found = splits::each_split(
            &self.plan,
            &Group::alone(self.workers),
            (progress, Stage::Read),
            |at, number, unread| {
                let mut found = Vec::new();
                if !split(number) {
                    at.done(unread.pieces.iter().map(UnopenedPiece::bytes).sum());
                    return Ok(found);
                }
                let mut reader = SplitReader::new(number, unread, &self.reading, at);
                while let Some(batch) = reader.next_batch()? {
                    let docs = batch.docs().filter(|doc| document(doc.doc, doc.id));
                    let path: Arc<str> = reader.path().into();
                    found.extend(docs.map(|doc| InputDocument {
                        place: doc.doc,
                        id: doc.id.to_owned(),
                        text: doc.text.to_owned(),
                        path: Arc::clone(&path),
                    }));
                }
                Ok(found)
            },
        )?;
        Ok(found.into_iter().flatten().collect())
    }
}
