//! The job `rethreshold`: writes a finished output once more, with a higher threshold.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use cluster::Stores;
use operators::flow::{FoundMatches, reads};
use operators::{DocId, Matches, Merit, Pair, Resolve, Similarity, SpillBudget};

use batch::corpus_counts;
use batch::decide::{Decided, Decider};
use batch::dedup_job::DedupJob;
use batch::finished::Finished;
use batch::guards::Guards;
use batch::ignored_lines::CountedLines;
use batch::keep::Keep;
use batch::options::Verification;
use batch::pipeline::{SearchResult, SideCounts};
use runtime::Common;
use runtime::cli::configuration::Configuration;
use runtime::cli::exit::WrongUse;
use runtime::cli::values::paths;
use runtime::corpus::run::Run;
use runtime::output::rejects::Rejects;
use runtime::output::summary::Summary;
use runtime::output::tables::PairsOf;
use runtime::output::{JobEnd, OutputArgs, OutputFolder, OutputJob};
use runtime::progress::Stage;
use runtime::report::ReportArgs;
use runtime::report::lengths::LengthCounts;

/// Raise the threshold of a finished output, without comparing anything again
///
/// The pairs of the output that are similar enough decide anew which documents stay; the input is read once,
/// to write these. The result is what dedup would write with that threshold, except for what only a search
/// counts: in _SUCCESS the candidates are those of the old run, and comparisons and blocks are missing.
#[derive(clap::Args)]
pub struct Args {
    /// A finished output of dedup with --pairs firsts or all
    #[arg(value_parser = paths())]
    output: String,
    /// Folder for the new output
    #[arg(value_parser = paths())]
    new_output: String,
    /// Least similarity of a pair, from 0 to 1; not less than that of the output
    #[arg(long, value_name = "T")]
    threshold: Similarity,
    /// Rule for the documents of a cluster that stay: greedy or components [default: as in the output]
    #[arg(long, value_name = "HOW")]
    resolve: Option<Resolve>,
    /// Document that stays of two that match: first or longest [default: as in the output]
    ///
    /// Outputs of dedup --keep priority:FIELD are refused, because they do not hold the numbers of the field.
    #[arg(long, value_name = "WHICH")]
    keep: Option<Keep>,
    /// Pairs to write, firsts or all [default: as in the output]
    #[arg(long, value_name = "WHICH")]
    pairs: Option<PairsOf>,
    #[command(flatten)]
    guards: Guards,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    output_args: OutputArgs,
}

/// Runs the job. Returns the exit code: 0, or 3 if records were rejected.
pub fn run(common: &Common, mut args: Args) -> Result<u8> {
    let start = Instant::now();
    let old = &args.output;
    let stores = Stores::new();
    let finished = Finished::open(&stores, old)?;
    let mut options = finished.options().clone();
    let keep = args.keep.unwrap_or_else(|| options.keep.clone());
    if let Some(field) = options.keep.field().or(keep.field()) {
        bail!(WrongUse(format!(
            "an output does not hold the numbers by which priority:{field} decides: run dedup again with a higher \
             threshold"
        )));
    }
    let mut verify = options.threshold();
    let mut thresholds: Vec<&mut Similarity> =
        options.method.thresholds().into_iter().chain(&mut verify).collect();
    match thresholds.iter().min() {
        None => {
            bail!(WrongUse(format!("the method of \"{old}\" has no least similarity that could be raised")))
        }
        Some(lowest) if args.threshold < **lowest => bail!(WrongUse(format!(
            "\"{old}\" has the pairs from {lowest} on; those from {} on take a new run of dedup",
            args.threshold
        ))),
        Some(_) => {}
    }
    for threshold in &mut thresholds {
        **threshold = args.threshold.max(**threshold);
    }
    if options.pairs == PairsOf::Deciding || args.pairs == Some(PairsOf::Deciding) {
        bail!(WrongUse(format!(
            "other pairs may decide with another threshold, so \"{old}\" and the new output must have more than those that \
             decided: run dedup again with --pairs firsts or all, and rethreshold its output"
        )));
    }
    let input = finished.input(common.workers())?;
    options.verify = Some(Verification(verify));
    options.resolve = args.resolve.unwrap_or(options.resolve);
    options.keep = keep;
    options.pairs = args.pairs.unwrap_or(options.pairs);
    options.write.dry_run = false;
    args.output_args.table_format = options.write.output_format;
    let configuration = Configuration {
        options: options.clone(),
        workers: common.workers(),
        ..finished.success.configuration.clone()
    };
    let job = OutputJob::alone(
        (common, &stores, start),
        Run::alone(input.plan, input.reading, common.workers(), &Arc::default()),
        "rethreshold",
        (&args.new_output, &args.output_args),
        serde_json::to_value(configuration)?,
    );
    let guards = &args.guards;
    let max_rejects = None;
    let report = args.report;
    let companion = None;
    let dedup = DedupJob { job: &job, options: &options, guards, max_rejects, report, companion };
    let begun = dedup.begin()?;
    let result = begun.work(|folder| write(&dedup, folder, &finished, args.threshold));
    job.end(begun, result)
}

/// Writes the output from the pairs and rejects of the finished one.
fn write(
    dedup: &DedupJob,
    folder: &Arc<OutputFolder>,
    finished: &Finished,
    threshold: Similarity,
) -> Result<JobEnd<Summary>> {
    let run = &dedup.job.run;
    let options = dedup.options;
    let lexicon = finished.lexicon()?;
    let statistics = corpus_counts::of_output(dedup.job.stores, &finished.uri, &options.method, &lexicon)?;
    corpus_counts::write(folder, &options.method, &lexicon, &statistics)?;
    if options.ignores_lines() {
        CountedLines::read(dedup.job.stores, &finished.uri)?.write(folder)?;
    }
    let rejects = rejects(finished, folder, run.plan.splits.len())?;
    let counters = &finished.success.counters;
    let found = SearchResult {
        rejects,
        input: SideCounts {
            docs: counters.records_read - counters.rejected,
            text_bytes: counters.text_bytes,
            replaced: counters.replaced,
            without_text: counters.without_text,
            shortened: counters.shortened.unwrap_or(0),
            by_length: LengthCounts::of_shares(&finished.success.removed_by_length),
            code: counters.code,
            without_field: None,
        },
        reference: counters.reference.map_or_else(SideCounts::default, |reference| SideCounts {
            docs: reference.documents,
            text_bytes: reference.text_bytes,
            replaced: reference.replaced,
            without_text: reference.without_text,
            ..SideCounts::default()
        }),
        candidates: counters.candidates,
        ignored_lines: counters.ignored_lines,
        ..SearchResult::default()
    };
    let (matches, names) = matches(finished, threshold)?;
    let sides = options.sides(&run.plan);
    let spill = SpillBudget::unused();
    let decider = Decider::new(folder, options, sides, &spill);
    let progress = Arc::clone(&run.progress);
    let decided = run.group.run(move |worker| {
        let _at = progress.worker_at(worker.index(), Stage::Resolve);
        let mut all = FoundMatches::new(worker, &spill);
        if worker.index() == 0 {
            matches.copies.iter().for_each(|&(doc, first)| all.add_copy(worker, doc, first));
            matches.pairs.iter().for_each(|&(pair, similarity)| all.add_pair(worker, pair, similarity));
        }
        let mut docs = all.finish(worker)?;
        for MemberName { doc, id, merit } in &names {
            if reads(worker, *doc) {
                docs.name(worker, *doc, id, *merit)?;
            }
        }
        let clusters = docs.finish(worker)?;
        decider.decide(worker, clusters)
    })?;
    dedup.write(folder, found, Decided::join(decided))
}

/// Copies the rejects of the finished output to the map outputs of the splits, where a search would have put
/// them, and returns their counts.
fn rejects(finished: &Finished, folder: &OutputFolder, splits: usize) -> Result<Rejects> {
    let mut rejects = Rejects::numbered();
    let outputs = folder.map_outputs();
    let mut writers = (0..splits as u32).map(|split| Ok((split, outputs.create(split, 0)?)));
    let mut next = || -> Result<_> {
        let Some(next) = writers.next() else { bail!("the output has rejects of splits that are not there") };
        next
    };
    let (mut split, mut writer) = next()?;
    finished.rejects(|reject| {
        while split < reject.doc.split() {
            let (next_split, next_writer) = next()?;
            std::mem::replace(&mut writer, next_writer).finish(())?;
            split = next_split;
        }
        rejects.add(&reject);
        writer.reject(&reject)?;
        writer.write()
    })?;
    writer.finish(())?;
    writers.try_for_each(|writer: Result<_>| writer?.1.finish(()))?;
    Ok(rejects)
}

/// Name of a document of a cluster, and what keep orders compare; there is no priority.
struct MemberName {
    doc: DocId,
    id: String,
    merit: Merit,
}

/// Returns the matches that the finished output was made from, without the pairs below the threshold, and the
/// names of all members of its clusters in the order of the corpus.
fn matches(finished: &Finished, threshold: Similarity) -> Result<(Matches, Vec<MemberName>)> {
    // Leads from each document that is identical to an earlier one to the earliest of these.
    let mut firsts = BTreeMap::<DocId, DocId>::new();
    let mut near = Vec::new();
    finished.pairs(|row| {
        let (low, high) = row.places;
        if row.identical {
            let first = firsts.entry(high).or_insert(low);
            *first = low.min(*first);
            // The identical pairs of a cluster come first, so `firsts` has all of its documents below.
        } else if row.similarity >= Some(threshold)
            && !firsts.contains_key(&low)
            && !firsts.contains_key(&high)
        {
            near.push((Pair { low, high, distance: row.hamming.unwrap_or(0) }, row.similarity));
        }
    })?;
    let mut names = Vec::new();
    finished.members(|member| {
        let merit = Merit { chars: member.characters, ..Merit::default() };
        names.push(MemberName { doc: member.place, id: member.id, merit });
    })?;
    names.sort_unstable_by_key(|name| name.doc);
    Ok((Matches { copies: firsts.into_iter().collect(), pairs: near }, names))
}
