//! `fingerprint`: shows how the SimHash of a text comes about (`steps.rs`), or makes the fingerprints of a corpus (`files.rs`): the map
//! stage of a search alone.

mod files;
mod steps;

use std::time::Instant;

use anyhow::{Result, bail};
use cluster::Stores;
use operators::method::Spec;
use operators::search::Search;

use self::files::{FileArgs, FingerprintJob, no_simhash};
use self::steps::steps;
use batch::corpus_counts;
use batch::options::refuse_given;
use runtime::Common;
use runtime::cli::terminal::print;
use runtime::cli::values::paths;

/// Show how the SimHash of a text comes about, or make the fingerprints of a corpus
///
/// Prints the features of each text with their weights and hashes, the sum of the votes on each bit, and the fingerprint. Of
/// several texts, also prints in how many bits each differs from the first one. With --output the arguments are files and
/// folders, and the output gets a record for each document: its id and its fingerprint.
#[derive(clap::Args)]
#[command(
    override_usage = "dedup-job fingerprint [OPTIONS] <TEXT>...\n       dedup-job fingerprint [OPTIONS] <INPUT>... --output <OUTPUT>"
)]
pub struct Args {
    /// Texts; with --output files, folders, globs or comma lists of them, local, on HDFS or in an object store
    #[arg(required = true, value_name = "TEXT")]
    texts: Vec<String>,
    /// Method and parameters, as for dedup: simhash or manku2007
    #[arg(long, value_name = "SPEC", default_value = "simhash")]
    method: Spec,
    /// Corpus statistics for weights=tfidf and rank5: an output of dedup, or its statistics/part-00000.parquet [default: a count of
    /// the input, and for single texts none]
    #[arg(long, value_name = "PATH", value_parser = paths())]
    statistics: Option<String>,
    #[command(flatten)]
    files: FileArgs,
}

/// Runs the job; returns 0, or 3 if records were rejected.
pub fn run(common: &Common, args: Args) -> Result<u8> {
    let start = Instant::now();
    let Args { texts, method: spec, statistics, files } = args;
    refuse_given(&spec)?;
    let lexicon = files.input.lexicon(spec.cuts_words())?;
    let read = |uri: String| corpus_counts::read(&Stores::new(), &uri, &spec, &lexicon);
    let statistics = statistics.map(read).transpose()?;
    if files.output.is_some() {
        return FingerprintJob { inputs: texts, spec, lexicon, statistics, files }.run(common, start);
    }
    let method = spec.method(&lexicon, &statistics.unwrap_or_default(), None)?;
    let mut cleaner = method.cleaner.clone();
    let cleaned: Vec<String> = texts.iter().map(|text| cleaner.clean(text).to_owned()).collect();
    print(match method.search {
        Search::Bits64(simhash) => steps(simhash, &texts, &cleaned),
        Search::Bits128(simhash) => steps(simhash, &texts, &cleaned),
        _ => bail!(no_simhash(&spec)),
    })?;
    Ok(0)
}
