//! `show`: shows pairs of a finished output side by side.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use cluster::{Stores, one_line};
use operators::hash::Secret;
use operators::{DocId, Similarity, hash};
use serde_json::json;

use super::side_by_side::TextLayout;
use batch::finished::{Finished, PairRow};
use runtime::Common;
use runtime::cli::exit::WrongUse;
use runtime::cli::terminal::print;
use runtime::cli::values::paths;

/// Show pairs of a finished output side by side, with the difference marked
///
/// The pairs are from all over the corpus, and the same in every call but for --random. Identical documents are shown only
/// with --id, or with --between up to 1. Differences are coloured on a terminal, unless NO_COLOR is set; elsewhere they are put in [-…-]
/// and {+…+}.
#[derive(clap::Args)]
pub struct Args {
    /// A finished output of dedup
    #[arg(value_parser = paths())]
    output: String,
    /// Number of pairs
    #[arg(short = 'n', long = "pairs", value_name = "N", default_value_t = 5)]
    count: usize,
    /// Show the pairs nearest to the threshold: the least similar ones, or, where nothing was verified, the
    /// most distant
    #[arg(long)]
    borderline: bool,
    /// Show other pairs in each call
    #[arg(long, conflicts_with = "borderline")]
    random: bool,
    /// Show only pairs whose similarity is in this range, such as .7..8 or 0.95..1
    #[arg(long, value_name = "LOW..HIGH")]
    between: Option<SimilarityRange>,
    /// Show only pairs of the document with this id
    #[arg(long)]
    id: Option<String>,
    /// Show the texts whole, not only their differences and what surrounds these
    #[arg(long)]
    whole: bool,
    /// Width in columns [default: that of the terminal]
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,
}

/// A range of similarities, of which both ends belong to it.
#[derive(Clone, Copy, Debug)]
struct SimilarityRange(Similarity, Similarity);

impl FromStr for SimilarityRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The end of `.7..8` has lost its point to the dots between.
        let (low, high) = text.split_once("..").ok_or("expected two similarities, such as 0.7..0.8")?;
        let high = high.trim_start_matches('=');
        let is_cut = low.starts_with('.') && high.bytes().all(|byte| byte.is_ascii_digit()) && high != "1";
        let high = if is_cut { format!("0.{high}") } else { high.to_owned() };
        let low = if low.starts_with('.') { format!("0{low}") } else { low.to_owned() };
        let high = if high.starts_with('.') { format!("0{high}") } else { high };
        let range = SimilarityRange(low.parse()?, high.parse()?);
        if range.0 > range.1 {
            return Err("the first similarity is greater than the second one".to_owned());
        }
        Ok(range)
    }
}

/// Runs the job; returns 0.
pub fn run(common: &Common, args: Args) -> Result<u8> {
    let finished = Finished::open(&Stores::new(), &args.output)?;
    let pairs = chosen(&finished, &args)?;
    if let (Some(id), true) = (&args.id, pairs.is_empty()) {
        bail!(WrongUse(format!("\"{}\" has no pair of \"{id}\"", args.output)));
    }
    let places: Vec<DocId> = pairs.iter().flat_map(|pair| [pair.places.0, pair.places.1]).collect();
    let input = finished.input(common.workers())?;
    let asked = json!({"output": args.output});
    let (watch, progress) = input.watch(&common.progress, "show", &asked)?;
    let documents = watch.end(input.at(&places, &progress))?;
    let document = |place, id: &str| {
        let found = documents.iter().find(|document| document.place == place && document.id == id);
        found
            .with_context(|| format!("\"{}\" is not where it was; did the input change since?", one_line(id)))
    };
    let mut kept = HashMap::new();
    finished.members(|member| {
        if documents.iter().any(|document| document.place == member.place) {
            kept.insert(member.place, member.removed.is_none());
        }
    })?;

    let layout = TextLayout::of_terminal(args.width, args.whole);
    let mut lines = Vec::new();
    for pair in &pairs {
        let (a, b) = (document(pair.places.0, &pair.a)?, document(pair.places.1, &pair.b)?);
        let heading = |id: &str, place| match kept.get(&place) {
            _ if finished.is_reference(place) => format!("{id} (reference)"),
            Some(true) => format!("{id} (kept)"),
            _ => format!("{id} (removed)"),
        };
        lines.push(how_alike(pair));
        lines.push(layout.headings(&heading(&pair.a, pair.places.0), &heading(&pair.b, pair.places.1)));
        lines.extend(layout.lines(&a.text, &b.text));
        lines.push(String::new());
    }
    if pairs.is_empty() {
        lines.push(match args.between {
            Some(_) => "No pairs of such a similarity.".to_owned(),
            None => "No pairs but identical documents.".to_owned(),
        });
    }
    print(lines.join("\n") + "\n")?;
    Ok(0)
}

/// Returns the pairs to show, in the order in which they are shown.
fn chosen(finished: &Finished, args: &Args) -> Result<Vec<PairRow>> {
    let mut chosen = BTreeMap::new();
    let salt = if args.random { Secret::random().words()[0] } else { 0 };
    let similarity = |pair: &PairRow| if pair.identical { Some(Similarity::ONE) } else { pair.similarity };
    finished.pairs(|pair| {
        let wanted = match (&args.id, args.between) {
            (Some(id), _) => pair.a == *id || pair.b == *id,
            (None, Some(_)) => true,
            (None, None) => !pair.identical,
        };
        let is_between =
            |SimilarityRange(low, high)| similarity(&pair).is_some_and(|of| (low..=high).contains(&of));
        let wanted = wanted && args.between.is_none_or(is_between);
        let (a, b) = pair.places;
        let rank = match args.borderline {
            true => (pair.similarity, Reverse(pair.hamming), 0),
            false => (None, Reverse(None), hash::spread(a.0 ^ hash::spread(b.0 ^ salt))),
        };
        if wanted {
            chosen.insert((rank, a, b), pair);
        }
        if chosen.len() > args.count {
            chosen.pop_last();
        }
    })?;
    Ok(chosen.into_values().collect())
}

/// Returns what a table says of a pair.
pub(crate) fn how_alike(pair: &PairRow) -> String {
    let parts = [
        pair.similarity.map(|similarity| format!("similarity {similarity}")),
        pair.hamming.map(|hamming| format!("hamming {hamming}")),
        pair.identical.then(|| "identical".to_owned()),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    format!("{} and {}: {}", one_line(&pair.a), one_line(&pair.b), parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_with_and_without_the_digits_that_the_dots_hide() {
        let range = |text: &str| {
            text.parse::<SimilarityRange>().map(|SimilarityRange(low, high)| (low.as_f64(), high.as_f64()))
        };
        for (text, expected) in [
            ("0.7..0.8", (0.7, 0.8)),
            (".7..8", (0.7, 0.8)),
            (".7...8", (0.7, 0.8)),
            (".95..1", (0.95, 1.0)),
            ("0..1", (0.0, 1.0)),
        ] {
            assert_eq!(range(text), Ok(expected), "{text}");
        }
        for text in ["0.7", "0.8..0.7", "a..b", "..", "0.5..2"] {
            assert!(range(text).is_err(), "{text}");
        }
    }
}
