//! Zhou 2017: Figures 1 to 3, and the load of the threads.

use anyhow::Result;
use serde_json::Value;

use super::page::{Claim, ClaimVerdict, PaperPage, listed, percent};
use super::sampled_pairs::{Judge, sample_pairs};
use super::stand_in::Posts;
use super::trials::{RunNumber, Trials};
use runtime::cli::terminal::grouped;
use runtime::report::chart::{Axis, Chart};
use runtime::report::parts::{PagePart, PageTable};

/// Number of pairs that are drawn for a precision.
const DRAWN: usize = 200;
/// Method of the traditional SimHash of 32 bits: Sim is 1/4 at a distance of 3.
const TRADITIONAL: &str = "zhou2017:k=0,threshold=0.25";
/// The same at distance 0.
const DISTANCE_0: &str = "zhou2017:k=0,threshold=1";

/// A run of the method on a corpus.
struct RetrievalRun {
    run: RunNumber,
    posts: u64,
    deleted: u64,
    /// Comparisons of 8 bits, and of Sim.
    looks: u64,
    compared: u64,
    cpu_seconds: f64,
    /// Comparisons of the worker with most of them, as a multiple of the mean.
    skew: f64,
}

impl RetrievalRun {
    /// Returns the number of all comparisons, of 8 bits and of Sim.
    fn comparisons(&self) -> u64 {
        self.looks + self.compared
    }
}

/// The corpora of the trials.
struct Corpora {
    /// The generated posts, unless the user has given a corpus.
    posts: Option<Posts>,
    /// Inputs by their number of posts.
    inputs: Vec<String>,
}

impl Corpora {
    fn new(trials: &Trials) -> Result<Self> {
        if !trials.input.is_empty() {
            return Ok(Corpora { posts: None, inputs: vec![trials.quoted_input()?] });
        }
        let sizes: [usize; 3] = trials.sized([5_000, 10_000, 20_000], [50_000, 100_000, 200_000]);
        let posts = Posts::new(sizes[2] as u64, trials.seed);
        let inputs = sizes
            .iter()
            .map(|&size| trials.corpus(&format!("posts-{size}.jsonl"), || posts.json_lines(size)));
        Ok(Corpora { inputs: inputs.collect::<Result<_>>()?, posts: Some(posts) })
    }

    fn said(&self) -> String {
        match &self.posts {
            None => "the user's".to_owned(),
            Some(posts) => format!(
                "generated posts with {:.1} characters in the mean (the paper: about 20), of which three in ten bring an \
                 earlier message again: as it is, with a repost's tail, an emoji, a link, a name or a word more. Unlike Weibo: \
                 329 words and pairs of their characters, so that strangers share more words",
                posts.mean_chars()
            ),
        }
    }
}

/// Makes the page.
pub(super) fn reproduce(trials: &mut Trials) -> Result<PaperPage> {
    let corpora = Corpora::new(trials)?;
    let mut page = PaperPage {
        title: "Zhou 2017: an improved algorithm of big data deduplication based on SimHash",
        corpus: corpora.said(),
        claims: Vec::new(),
        parts: Vec::new(),
    };
    for (fold, even) in [("upper", true), ("lower", false)] {
        let mut by_way = Vec::new();
        for retrieval in ["linear", "bucket", "recursive"] {
            let method = format!("zhou2017:retrieval={retrieval},fold={fold}");
            // On the bad distribution nearly all posts are in one bucket, and the largest corpus would take an hour.
            let left_out = usize::from(!even && corpora.inputs.len() > 1);
            let inputs = &corpora.inputs[..corpora.inputs.len() - left_out];
            let runs = inputs.iter().map(|input| retrieved(trials, input, &method, 1));
            by_way.push((retrieval, runs.collect::<Result<Vec<_>>>()?));
        }
        figures_1_and_2(&mut page, &by_way, even);
    }
    load(trials, &corpora, &mut page)?;
    figure_3(trials, &corpora, &mut page)?;
    Ok(page)
}

fn retrieved(trials: &mut Trials, input: &str, method: &str, workers: usize) -> Result<RetrievalRun> {
    let output = trials.work("out");
    let line = format!(
        "--workers {workers} dedup {input} {output} --overwrite --quiet --method {method} --resolve components"
    );
    let (run, summary) = trials.command(&line, true)?;
    let counter = |name: &str| summary["counters"][name].as_u64().unwrap_or(0);
    let sum = |name: &str| {
        summary["blocks"].as_array().into_iter().flatten().filter_map(|copy| copy[name].as_f64()).sum::<f64>()
    };
    let compared: Value = summary["process"]["cpu_milliseconds"].clone();
    Ok(RetrievalRun {
        run,
        posts: counter("records_read"),
        deleted: counter("removed"),
        looks: counter("block_comparisons"),
        compared: counter("comparisons"),
        cpu_seconds: compared.as_f64().unwrap_or(0.0) / 1e3,
        skew: sum("most_compared_by_a_worker") * workers as f64 / sum("compared").max(1.0),
    })
}

/// Adds what Figures 1 and 2 claim. `even`: whether the hash fills the bits evenly.
fn figures_1_and_2(page: &mut PaperPage, by_way: &[(&str, Vec<RetrievalRun>)], even: bool) {
    let [linear, bucket, recursive] = [0, 1, 2].map(|way: usize| &by_way[way].1);
    let runs = |all: &[&Vec<RetrievalRun>]| {
        all.iter().flat_map(|runs| runs.iter().map(|run| run.run)).collect::<Vec<_>>()
    };
    let comparisons = RetrievalRun::comparisons;
    let named =
        |all: &Vec<RetrievalRun>, value: &dyn Fn(&RetrievalRun) -> String| listed(all.iter().map(value));
    let sizes = named(linear, &|run| grouped(run.posts));
    let times = |from: u64, to: u64| from as f64 / to.max(1) as f64;
    let distribution = if even { "with the folded hash" } else { "on a bad distribution (fold=lower)" };
    let last = linear.len() - 1;
    let fewer = times(comparisons(&linear[last]), comparisons(&recursive[last]));
    let faster = linear[last].cpu_seconds / recursive[last].cpu_seconds.max(1e-3);
    page.claims.push(Claim {
        claim: format!("Figure 1, {distribution}: the improved method makes far fewer comparisons than the traditional one"),
        published: if even {
            "two bars at each of 50,000, 100,000 and 200,000 posts; the image has no numbers in our copy".to_owned()
        } else {
            "no figure; the text says that it is made for such distributions".to_owned()
        },
        measured: format!(
            "at {sizes} posts: traditional {}; by buckets {}; recursive {}",
            named(linear, &|run| grouped(comparisons(run))),
            named(bucket, &|run| grouped(comparisons(run))),
            named(recursive, &|run| grouped(comparisons(run)))
        ),
        verdict: ClaimVerdict::of_parts(&(0..=last).map(|at| 2 * comparisons(&recursive[at]) <= comparisons(&linear[at])).collect::<Vec<_>>()),
        because: format!(
            "the traditional method looks at 8 bits of every earlier post, and buckets are never looked at from outside: {fewer:.1} times as \
             many at the largest size{}",
            if even { ". No bucket has half of the posts, so the recursion takes nothing out" } else { "" }
        ),
        runs: runs(&[linear, bucket, recursive]),
    });
    page.claims.push(Claim {
        claim: format!("Figure 2, {distribution}: it is faster, though by less than the comparisons say"),
        published: "\"the improvement in time is not as marked as in comparisons\"".to_owned(),
        measured: format!(
            "CPU s at {sizes} posts: traditional {}; by buckets {}; recursive {}",
            named(linear, &|run| format!("{:.2}", run.cpu_seconds)),
            named(bucket, &|run| format!("{:.2}", run.cpu_seconds)),
            named(recursive, &|run| format!("{:.2}", run.cpu_seconds))
        ),
        verdict: ClaimVerdict::of_parts(&[faster > 1.0, faster < fewer]),
        because: format!("{faster:.1} times as fast with {fewer:.1} times fewer comparisons, since Sim costs much more than a look at 8 bits, and both compute it as often"),
        runs: runs(&[linear, bucket, recursive]),
    });
    page.claims.push(Claim {
        claim: format!("Buckets and recursion {distribution} delete what the traditional method deletes"),
        published: "tacitly: the figures compare their cost alone".to_owned(),
        measured: format!(
            "deleted at {sizes} posts: traditional {}; by buckets {}; recursive {}",
            named(linear, &|run| grouped(run.deleted)),
            named(bucket, &|run| grouped(run.deleted)),
            named(recursive, &|run| grouped(run.deleted))
        ),
        verdict: ClaimVerdict::of_parts(&[
            linear.iter().zip(bucket).all(|(a, b)| a.deleted == b.deleted),
            linear.iter().zip(recursive).all(|(a, b)| a.deleted == b.deleted),
        ]),
        because: "posts of a group that is split again meet only if they share one of its smaller groups, which is sure within 3 bits alone; but \
                  many words in common make up for any distance"
            .to_owned(),
        runs: runs(&[linear, bucket, recursive]),
    });
    draw_figures_1_and_2(page, by_way, distribution);
}

/// Draws Figures 1 and 2.
fn draw_figures_1_and_2(page: &mut PaperPage, by_way: &[(&str, Vec<RetrievalRun>)], distribution: &str) {
    let line = |name: &str, of: &[RetrievalRun], value: &dyn Fn(&RetrievalRun) -> f64| {
        (name.to_owned(), of.iter().map(|run| (run.posts as f64, value(run))).collect::<Vec<_>>())
    };
    let lines = |value: &dyn Fn(&RetrievalRun) -> f64| {
        by_way.iter().map(|(name, runs)| line(name, runs, value)).collect()
    };
    page.parts.push(PagePart::Figure(
        format!("Figure 1, {distribution}: comparisons of 8 bits and of Sim."),
        Chart::Lines {
            title: format!("Comparisons {distribution}"),
            x: Axis::logarithmic("posts"),
            y: Axis::logarithmic("comparisons"),
            lines: lines(&|run| run.comparisons() as f64),
        },
    ));
    page.parts.push(PagePart::Figure(
        format!("Figure 2, {distribution}: CPU time of one worker."),
        Chart::Lines {
            title: format!("Time {distribution}"),
            x: Axis::logarithmic("posts"),
            y: Axis::linear("CPU seconds"),
            lines: lines(&|run| run.cpu_seconds),
        },
    ));
}

/// Adds what the paper claims of the load of its threads.
fn load(trials: &mut Trials, corpora: &Corpora, page: &mut PaperPage) -> Result<()> {
    const WORKERS: usize = 4;
    let input = &corpora.inputs[corpora.inputs.len() / 2];
    let mut rows = Vec::new();
    for fold in ["upper", "lower"] {
        for retrieval in ["bucket", "recursive", "recursive,heavy=10", "recursive,variance=1,top=2"] {
            let method = format!("zhou2017:retrieval={retrieval},fold={fold}");
            rows.push((method.clone(), retrieved(trials, input, &method, WORKERS)?));
        }
    }
    let row = |(method, run): &(String, RetrievalRun)| {
        vec![format!("`{method}`"), format!("{:.2}", run.skew), grouped(run.compared), grouped(run.deleted)]
    };
    page.parts.push(PagePart::Table(PageTable {
        caption: format!(
            "Load of {WORKERS} workers: comparisons of the one with most, as a multiple of the mean"
        ),
        head: vec!["method", "most / mean", "Sim computed", "deleted"],
        rows: rows.iter().map(row).collect(),
    }));
    let (bucket, recursive) = (&rows[4].1, &rows[5].1);
    page.claims.push(Claim {
        claim: "Groups that are split again go to other threads, so that their load is even on a bad distribution".to_owned(),
        published: "no number".to_owned(),
        measured: format!("most / mean of {WORKERS} workers: {:.2} by buckets, {:.2} by recursion", bucket.skew, recursive.skew),
        verdict: if recursive.skew < 1.5 {
            ClaimVerdict::Holds
        } else {
            ClaimVerdict::of_parts(&[recursive.skew < 0.8 * bucket.skew, false])
        },
        because: "each group that is taken out is sent again to all workers by its next bits. The four copies of a group are searched one after the \
                  other, since what one deletes is missing in the next, and what still differs in no bit stays on one worker"
            .to_owned(),
        runs: rows.iter().map(|(_, run)| run.run).collect(),
    });
    Ok(())
}

/// Hashes of words that Figure 3 is tried with, and their parameters.
const HASHES: [(&str, &str); 2] =
    [("his hash, folded", "fold=upper"), ("a hash that fills all bits", "hash=xxh3,fold=none")];
/// Methods of Figure 3.
const WAYS: [(&str, &str); 3] =
    [("traditional", TRADITIONAL), ("distance 0", DISTANCE_0), ("improved", "zhou2017:k=4")];

/// Precision of some pairs that were drawn of those of a method.
struct DrawnPrecision {
    hash: &'static str,
    way: &'static str,
    method: String,
    /// The run of the method, and the judgement.
    runs: [RunNumber; 2],
    /// Number of pairs that the method has found.
    found: u64,
    precision: f64,
}

/// Runs each method with each hash, and judges some of the pairs that it finds.
fn drawn_precisions(trials: &mut Trials, corpora: &Corpora, judge: &Judge) -> Result<Vec<DrawnPrecision>> {
    let input = corpora.inputs.last().cloned().unwrap_or_default();
    let mut measured = Vec::new();
    for (hash, parameters) in HASHES {
        for (way, method) in WAYS {
            let method = format!("{method},retrieval=bucket,{parameters}");
            let run = retrieved(trials, &input, &method, 1)?;
            let (found, drawn) = sample_pairs(&trials.folder().join(trials.work("out")), DRAWN, trials.seed)?;
            let name = format!("{DRAWN} pairs drawn of {method}");
            let (drawing, precision) = trials.measured(name, |raw| {
                let judged = judge.judge(&drawn)?;
                for (pair, is_right) in drawn.iter().zip(&judged) {
                    let said = if *is_right { "duplicates" } else { "different" };
                    *raw += &format!("{} {}: {said}\n", pair.ids[0], pair.ids[1]);
                }
                let right = judged.iter().filter(|is_right| **is_right).count();
                *raw += &format!("precision: {right} of {}\n", drawn.len());
                Ok(right as f64 / drawn.len().max(1) as f64)
            })?;
            measured.push(DrawnPrecision { hash, way, method, runs: [run.run, drawing], found, precision });
        }
    }
    Ok(measured)
}

/// Adds what Figure 3 claims.
fn figure_3(trials: &mut Trials, corpora: &Corpora, page: &mut PaperPage) -> Result<()> {
    let judge = Judge { posts: corpora.posts.as_ref(), proxy: "auto".parse()? };
    let measured = drawn_precisions(trials, corpora, &judge)?;
    let row = |row: &DrawnPrecision| {
        vec![
            row.hash.to_owned(),
            row.way.to_owned(),
            percent(row.precision),
            grouped(row.found),
            format!("`{}`", row.method),
        ]
    };
    page.parts.push(PagePart::Table(PageTable {
        caption: format!("Figure 3: precision of {DRAWN} drawn pairs, judged {}", judge.said()),
        head: vec!["hash of words", "method", "precision", "duplicates found", "command's method"],
        rows: measured.iter().map(row).collect(),
    }));
    let groups = HASHES.map(|(hash, _)| {
        let of_hash = measured.iter().filter(|row| row.hash == hash);
        (hash.to_owned(), of_hash.map(|row| 100.0 * row.precision).collect())
    });
    page.parts.push(PagePart::Figure(
        format!("Figure 3: precision of {DRAWN} drawn pairs."),
        Chart::Bars {
            title: "Precision, percent".to_owned(),
            y: Axis::linear("percent"),
            series: WAYS.iter().map(|(way, _)| (*way).to_owned()).collect(),
            groups: groups.to_vec(),
        },
    ));
    figure_3_claims(page, corpora, &judge, &measured);
    Ok(())
}

/// Adds the claims of Figure 3. `measured`: hash by hash, in the order of [`HASHES`] and [`WAYS`].
fn figure_3_claims(page: &mut PaperPage, corpora: &Corpora, judge: &Judge, measured: &[DrawnPrecision]) {
    let precision = |at: usize| measured[at].precision;
    let runs: Vec<RunNumber> = measured.iter().flat_map(|row| row.runs).collect();
    let of_hash = |from: usize| listed((from..from + 3).map(|at| percent(precision(at))));
    page.claims.push(Claim {
        claim: "Figure 3: the traditional method is wrong about very many pairs, even at distance 0, and the improved one is much more often right".to_owned(),
        published: "three bars at each of 50,000, 100,000 and 200,000 posts; no numbers in our copy".to_owned(),
        measured: format!("traditional, distance 0, improved: {}", of_hash(0)),
        verdict: ClaimVerdict::of_parts(&[precision(0) < 2.0 / 3.0, precision(1) < 2.0 / 3.0, precision(2) > precision(1) + 0.1]),
        because: format!(
            "with his hash; {}. Very many is taken as more than a third, and much as more than 10 of 100 pairs",
            judge.said()
        ),
        runs: runs[..6].to_vec(),
    });
    page.claims.push(Claim {
        claim: "The gain of Figure 3 is one of the improved formula".to_owned(),
        published: "tacitly: no other hash is tried".to_owned(),
        measured: format!("with a hash that fills all bits: {}", of_hash(3)),
        verdict: ClaimVerdict::of_parts(&[precision(3) < precision(5), precision(4) < precision(5)]),
        because: if precision(4) > precision(5) {
            "with a full hash, fingerprints at distance 0 are right more often than the improved formula: what Figure 3 measures is the hash".to_owned()
        } else {
            "the formula gains with this hash too".to_owned()
        },
        runs: runs.clone(),
    });
    let share = |from: usize| measured[from + 2].found as f64 / measured[from].found.max(1) as f64;
    let of_his_hash = (0.3..=0.5).contains(&share(0));
    page.claims.push(Claim {
        claim: "The improved method finds about 40 % as many duplicates as the traditional one".to_owned(),
        published: "40 %".to_owned(),
        measured: format!("{} with his hash, {} with one that fills all bits", percent(share(0)), percent(share(3))),
        verdict: match corpora.posts {
            Some(_) => ClaimVerdict::CannotBeSaid,
            None => ClaimVerdict::of_parts(&[of_his_hash]),
        },
        because: "the share depends on how many posts are duplicates, of which the paper says nothing and the generator makes three in ten, and on how many words \
                  strangers share"
            .to_owned(),
        runs,
    });
}
