//! `compare-methods`: runs several methods on one corpus, and shows side by side what they keep and what they cost.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail};
use cluster::{Stores, text_of_path};
use operators::method::Spec;
use serde_json::{Value, json};

use super::eval::pair_scores;
use super::labels::{LabelOptions, Labels};
use batch::finished::Finished;
use runtime::Common;
use runtime::cli::exit::WrongUse;
use runtime::cli::piped::PipedInputs;
use runtime::cli::temporary::TemporaryFolder;
use runtime::cli::terminal::{grouped, print, print_json};
use runtime::cli::values::{paths, text_of_file};
use runtime::corpus::input::InputOptions;

/// Run several methods on one corpus, and show side by side what they keep, what they cost and where they differ
///
/// Each method runs in a process of its own, as `dedup --pairs firsts`, so its seconds and its memory are its own. With --labels, each output
/// is scored as by `eval`.
#[derive(clap::Args)]
pub struct Args {
    /// Files, folders, globs or comma lists of them
    #[arg(value_name = "INPUT", required = true, value_parser = paths())]
    inputs: Vec<String>,
    /// Methods with their parameters, separated by commas, such as auto,jaccard:0.8,simhash:features=char:5,hamming=6
    #[arg(long, value_name = "SPECS", default_value = "auto,minhash,simhash,exact", value_parser = MethodList::parse)]
    methods: MethodList,
    /// File of labels: two ids and a label on each line, or an id and its cluster
    #[arg(long, value_name = "FILE", value_parser = paths())]
    labels: Option<String>,
    /// Number of documents that are listed of those about which the methods differ
    #[arg(long, value_name = "N", default_value_t = 10)]
    differences: usize,
    /// Keep the outputs in this folder, which must not exist, one for each method
    #[arg(long, value_name = "FOLDER", value_parser = paths())]
    to: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    input: InputOptions,
}

/// Several methods, as the user has written them.
#[derive(Clone, Debug)]
struct MethodList(Vec<String>);

impl MethodList {
    /// Reads a list in which the parameters of a method have commas, too: a method begins with its name, and a parameter has `=` behind
    /// its own.
    fn parse(text: &str) -> Result<Self, String> {
        let mut specs: Vec<String> = Vec::new();
        for piece in text.split(',') {
            let is_parameter = piece.find('=').is_some_and(|at| !piece[..at].contains(':'));
            match specs.last_mut().filter(|_| is_parameter) {
                Some(spec) => *spec += &format!(",{piece}"),
                None => specs.push(piece.to_owned()),
            }
        }
        let parsed: Vec<Spec> = specs
            .iter()
            .map(|spec| spec.parse().map_err(|error: operators::Error| error.to_string()))
            .collect::<Result<_, _>>()?;
        for (at, spec) in parsed.iter().enumerate() {
            if parsed[..at].contains(spec) {
                return Err(format!("the method {} is there twice", specs[at]));
            }
        }
        Ok(MethodList(specs))
    }
}

/// Figures of a method's run.
struct MethodRun {
    method: String,
    kept: u64,
    removed: u64,
    pairs: u64,
    cpu_seconds: f64,
    memory_bytes: u64,
    /// Precision, recall and F1 of the pairs, where there are labels.
    scores: Option<[Option<f64>; 3]>,
    /// Each document that goes, with the one that stays in its place.
    removals: BTreeMap<String, String>,
}

/// Runs the job; returns 0.
pub fn run(common: &Common, args: &Args) -> Result<u8> {
    let folder = TemporaryFolder::new(&args.input.local_folder())?;
    let outputs = match &args.to {
        Some(to) if Path::new(to).exists() => bail!(WrongUse(format!("\"{to}\" exists: name a new folder"))),
        Some(to) => {
            fs::create_dir_all(to).with_context(|| format!("could not create \"{to}\""))?;
            to.clone()
        }
        None => text_of_path(folder.path().as_os_str()),
    };
    let labels =
        args.labels.as_ref().map(|file| Labels::parse(file, &text_of_file(file)?, &LabelOptions::default()));
    let labels = labels.transpose()?;
    // A pipe can be read once, and each method reads it.
    let mut piped = PipedInputs::default();
    let inputs = args.input.copy_pipes(&mut piped, &args.inputs)?;
    if piped.are_lines {
        bail!(WrongUse("what is piped in begins as no known format does: name it with --format".to_owned()));
    }
    let mut runs = Vec::new();
    for (number, method) in args.methods.0.iter().enumerate() {
        common.tell(format_args!("{method} …"));
        let name = method.split(':').next().unwrap_or_default();
        let output = format!("{outputs}/{}-{name}", number + 1);
        runs.push(
            args.run_method(common, method, (&inputs, &output), labels.as_ref())
                .with_context(|| format!("--method {method}"))?,
        );
    }
    let differing = differing(&runs);
    match args.json {
        true => print_json(&to_json(&runs, &differing, args.differences))?,
        false => print(table(&runs, &differing, args.differences))?,
    }
    Ok(0)
}

impl Args {
    /// Runs a method, and reads its output.
    fn run_method(
        &self,
        common: &Common,
        method: &str,
        (inputs, output): (&[String], &str),
        labels: Option<&Labels>,
    ) -> Result<MethodRun> {
        let workers = common.workers().to_string();
        let mut words = vec!["--quiet", "--workers", &workers, "dedup", "--no-report", "--method", method];
        // zhou2017 has one pair for each document that goes, whatever is asked for.
        words.extend(["--pairs", "firsts"]);
        let options = self.input_words()?;
        words.extend(options.iter().map(String::as_str));
        words.extend(inputs.iter().map(String::as_str));
        words.push(output);
        this_program(&words)?;
        let finished = Finished::open(&Stores::new(), output)?;
        let summary = finished.summary()?;
        let mut removals = BTreeMap::new();
        finished.members(|member| {
            if let Some((kept, ..)) = member.removed {
                removals.insert(member.id, kept);
            }
        })?;
        let counters = &finished.success.counters;
        let number = |name: &str| summary["process"][name].as_u64().unwrap_or(0);
        Ok(MethodRun {
            method: method.to_owned(),
            kept: counters.kept,
            removed: counters.removed,
            pairs: counters.pairs,
            cpu_seconds: number("cpu_milliseconds") as f64 / 1e3,
            memory_bytes: number("peak_memory_bytes"),
            scores: labels.map(|labels| pair_scores(&finished, labels)).transpose()?,
            removals,
        })
    }

    /// Returns the options of the input as words of a command line.
    fn input_words(&self) -> Result<Vec<String>> {
        let Value::Object(options) = serde_json::to_value(&self.input)? else { return Ok(Vec::new()) };
        let given = options.into_iter().filter(|(name, _)| name != "block-bytes");
        let words = given.filter_map(|(name, value)| Some([format!("--{name}"), value.as_str()?.to_owned()]));
        let local = self.input.local_dir.iter().flat_map(|folder| ["--local-dir".to_owned(), folder.clone()]);
        Ok(words.flatten().chain(local).collect())
    }
}

/// Runs a command of this program. Code 3 says that some records were rejected, and that all others are done.
fn this_program(words: &[&str]) -> Result<()> {
    let program = env::current_exe().context("could not find the program of this process")?;
    let output =
        Command::new(program).args(words).output().context("could not run a command of this program")?;
    if !matches!(output.status.code(), Some(0 | 3)) {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or_default();
        let last = last.strip_prefix("error: ").unwrap_or(last).to_owned();
        match output.status.code() {
            Some(2) => bail!(WrongUse(last)),
            _ => bail!(last),
        }
    }
    Ok(())
}

/// Returns the documents that some methods remove and others keep, with the number of those that remove each, the most evenly disputed first.
fn differing(runs: &[MethodRun]) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    for id in runs.iter().flat_map(|run| run.removals.keys()) {
        *counts.entry(id).or_default() += 1;
    }
    let disputed = counts.into_iter().filter(|(_, count)| *count < runs.len());
    let mut disputed: Vec<(String, usize)> = disputed.map(|(id, count)| (id.clone(), count)).collect();
    disputed.sort_by_key(|(_, count)| count.abs_diff(runs.len() - count));
    disputed
}

/// Returns which methods remove a document, and for which others, and which keep it.
fn fates<'r>(runs: &'r [MethodRun], id: &str) -> (Vec<(&'r str, &'r str)>, Vec<&'r str>) {
    let removed = runs.iter().filter_map(|run| Some((&*run.method, &**run.removals.get(id)?)));
    let kept = runs.iter().filter(|run| !run.removals.contains_key(id)).map(|run| &*run.method);
    (removed.collect(), kept.collect())
}

fn table(runs: &[MethodRun], differing: &[(String, usize)], most: usize) -> String {
    let width = runs.iter().map(|run| run.method.len()).max().unwrap_or(0).max("method".len());
    let scored = runs.iter().any(|run| run.scores.is_some());
    let mut table = format!(
        "{:width$} {:>12} {:>12} {:>12} {:>8} {:>7}",
        "method", "kept", "removed", "pairs", "CPU s", "MB"
    );
    if scored {
        table += &format!(" {:>9} {:>9} {:>9}", "precision", "recall", "F1");
    }
    table.push('\n');
    for run in runs {
        let [kept, removed, pairs] = [run.kept, run.removed, run.pairs].map(grouped);
        let method = &run.method;
        let _ = write!(
            table,
            "{method:width$} {kept:>12} {removed:>12} {pairs:>12} {:>8.1} {:>7.0}",
            run.cpu_seconds,
            run.memory_bytes as f64 / 1e6
        );
        for score in run.scores.into_iter().flatten() {
            let _ = write!(table, " {:>9}", score.map_or("-".to_owned(), |score| format!("{score:.4}")));
        }
        table.push('\n');
    }
    let _ = writeln!(
        table,
        "\n{} documents are removed by some methods and kept by others",
        grouped(differing.len() as u64)
    );
    for (id, _) in differing.iter().take(most) {
        let (removed, kept) = fates(runs, id);
        let removed: Vec<String> =
            removed.iter().map(|(method, of)| format!("{method} (for {of})")).collect();
        let line = format!("{id}: removed by {}; kept by {}", removed.join(", "), kept.join(", "));
        let _ = writeln!(table, "    {}", cluster::one_line(&line));
    }
    table
}

fn to_json(runs: &[MethodRun], differing: &[(String, usize)], most: usize) -> Value {
    let methods = runs.iter().map(|run| {
        let [precision, recall, f1] = run.scores.unwrap_or_default();
        json!({
            "method": run.method, "kept": run.kept, "removed": run.removed, "pairs": run.pairs,
            "cpu_seconds": run.cpu_seconds, "memory_bytes": run.memory_bytes,
            "precision": precision, "recall": recall, "f1": f1,
        })
    });
    let documents = differing.iter().take(most).map(|(id, _)| {
        let (removed, kept) = fates(runs, id);
        let removed = removed.iter().map(|(method, of)| json!({ "method": method, "duplicate_of": of }));
        json!({ "id": id, "removed_by": removed.collect::<Vec<_>>(), "kept_by": kept })
    });
    json!({
        "methods": methods.collect::<Vec<_>>(),
        "differing": differing.len(),
        "documents": documents.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_methods_tells_parameters_from_methods() {
        let list = |text| MethodList::parse(text).map(|list| list.0);
        let expected = ["auto", "jaccard:0.8,features=char:3", "simhash:features=char:5,hamming=6", "exact"];
        let text = "auto,jaccard:0.8,features=char:3,simhash:features=char:5,hamming=6,exact";
        assert_eq!(list(text).unwrap(), expected);
        assert!(list("auto,auto").unwrap_err().contains("twice"));
        assert!(list("auto,simhsh").unwrap_err().contains("perhaps simhash"));
        assert!(list("").is_err());
    }
}
