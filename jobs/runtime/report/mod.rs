//! Pages that people look at: about a run, and of the tables and figures of a command.
//!
//! `samples.rs` chooses pairs and clusters while the run decides, `lengths.rs` counts documents by length, `texts.rs` reads the texts
//! that are shown, `marked.rs` marks their differences, and `figures.rs` draws what `_SUCCESS` counts by `chart.rs`. `parts.rs` makes a page
//! of tables and figures. `template.rs` fills in the templates: `base.html` is around both, `page.html` and `parts.html` in it.
//! docs/design/seeing.md has the choices. This room uses `corpus` and `output`; `batch` writes
//! a page with each output, the command `report` writes one again; `eval`, `chunk compare` and `reproduce` write pages of parts.

pub mod chart;
mod figures;
pub mod lengths;
pub mod marked;
pub mod parts;
pub mod samples;
pub mod template;
mod texts;

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use operators::DocId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::figures::{ReportFigure, figures};
use self::marked::{MarkedStretch, marked};
use self::template::fill;
pub use self::texts::ShownTexts;
use self::texts::{name, visible};
#[cfg(feature = "cli")]
use crate::cli::headings::OUTPUT;
use crate::output::summary::{RejectReason, RemovedShare, SampleCluster, SamplePair};

/// Option of the jobs that write a page with their output.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct ReportArgs {
    /// Do not write the page report.html into the output
    ///
    /// It shows what the run has found, with some texts of the corpus.
    #[cfg_attr(feature = "cli", arg(help_heading = OUTPUT, long))]
    pub no_report: bool,
}

/// All that a page is made of, besides the texts.
pub struct ReportSource<'a> {
    /// Address of the output.
    pub output: &'a str,
    /// Documents and removed ones by date, if a field of dates was read.
    pub removed_by_date: Vec<RemovedShare>,
    /// The content of `_SUCCESS`.
    pub summary: Value,
    /// The least similarity of a match, in hundredths.
    pub threshold: Option<u64>,
    /// Whether every match is listed, so that another threshold can be told.
    pub lists_all: bool,
    /// Whether matches have a least similarity that could be raised.
    pub measures: bool,
}

/// Members of `_SUCCESS` that the page shows in its own way.
#[derive(Deserialize)]
struct SummarySamples {
    #[serde(default)]
    removed_by_length: Vec<RemovedShare>,
    #[serde(default)]
    removed_by_source: Vec<RemovedShare>,
    #[serde(default)]
    sample_pairs: Vec<SamplePair>,
    #[serde(default)]
    borderline_pairs: Vec<SamplePair>,
    #[serde(default)]
    largest_clusters: Vec<SampleCluster>,
    #[serde(default)]
    reject_reasons: Vec<RejectReason>,
}

/// All that the template shows.
#[derive(Serialize)]
struct ReportPage<'a> {
    output: &'a str,
    summary: &'a Value,
    funnel: Vec<FunnelStep>,
    figures: Vec<ReportFigure>,
    /// Numbers of pairs by similarity, in hundredths.
    histogram: Vec<u64>,
    /// Least hundredth from which a reader may ask for another threshold.
    least: u64,
    lists_all: bool,
    removed: Vec<(&'static str, Vec<RemovedShare>)>,
    pairs: Vec<ShownPair>,
    clusters: Vec<ShownCluster>,
    rejects: Vec<RejectReason>,
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

/// A pair with its differences marked.
#[derive(Serialize)]
struct ShownPair {
    a: String,
    b: String,
    similarity: Option<f64>,
    hamming: Option<u32>,
    texts: [Vec<MarkedStretch>; 2],
}

/// A large cluster.
#[derive(Serialize)]
struct ShownCluster {
    name: String,
    size: u64,
    members: Vec<ShownMember>,
}

#[derive(Serialize)]
struct ShownMember {
    id: String,
    kept: bool,
    text: String,
    left_out: usize,
}

/// Something that a reader may do next.
#[derive(Serialize)]
struct NextStep {
    what: &'static str,
    command: String,
}

impl ReportSource<'_> {
    /// Returns the documents whose texts the page shows, by their places.
    pub fn shown(&self) -> Result<BTreeMap<DocId, String>> {
        let SummarySamples { sample_pairs, borderline_pairs, largest_clusters, .. } = self.samples()?;
        let of_pairs = sample_pairs.into_iter().chain(borderline_pairs);
        let of_pairs = of_pairs.flat_map(|pair| [(pair.places.0, pair.a), (pair.places.1, pair.b)]);
        let members = largest_clusters.into_iter().flat_map(|cluster| cluster.members);
        Ok(of_pairs.chain(members.map(|member| (member.place, member.id))).collect())
    }

    fn samples(&self) -> Result<SummarySamples> {
        SummarySamples::deserialize(&self.summary)
            .context("_SUCCESS has other samples than this version writes")
    }

    /// Returns the page, as HTML that needs no other file.
    pub fn page(&self, texts: &ShownTexts) -> Result<String> {
        let SummarySamples {
            removed_by_length,
            removed_by_source,
            sample_pairs,
            borderline_pairs,
            largest_clusters,
            reject_reasons,
        } = self.samples()?;
        let of_hundredth =
            |at: u64| self.summary["pairs_by_similarity"][at.to_string()].as_u64().unwrap_or(0);
        let histogram: Vec<u64> = (0..=100).map(of_hundredth).collect();
        let first = (0..).zip(&histogram).find(|bar| *bar.1 > 0).map(|bar| bar.0);
        let page = ReportPage {
            output: self.output,
            summary: &self.summary,
            funnel: self.funnel(),
            figures: figures(&self.summary, self.threshold, &removed_by_length)?,
            least: self.threshold.or(first).unwrap_or(0),
            histogram,
            lists_all: self.lists_all,
            removed: [
                ("Length, characters", removed_by_length),
                ("Source", removed_by_source),
                ("Date", self.removed_by_date.clone()),
            ]
            .into(),
            pairs: shown_pairs(borderline_pairs, sample_pairs, texts),
            clusters: largest_clusters.into_iter().map(|cluster| ShownCluster::of(cluster, texts)).collect(),
            rejects: reject_reasons.into_iter().map(shown_reason).collect(),
            next: self.next_steps(),
        };
        fill("page.html", page)
    }

    fn counter(&self, name: &str) -> u64 {
        self.summary["counters"][name].as_u64().unwrap_or(0)
    }

    fn funnel(&self) -> Vec<FunnelStep> {
        let count = |name| self.counter(name);
        let steps = [
            (
                "Documents of the reference",
                self.summary["counters"]["reference"]["documents"].as_u64().unwrap_or(0),
            ),
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
        let is_shown = |step: &(&str, u64)| step.1 > 0 || step.0 != "Documents of the reference";
        let step = |(name, count): (&'static str, u64)| FunnelStep {
            name,
            count,
            percent: 100.0 * count as f64 / largest,
        };
        steps.into_iter().filter(is_shown).map(step).collect()
    }

    fn next_steps(&self) -> Vec<NextStep> {
        let output =
            shlex::try_quote(self.output).map_or(self.output.to_owned(), |quoted| quoted.into_owned());
        let mut steps = Vec::new();
        let mut step = |what, command: String| steps.push(NextStep { what, command });
        // The commands below read pairs of one corpus, and a night has pairs with documents of others.
        if self.summary["state"].is_null() {
            if self.counter("removed_similar") > 0 {
                step(
                    "See the pairs that are just similar enough",
                    format!("dedup-job show {output} --borderline"),
                );
                step(
                    "Label pairs, and score the output by them",
                    format!("dedup-job label {output} --to labels.tsv"),
                );
            }
            if self.lists_all && self.measures {
                step(
                    "Raise the threshold without another search",
                    format!("dedup-job rethreshold {output} STRICTER --threshold 0.9"),
                );
            }
            step("Ask why a document went or stayed", format!("dedup-job why {output} ID"));
            step(
                "Get pairs, clusters and counters as CSV",
                format!("dedup-job report {output} --csv TABLES"),
            );
        }
        step("See that every file is as it was written", format!("dedup-job check {output} --full"));
        steps
    }
}

/// Marks pairs, the least similar first. A pair that is among both samples is shown once.
fn shown_pairs(borderline: Vec<SamplePair>, anywhere: Vec<SamplePair>, texts: &ShownTexts) -> Vec<ShownPair> {
    let of_borderline: Vec<_> = borderline.iter().map(|pair| pair.places).collect();
    let others = anywhere.into_iter().filter(|pair| !of_borderline.contains(&pair.places));
    let mut pairs: Vec<SamplePair> = borderline.into_iter().chain(others).collect();
    let unlike = |pair: &SamplePair| pair.similarity.unwrap_or(1.0);
    pairs.sort_by(|a, b| unlike(a).total_cmp(&unlike(b)).then(b.distance.cmp(&a.distance)));
    let shown = |pair: SamplePair| ShownPair {
        texts: marked(&texts.at(pair.places.0), &texts.at(pair.places.1)),
        similarity: pair.similarity,
        hamming: pair.distance,
        a: name(&pair.a),
        b: name(&pair.b),
    };
    pairs.into_iter().map(shown).collect()
}

fn shown_reason(reject: RejectReason) -> RejectReason {
    let RejectReason { records, reason, uri, offset, head } = reject;
    RejectReason { records, offset, reason: visible(&reason), uri: visible(&uri), head: visible(&head) }
}

impl ShownCluster {
    fn of(cluster: SampleCluster, texts: &ShownTexts) -> Self {
        let members = cluster.members.into_iter().map(|member| {
            let shown = texts.at(member.place);
            ShownMember {
                id: name(&member.id),
                kept: member.kept,
                text: shown.text,
                left_out: shown.left_out,
            }
        });
        ShownCluster { name: name(&cluster.name), size: cluster.size, members: members.collect() }
    }
}
