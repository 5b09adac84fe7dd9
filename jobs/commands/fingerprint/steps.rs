//! `fingerprint`: shows how the SimHash of a text comes about, step by step.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use cluster::Stores;
use operators::fingerprint::Bits;
use operators::method::Spec;
use operators::search::Search;
use operators::search::bits::{SimHash, WeightedFeature};
use operators::text::features::{FeatureSpec, Lexicon};
use unicode_width::UnicodeWidthStr;

use crate::cli::exit::WrongUse;
use crate::cli::terminal::print;
use crate::cli::values::paths;
use crate::corpus::input::WordOptions;
use crate::dedup::corpus_counts;

/// Show how the SimHash of a text comes about, step by step
///
/// Prints the features of the text with their weights and hashes, the sum of the votes on each bit, and the fingerprint. Of
/// several texts, also prints in how many bits each differs from the first one.
#[derive(clap::Args)]
pub struct Args {
    /// Texts
    #[arg(required = true, value_name = "TEXT")]
    texts: Vec<String>,
    /// Method and parameters, as for dedup: simhash or manku2007
    #[arg(long, value_name = "SPEC", default_value = "simhash")]
    method: Spec,
    /// Corpus statistics for weights=tfidf and rank5: an output of dedup, or its statistics/part-00000.parquet
    #[arg(long, value_name = "PATH", value_parser = paths())]
    statistics: Option<String>,
    #[command(flatten)]
    words: WordOptions,
}

/// Runs the job; returns 0.
pub fn run(args: Args) -> Result<u8> {
    let lexicon = match args.method.features() {
        Some(FeatureSpec::Jieba) => args.words.lexicon_below("")?,
        _ => Lexicon::default(),
    };
    let statistics = match &args.statistics {
        Some(uri) => corpus_counts::read(&Stores::new(), uri, &args.method, &lexicon)?,
        None => Default::default(),
    };
    let method = args.method.method(&lexicon, &statistics, None)?;
    let mut cleaner = method.cleaner.clone();
    let texts: Vec<String> = args.texts.iter().map(|text| cleaner.clean(text).to_owned()).collect();
    print(match method.search {
        Search::Bits64(simhash) => steps(simhash, &args.texts, &texts),
        Search::Bits128(simhash) => steps(simhash, &args.texts, &texts),
        _ => bail!(WrongUse(format!(
            "the method \"{}\" has no SimHash: take simhash or manku2007",
            args.method
        ))),
    })?;
    Ok(0)
}

/// Returns the steps of all texts. `cleaned`: the same texts as they are compared.
fn steps<W: Bits>(mut simhash: SimHash<W>, texts: &[String], cleaned: &[String]) -> String {
    let bits = simhash.bits() as usize;
    let is_set = |word: W, bit: usize| word.halves()[bit / 64] >> (bit % 64) & 1 == 1;
    let binary = |word: W| -> String {
        (0..bits).rev().map(|bit| if is_set(word, bit) { '1' } else { '0' }).collect()
    };
    let (mut out, mut first) = (String::new(), None);
    for (text, cleaned) in texts.iter().zip(cleaned) {
        let features = simhash.weighted_features(cleaned);
        let fingerprint = simhash.fingerprint(cleaned);
        let _ = writeln!(out, "{text}");
        let width = features.iter().map(|feature| feature.text.width()).max().unwrap_or(0);
        let mut sums = vec![0_i64; bits];
        for WeightedFeature { text, weight, hash } in &features {
            let space = " ".repeat(width - text.width());
            let _ = writeln!(out, "  {text}{space} {weight:>3}  {}", binary(*hash));
            for (bit, sum) in sums.iter_mut().rev().enumerate() {
                *sum += if is_set(*hash, bit) { *weight as i64 } else { -(*weight as i64) };
            }
        }
        let sums: Vec<String> =
            sums.iter().map(|sum| if *sum == 0 { "0".to_owned() } else { format!("{sum:+}") }).collect();
        let _ = writeln!(out, "  sums of the weights, + for a 1 and - for a 0: {}", sums.join(" "));
        let _ = writeln!(out, "  fingerprint: {}", binary(fingerprint));
        match first {
            None => first = Some(fingerprint),
            Some(first) => drop(writeln!(
                out,
                "  differs from the first one in {} bits",
                (first ^ fingerprint).count_ones()
            )),
        }
    }
    out
}
