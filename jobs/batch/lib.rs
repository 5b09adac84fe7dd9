//! The job `dedup`: finds the near-duplicate pairs of a corpus, writes pairs, clusters and a clean corpus.
//!
//! `run_with` plans and claims; `search_and_write` counts what the method needs, maps, finds, decides and writes. This crate uses
//! `runtime`; `nightly`, `index`, `chunk clean` and the commands `rethreshold`, `explain`, `label`, `tune`, `why`, `show` and `eval` use
//! parts of it.

#![cfg_attr(not(feature = "cli"), allow(dead_code, reason = "the command line uses the rest"))]

pub mod corpus_counts;
pub mod decide;
pub mod dedup_job;
pub mod finished;
pub mod guards;
pub mod ignored_lines;
pub mod keep;
pub mod memory;
pub mod options;
pub mod pipeline;
pub mod stars;
pub mod tally;
pub mod verdicts;
pub mod write;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Result, bail};
use cluster::{Group, Stores};
use operators::text::document_frequencies::Statistics;
use operators::text::features::Lexicon;
use operators::text::ignored_lines::IgnoredLines;
use operators::{SpillBudget, hash};
use serde_json::Value;

use self::decide::{Decided, Decider};
use self::dedup_job::DedupJob;
use self::guards::Guards;
use self::ignored_lines::{CountedLines, LineCounter};
use self::memory::MemoryOptions;
use self::options::DedupOptions;
use self::pipeline::{CorpusSearch, SearchResult, find_on_workers, map};
use runtime::Common;
use runtime::cli::configuration::{Configuration, deciding};
use runtime::cli::exit::WrongUse;
#[cfg(feature = "cli")]
use runtime::cli::headings::STAYS;
use runtime::cli::piped::{STANDARD, is_pipe};
use runtime::cli::values::output_and_inputs;
#[cfg(feature = "cli")]
use runtime::cli::values::paths;
use runtime::corpus::input::PIPED_LINES;
use runtime::corpus::plan::Plan;
use runtime::corpus::run::Run;
use runtime::corpus::same_input::check_same_input;
use runtime::output::summary::Summary;
use runtime::output::tables::PairsOf;
use runtime::output::{FileOutput, FileTargets, JobEnd, Key, OutputArgs, OutputFolder, OutputJob};
use runtime::report::ReportArgs;

/// Examples of the command line, the commonest first.
const EXAMPLES: &str = concat!("Examples:\n", include_str!("examples.txt"));

/// Find near-duplicates and leave a clean corpus
///
/// The output holds kept/ and removed/ in the input's own format, pairs/, clusters/ and rejects/, and
/// _SUCCESS, which is written last. An output that is a file or - has the kept records alone.
#[derive(Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[cfg_attr(feature = "cli", command(override_usage = "dedup-job dedup [OPTIONS] <INPUT>... <OUTPUT>", before_long_help = EXAMPLES))]
#[cfg_attr(
    feature = "cli",
    command(
        after_help = "--help shows all options and examples; help methods, help formats and help memory tell more."
    )
)]
pub struct Args {
    /// Files, folders, globs or comma lists of them, local, on HDFS or in an object store, or - for the standard input. The last one
    /// is the output: a folder, a file such as clean.jsonl for one input file, or - for the standard output
    // This is not `num_args = 2..`, which would ask for two between any two options.
    #[cfg_attr(feature = "cli", arg(required = true, num_args = 1.., value_name = "INPUT> <OUTPUT", value_parser = paths()))]
    pub paths: Vec<String>,
    /// Options that decide which documents stay and what is written.
    #[cfg_attr(feature = "cli", command(flatten))]
    pub options: DedupOptions,
    /// Options that limit the memory of each process.
    #[cfg_attr(feature = "cli", command(flatten))]
    pub memory: MemoryOptions,
    /// Stop with exit code 4 before anything is committed if more records than this are rejected
    #[cfg_attr(feature = "cli", arg(help_heading = STAYS, hide_short_help = true, long, value_name = "N"))]
    pub max_rejects: Option<u64>,
    /// Limits of what may be removed; a run that would remove more ends with exit code 4.
    #[cfg_attr(feature = "cli", command(flatten))]
    pub guards: Guards,
    /// Option that leaves the page of the run out.
    #[cfg_attr(feature = "cli", command(flatten))]
    pub report: ReportArgs,
    /// Options of the output that all jobs share, such as `--overwrite`.
    #[cfg_attr(feature = "cli", command(flatten))]
    pub output: OutputArgs,
    /// Files for removed and rejected records, where the output is one file.
    #[cfg_attr(feature = "cli", command(flatten))]
    pub file: FileTargets,
}

/// Runs the job as one of its processes. Returns the exit code: 0, or 3 if records were rejected.
pub fn run(common: &Common, mut args: Args) -> Result<u8> {
    args.memory.give_back();
    args.take_file(common)?;
    common.in_group(args, "the output", |group, args| run_with(common, group, args))
}

impl Args {
    /// Lets the run write a hidden folder, if the output is one file.
    ///
    /// # Errors
    /// Those of [`FileOutput::of`]; [`WrongUse`] when several processes would read or write a pipe.
    fn take_file(&mut self, common: &Common) -> Result<()> {
        let (output, inputs) = output_and_inputs(&self.paths)?;
        let are_pipes = output == STANDARD || inputs.iter().any(|input| is_pipe(input));
        if common.is_one_of_several() && (are_pipes || FileOutput::is_file(output, inputs)) {
            bail!(WrongUse(
                "several processes read no pipes and write a folder: name one, with / at its end".to_owned()
            ));
        }
        let local = self.options.input.local_folder();
        self.output.file = FileOutput::of(output, inputs, &self.file, (self.output.overwrite, &local))?;
        if output == STANDARD && self.output.summary_json.as_deref() == Some(STANDARD) {
            bail!(WrongUse("the records and the summary cannot both go to the standard output".to_owned()));
        }
        if self.output.file.is_some() && self.options.write.dry_run {
            bail!(WrongUse(
                "--dry-run writes no records, so its output is a folder: name one, with / at its end"
                    .to_owned()
            ));
        }
        if self.output.file.is_some() && self.options.write.write_rejected {
            bail!(WrongUse(
                "--write-rejected is for an output that is a folder; --rejected FILE lists the rejected records of one that is a file"
                    .to_owned()
            ));
        }
        if self.output.file.is_some() && self.options.write.only.is_some() {
            bail!(WrongUse(
                "--only writes tables, so its output is a folder: name one, with / at its end".to_owned()
            ));
        }
        if self.options.write.annotate {
            self.output.file = self.output.file.take().map(FileOutput::annotated).transpose()?;
        }
        self.output.table_format = self.options.write.output_format;
        if self.output.file.is_none() && FileOutput::is_named(output) {
            common.warn(format_args!("\"{output}\" will be a folder, since not one file alone is read"));
        }
        if let Some(file) = &self.output.file {
            let last = self.paths.len() - 1;
            self.paths[last] = file.folder();
            self.report.no_report = true;
            self.output.overwrite = true;
        }
        Ok(())
    }
}

fn run_with(common: &Common, group: &Arc<Group>, args: Args) -> Result<u8> {
    let start = Instant::now();
    let stores = Stores::new();
    let Args { paths, mut options, memory, max_rejects, guards, report, output: output_args, .. } = args;
    let (output, inputs) = output_and_inputs(&paths)?;
    options.take_fingerprints()?;
    options.input.limit_records(memory.of_records(group.workers()));
    let lexicon = options.input.lexicon(options.method.cuts_words())?;
    let statistics = options.statistics.as_deref();
    let statistics =
        statistics.map(|uri| corpus_counts::read(&stores, uri, &options.method, &lexicon)).transpose()?;
    options.resolve()?;
    if group.index() == 0 {
        common.warn_of(&options.method);
        if options.pairs == PairsOf::All {
            common.warn("--pairs all writes every match: n documents that are near-equal or identical give n × (n − 1) / 2 rows");
        }
    }
    let mut plan = options.input.plan_against(&stores, &options.against, inputs)?;
    if output_args.file.as_ref().map_or(Ok(false), |file| file.wants_one_split(&plan))? {
        plan = plan.in_one_split();
    }
    if let [file] = plan.files_by_side().1
        && plan.input_splits().iter().any(|split| split.format.name() == "tancorp")
        && group.index() == 0
    {
        let file = file.full_path();
        common.warn(format_args!(
            "\"{file}\" is read as one document: --format lines reads each of its lines as one"
        ));
    }
    if plan.piped.are_lines {
        common.tell(PIPED_LINES);
    }
    let plan = Arc::new(plan);
    check_same_input(&plan, group)?;
    if group.index() == 0 {
        warn_of_sides(common, &options.against, inputs, &plan);
    }
    let reading = options.reading(&plan)?;
    options.write.check(&plan)?;
    let local = options.input.local_folder();
    let spill = memory.left_of(1, group, &options.method, &lexicon, plan.text_bytes, &local)?;
    let lines = options.ignore_lines_of.as_deref().map(|uri| CountedLines::read(&stores, uri)).transpose()?;
    lines.as_ref().map_or(Ok(()), |lines| lines.check(&spill))?;
    let configuration =
        serde_json::to_value(Configuration::here(options.clone(), group.all_workers(), inputs)?)?;
    let key = match group.index() {
        0 => Some(key(&configuration, &lexicon, statistics.as_ref(), lines.as_ref(), &plan)?),
        _ => None,
    };
    let job = OutputJob {
        common,
        stores: &stores,
        run: Run { group: Arc::clone(group), plan, reading, progress: Arc::default() },
        name: "dedup",
        start,
        configuration,
        output,
        args: &output_args,
        key,
        limits: format!("{guards:?} max-rejects {max_rejects:?}"),
    };
    let dedup =
        DedupJob { job: &job, options: &options, guards: &guards, max_rejects, report, companion: None };
    let begun = dedup.begin()?;
    let result = begun.work(|folder| match dedup.decided_before(folder) {
        Some(end) => end,
        None => search_and_write(&dedup, folder, &lexicon, statistics, (lines, spill)),
    });
    job.end(begun, result)
}

/// Warns of what may belong to a reference and is in the input.
fn warn_of_sides(common: &Common, against: &[String], inputs: &[String], plan: &Plan) {
    if let ([reference], [second, _, ..]) = (against, inputs) {
        common.warn(format_args!(
            "--against takes one REF, here \"{reference}\", so \"{second}\" is a part of the input: write --against before \
             each reference"
        ));
    }
    if let Some((training, test)) = plan.training_and_test() {
        common.warn(format_args!(
            "\"{}\" and \"{}\" look like the training and the test data of one data set, and a document of one may go for \
             one of the other: clean each apart, or name the test data with --against",
            training.full_path(),
            test.full_path()
        ));
    }
}

/// Finds the pairs of the corpus and writes the output.
fn search_and_write(
    dedup: &DedupJob,
    folder: &Arc<OutputFolder>,
    lexicon: &Lexicon,
    statistics: Option<Statistics>,
    (lines, spill): (Option<CountedLines>, SpillBudget),
) -> Result<JobEnd<Summary>> {
    let run = &dedup.job.run;
    let options = dedup.options;
    let lines = match (lines, options.ignore_lines) {
        (None, Some(least)) => Some(LineCounter { run, spill: spill.clone() }.count(least)?),
        (lines, _) => lines,
    };
    let statistics = corpus_counts::count_unless_given(statistics, &options.method, lexicon, run)?;
    if run.group.index() == 0 {
        corpus_counts::write(folder, &options.method, lexicon, &statistics)?;
        lines.as_ref().map_or(Ok(()), |lines| lines.write(folder))?;
    }
    let ignored = lines.as_ref().map(CountedLines::ignored);
    drop(lines);
    let count = ignored.as_ref().map(|lines| lines.count() as u64);
    let list_bytes = count.unwrap_or(0) as usize * IgnoredLines::LINE_BYTES;
    let spill = spill.without(list_bytes).shared_by(run.group.workers());
    let outputs = folder.map_outputs().of_input(run.plan.text_bytes);
    let sides = options.sides(&run.plan);
    let decider = Decider::new(folder, options, sides, &spill);
    let search = CorpusSearch {
        run: run.clone(),
        method: options.method.method(lexicon, &statistics, options.threshold())?,
        sides,
        max_rejects: dedup.max_rejects,
        secret: outputs.secret(&run.group)?,
        outputs,
        spill: spill.clone(),
        keeps_texts: false,
        ignored,
        leaders: options.leaders(),
    };
    let (found, decided) =
        find_on_workers(map(search)?, move |worker, clusters| decider.decide(worker, clusters))?;
    run.progress.spilled_bytes.fetch_add(spill.spilled().bytes, Ordering::Relaxed);
    dedup.write(folder, SearchResult { ignored_lines: count, ..found }, Decided::join(decided))
}

/// Returns the key by which process 0 recognises the work of a killed run that this run may resume. The key
/// covers the contents of word files, whatever their names are. It leaves out the number of workers, which
/// does not change the output.
fn key(
    configuration: &Value,
    lexicon: &Lexicon,
    statistics: Option<&Statistics>,
    lines: Option<&CountedLines>,
    plan: &Plan,
) -> Result<Key> {
    let words = [&lexicon.stop_words, &lexicon.user_words].map(|words| hash::bytes(words.as_bytes()));
    let counts = statistics.map(|statistics| {
        let counts: Vec<u8> = statistics.counts.iter().flat_map(|count| count.to_le_bytes()).collect();
        (statistics.documents, hash::bytes(&counts))
    });
    Key::new(&(deciding(configuration), words, counts, lines.map(CountedLines::fingerprint)), plan)
}
