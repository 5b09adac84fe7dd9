//! `dedup`: corpus in; pairs, clusters and a clean corpus out.

use std::collections::BTreeMap;
use std::env;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use cluster::{Stores, text_of_path};
use datasets::{Encoding, Extractors, Reading};
use operators::method::Spec;
use operators::{Resolve, Similarity};
use serde_json::{Value, json};

use crate::failure::check_rejects;
use crate::finish::{Finish, Keep, verified_by};
use crate::guards::Guards;
use crate::options::{OnBadText, check_words, lexicon, output_and_inputs, paths, record_size, size};
use crate::plan::Plan;
use crate::reject_lines::number_lines;
use crate::search::Search;
use crate::statistics;
use crate::tables::PairsOf;
use crate::{Common, WrongUse};

/// Find near-duplicates and leave a clean corpus
///
/// The output holds kept/ and removed/ in the input's own format, pairs/, clusters/ and rejects/, and
/// _SUCCESS, which is written last.
#[derive(clap::Args)]
#[command(override_usage = "dedup-job dedup [OPTIONS] <INPUT>... <OUTPUT>")]
pub struct Args {
    /// Files, folders, globs or comma lists of them, local, on HDFS or in an object store; the last one is the output folder
    // Not `num_args = 2..`: that would ask for two between any two options.
    #[arg(required = true, num_args = 1.., value_name = "INPUT> <OUTPUT", value_parser = paths())]
    paths: Vec<String>,
    /// Method and parameters, such as auto, jaccard:0.8 or simhash:hamming=6,features=char:5
    ///
    /// auto (revisions, short=T, long=T, search=exact|minhash): what a reader calls the same text, short or long.
    /// jaccard:T (features=jieba|char:N|word:N|unit:N, clean=none|nfkc|post|weibo): every pair of texts whose sets of
    /// features are similar. minhash (jaccard=T, bands, rows, seed, features, clean): nearly all of them, in less
    /// memory. simhash (bits=32|64|128, hamming=0..15, blocks=N, features, weights=tf|tfidf|rank5, clean): every pair of
    /// fingerprints within the distance; weights other than tf take one more reading of the corpus. manku2007: simhash
    /// with weights=tfidf. exact (clean): equal texts. zhou2017 (k=2..8, threshold=1+0.2k,
    /// retrieval=linear|bucket|recursive, features, clean): fingerprints and shared words together, deleting as it
    /// compares.
    #[arg(long, value_name = "SPEC", default_value = "auto")]
    method: Spec,
    /// Compare the features of every candidate pair: jaccard:T, or none
    ///
    /// By default jaccard:0.8 where the method is approximate. The splits that hold a candidate are read once
    /// more, with or without verification.
    #[arg(long, value_name = "HOW")]
    verify: Option<Verification>,
    /// Which documents of a cluster stay: greedy or components
    ///
    /// greedy removes a document only if it matches one that stays. components keeps one of each cluster, so
    /// that a chain of matches can remove a document that matches nothing that stays.
    #[arg(long, value_name = "HOW", default_value_t)]
    resolve: Resolve,
    /// Which of two matching documents stays: the first of the corpus, or the longest
    #[arg(long, value_name = "WHICH", default_value = "first")]
    keep: Keep,
    /// Which pairs are written: firsts (one for each identical document, to the first of them) or all
    #[arg(long, value_name = "WHICH", default_value = "firsts")]
    pairs: PairsOf,
    /// Format of the input; recognised by name and content by default
    #[arg(long)]
    format: Option<String>,
    /// Field that holds a document's id [default: id where there is one, else file and position]
    #[arg(long, value_name = "FIELD")]
    id_field: Option<String>,
    /// Field that holds a document's text [default: text]
    ///
    /// In Parquet doc.body.text is a field inside of structs, and \. a dot that belongs to a name; a column's whole name
    /// needs no such care.
    #[arg(long, value_name = "FIELD")]
    text_field: Option<String>,
    /// Encoding of texts, where the format does not fix it: utf-8, gb18030, gbk, big5, utf-16le or utf-16be
    ///
    /// By default it is recognised, file by file; values that are bytes (BytesWritable, binary columns) are UTF-8.
    #[arg(long, value_name = "NAME")]
    encoding: Option<Encoding>,
    /// What becomes of a text with bytes that its encoding does not allow
    ///
    /// The output has the record's own bytes either way; the counters say how many texts were mended.
    #[arg(long, value_name = "HOW", default_value = "reject")]
    on_bad_text: OnBadText,
    /// Reject records that are longer than this, as they are stored or once decompressed
    #[arg(long, value_name = "SIZE", default_value = "128M", value_parser = record_size)]
    max_record_bytes: u64,
    /// File of words that are no features, one a line
    #[arg(long, value_name = "FILE")]
    stop_words: Option<String>,
    /// jieba's user dictionary: a word, its frequency and its tag on each line
    #[arg(long, value_name = "FILE")]
    user_dict: Option<String>,
    /// Take the corpus statistics that weights=tfidf and rank5 need from an earlier run: its output, or the file in it
    ///
    /// By default they are counted in the input. They are kept in OUTPUT/statistics either way.
    #[arg(long, value_name = "PATH")]
    statistics: Option<String>,
    /// About how many bytes of a file one worker reads at a time, such as 64M
    ///
    /// Each split becomes one part of the output.
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = size)]
    split_size: u64,
    /// Stop with exit code 4 before anything is committed if more records than this are rejected
    #[arg(long, value_name = "N")]
    max_rejects: Option<u64>,
    #[command(flatten)]
    guards: Guards,
    /// Replace an output that exists
    #[arg(long)]
    overwrite: bool,
    /// Write the numbers of the run to this file as JSON
    #[arg(long, value_name = "FILE")]
    summary_json: Option<String>,
}

/// What is asked of the pairs of a method where `--verify` does not say.
pub(crate) fn default_verification(method: &Spec) -> Result<Option<Similarity>> {
    let least = method.approximate().then(|| "0.8".parse());
    Ok(least.transpose().map_err(WrongUse)?)
}

#[derive(Clone, Copy, Debug)]
enum Verification {
    Jaccard(Similarity),
    None,
}

impl FromStr for Verification {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "none" => Ok(Verification::None),
            Some(("jaccard", least)) => Ok(Verification::Jaccard(least.parse()?)),
            _ => Err("expected jaccard:T or none".to_owned()),
        }
    }
}

/// Runs the job; returns 0, or 3 if records were rejected.
pub fn run(common: &Common, mut args: Args) -> Result<u8> {
    let start = Instant::now();
    let stores = Stores::new();
    let paths = std::mem::take(&mut args.paths);
    let (output, inputs) = output_and_inputs(&paths)?;
    check_words(args.method.cuts_words(), args.stop_words.as_deref(), args.user_dict.as_deref())?;
    let lexicon = lexicon("", args.stop_words.as_deref(), args.user_dict.as_deref())?;
    let earlier = args.statistics.as_deref();
    let earlier = earlier.map(|uri| statistics::read(&stores, uri, &args.method, &lexicon)).transpose()?;
    let plan = Arc::new(Plan::new(&stores, inputs, args.format.as_deref(), args.split_size)?);
    args.method = args.method.for_corpus(plan.bytes());
    let verify = args.verify()?;
    let reading = Reading {
        id: args.id_field.clone(),
        text: args.text_field.clone(),
        encoding: args.encoding,
        bad_text: args.on_bad_text.into(),
        max_record_bytes: args.max_record_bytes as usize,
        extractors: Arc::new(Extractors::of_this_program()?),
    };
    let finish = Finish {
        common,
        start,
        plan: Arc::clone(&plan),
        reading: reading.clone(),
        method: &args.method,
        verify,
        resolve: args.resolve,
        keep: args.keep,
        pairs: args.pairs,
        guards: &args.guards,
        configuration: args.configuration(verify, inputs, common.workers())?,
        summary_json: args.summary_json.as_deref(),
    };
    finish.run(&stores, output, args.overwrite, |progress, folder| {
        let statistics = match earlier {
            Some(statistics) => statistics,
            None => statistics::count(&args.method, &lexicon, &plan, &reading, common.workers(), progress)?,
        };
        statistics::write(folder, &args.method, &lexicon, &statistics)?;
        let search = Search {
            plan: Arc::clone(&plan),
            reading: reading.clone(),
            verify,
            workers: common.workers(),
            progress: Arc::clone(progress),
        };
        let mut found = args.method.with(&lexicon, &statistics, search)??;
        number_lines(&plan, &reading, &mut found.rejects)?;
        if let Some((_, error)) = found.without_field.take().filter(|_| found.docs == 0) {
            bail!(error); // a name that no file knows is misspelt
        }
        check_rejects(args.max_rejects, &found.rejects)?;
        Ok(found)
    })
}

impl Args {
    fn verify(&self) -> Result<Option<Similarity>> {
        let method = &self.method;
        match self.verify {
            Some(_) if method.measures() => {
                bail!(WrongUse(format!(
                    "{method} compares the features of every pair itself: leave --verify out"
                )))
            }
            Some(Verification::Jaccard(least)) => Ok(Some(least)),
            Some(Verification::None) => Ok(None),
            None => default_verification(method),
        }
    }

    /// What `_SUCCESS` says of the run, so that `Finished` can read the same corpus in the same way.
    fn configuration(
        &self,
        verify: Option<Similarity>,
        inputs: &[String],
        workers: usize,
    ) -> Result<BTreeMap<String, Value>> {
        let values = [
            ("method", json!(self.method.to_string())),
            ("verify", json!(verified_by(verify))),
            ("resolve", json!(self.resolve.to_string())),
            ("keep", json!(format!("{:?}", self.keep).to_lowercase())),
            ("pairs", json!(format!("{:?}", self.pairs).to_lowercase())),
            ("format", json!(self.format)),
            ("id-field", json!(self.id_field)),
            ("text-field", json!(self.text_field)),
            ("encoding", json!(self.encoding.map(Encoding::name))),
            ("on-bad-text", json!(format!("{:?}", self.on_bad_text).to_lowercase())),
            ("max-record-bytes", json!(self.max_record_bytes.to_string())),
            ("stop-words", json!(self.stop_words)),
            ("user-dict", json!(self.user_dict)),
            ("statistics", json!(self.statistics)),
            ("split-size", json!(self.split_size.to_string())),
            ("workers", json!(workers.to_string())),
            ("inputs", json!(inputs)),
            ("directory", json!(text_of_path(env::current_dir()?.as_os_str()))),
        ];
        Ok(values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }
}
