//! `report`: a page about a finished output that people look at, and its tables without Parquet.
//!
//! `figures.rs` draws what `_SUCCESS` counts, `samples.rs` chooses pairs and clusters and reads their texts, `lengths.rs` counts what
//! was removed by length and source, `marked.rs` marks the differences of two texts, `tables.rs` writes CSV and JSON, and
//! `page.html` is the template. docs/design/0075-report.md has the choices. This room uses `cli`, `corpus`, `dedup` and `commands`;
//! `reproduce` uses its charts.

pub(crate) mod chart;
mod figures;
mod lengths;
mod marked;
mod samples;
mod tables;

use std::collections::HashSet;

use anyhow::{Context, Result};
use cluster::Stores;
use minijinja::Environment;
use operators::Reject;
use serde::Serialize;
use serde_json::{Value, json};

use self::figures::{ReportFigure, figures};
use self::lengths::RemovedShares;
use self::samples::{ShownCluster, ShownPair, ShownSamples};
use crate::Common;
use crate::cli::report_file::ReportFile;
use crate::cli::terminal::print;
use crate::cli::values::paths;
use crate::dedup::finished::Finished;
use crate::output::pair_table::PairsOf;

/// Write a page about a finished output, or its tables as CSV or JSON
///
/// The page is one HTML file that needs no network: what was read, found and removed, how similar the pairs are, how large the
/// clusters, samples with the differences marked, rejected records, and what to do next. The input is read again for the texts.
#[derive(clap::Args)]
pub struct Args {
    /// A finished output of dedup
    #[arg(value_parser = paths())]
    output: String,
    /// File of the page [default: report.html in the working directory]
    #[arg(long, value_name = "FILE", value_parser = paths())]
    to: Option<String>,
    /// Write pairs, clusters and counters as CSV into this folder, and no page unless --to is there
    #[arg(long, value_name = "FOLDER", value_parser = paths())]
    csv: Option<String>,
    /// The same as JSON lines
    #[arg(long, value_name = "FOLDER", value_parser = paths())]
    json: Option<String>,
    /// Number of sample pairs
    #[arg(long, value_name = "N", default_value_t = 50)]
    pairs: usize,
}

/// Number of rejected records that the page shows.
const REJECTS: usize = 20;

/// Runs the job; returns 0.
pub fn run(common: &Common, args: Args) -> Result<u8> {
    let finished = Finished::open(&Stores::new(), &args.output)?;
    if let Some(folder) = &args.csv {
        tables::write_csv(&finished, folder)?;
    }
    if let Some(folder) = &args.json {
        tables::write_json(&finished, folder)?;
    }
    let (to, alone) = (args.to.as_deref(), args.csv.is_none() && args.json.is_none());
    let Some(to) = to.or(alone.then_some("report.html")) else { return Ok(0) };
    let file = ReportFile::check(to)?;
    let page = ReportPage::of(&finished, args.pairs, common)?;
    file.replace(page.html()?)?;
    print(format_args!("{to}\n"))?;
    Ok(0)
}

/// All that the template shows.
#[derive(Serialize)]
struct ReportPage {
    output: String,
    /// The content of `_SUCCESS`.
    summary: Value,
    funnel: Vec<FunnelStep>,
    figures: Vec<ReportFigure>,
    /// Numbers of pairs by similarity, in hundredths.
    histogram: Vec<u64>,
    /// Least hundredth from which a reader may ask for another threshold.
    least: u64,
    /// Whether every match is listed, so that another threshold can be told.
    lists_all: bool,
    removed: RemovedShares,
    pairs: Vec<ShownPair>,
    clusters: Vec<ShownCluster>,
    rejects: Vec<Value>,
    next: Vec<NextStep>,
}

/// A step from what was read to what is left.
#[derive(Serialize)]
struct FunnelStep {
    name: &'static str,
    count: u64,
    /// Share of the largest step, in percent.
    percent: f64,
}

/// Something that a reader may do next.
#[derive(Serialize)]
struct NextStep {
    what: &'static str,
    command: String,
}

impl ReportPage {
    fn of(finished: &Finished, pairs: usize, common: &Common) -> Result<Self> {
        let summary = finished.summary()?;
        let input = finished.input(common.workers())?;
        let asked = json!({"output": finished.uri, "pairs": pairs});
        let (watch, progress) = input.watch(&common.progress, "report", &asked)?;
        let read = || -> Result<_> {
            let mut removed = HashSet::new();
            finished.members(|member| removed.extend(member.removed.is_some().then_some(member.place)))?;
            let removed = RemovedShares::count(&input, &progress, |place| removed.contains(&place))?;
            Ok((removed, ShownSamples::read(finished, &input, &progress, pairs)?))
        };
        let (removed, ShownSamples { pairs, clusters }) = watch.end(read())?;
        let of_hundredth = |at: u64| summary["pairs_by_similarity"][at.to_string()].as_u64().unwrap_or(0);
        let histogram: Vec<u64> = (0..=100).map(of_hundredth).collect();
        let threshold =
            finished.options().threshold().map(|threshold| u64::from(threshold.as_millionths() / 10_000));
        Ok(ReportPage {
            output: finished.uri.clone(),
            funnel: funnel(&summary),
            figures: figures(&summary, threshold, &removed)?,
            least: threshold
                .or_else(|| (0..).zip(&histogram).find(|bar| *bar.1 > 0).map(|bar| bar.0))
                .unwrap_or(0),
            histogram,
            lists_all: finished.options().pairs != PairsOf::Deciding,
            removed,
            pairs,
            clusters,
            rejects: rejects(finished)?,
            next: next_steps(finished, &summary),
            summary,
        })
    }

    /// Fills in the template.
    fn html(&self) -> Result<String> {
        let mut templates = Environment::new();
        templates.set_trim_blocks(true);
        templates.set_lstrip_blocks(true);
        templates.add_filter("grouped", |number: f64| grouped(number));
        templates.add_filter("bytes", |bytes: f64| bytes_of(bytes));
        templates.add_template("page.html", include_str!("page.html"))?;
        let page = templates.get_template("page.html")?.render(self);
        page.context("could not fill in the template of the report")
    }
}

fn counter(summary: &Value, name: &str) -> u64 {
    summary["counters"][name].as_u64().unwrap_or(0)
}

fn funnel(summary: &Value) -> Vec<FunnelStep> {
    let count = |name| counter(summary, name);
    let steps = [
        ("Records read", count("records_read")),
        ("Rejected", count("rejected")),
        ("Distinct texts", count("distinct")),
        ("Candidate pairs, compared", count("candidates")),
        ("Pairs that match", count("pairs")),
        ("Removed: identical", count("removed_identical")),
        ("Removed: similar", count("removed_similar")),
        ("Removed: by a chain", count("removed_chain")),
        ("Kept", count("kept")),
    ];
    let largest = steps.iter().map(|step| step.1).max().unwrap_or(0).max(1) as f64;
    let step = |(name, count): (&'static str, u64)| FunnelStep {
        name,
        count,
        percent: 100.0 * count as f64 / largest,
    };
    steps.into_iter().map(step).collect()
}

fn rejects(finished: &Finished) -> Result<Vec<Value>> {
    let mut shown = Vec::new();
    finished.rejects(|Reject { path, offset, reason, head, .. }| {
        if shown.len() < REJECTS {
            shown.push(json!({"file": path, "offset": offset, "reason": reason, "head": head}));
        }
        Ok(())
    })?;
    Ok(shown)
}

fn next_steps(finished: &Finished, summary: &Value) -> Vec<NextStep> {
    let output = shlex::try_quote(&finished.uri).map_or(finished.uri.clone(), |quoted| quoted.into_owned());
    let mut steps = Vec::new();
    let mut step = |what, command: String| steps.push(NextStep { what, command });
    if counter(summary, "removed_similar") > 0 {
        step("See the pairs that are just similar enough", format!("dedup-job show {output} --borderline"));
        step(
            "Label pairs, and score the output by them",
            format!("dedup-job label {output} --to labels.tsv"),
        );
    }
    if finished.options().pairs != PairsOf::Deciding {
        step(
            "Raise the threshold without another search",
            format!("dedup-job rethreshold {output} STRICTER --threshold 0.9"),
        );
    }
    step("Ask why a document went or stayed", format!("dedup-job why {output} ID"));
    step("See that every file is as it was written", format!("dedup-job check {output} --full"));
    steps
}

/// Writes a number with separators of thousands.
pub(crate) fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Writes a number of bytes for people.
fn bytes_of(bytes: f64) -> String {
    match bytes {
        1e9.. => format!("{:.2} GB", bytes / 1e9),
        1e6.. => format!("{:.1} MB", bytes / 1e6),
        1e3.. => format!("{:.1} KB", bytes / 1e3),
        _ => format!("{bytes:.0} bytes"),
    }
}
