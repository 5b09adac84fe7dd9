//! `dedup`: corpus in; pairs, clusters and a clean corpus out.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use cluster::Stores;
use datasets::{Encoding, Extractors, Reading, Removal};
use operators::features::Lexicon;
use operators::method::Spec;
use operators::statistics::Statistics;
use operators::{DocId, Matches, Member, Removed, Resolve, Similarity, Tie, survivors};

use crate::failure::{check_rejects, while_running};
use crate::options::{OnBadText, output_and_inputs, paths, record_size, size};
use crate::output::OutputFolder;
use crate::plan::Plan;
use crate::progress::{Progress, Reporter, Stage};
use crate::reject_lines::number_lines;
use crate::search::{Found, Named, Search};
use crate::statistics;
use crate::summary::{Clock, Counters, InputFile, Process, SamplePair, Summary, histogram, skew};
use crate::tables::{PairsOf, write_clusters, write_pairs, write_rejects};
use crate::write::{Fates, write};
use crate::{Common, WrongUse, say};

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
    /// with weights=tfidf. exact (clean): equal texts.
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
    /// Replace an output that exists
    #[arg(long)]
    overwrite: bool,
    /// Write the numbers of the run to this file as JSON
    #[arg(long, value_name = "FILE")]
    summary_json: Option<String>,
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

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Keep {
    /// The first of the corpus.
    First,
    /// The one with the most characters, and of equal ones the first.
    Longest,
}

/// Runs the job; returns 0, or 3 if records were rejected.
pub fn run(common: &Common, args: Args) -> Result<u8> {
    let start = Instant::now();
    let stores = Stores::new();
    let (output, inputs) = output_and_inputs(&args.paths)?;
    let lexicon = Lexicon { stop_words: words(&args.stop_words)?, user_words: words(&args.user_dict)? };
    let earlier = args.statistics.as_deref();
    let earlier = earlier.map(|uri| statistics::read(&stores, uri, &args.method, &lexicon)).transpose()?;
    let plan = Arc::new(Plan::new(&stores, inputs, args.format.as_deref(), args.split_size)?);
    if let Some(file) = args.summary_json.as_ref().filter(|file| plan.file_below("", file).is_some()) {
        bail!(WrongUse(format!("the summary would replace the input \"{file}\"")));
    }
    let folder = OutputFolder::create(&stores, output, args.overwrite, &plan)?;
    let progress = Arc::new(Progress::default());
    let reporter = Reporter::start(Arc::clone(&progress), common.show(), plan.bytes());
    let job = Job { common, args: &args, plan, folder: &folder, progress, start };
    let result = job.run(&lexicon, earlier);
    drop(reporter);
    if result.is_err() {
        // The first error is the one to report.
        folder.abandon();
    }
    let summary = result.map_err(while_running)?;
    if !common.quiet {
        say(&summary);
    }
    Ok(if summary.counters.rejected > 0 { 3 } else { 0 })
}

/// The text of a file of words, without a byte order mark.
fn words(file: &Option<String>) -> Result<String> {
    let Some(file) = file else { return Ok(String::new()) };
    let bytes =
        std::fs::read(file).map_err(|error| WrongUse(format!("could not read \"{file}\": {error}")))?;
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text).to_owned()),
        Err(error) => {
            let line = 1 + bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count();
            bail!(WrongUse(format!("\"{file}\", line {line}: not valid UTF-8")))
        }
    }
}

/// A run whose input and output are known to be there.
struct Job<'a> {
    common: &'a Common,
    args: &'a Args,
    plan: Arc<Plan>,
    folder: &'a OutputFolder,
    progress: Arc<Progress>,
    start: Instant,
}

impl Job<'_> {
    fn run(&self, lexicon: &Lexicon, earlier: Option<Statistics>) -> Result<Summary> {
        let (args, plan) = (self.args, &self.plan);
        let mut clock = Clock::default();
        let verify = self.verify()?;
        let reading = Reading {
            id: args.id_field.clone(),
            text: args.text_field.clone(),
            encoding: args.encoding,
            bad_text: args.on_bad_text.into(),
            max_record_bytes: args.max_record_bytes as usize,
            extractors: Arc::new(Extractors::of_this_program()?),
        };
        let (workers, progress) = (self.common.workers(), &self.progress);
        let statistics = match earlier {
            Some(statistics) => statistics,
            None => statistics::count(&args.method, lexicon, plan, &reading, workers, progress)?,
        };
        let search = Search {
            plan: Arc::clone(plan),
            reading: reading.clone(),
            verify,
            workers,
            progress: Arc::clone(progress),
        };
        let mut found = args.method.with(lexicon, &statistics, search)??;
        number_lines(plan, &reading, &mut found.rejects)?;
        clock.add("search", self.start.elapsed());
        if let Some((_, error)) = found.without_field.take().filter(|_| found.docs == 0) {
            bail!(error); // a name that no file knows is misspelt
        }
        check_rejects(args.max_rejects, &found.rejects)?;
        check_names(&found)?;

        self.progress.enter(Stage::Resolve);
        let named =
            |doc: DocId| found.named.binary_search_by_key(&doc, |named| named.doc).map(|at| &found.named[at]);
        let name = |doc| named(doc).map_or("", |named: &Named| &named.id);
        let mut members = match args.keep {
            Keep::First => survivors(&found.matches, args.resolve, |doc| doc),
            Keep::Longest => {
                let chars = |doc| named(doc).map_or(0, |named| named.chars);
                survivors(&found.matches, args.resolve, |doc| (Reverse(chars(doc)), doc))
            }
        };
        // Equal fingerprints of an approximate method are no proof of equal texts.
        if verify.is_none() && args.method.approximate() {
            for removed in members.iter_mut().filter_map(|member| member.removed.as_mut()) {
                removed.tie = removed.tie.max(Tie::Similar(None));
            }
        }
        let measured = verify.is_some() || args.method.measures();
        let fates = fates(&members, &found, measured, name);

        self.progress.enter(Stage::Write);
        let pairs = write_pairs(self.folder, &found.matches, args.pairs, measured, name)?;
        write_clusters(self.folder, &members, name)?;
        write_rejects(self.folder, &found.rejects)?;
        statistics::write(self.folder, &args.method, lexicon, &statistics)?;
        let written = write(plan, &reading, &fates, self.folder, self.common.workers(), &self.progress)?;
        clock.add("whole", self.start.elapsed());

        let mut counters = Counters {
            input_files: plan.files.len() as u64,
            input_bytes: plan.bytes(),
            splits: plan.splits.len() as u64,
            records_read: found.docs + found.rejects.len() as u64,
            text_bytes: found.text_bytes,
            replaced: found.replaced,
            distinct: found.distinct,
            candidates: found.candidates,
            pairs,
            kept: written.kept,
            removed: written.removed,
            rejected: written.rejected,
            ..Counters::default()
        };
        let cluster_sizes = counters.count_clusters(&members);
        check_ledger(&counters, &fates)?;
        let summary = Summary {
            version: env!("CARGO_PKG_VERSION"),
            configuration: self.configuration(verify),
            counters,
            process: Process::measure(),
            cluster_sizes,
            pairs_by_distance: histogram(found.matches.pairs.iter().map(|(pair, _)| pair.distance)),
            pairs_by_similarity: histogram(found.matches.pairs.iter().filter_map(|(_, similarity)| {
                similarity.map(|similarity| (100.0 * similarity.as_f64()) as u32)
            })),
            blocks: skew(&found.loads),
            sample_pairs: sample(&found.matches, name),
            seconds: clock.seconds(),
            input: plan
                .files
                .iter()
                .map(|file| InputFile {
                    uri: format!("{}{}", file.store.prefix(), file.path),
                    bytes: file.bytes,
                })
                .collect(),
        };
        let json = serde_json::to_string_pretty(&summary)? + "\n";
        self.progress.enter(Stage::Commit);
        if let Some(file) = &args.summary_json {
            std::fs::write(file, &json).with_context(|| format!("could not write \"{file}\""))?;
        }
        self.folder.commit(&json)?;
        Ok(summary)
    }

    fn verify(&self) -> Result<Option<Similarity>> {
        let method = &self.args.method;
        match self.args.verify {
            Some(_) if method.measures() => {
                bail!(WrongUse(format!(
                    "{method} compares the features of every pair itself: leave --verify out"
                )))
            }
            Some(Verification::Jaccard(least)) => Ok(Some(least)),
            Some(Verification::None) => Ok(None),
            None if method.approximate() => Ok(Some("0.8".parse().map_err(WrongUse)?)),
            None => Ok(None),
        }
    }

    fn configuration(&self, verify: Option<Similarity>) -> BTreeMap<&'static str, String> {
        let args = self.args;
        let or = |value: &Option<String>, default: &str| value.as_deref().unwrap_or(default).to_owned();
        let encoding = args.encoding.map_or("recognised", Encoding::name);
        BTreeMap::from([
            ("method", args.method.to_string()),
            ("verify", verify.map_or("none".to_owned(), |least| format!("jaccard:{least}"))),
            ("resolve", args.resolve.to_string()),
            ("keep", format!("{:?}", args.keep).to_lowercase()),
            ("pairs", format!("{:?}", args.pairs).to_lowercase()),
            ("format", or(&args.format, "recognised")),
            ("id-field", or(&args.id_field, "id")),
            ("text-field", or(&args.text_field, "text")),
            ("encoding", encoding.to_owned()),
            ("on-bad-text", format!("{:?}", args.on_bad_text).to_lowercase()),
            ("max-record-bytes", args.max_record_bytes.to_string()),
            ("stop-words", or(&args.stop_words, "none")),
            ("user-dict", or(&args.user_dict, "none")),
            ("statistics", or(&args.statistics, "none")),
            ("split-size", args.split_size.to_string()),
            ("workers", self.common.workers().to_string()),
            ("inputs", args.paths[..args.paths.len() - 1].join(" ")),
        ])
    }
}

/// What becomes of every record that does not simply stay.
fn fates<'a>(members: &[Member], found: &Found, verified: bool, name: impl Fn(DocId) -> &'a str) -> Fates {
    let removal = |member: &Member, removed: Removed| Removal {
        id: name(member.doc).to_owned(),
        duplicate_of: name(removed.duplicate_of).to_owned(),
        similarity: match removed.tie {
            Tie::Identical => verified.then_some(1.0),
            Tie::Similar(similarity) => similarity.map(Similarity::as_f64),
            Tie::Chain => None,
        },
        cluster: name(member.cluster).to_owned(),
        reason: match removed.tie {
            Tie::Identical => "identical",
            Tie::Similar(_) => "similar",
            Tie::Chain => "chain",
        },
    };
    let mut fates: Fates =
        members.iter().filter_map(|m| m.removed.map(|removed| (m.doc, Some(removal(m, removed))))).collect();
    fates.extend(found.rejects.iter().map(|reject| (reject.doc, None)));
    fates.sort_unstable_by_key(|fate| fate.0);
    fates
}

/// Up to 20 pairs, evenly from all.
fn sample<'a>(matches: &Matches, name: impl Fn(DocId) -> &'a str) -> Vec<SamplePair> {
    let step = matches.pairs.len().div_ceil(20).max(1);
    let sampled = matches.pairs.iter().step_by(step);
    sampled
        .map(|(pair, similarity)| SamplePair {
            a: name(pair.low).to_owned(),
            b: name(pair.high).to_owned(),
            distance: pair.distance,
            similarity: similarity.map(Similarity::as_f64),
        })
        .collect()
}

/// Every document of a match was found again in the reading that asks for ids.
fn check_names(found: &Found) -> Result<()> {
    let copies = found.matches.copies.iter().flat_map(|&(doc, first)| [doc, first]);
    let pairs = found.matches.pairs.iter().flat_map(|(pair, _)| [pair.low, pair.high]);
    let known = |doc: DocId| found.named.binary_search_by_key(&doc, |named| named.doc).is_ok();
    match copies.chain(pairs).find(|&doc| !known(doc)) {
        Some(_) => {
            bail!("a document was not found again in its second reading; did the input change meanwhile?")
        }
        None => Ok(()),
    }
}

/// Every record read is kept, removed or rejected, and as many are removed as were decided to be.
fn check_ledger(counters: &Counters, fates: &Fates) -> Result<()> {
    let removed = fates.iter().filter(|fate| fate.1.is_some()).count() as u64;
    let Counters { records_read, kept, rejected, .. } = *counters;
    if records_read != kept + removed + rejected || counters.removed != removed {
        bail!(
            "the ledger does not close: {records_read} records read, {kept} kept, {} of {removed} removed, \
             {rejected} rejected; did the input change meanwhile?",
            counters.removed
        );
    }
    Ok(())
}
