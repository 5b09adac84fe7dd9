//! `chunk compare`: measures block methods on an input, and makes the figures of Peng 2017 on it or on generated texts.
//!
//! `texts.rs` reads the input, `generated.rs` makes texts with disturbances, `measured.rs` measures a method on texts,
//! `distances.rs` measures distances of fingerprints, `report.rs` writes the tables, and `page.rs` makes a page of them. This room uses
//! `cli`, `corpus`, `progress` and `report`; only `chunk` uses it.

mod distances;
mod generated;
mod measured;
mod page;
mod report;
mod texts;

use anyhow::Result;
use operators::blocks::BlockSpec;
use serde_json::json;

use self::distances::{changed_strings, unrelated_paragraphs};
use self::generated::{DisturbedPair, generated_sentences, generated_text};
use self::measured::{MeasuredCorpus, measure_all};
use self::report::{BlockReport, SizeReport};
use self::texts::InputTexts;
use runtime::Common;
use runtime::cli::report_file::ReportFile;
use runtime::cli::terminal::print;
#[cfg(feature = "cli")]
use runtime::cli::values::{paths, size};
use runtime::corpus::input::{Input, InputOptions};
use runtime::progress::Progress;

/// Number of generated sentences that paragraphs are made of.
const SENTENCES: usize = 2_000;

/// Compare block methods by what they save
///
/// With inputs, measures each method on their texts, in the order of the files: folders of txt, docx and pdf, or any
/// corpus. All texts are held in memory. Then makes figures 4, 5 and 6 of Peng 2017 on pieces of these texts, without
/// inputs on generated ones.
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Args {
    /// Files, folders, globs or comma lists of them, local, on HDFS or in an object store
    #[cfg_attr(feature = "cli", arg(value_name = "INPUT", value_parser = paths()))]
    inputs: Vec<String>,
    /// Methods to compare, as a comma list [default: all]
    #[cfg_attr(feature = "cli", arg(long, value_name = "SPECS", value_delimiter = ',', value_parser = block_spec, long_help = methods_help()))]
    methods: Vec<BlockSpec>,
    /// Level of Zstandard for the column zstd
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", default_value_t = 19, value_parser = clap::value_parser!(i32).range(1..=22)))]
    level: i32,
    /// Sizes of the texts of the figures, as a comma list; at most that of the input
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZES", value_delimiter = ',', default_values = ["16K", "256K", "4M"], value_parser = size))]
    sizes: Vec<u64>,
    /// Number of disturbances that are inserted into the copy of a text
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", default_value_t = 10))]
    insertions: usize,
    /// Number of texts of each size
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..)))]
    trials: u64,
    /// Seed of the texts and of the places of the disturbances
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", default_value_t = 1))]
    seed: u64,
    /// Write the figures to this file as JSON
    #[cfg_attr(feature = "cli", arg(long, value_name = "FILE", value_parser = paths()))]
    json: Option<String>,
    /// Write a page with the figures as tables and charts to this file
    #[cfg_attr(feature = "cli", arg(long, value_name = "FILE", value_parser = paths()))]
    html: Option<String>,
    #[cfg_attr(feature = "cli", command(flatten))]
    input: InputOptions,
}

fn methods_help() -> String {
    format!("Methods to compare, as a comma list [default: all]\n\nA method is {}.", BlockSpec::forms())
}

fn block_spec(text: &str) -> Result<BlockSpec, String> {
    BlockSpec::parse(text).map_err(|error| error.to_string())
}

/// Runs the tool; returns 0, or 3 if records were rejected.
pub(super) fn run(common: &Common, args: &Args) -> Result<u8> {
    let json = args.json.as_deref().map(ReportFile::check).transpose()?;
    let html = args.html.as_deref().map(ReportFile::check).transpose()?;
    let specs = if args.methods.is_empty() { BlockSpec::all() } else { args.methods.clone() };
    let (report, rejected) = match args.inputs.is_empty() {
        true => (figures_of_generated(args, &specs)?, 0),
        false => of_input(common, args, &specs)?,
    };
    print(&report)?;
    if let Some(file) = json {
        file.replace(serde_json::to_string_pretty(&report)? + "\n")?;
    }
    if let Some(file) = html {
        file.replace(report.page()?)?;
    }
    Ok(if rejected > 0 { 3 } else { 0 })
}

/// Makes the figures of the paper on generated texts.
fn figures_of_generated(args: &Args, specs: &[BlockSpec]) -> Result<BlockReport> {
    let sentences = generated_sentences(SENTENCES, args.seed);
    let sentences: Vec<_> = sentences.iter().map(String::as_str).collect();
    figures(args, specs, &sentences, &args.sizes, generated_text)
}

/// Makes the figures of the paper. `sentences`: those that paragraphs are made of; `text`: makes a text of a number of bytes
/// from a seed.
fn figures(
    args: &Args,
    specs: &[BlockSpec],
    sentences: &[&str],
    all_sizes: &[u64],
    text: impl Fn(usize, u64) -> String,
) -> Result<BlockReport> {
    let mut sizes = Vec::new();
    for &bytes in all_sizes {
        let text_of_seed = |seed| text(bytes as usize, seed);
        let pairs = DisturbedPair::make(args.insertions, args.seed, args.trials, text_of_seed);
        let corpora: Vec<_> = pairs.iter().map(DisturbedPair::corpus).collect();
        sizes.push(SizeReport { text_bytes: bytes, methods: measure_all(specs, &corpora, args.level)? });
    }
    Ok(BlockReport {
        distances: unrelated_paragraphs(sentences, args.seed),
        changed_strings: changed_strings(sentences, args.seed),
        insertions: args.insertions,
        sizes,
        input: Vec::new(),
    })
}

/// Makes the figures of the paper on the texts of an input. A size beyond that of all texts is their size.
fn figures_of_texts(args: &Args, specs: &[BlockSpec], texts: &InputTexts) -> Result<BlockReport> {
    let mut sizes: Vec<_> = args.sizes.iter().map(|size| *size.min(&texts.bytes())).collect();
    sizes.dedup();
    sizes.retain(|&bytes| bytes > 0);
    figures(args, specs, &texts.sentences(), &sizes, |bytes, seed| texts.piece(bytes, seed))
}

/// Measures the methods on the texts of the input, and returns the number of rejected records too.
fn of_input(common: &Common, args: &Args, specs: &[BlockSpec]) -> Result<(BlockReport, u64)> {
    args.input.lexicon(false)?;
    let methods: Vec<_> = specs.iter().map(BlockSpec::to_string).collect();
    let asked = json!({"methods": methods, "level": args.level, "inputs": args.inputs});
    let input = args.input.open(&args.inputs, common.workers())?;
    let (watch, progress) = input.watch(&common.progress, "chunk compare", &asked)?;
    let (texts, report) = watch.end(measure_texts(args, specs, &input, &progress))?;
    if let Some(first) = &texts.first_reject {
        let count = texts.rejected;
        let path = &first.path;
        let offset = first.offset;
        log::warn!("{count} rejected; the first: \"{path}\" at {offset}: {}", first.reason);
    }
    Ok((report, texts.rejected))
}

/// Reads the texts of the input, and measures the methods on them.
fn measure_texts(
    args: &Args,
    specs: &[BlockSpec],
    input: &Input,
    progress: &Progress,
) -> Result<(InputTexts, BlockReport)> {
    let texts = InputTexts::read(input, progress)?;
    let rows = measure_all(specs, &[MeasuredCorpus::of_texts(&texts.texts)], args.level)?;
    let figures = figures_of_texts(args, specs, &texts)?;
    Ok((texts, BlockReport { input: rows, ..figures }))
}
