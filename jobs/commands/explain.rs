//! `explain`: says what a method does, and estimates what a job with it would cost, before it runs.

use std::env;
use std::fmt::Write as _;
use std::iter;
use std::sync::Arc;

use anyhow::Result;
use operators::method::Spec;
use operators::text::features::Lexicon;
use operators::{Cost, Curve, DocId, Matches, Pair};
use serde_json::json;

use super::plot::Plot;
use batch::corpus_counts;
use batch::options::Verification;
use batch::pipeline::{CorpusSearch, find_on_workers, map};
use runtime::Common;
use runtime::cli::exit::WrongUse;
use runtime::cli::report_file::ReportFile;
use runtime::cli::temporary::TemporaryFolder;
use runtime::cli::terminal::print;
use runtime::cli::values::paths;
use runtime::corpus::input::{Census, Input, InputOptions};
use runtime::corpus::run::Run;
use runtime::corpus::sample::Sample;
use runtime::output::summary::skew;
use runtime::progress::Progress;
use runtime::progress::usage::ResourceUsage;

/// Say what a method does, and what a job with it would find and cost
///
/// Prints the method with all of its parameters, and its S-curve: the chance that it compares two texts, over
/// their similarity. With an input, also prints what the input holds, and estimates candidates, pairs and
/// memory from a run on a sample of its documents.
#[derive(clap::Args)]
pub struct Args {
    /// Files, folders, globs or comma lists of them, local, on HDFS or in an object store
    #[arg(value_name = "INPUT", value_parser = paths())]
    inputs: Vec<String>,
    /// Method and parameters, as for dedup
    #[arg(long, value_name = "SPEC", default_value = "auto")]
    method: Spec,
    /// Draw the S-curve in this file
    #[arg(long, value_name = "FILE", value_parser = paths())]
    svg: Option<String>,
    /// Approximate number of documents that the estimates rest on
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(2..))]
    sample: u64,
    /// Seed of the sample: another seed takes another sample
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    input: InputOptions,
}

/// Runs the job; returns 0, or 3 if records were rejected.
pub fn run(common: &Common, args: Args) -> Result<u8> {
    let input = match args.inputs.is_empty() {
        true => None,
        false => Some(args.input.open(&args.inputs, common.workers())?),
    };
    let curve = args.method.curve();
    let plot = Plot {
        title: format!("Chance that {} compares two texts", args.method),
        x: curve.of,
        y: "chance",
        points: (0..=200).map(|step| f64::from(step) / 200.0).map(|at| (at, curve.at(at))).collect(),
        mark: None,
    };
    if let Some(file) = &args.svg {
        ReportFile::check(file)?.replace(plot.svg())?;
    }
    let mut said = method(&args.method, &curve, &plot)?;
    let mut rejected = 0;
    if let Some(input) = input {
        let lexicon = args.input.lexicon(args.method.cuts_words())?;
        let asked = json!({
            "method": args.method.to_string(),
            "sample": args.sample,
            "seed": args.seed,
            "inputs": args.inputs,
        });
        let (watch, progress) = input.watch(&common.progress, "explain", &asked)?;
        let (of_input, census) = watch.end(describe(&args, input, &lexicon, &progress))?;
        said.push_str(&of_input);
        rejected = census.rejected;
    }
    print(said)?;
    Ok(if rejected > 0 { 3 } else { 0 })
}

/// Describes a method and its curve.
fn method(spec: &Spec, curve: &Curve, plot: &Plot) -> Result<String> {
    let verified = match Verification::default_of(spec).0 {
        Some(least) => {
            format!("; pairs are kept if their features are alike by jaccard:{least} or what --verify says")
        }
        None => String::new(),
    };
    let mut said = format!("Method: {spec}{verified}\n\n{}\n{:>12}", plot.text(), "similarity");
    for percent in CURVE {
        let _ = write!(said, " {:>7}", f64::from(percent) / 100.0);
    }
    let _ = write!(said, "\n{:>12}", "chance");
    for percent in CURVE {
        let _ = write!(said, " {:>7.4}", curve.at(f64::from(percent) / 100.0));
    }
    let _ = writeln!(said, "\nsimilarity: {}; {}", curve.of, curve.because);
    if let Some(warning) = spec.warning() {
        let _ = writeln!(said, "warning: {warning}");
    }
    Ok(said)
}

/// Similarities, in percent, at which the curve is printed in numbers.
const CURVE: [u32; 9] = [50, 60, 70, 75, 80, 85, 90, 95, 99];

/// Describes an input, and estimates what a job with it would find and cost.
fn describe(
    args: &Args,
    input: Input,
    lexicon: &Lexicon,
    progress: &Arc<Progress>,
) -> Result<(String, Census)> {
    let census = Census::of(&input, progress)?;
    let content = content(&input, &census);
    let estimates = estimates(args, input, &census, lexicon, progress)?;
    Ok((format!("\n{content}\n{estimates}"), census))
}

/// Describes an input.
fn content(input: &Input, census: &Census) -> String {
    let files = input.plan.files.len();
    let splits = input.plan.splits.len();
    let bytes = input.plan.bytes();
    let Census { documents, text_bytes, rejected } = census;
    format!(
        "Input: {files} files, {bytes} bytes, {splits} splits; {documents} documents, {text_bytes} bytes of text, \
         {rejected} records rejected\n"
    )
}

/// Estimates the results of a run on the corpus from a run on a sample of its texts.
///
/// The sample has all documents of one text or none. So if a text is in it with probability `p`, a pair of
/// different texts is in it with probability `p * p`.
fn estimates(
    args: &Args,
    input: Input,
    census: &Census,
    lexicon: &Lexicon,
    progress: &Arc<Progress>,
) -> Result<String> {
    let Input { mut plan, reading, workers } = input;
    let sample = Sample::of_texts(args.seed, args.sample, census.documents, args.method.clean());
    plan.sample(&sample);
    let writes = match plan.splits.iter().any(|split| split.format.name() == "parquet") {
        true => "; writing Parquet takes up to 64 MB more",
        false => "",
    };
    let verify = Verification::default_of(&args.method).0;
    let run = Run::alone(plan, reading, workers, progress);
    let statistics = corpus_counts::count_unless_given(None, &args.method, lexicon, &run)?;
    let method = args.method.method(lexicon, &statistics, verify)?;
    let folder = TemporaryFolder::new(&env::temp_dir())?;
    let mapped = map(CorpusSearch::in_folder(folder.path(), run, method))?;
    let (found, matches) = find_on_workers(mapped, |worker, clusters| {
        let mut all = Matches::default();
        clusters.decide(worker, |batch, _| {
            all.copies.extend(&batch.matches().copies);
            all.pairs.extend(&batch.matches().pairs);
            anyhow::Ok(())
        })?;
        Ok(all)
    })?;
    if found.input.docs < 2 {
        return Err(WrongUse(format!("a sample of {} documents says nothing", found.input.docs)).into());
    }
    let read = found.input.docs as f64;
    let all = census.documents as f64;
    let once = 1.0 / sample.share();
    let twice = once * once;
    let copies: Vec<(DocId, DocId)> = matches.iter().flat_map(|of| &of.copies).copied().collect();
    let mut pairs: Vec<Pair> = matches.iter().flat_map(|of| &of.pairs).map(|&(pair, _)| pair).collect();
    pairs.sort_unstable();

    let mut said = format!(
        "Estimates, from a run on all {} documents of 1 text in {once:.1} (seed {}); of pairs of different texts it has 1 in \
         {twice:.1}:\n",
        found.input.docs, args.seed
    );
    let identical = estimate(identical_pairs(&copies), once);
    let candidates = estimate(iter::repeat_n(1, found.candidates as usize), twice);
    let alike = estimate(pairs.chunk_by(|a, b| a.low == b.low).map(<[_]>::len), twice);
    let _ = writeln!(said, "    pairs of identical documents: {identical}");
    let _ = writeln!(said, "    candidates, identical documents counted once: {candidates}");
    let _ = writeln!(said, "    pairs of them that are alike: {alike}");
    let blocks = if args.method.fingerprints() { skew(&found.loads) } else { Vec::new() };
    for (number, block) in blocks.iter().enumerate() {
        let most = block.largest_bucket as f64 * once;
        let _ = writeln!(said, "    block {number}: {most:.0} documents at most share one value");
    }
    let Cost { document, feature } = args.method.cost();
    let more = |count: u64| count as f64 * (twice - 1.0);
    let least = ResourceUsage::measure().peak_memory_bytes as f64
        + (all - read) * document as f64
        + (more(pairs.len() as u64) + more(found.candidates)) * BYTES_OF_PAIR as f64;
    let _ = write!(
        said,
        "    memory: {:.0} MB (what this run took, {document} bytes for each further document, {BYTES_OF_PAIR} for each \
         further candidate and pair{writes})",
        least / 1e6
    );
    if feature > 0 {
        let most = least + (census.text_bytes * feature) as f64 / BYTES_OF_CHARACTER;
        let _ = write!(said, ", up to {:.0} MB if every document may have a partner", most / 1e6);
    }
    said.push('\n');
    Ok(said)
}

/// Estimates the count of the corpus, and how far off the estimate is likely to be, at the least. Each of
/// `counts` came into the sample as one, and `times` is the inverse of the probability for that.
fn estimate(counts: impl Iterator<Item = usize>, times: f64) -> String {
    let (sum, squares) = counts
        .map(|count| count as f64)
        .fold((0.0, 0.0), |(sum, squares), count| (sum + count, squares + count * count));
    if sum == 0.0 {
        return "0 (none in the sample)".to_owned();
    }
    format!("{:.0} (give or take {:.0} %)", sum * times, 100.0 * squares.sqrt() / sum)
}

/// Returns for each text with identical documents the number of their pairs. `copies`: each document and the
/// first one that is identical to it.
fn identical_pairs(copies: &[(DocId, DocId)]) -> impl Iterator<Item = usize> {
    let mut firsts: Vec<_> = copies.iter().map(|copy| copy.1).collect();
    firsts.sort_unstable();
    let classes: Vec<usize> = firsts.chunk_by(|a, b| a == b).map(<[DocId]>::len).collect();
    classes.into_iter().map(|copies| copies * (copies + 1) / 2)
}

/// Estimate of the bytes of memory of a candidate or a pair.
const BYTES_OF_PAIR: u64 = 64;
/// Bytes of a Chinese character in UTF-8; a text has about as many features as characters.
const BYTES_OF_CHARACTER: f64 = 3.0;
