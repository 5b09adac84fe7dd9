//! The input of jobs that fingerprint or compare: how it is read, and how much it is.

use std::sync::Arc;

use anyhow::{Result, bail};
use cluster::{Cluster, Stores};
use datasets::{Encoding, Error, Extractors, Reading};
use operators::text::features::Lexicon;

use super::plan::Plan;
use super::splits;
use crate::WrongUse;
use crate::cli::values::{OnBadText, lexicon, record_size, size};
use crate::output::read_back::Input;
use crate::progress::{Progress, Stage};

/// How the input is read.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct InputOptions {
    /// Format of the input; recognised by name and content by default
    #[arg(long)]
    pub format: Option<String>,
    /// Field that holds a document's id [default: id where there is one, else file and position]
    #[arg(long, value_name = "FIELD")]
    pub id_field: Option<String>,
    /// Field that holds a document's text [default: text]
    ///
    /// In Parquet doc.body.text is a field inside of structs, and \. a dot that belongs to a name; a column's whole name
    /// needs no such care.
    #[arg(long, value_name = "FIELD")]
    pub text_field: Option<String>,
    /// Encoding of texts, where the format does not fix it: utf-8, gb18030, gbk, big5, utf-16le or utf-16be
    ///
    /// By default it is recognised, file by file; values that are bytes (BytesWritable, binary columns) are UTF-8.
    #[arg(long, value_name = "NAME")]
    pub encoding: Option<Encoding>,
    /// What becomes of a text with bytes that its encoding does not allow
    ///
    /// An output has the record's own bytes either way; the counters say how many texts were mended.
    #[arg(long, value_name = "HOW", default_value = "reject")]
    pub on_bad_text: OnBadText,
    /// Reject records that are longer than this, as they are stored or once decompressed
    ///
    /// By default 128M; with --memory at most a 16th of what it gives each worker.
    #[arg(long, value_name = "SIZE", value_parser = record_size)]
    pub max_record_bytes: Option<u64>,
    /// What records lie in may take, besides a longest record: set by --memory.
    #[arg(skip)]
    pub block_bytes: Option<u64>,
    /// File of words that are no features, one a line
    #[arg(long, value_name = "FILE")]
    pub stop_words: Option<String>,
    /// jieba's user dictionary: a word, its frequency and its tag on each line
    #[arg(long, value_name = "FILE")]
    pub user_dict: Option<String>,
    /// About how many bytes of a file one worker reads at a time, such as 64M
    ///
    /// Each split becomes one part of a corpus that is written.
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = size)]
    pub split_size: u64,
}

impl InputOptions {
    /// The files and their splits.
    pub fn plan(&self, stores: &Stores, inputs: &[String]) -> Result<Plan> {
        Plan::new(stores, inputs, self.format.as_deref(), self.split_size)
    }

    /// How their records are read.
    pub fn reading(&self) -> Result<Reading> {
        Ok(Reading {
            id: self.id_field.clone(),
            text: self.text_field.clone(),
            encoding: self.encoding,
            bad_text: self.on_bad_text.into(),
            max_record_bytes: self.max_record_bytes() as usize,
            block_bytes: self.block_bytes() as usize,
            extractors: Arc::new(Extractors::of_this_program()?),
        })
    }

    /// The longest record.
    pub fn max_record_bytes(&self) -> u64 {
        self.max_record_bytes.unwrap_or(Reading::MAX_RECORD_BYTES as u64)
    }

    /// As in [`Reading`].
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes.unwrap_or(Reading::BLOCK_BYTES as u64)
    }

    /// Plans an input, to be read by so many threads.
    pub fn open(&self, inputs: &[String], workers: usize) -> Result<Input> {
        Ok(Input { plan: self.plan(&Stores::new(), inputs)?, reading: self.reading()?, workers })
    }

    /// The words of the user's own. There must be none where texts are not cut into words.
    pub fn lexicon(&self, cuts_words: bool) -> Result<Lexicon> {
        if !cuts_words && (self.stop_words.is_some() || self.user_dict.is_some()) {
            bail!(WrongUse(
                "--stop-words and --user-dict are for features=jieba, which this does not use".into()
            ));
        }
        lexicon("", self.stop_words.as_deref(), self.user_dict.as_deref())
    }
}

/// How much an input is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Census {
    pub documents: u64,
    pub text_bytes: u64,
    pub rejected: u64,
}

impl Census {
    /// Counts. Cost: one reading of the input.
    pub fn of(input: &Input) -> Result<Self> {
        let mut all = Census::default();
        let mut without_field: Option<Error> = None;
        let progress = Progress::default();
        let counts = splits::each_split(
            &input.plan,
            &Cluster::alone(input.workers),
            (&progress, Stage::Count),
            |at, number, split| {
                let mut census = Census::default();
                let without = splits::read(number, split, &input.reading, at, |batch| {
                    census.documents += batch.docs().len() as u64;
                    census.text_bytes += batch.text_bytes() as u64;
                    census.rejected += batch.take_rejects().len() as u64;
                    Ok(())
                })?;
                Ok((census, without))
            },
        )?;
        for (census, without) in counts {
            all.documents += census.documents;
            all.text_bytes += census.text_bytes;
            all.rejected += census.rejected;
            without_field = without_field.or(without);
        }
        match without_field {
            Some(error) if all.documents == 0 => bail!(error), // a name that no file knows is misspelt
            _ => Ok(all),
        }
    }
}
