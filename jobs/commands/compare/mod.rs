//! `compare`: labels the test documents of a labelled corpus by four measures, and counts how many labels are
//! right.
//!
//! `training.rs` sums up the classes, `testing.rs` labels by the nearest, `report.rs` prints. This room uses `cli`,
//! `corpus`, `output` and `progress`; only `main.rs` uses it.

mod report;
mod testing;
mod training;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use anyhow::{Result, bail};
use cluster::{Group, Stores};
use datasets::{Error, Reading};
use operators::Reject;
use operators::classify::{Division, Measure};
use operators::text::features::{FeatureSpec, Features};
use operators::text::{Clean, Cleaner};
use serde::{Deserialize, Serialize, Serializer};

use self::report::{CompareCounters, Report, milliseconds, tables};
use self::testing::{Tested, Testing};
use self::training::{LabelMap, Trained, Training};
use runtime::Common;
use runtime::cli::configuration::{Configuration, text};
use runtime::cli::exit::{Failure, WrongUse};
use runtime::cli::terminal::print;
use runtime::cli::values::{output_and_inputs, paths, text_of_file};
use runtime::corpus::input::InputOptions;
use runtime::corpus::run::Run;
use runtime::corpus::same_input::check_same_input;
use runtime::output::map_output::MapOutputs;
use runtime::output::summary::{InputCounters, InputEntry};
use runtime::output::tables::{LabelRow, write_labels};
use runtime::output::{FileList, JobEnd, Key, OutputArgs, OutputFolder, OutputJob};
use runtime::progress::usage::ResourceUsage;
use runtime::progress::{Stage, StageRow, StageTotals, merge, seconds};

/// Compare test documents with classes of training documents by four measures
///
/// Each class is the sum of its training documents' feature counts. Each test document gets the label of the
/// class that is nearest by Euclidean distance, cosine, Pearson's correlation and Hamming distance of SimHash
/// fingerprints. The number of right labels and the CPU time of each measure are printed. The output holds
/// labels/, rejects/ and _SUCCESS, which is written last.
#[derive(Debug, clap::Args)]
#[command(override_usage = "dedup-job compare [OPTIONS] <INPUT>... <OUTPUT>")]
pub struct Args {
    /// Files, folders, globs or comma lists of them, local, on HDFS or in an object store; the last one is
    /// the output folder
    #[arg(required = true, num_args = 1.., value_name = "INPUT> <OUTPUT", value_parser = paths())]
    paths: Vec<String>,
    #[command(flatten)]
    options: CompareOptions,
    /// Stop with exit code 4 before anything is committed if more records than this are rejected
    #[arg(long, value_name = "N")]
    max_rejects: Option<u64>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Options that decide the result.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[serde(rename_all = "kebab-case")]
struct CompareOptions {
    /// Field that holds a document's label; of a URL its host counts [default: the first folder of the
    /// document's id]
    ///
    /// SogouCS has the field url. The default is for folders of texts below one input, where each folder is a
    /// class, and for what pack makes of them.
    #[arg(long, value_name = "FIELD")]
    label_field: Option<String>,
    /// File with the class of each label: the label, a tab and the class on each line
    ///
    /// A host has the class of the longest domain above it that is listed: of club.baobao.sohu.com, that of baobao.sohu.com
    /// or sohu.com. Documents whose label is not listed are left out.
    #[arg(long, value_name = "FILE", value_parser = paths())]
    label_map: Option<String>,
    /// Measures to take, separated by commas: euclid, cosine, correlation and simhash [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = measure)]
    #[serde(serialize_with = "names_of_measures")]
    measures: Vec<Measure>,
    /// Take the paper's pseudo-code by the letter, which gives each document the label of the last class
    #[arg(long)]
    literal: bool,
    /// Features that are counted: jieba, char:N or word:N
    #[arg(long, value_name = "SPEC", default_value = "jieba", value_parser = feature_spec)]
    #[serde(serialize_with = "text::serialize")]
    features: FeatureSpec,
    /// Share of the documents that is for testing
    ///
    /// Test documents are chosen by a hash of their text, so that copies of a text are all for testing or all
    /// for training.
    #[arg(long, value_name = "SHARE", default_value = "0.1", value_parser = share)]
    #[serde(with = "text")]
    test_share: f64,
    /// Seed of the choice: another seed chooses other test documents
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[serde(with = "text")]
    seed: u64,
    #[command(flatten)]
    #[serde(flatten)]
    input: InputOptions,
}

fn feature_spec(text: &str) -> Result<FeatureSpec, String> {
    FeatureSpec::parse(text).ok_or_else(|| "expected jieba, char:N or word:N, N from 1 to 64".to_owned())
}

fn measure(text: &str) -> Result<Measure, String> {
    Measure::named(text).ok_or_else(|| "expected euclid, cosine, correlation or simhash".to_owned())
}

fn names_of_measures<S: Serializer>(measures: &[Measure], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(measures.iter().map(|measure| measure.name()))
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|&share: &f64| 0.0 < share && share < 1.0);
    share.ok_or_else(|| "expected a number between 0 and 1".to_owned())
}

/// Runs the job as one of its processes; returns 0, or 3 if records were rejected.
pub fn run(common: &Common, args: Args) -> Result<u8> {
    common.in_group(args, "the output", |group, args| run_with(common, group, args))
}

fn run_with(common: &Common, group: &Arc<Group>, mut args: Args) -> Result<u8> {
    let start = Instant::now();
    args.options.input.limit_records(None);
    let asked = &mut args.options.measures;
    *asked = Measure::ALL.into_iter().filter(|measure| asked.is_empty() || asked.contains(measure)).collect();
    let options = &args.options;
    let stores = Stores::new();
    let (output, inputs) = output_and_inputs(&args.paths)?;
    let lexicon = options.input.lexicon(options.features == FeatureSpec::Jieba)?;
    let features = Features::new(options.features, &lexicon)?;
    let read = |file: &String| LabelMap::parse(&text_of_file(file)?, file);
    let label_map = options.label_map.as_ref().map(read).transpose()?;
    let plan = Arc::new(options.input.plan(&stores, inputs)?);
    let reading = options.input.reading()?;
    check_same_input(&plan, group)?;
    let configuration = serde_json::to_value(Configuration::here(options, group.all_workers(), inputs)?)?;
    // The processes know the output by a key. A killed run is not resumed, so each has a key of its own.
    let of_run = || Key::new(&(&configuration, std::process::id(), SystemTime::now()), &plan);
    let key = (group.processes() > 1 && group.index() == 0).then(of_run).transpose()?;
    let job = OutputJob {
        common,
        stores: &stores,
        run: Run { group: Arc::clone(group), plan, reading, progress: Arc::default() },
        name: "compare",
        start,
        configuration,
        output,
        args: &args.output,
        key,
        limits: String::new(),
    };
    let begun = job.begin()?;
    let mut report = None;
    let result = begun.work(|folder| {
        let (compared, end) = CompareJob { job: &job, args: &args, folder, label_map }.run(features)?;
        report = compared;
        Ok(end)
    });
    let code = job.end(begun, result)?;
    if let Some(report) = report.filter(|_| !common.progress.quiet) {
        print(format_args!("{report}\n"))?;
    }
    Ok(code)
}

/// A job whose input is planned and whose output is claimed, as one process of it sees it.
struct CompareJob<'a> {
    job: &'a OutputJob<'a>,
    args: &'a Args,
    folder: &'a OutputFolder,
    label_map: Option<LabelMap>,
}

/// Work of one process that process 0 sums up.
#[derive(Deserialize, Serialize)]
struct ComparePart {
    tested: Tested,
    process: ResourceUsage,
    stages: Vec<StageTotals>,
}

impl CompareJob<'_> {
    /// Returns the report, at process 0 alone, and the end of the job.
    fn run(&self, features: Features) -> Result<(Option<Report>, JobEnd<CompareCounters>)> {
        let args = self.args;
        let Run { group, plan, reading: ids, progress } = &self.job.run;
        let start = self.job.start;
        let cleaner = Cleaner::new(Clean::default());
        // The folder of a document is the first one of its id.
        let field = args.options.label_field.clone().or_else(|| ids.id.clone());
        let outputs = ["training", "testing"].map(|reading| self.folder.map_outputs().inside(reading));
        let labels = Reading { id: field, ..ids.clone() };
        let training = Training {
            plan: Arc::clone(plan),
            reading: labels.clone(),
            folders: args.options.label_field.is_none(),
            label_map: self.label_map.clone(),
            features: features.clone(),
            cleaner: cleaner.clone(),
            division: Division::new(args.options.seed, args.options.test_share),
            progress: Arc::clone(progress),
            outputs: outputs[0].clone(),
        };
        let mut trained = training.run(group)?;
        let training = seconds(start.elapsed());
        if group.index() == 0 {
            check_trained(&mut trained)?;
        }
        let testing = Testing {
            plan,
            reading: ids,
            trained: &trained,
            features: &features,
            cleaner: &cleaner,
            measures: &args.options.measures,
            literal: args.options.literal,
            progress,
            outputs: &outputs[1],
        };
        let tested = testing.run(group)?;
        let part = ComparePart { tested, process: ResourceUsage::measure(), stages: progress.totals() };
        let mut report = None;
        let mut others = Vec::new();
        let rejected = group.all_reduce(part, |all| -> Result<_> {
            others.extend(all[1..].iter().flat_map(|part| part.stages.clone()));
            let (written, faults) = self.write(&trained, all, (&outputs, &labels), training)?;
            report = Some(written);
            Ok(faults > 0)
        })?;
        let summary = report.as_ref().map(|report| report.counters);
        Ok((report, JobEnd { summary, others, rejected }))
    }

    /// Writes and commits the output of all processes. Returns the report, and the number of rejects that are faults. `labels`: the first
    /// reading. `training`: the seconds that it took.
    fn write(
        &self,
        trained: &Trained,
        parts: Vec<ComparePart>,
        (outputs, labels): (&[MapOutputs; 2], &Reading),
        training: f64,
    ) -> Result<(Report, u64)> {
        let args = self.args;
        let Run { group, plan, reading: ids, progress } = &self.job.run;
        let (mut process, mut stages, mut tested) = (ResourceUsage::default(), Vec::new(), Vec::new());
        for part in parts {
            process.add(&part.process);
            stages.extend(part.stages);
            tested.push(part.tested);
        }
        let tested = Tested::join(tested);
        if tested.rows.len() as u64 + tested.rejects.count() != trained.tests.len() as u64 {
            match tested.without_field {
                Some(missing) => bail!(Error::Field(missing)),
                None => bail!(
                    "a document was not found again in its second reading; did the input change meanwhile?"
                ),
            }
        }
        if tested.rows.is_empty() {
            bail!(none("test document has an id", "nothing can be said of them", tested.rejects.first()));
        }
        let mut rejects = trained.rejects.clone();
        rejects.join(tested.rejects.clone());
        rejects.check(args.max_rejects, plan, labels)?;

        let at = progress.worker_at(0, Stage::Write);
        let name = |label: Option<u32>| label.map_or("", |label| &trained.labels[label as usize].name);
        let rows = tested.rows.iter().map(|row| LabelRow {
            id: &row.id,
            label: name(Some(row.label)),
            nearest: row.nearest.map(name),
        });
        write_labels(self.folder, &args.options.measures, rows)?;
        trained.rejects.write(self.folder, 0, &outputs[0], plan, labels)?;
        tested.rejects.write(self.folder, 1, &outputs[1], plan, ids)?;
        drop(at);
        let whole = seconds(self.job.start.elapsed());
        let (measures, classes) = tables(&trained.labels, &args.options.measures, &tested);
        let report = Report {
            version: env!("CARGO_PKG_VERSION"),
            configuration: self.job.configuration.clone(),
            counters: CompareCounters {
                input: InputCounters::of(plan),
                records_read: trained.read.docs + trained.rejects.count(),
                text_bytes: trained.read.text_bytes,
                replaced: trained.read.replaced,
                training: trained.labels.iter().map(|label| label.training).sum(),
                tested: tested.rows.len() as u64,
                unlabelled: trained.read.unlabelled,
                rejected: rejects.count(),
                features: trained.classes.features() as u64,
            },
            measures,
            fingerprint_cpu_milliseconds: milliseconds(tested.fingerprints),
            classes,
            process,
            seconds: BTreeMap::from([("training", training), ("whole", whole)]),
            stages: merge(stages).iter().map(StageRow::of).collect(),
            input: plan.files.iter().map(InputEntry::of).collect(),
        };
        let _at = progress.worker_at(0, Stage::Commit);
        // The other processes have finished their work, so they may end from here on.
        group.settle();
        self.job.commit(self.folder, &report, FileList::default())?;
        Ok((report, rejects.faults()))
    }
}

/// Returns an error if there are no training documents or no test documents.
fn check_trained(trained: &mut Trained) -> Result<()> {
    if let Some((_, missing)) = trained.read.without_field.take().filter(|_| trained.read.docs == 0) {
        bail!(Error::Field(missing)); // a name that no file knows is misspelt
    }
    let labelled = trained.read.docs - trained.read.unlabelled;
    let tests = trained.tests.len() as u64;
    if labelled == 0 {
        let why = "the first folder of its id is one, or the field that --label-field names";
        bail!(none("document has a label", why, trained.rejects.first()));
    }
    if tests == 0 || tests == labelled {
        bail!(WrongUse(format!(
            "{tests} of {labelled} documents are for testing; choose another --test-share or --seed"
        )));
    }
    Ok(())
}

/// Returns the error of a run that has no document of a kind. The user has to change something, and will want
/// to know why the first record was rejected.
fn none(such: &str, why: &str, reject: Option<&Reject>) -> Failure {
    let first = reject.map(|Reject { path, offset, reason, .. }| {
        format!("; the first reject: \"{path}\" at {offset}: {reason}")
    });
    WrongUse(format!("no {such}: {why}{}", first.unwrap_or_default()))
}
