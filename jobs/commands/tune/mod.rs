//! `tune`: finds the threshold that a method needs, by labelled pairs or by brute force on a sample.

mod all_pairs;

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use anyhow::{Result, bail};
use cluster::Group;
use operators::method::{Classification, PairClassifier, Spec};
use operators::text::features::Lexicon;
use operators::{Point, RankedPair, Ranking, Similarity};
use serde_json::json;

use self::all_pairs::AllPairs;
use crate::commands::labels::agreement::{self, ComparedPair};
use crate::commands::labels::{JudgedPair, LabelOptions, Labels, Truth};
use crate::commands::plot::Plot;
use batch::{corpus_counts, options::refuse_given};
use runtime::Common;
use runtime::cli::exit::WrongUse;
use runtime::cli::report_file::ReportFile;
use runtime::cli::terminal::print;
use runtime::cli::values::{paths, text_of_file};
use runtime::corpus::input::{Census, Input, InputDocument, InputOptions};
use runtime::corpus::sample::Sample;
use runtime::progress::{Progress, Stage};

/// Largest number of documents that are compared each with each: two labels' worth of pairs is 200 MB.
const MOST_DOCUMENTS: usize = 7_000;
/// Number of bands of similarity in the table of a sample, besides that of equal features.
const BANDS: usize = 10;

/// Choose a method's threshold by labelled pairs, or see by brute force on a sample what it would miss
///
/// With --labels, this prints the precision-recall curve of the method's similarity, and the threshold for a
/// wanted precision or recall, or for the best F1. Without, every pair of a sample is compared exactly; for
/// each band of similarity, this prints the number of pairs and how many of them the method's candidates
/// would have missed.
#[derive(clap::Args)]
pub struct Args {
    /// Files, folders, globs or comma lists of them, local, on HDFS or in an object store
    #[arg(required = true, num_args = 1.., value_name = "INPUT", value_parser = paths())]
    inputs: Vec<String>,
    /// Method and parameters, as for dedup
    #[arg(long, value_name = "SPEC", default_value = "auto")]
    method: Spec,
    /// File of labels: two ids and a label on each line, or an id and its cluster
    #[arg(long, value_name = "FILE", value_parser = paths())]
    labels: Option<String>,
    #[command(flatten)]
    label_options: LabelOptions,
    /// Choose the threshold of the greatest recall with at least this precision
    #[arg(long, value_name = "P", requires = "labels", value_parser = part)]
    precision: Option<f64>,
    /// Choose the highest threshold with at least this recall
    #[arg(long, value_name = "R", requires = "labels", conflicts_with = "precision", value_parser = part)]
    recall: Option<f64>,
    /// Approximate number of documents that are compared, without labels
    #[arg(long, value_name = "N", default_value_t = 3_000, conflicts_with = "labels")]
    sample: u64,
    /// Seed of the sample: another seed takes another sample
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Write the curve, or the table of bands, to this file
    #[arg(long, value_name = "FILE", value_parser = paths())]
    tsv: Option<String>,
    /// Draw the curve in this file
    #[arg(long, value_name = "FILE", value_parser = paths())]
    svg: Option<String>,
    #[command(flatten)]
    input: InputOptions,
}

/// Reads a number from 0 to 1.
fn part(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

/// Runs the job; returns 0, or 3 if records were rejected.
pub fn run(common: &Common, mut args: Args) -> Result<u8> {
    let (tsv, svg) = (args.tsv.clone(), args.svg.clone());
    let tsv = tsv.as_deref().map(ReportFile::check).transpose()?;
    let svg = svg.as_deref().map(ReportFile::check).transpose()?;
    let lexicon = args.input.lexicon(args.method.cuts_words())?;
    let input = args.input.open(&args.inputs, common.workers())?;
    if args.labels.is_some() && args.method.measures() && args.method.thresholds().is_empty() {
        bail!(WrongUse(format!("{} has no least similarity that could be chosen", args.method)));
    }
    let asked = json!({
        "method": args.method.to_string(),
        "labels": args.labels,
        "sample": args.sample,
        "seed": args.seed,
        "inputs": args.inputs,
    });
    let (watch, progress) = input.watch(&common.progress, "tune", &asked)?;
    let (found, census) = watch.end(tune(&args, input, &lexicon, &progress))?;
    if let Some(file) = tsv {
        file.replace(found.tsv)?;
    }
    if let Some(file) = svg {
        file.replace(found.plot.svg())?;
    }
    print(format_args!("{}\n{}\n{}", found.before, found.plot.text(), found.after))?;
    Ok(if census.rejected > 0 { 3 } else { 0 })
}

/// Reads the input, and compares its pairs.
fn tune(args: &Args, input: Input, lexicon: &Lexicon, progress: &Progress) -> Result<(Tuned, Census)> {
    refuse_given(&args.method)?;
    let census = Census::of(&input, progress)?;
    let Input { plan, reading, workers } = &input;
    let group = Group::alone(*workers);
    let statistics = corpus_counts::count(&args.method, lexicon, (plan, reading), &group, progress)?;
    let pairs = PairClassifier::new(args.method.method(lexicon, &statistics, None)?);
    let tuned = match &args.labels {
        Some(file) => {
            let labels = Labels::parse(file, &text_of_file(file)?, &args.label_options)?;
            by_labels(args, &input, &census, pairs, &labels, progress)?
        }
        None => by_sample(args, input, &census, pairs, progress)?,
    };
    Ok((tuned, census))
}

/// Answer of the job, with what is written to files.
struct Tuned {
    before: String,
    plot: Plot,
    after: String,
    tsv: String,
}

/// Chooses a threshold by labelled pairs.
fn by_labels(
    args: &Args,
    input: &Input,
    census: &Census,
    pairs: PairClassifier,
    labels: &Labels,
    progress: &Progress,
) -> Result<Tuned> {
    let ids: HashSet<&str> = labels.ids.iter().map(String::as_str).collect();
    let whole = matches!(labels.truth, Truth::Whole(_));
    let documents = if whole { census.documents as usize } else { ids.len() };
    if !matches!(labels.truth, Truth::Judged(_)) && documents > MOST_DOCUMENTS {
        bail!(WrongUse(format!(
            "these labels judge every pair of {documents} documents, more than {MOST_DOCUMENTS}; \
             list pairs that are not the same, too, so that only listed pairs are compared"
        )));
    }
    let documents = input.documents(|_| true, |_, id| whole || ids.contains(id), progress)?;
    let at = progress.worker_at(0, Stage::Compare);
    let texts = JudgedTexts::new(pairs, &documents, &labels.ids)?;
    drop(at);
    let pairs = texts.labelled(&labels.truth, &AllPairs::of(input, progress))?;

    let of_same = || pairs.iter().filter(|pair| pair.compared.ranked.same);
    let candidates = of_same().filter(|pair| pair.candidate).count();
    let same = of_same().count();
    let weight_of_same = of_same().fold(0.0, |sum, pair| sum + pair.compared.ranked.weight);
    let ranking = Ranking::new(pairs.iter().map(|pair| pair.compared.ranked).collect());
    let (point, chosen) = choose(args, &ranking)?;
    let threshold = ranking.threshold(point);
    if threshold < Similarity::LEAST {
        bail!(WrongUse(format!(
            "the threshold ({chosen}) would be {threshold}: no method finds pairs that differ so much"
        )));
    }
    let found =
        of_same().filter(|pair| pair.candidate && pair.compared.ranked.similarity >= threshold).count();

    let (precision, recall) = (point.precision(), ranking.recall(point));
    let mut before = format!(
        "Method: {}\nLabels: {labels}.\nAverage precision of its similarity: {:.4}\n",
        args.method,
        ranking.average_precision()
    );
    if args.method.measures() && matches!(labels.truth, Truth::Judged(_)) {
        let compared: Vec<&ComparedPair> = pairs.iter().map(|pair| &pair.compared).collect();
        let _ = write!(before, "\nWith its own thresholds:\n{}", agreement::table(&compared));
    }
    let mut after = format!(
        "Threshold {threshold} ({chosen}): precision {precision:.4}, recall {recall:.4}, F1 {:.4}; \
         right {}, false {}, missed {}\n",
        ranking.f1(point),
        tenths(point.right),
        tenths(point.wrong),
        tenths(weight_of_same - point.right),
    );
    if candidates < same {
        let _ = writeln!(
            after,
            "Of the {same} pairs that are the same the method compares {candidates} and finds {found} with this threshold."
        );
    }
    let _ = writeln!(after, "To use it: {}", written_out(&args.method, threshold));
    let plot = Plot {
        title: format!("Precision and recall of {}", args.method),
        x: "recall",
        y: "precision",
        points: agreement::stairs(&ranking),
        mark: Some(((recall, precision), format!("threshold {threshold}"))),
    };
    Ok(Tuned { before, plot, after, tsv: tsv_of(&ranking, weight_of_same) })
}

/// Returns the curve as a table of tab-separated values.
fn tsv_of(ranking: &Ranking, weight_of_same: f64) -> String {
    let mut tsv = "threshold\tright\tfalse\tmissed\tprecision\trecall\tf1\n".to_owned();
    for point in ranking.points() {
        let least = point.least;
        let right = tenths(point.right);
        let wrong = tenths(point.wrong);
        let (precision, recall, f1) = (point.precision(), ranking.recall(point), ranking.f1(point));
        let _ = writeln!(
            tsv,
            "{least}\t{right}\t{wrong}\t{}\t{precision:.6}\t{recall:.6}\t{f1:.6}",
            tenths(weight_of_same - point.right)
        );
    }
    tsv
}

/// Rounds a sum of weights to tenths.
fn tenths(weight: f64) -> f64 {
    (weight * 10.0).round() / 10.0
}

/// Chooses the point of the ranking that the user wants, and says in words what that is.
fn choose<'a>(args: &Args, ranking: &'a Ranking) -> Result<(&'a Point, String)> {
    let (point, wanted) = match (args.precision, args.recall) {
        (Some(least), _) => (ranking.at_precision(least), format!("precision of at least {least}")),
        (_, Some(least)) => (ranking.at_recall(least), format!("recall of at least {least}")),
        _ => (ranking.best(), "best F1".to_owned()),
    };
    match point {
        Some(point) if point.right > 0.0 => Ok((point, wanted)),
        _ => {
            let highest = ranking.points().iter().filter(|point| point.right > 0.0).map(Point::precision);
            match highest.reduce(f64::max) {
                Some(highest) => bail!("no threshold has a {wanted}; the highest precision is {highest:.4}"),
                None => bail!("no labelled pair is the same, so there is no threshold to choose"),
            }
        }
    }
}

/// Returns the options that use a threshold.
fn written_out(method: &Spec, threshold: Similarity) -> String {
    let mut method = method.clone();
    if method.thresholds().is_empty() {
        return format!("--method {method} --verify jaccard:{threshold}");
    }
    method.set_threshold(threshold);
    format!("--method {method}")
}

/// Documents that are judged.
struct JudgedTexts {
    pairs: PairClassifier,
    /// Number of the text of each labelled document.
    numbers: Vec<usize>,
    count: usize,
}

/// Labelled pair, as the method compares it.
struct LabelledPair {
    compared: ComparedPair,
    candidate: bool,
}

impl JudgedTexts {
    fn new(mut pairs: PairClassifier, documents: &[InputDocument], ids: &[String]) -> Result<Self> {
        let mut places = HashMap::new();
        for document in documents {
            let number = pairs.add(&document.text);
            if places.insert(document.id.as_str(), number).is_some() {
                bail!("two documents of the input are called \"{}\", so its labels say nothing", document.id);
            }
        }
        let unknown: Vec<&String> = ids.iter().filter(|id| !places.contains_key(id.as_str())).collect();
        if let Some(first) = unknown.first() {
            let (unknown, all) = (unknown.len(), ids.len());
            bail!(WrongUse(format!(
                "{unknown} of {all} labelled documents are not in the input; the first is \"{first}\""
            )));
        }
        let numbers = ids.iter().filter_map(|id| places.get(id.as_str()).copied()).collect();
        Ok(JudgedTexts { pairs, numbers, count: documents.len() })
    }

    fn labelled(&self, truth: &Truth, all: &AllPairs) -> Result<Vec<LabelledPair>> {
        let weighted = |a: usize, b: usize, same: bool, weight: f64, class: Option<String>| {
            let Classification { similarity, candidate, matches, .. } = self.pairs.classify(a, b);
            let ranked = RankedPair { similarity, same, weight };
            LabelledPair { compared: ComparedPair { ranked, class, found: matches }, candidate }
        };
        let judged = |a: usize, b: usize, same: bool| weighted(a, b, same, 1.0, None);
        let number = |doc: &u32| self.numbers[*doc as usize];
        match truth {
            Truth::Judged(pairs) => {
                let judged = |pair: &JudgedPair| {
                    let (a, b) = (number(&pair.docs.0), number(&pair.docs.1));
                    weighted(a, b, pair.same, pair.weight, pair.class.clone())
                };
                Ok(pairs.iter().map(judged).collect())
            }
            Truth::Whole(pairs) => {
                let ordered = |(a, b): &(u32, u32)| (number(a).min(number(b)), number(a).max(number(b)));
                let same: HashSet<_> = pairs.iter().map(ordered).collect();
                all.each(self.count, |a, b| judged(a, b, same.contains(&(a, b))))
            }
            Truth::Clusters(members) => all.each(members.len(), |a, b| {
                let ((a, of_a), (b, of_b)) = (&members[a], &members[b]);
                judged(number(a), number(b), of_a == of_b)
            }),
        }
    }
}

/// Numbers of pairs of a sample in one band of similarity.
#[derive(Clone, Copy, Default)]
struct Band {
    pairs: u64,
    candidates: u64,
}

/// Compares every pair of a sample, and says for each band of similarity what the candidates of the method
/// hold.
fn by_sample(
    args: &Args,
    mut input: Input,
    census: &Census,
    mut pairs: PairClassifier,
    progress: &Progress,
) -> Result<Tuned> {
    input.plan.sample(&Sample::of_documents(args.seed, args.sample, census.documents));
    let documents = input.documents(|_| true, |_, _| true, progress)?;
    let at = progress.worker_at(0, Stage::Compare);
    for document in &documents {
        pairs.add(&document.text);
    }
    drop(at);
    let rows = AllPairs::of(&input, progress).rows(documents.len(), |a, others| {
        let mut bands = [Band::default(); BANDS + 1];
        for b in others {
            let judged = pairs.classify(a, b);
            let band = &mut bands[(judged.similarity.as_f64() * BANDS as f64) as usize];
            band.pairs += 1;
            band.candidates += u64::from(judged.candidate);
        }
        bands
    })?;
    let mut bands = [Band::default(); BANDS + 1];
    for (number, of_row) in rows.iter().flat_map(|row| row.iter().enumerate()) {
        bands[number].pairs += of_row.pairs;
        bands[number].candidates += of_row.candidates;
    }

    let read = documents.len() as f64;
    let all = census.documents as f64;
    let times = if read > 1.0 { all * (all - 1.0) / (read * (read - 1.0)) } else { 0.0 };
    let before = format!(
        "Method: {}\nSample: {} of {} documents, every pair compared: {} pairs, each standing for {times:.0} of the corpus\n",
        args.method,
        documents.len(),
        census.documents,
        documents.len() * documents.len().saturating_sub(1) / 2,
    );
    let mut tsv = "similarity_from\tsimilarity_to\tpairs\tcandidates\tpairs_of_corpus\n".to_owned();
    let mut after = format!(
        "{:>14} {:>12} {:>12} {:>12} {:>18}\n",
        "similarity", "pairs", "candidates", "recall", "pairs of corpus"
    );
    let mut points = Vec::new();
    for (number, band) in bands.iter().enumerate().rev() {
        let (from, to) = (number as f64 / BANDS as f64, (number + 1).min(BANDS) as f64 / BANDS as f64);
        let estimate = band.pairs as f64 * times;
        let recall = (band.pairs > 0).then(|| band.candidates as f64 / band.pairs as f64);
        points.extend(recall.map(|recall| ((from + to) / 2.0, recall)));
        let range = if from < to { format!("{from:.1} to {to:.1}") } else { "1".to_owned() };
        let recall = recall.map_or("-".to_owned(), |recall| format!("{recall:.4}"));
        let (pairs, candidates) = (band.pairs, band.candidates);
        let _ = writeln!(after, "{range:>14} {pairs:>12} {candidates:>12} {recall:>12} {estimate:>18.0}");
        let _ = writeln!(tsv, "{from}\t{to}\t{pairs}\t{candidates}\t{estimate:.0}");
    }
    points.reverse();
    after += "recall: which part of the pairs the method's candidates hold; pairs of corpus: an estimate from the sample\n";
    let plot = Plot {
        title: format!("What the candidates of {} hold", args.method),
        x: "similarity",
        y: "recall",
        points,
        mark: None,
    };
    Ok(Tuned { before, plot, after, tsv })
}
