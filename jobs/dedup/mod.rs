//! The job `dedup`: finds the near-duplicate pairs of a corpus, writes pairs, clusters and a clean corpus.
//!
//! A run counts corpus statistics if its method needs them, searches for pairs, resolves them to verdicts,
//! writes the records, and commits. This room uses `cli`, `progress`, `corpus` and `output`; the commands
//! `rethreshold`, `explain`, `tune` and `why` use parts of it.

pub(crate) mod corpus_counts;
pub(crate) mod guards;
pub(crate) mod memory;
pub(crate) mod resolve;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod verdicts;
pub(crate) mod write;

use std::collections::BTreeMap;
use std::env;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use cluster::{Group, Stores, text_of_path};
use datasets::Encoding;
use operators::method::Spec;
use operators::text::document_frequencies::Statistics;
use operators::text::features::Lexicon;
use operators::{Resolve, Similarity, SpillBudget, hash};
use serde_json::{Value, json};

use self::guards::Guards;
use self::memory::MemoryOptions;
use self::run::{DedupRun, Keep, Outcome, verified_by};
use self::search::CorpusSearch;
use crate::Common;
use crate::cli::exit::WrongUse;
use crate::cli::values::{output_and_inputs, paths};
use crate::corpus::input::InputOptions;
use crate::corpus::plan::Plan;
use crate::corpus::same_input::check_same_input;
use crate::output::tables::PairsOf;
use crate::output::{Key, OutputFolder};
use crate::progress::Progress;

/// Find near-duplicates and leave a clean corpus
///
/// The output holds kept/ and removed/ in the input's own format, pairs/, clusters/ and rejects/, and
/// _SUCCESS, which is written last.
#[derive(Debug, clap::Args)]
#[command(override_usage = "dedup-job dedup [OPTIONS] <INPUT>... <OUTPUT>")]
pub struct Args {
    /// Files, folders, globs or comma lists of them, local, on HDFS or in an object store; the last one is
    /// the output folder
    // This is not `num_args = 2..`, which would ask for two between any two options.
    #[arg(required = true, num_args = 1.., value_name = "INPUT> <OUTPUT", value_parser = paths())]
    paths: Vec<String>,
    /// Method and parameters, such as auto, jaccard:0.8 or simhash:hamming=6,features=char:5
    ///
    /// auto (revisions, short=T, long=T, search=exact|minhash) finds what a reader calls the same text, short
    /// or long. jaccard:T (features=jieba|char:N|word:N|unit:N, clean=none|nfkc|post|weibo) finds every pair
    /// of texts whose sets of features are similar. minhash (jaccard=T, bands, rows, seed, features, clean)
    /// finds nearly all of these pairs, in less memory. simhash (bits=32|64|128, hamming=0..15, blocks=N,
    /// features, weights=tf|tfidf|rank5, clean) finds every pair of fingerprints within the distance; weights
    /// other than tf take one more reading of the corpus. manku2007 is simhash with weights=tfidf. exact
    /// (clean) finds equal texts. zhou2017 (k=2..8, threshold=1+0.2k, retrieval=linear|bucket|recursive,
    /// fold=upper|lower, features, clean) compares fingerprints and shared words together, and deletes as it
    /// compares.
    #[arg(long, value_name = "SPEC", default_value = "auto")]
    method: Spec,
    /// Compare the features of every candidate pair: jaccard:T, or none
    ///
    /// The default is jaccard:0.8 for approximate methods. The splits that hold a candidate are read once
    /// more, with or without verification.
    #[arg(long, value_name = "HOW")]
    verify: Option<Verification>,
    /// Rule for the documents of a cluster that stay: greedy or components
    ///
    /// greedy removes a document only if it matches one that stays. components keeps one document of each
    /// cluster, so a chain of matches can remove a document that matches nothing that stays.
    #[arg(long, value_name = "HOW", default_value_t)]
    resolve: Resolve,
    /// Document that stays of two that match: the first of the corpus, or the longest
    #[arg(long, value_name = "WHICH", default_value = "first")]
    keep: Keep,
    /// Pairs to write: firsts (one for each identical document, with the first of them) or all
    #[arg(long, value_name = "WHICH", default_value = "firsts")]
    pairs: PairsOf,
    #[command(flatten)]
    input: InputOptions,
    #[command(flatten)]
    memory: MemoryOptions,
    /// Take the corpus statistics that weights=tfidf and rank5 need from an earlier run: its output, or the
    /// file in it
    ///
    /// By default the statistics are counted in the input. They are kept in OUTPUT/statistics either way.
    #[arg(long, value_name = "PATH")]
    statistics: Option<String>,
    /// Stop with exit code 4 before anything is committed if more records than this are rejected
    #[arg(long, value_name = "N")]
    max_rejects: Option<u64>,
    #[command(flatten)]
    guards: Guards,
    /// Replace an output that exists
    #[arg(long)]
    overwrite: bool,
    /// Write the numbers of the run to this file as JSON
    #[arg(long, value_name = "FILE", value_parser = paths())]
    summary_json: Option<String>,
}

/// Returns the least similarity of a pair if `--verify` is not given, or `None` if the pairs of the method
/// are not verified.
pub(crate) fn default_verification(method: &Spec) -> Result<Option<Similarity>> {
    let threshold = method.approximate().then(|| "0.8".parse());
    Ok(threshold.transpose().map_err(WrongUse)?)
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
            Some(("jaccard", threshold)) => Ok(Verification::Jaccard(threshold.parse()?)),
            _ => Err("expected jaccard:T or none".to_owned()),
        }
    }
}

/// Runs the job as one of its processes. Returns the exit code: 0, or 3 if records were rejected.
pub fn run(common: &Common, args: Args) -> Result<u8> {
    let group = Arc::new(common.join(&args)?);
    let result = run_with(common, &group, args).and_then(|code| {
        for gone in group.leave()? {
            common.warn(format_args!("{gone}; the output was complete by then"));
        }
        Ok(code)
    });
    if let Err(error) = &result {
        group.fail(&format!("{error:#}"));
    }
    result
}

fn run_with(common: &Common, group: &Arc<Group>, mut args: Args) -> Result<u8> {
    let start = Instant::now();
    let stores = Stores::new();
    let paths = std::mem::take(&mut args.paths);
    let (output, inputs) = output_and_inputs(&paths)?;
    if let Some((record, block)) = args.memory.of_records(group.workers()) {
        args.input.max_record_bytes.get_or_insert(record);
        args.input.block_bytes = Some(block);
    }
    let lexicon = args.input.lexicon(args.method.cuts_words())?;
    let earlier = args.statistics.as_deref();
    let earlier = earlier.map(|uri| corpus_counts::read(&stores, uri, &args.method, &lexicon)).transpose()?;
    let plan = Arc::new(args.input.plan(&stores, inputs)?);
    check_same_input(&plan, group)?;
    args.method = args.method.for_corpus(plan.bytes());
    let verify = args.verify()?;
    let reading = args.input.reading()?;
    let spill = args.memory.spill_budget(group, &args.method)?;
    let configuration = args.configuration(verify, inputs, group.all_workers())?;
    let key = args.key(&configuration, &lexicon, earlier.as_ref(), &plan, group)?;
    let run = DedupRun {
        common,
        stores: &stores,
        job: "dedup",
        group: Arc::clone(group),
        start,
        plan,
        reading,
        progress: Arc::new(Progress::default()),
        method: &args.method,
        verify,
        resolve: args.resolve,
        keep: args.keep,
        pairs: args.pairs,
        guards: &args.guards,
        max_rejects: args.max_rejects,
        configuration,
        output,
        overwrite: args.overwrite,
        summary_json: args.summary_json.as_deref(),
        key,
        limits: format!("{:?} max-rejects {:?}", args.guards, args.max_rejects),
    };
    let watch = run.start()?;
    let outcome = run.claim().and_then(|folder| {
        let Some(folder) = folder else { return Ok(Outcome::default()) };
        let written = search_and_write(&run, &folder, &lexicon, earlier, spill);
        folder.close(written)
    });
    run.end(watch, outcome)
}

/// Finds the pairs of the corpus and writes the output, or finishes the commit of an earlier run.
fn search_and_write(
    run: &DedupRun,
    folder: &OutputFolder,
    lexicon: &Lexicon,
    statistics: Option<Statistics>,
    spill: SpillBudget,
) -> Result<Outcome> {
    if let Some(finished) = run.finish_earlier(folder)? {
        return Ok(finished);
    }
    let statistics = match statistics {
        Some(statistics) => statistics,
        None => {
            corpus_counts::count(run.method, lexicon, &run.plan, &run.reading, &run.group, &run.progress)?
        }
    };
    if run.group.index() == 0 {
        corpus_counts::write(folder, run.method, lexicon, &statistics)?;
    }
    let outputs = folder.map_outputs();
    let search = CorpusSearch {
        plan: Arc::clone(&run.plan),
        reading: run.reading.clone(),
        cluster: Arc::clone(&run.group),
        progress: Arc::clone(&run.progress),
        secret: outputs.secret(&run.group)?,
        max_rejects: run.max_rejects,
        outputs,
        spill,
    };
    let found = search.run(run.method.method(lexicon, &statistics, run.verify)?)?;
    run.write(folder, found)
}

impl Args {
    /// Returns the key by which process 0 recognises the work of a killed run that this run may resume, or
    /// `None` at other processes. The key covers the contents of word files, whatever their names are. It
    /// leaves out the number of workers, which does not change the output.
    fn key(
        &self,
        configuration: &BTreeMap<String, Value>,
        lexicon: &Lexicon,
        statistics: Option<&Statistics>,
        plan: &Plan,
        group: &Group,
    ) -> Result<Option<Key>> {
        if group.index() > 0 {
            return Ok(None);
        }
        let words = [&lexicon.stop_words, &lexicon.user_words].map(|words| hash::bytes(words.as_bytes()));
        let counts = statistics.map(|statistics| {
            let counts: Vec<u8> = statistics.counts.iter().flat_map(|count| count.to_le_bytes()).collect();
            (statistics.documents, hash::bytes(&counts))
        });
        let asked: BTreeMap<_, _> = configuration.iter().filter(|(name, _)| *name != "workers").collect();
        Key::new(&(asked, words, counts), plan).map(Some)
    }

    /// Makes this process give freed memory back to the system if `--memory` limits it; see `MemoryOptions`.
    pub fn give_back_memory(&self) -> Result<()> {
        self.memory.give_back()
    }

    fn verify(&self) -> Result<Option<Similarity>> {
        let method = &self.method;
        match self.verify {
            Some(_) if method.measures() => {
                bail!(WrongUse(format!(
                    "{method} compares the features of every pair itself: leave --verify out"
                )))
            }
            Some(Verification::Jaccard(threshold)) => Ok(Some(threshold)),
            Some(Verification::None) => Ok(None),
            None => default_verification(method),
        }
    }

    /// Returns the options of the run for `_SUCCESS`, from which `Finished` reads the same corpus in the same
    /// way.
    fn configuration(
        &self,
        verify: Option<Similarity>,
        inputs: &[String],
        workers: usize,
    ) -> Result<BTreeMap<String, Value>> {
        let input = &self.input;
        let values = [
            ("method", json!(self.method.to_string())),
            ("verify", json!(verified_by(verify))),
            ("resolve", json!(self.resolve.to_string())),
            ("keep", json!(format!("{:?}", self.keep).to_lowercase())),
            ("pairs", json!(format!("{:?}", self.pairs).to_lowercase())),
            ("format", json!(input.format)),
            ("id-field", json!(input.id_field)),
            ("text-field", json!(input.text_field)),
            ("encoding", json!(input.encoding.map(Encoding::name))),
            ("on-bad-text", json!(format!("{:?}", input.on_bad_text).to_lowercase())),
            ("max-record-bytes", json!(input.max_record_bytes().to_string())),
            ("block-bytes", json!(input.block_bytes().to_string())),
            ("stop-words", json!(input.stop_words)),
            ("user-dict", json!(input.user_dict)),
            ("statistics", json!(self.statistics)),
            ("split-size", json!(input.split_size.to_string())),
            ("workers", json!(workers.to_string())),
            ("inputs", json!(inputs)),
            ("directory", json!(text_of_path(env::current_dir()?.as_os_str()))),
        ];
        Ok(values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }
}
