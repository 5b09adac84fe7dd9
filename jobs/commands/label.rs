//! `label`: draws pairs of the input of a finished output, and takes a reader's labels for them in the terminal.

use std::env;
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use cluster::{Stores, one_line, path_of_text};
use operators::method::Spec;
use operators::text::document_frequencies::Statistics;
use operators::text::features::Lexicon;
use serde_json::json;

use super::labels::draw::{LEAST, StratifiedDraw};
use super::labels::table::{LABELS, LabelTable, LabelledRow};
use super::side_by_side::TextLayout;
use batch::finished::Finished;
use batch::pipeline::{CorpusSearch, find_on_workers, map};
use runtime::Common;
use runtime::cli::exit::WrongUse;
use runtime::cli::report_file::ReportFile;
use runtime::cli::temporary::TemporaryFolder;
use runtime::cli::values::{paths, text_of_file};
use runtime::corpus::input::{Census, Input, InputDocument};
use runtime::corpus::run::Run;
use runtime::corpus::sample::Sample;
use runtime::progress::Progress;

/// Label pairs of documents in the terminal, for eval and tune
///
/// Draws pairs of the input of an output, at least 0.4 alike by the similarity of auto, in equal numbers from
/// lengths and similarities, and writes them to a file with the number of pairs that each stands for. Shows one
/// pair after the other, and writes each label to the file at once. If the file is there, its pairs are labelled
/// from the first one without a label on. With --merge, makes one file of several that label the same pairs, by
/// majority, and prints Fleiss' kappa.
#[derive(clap::Args)]
pub struct Args {
    /// A finished output of dedup
    #[arg(value_parser = paths(), required_unless_present = "merge")]
    output: Option<String>,
    /// File of labels
    #[arg(long, value_name = "FILE", value_parser = paths())]
    to: String,
    /// Number of pairs to draw: with fewer than 18, the smallest of the 18 strata have none
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pairs: u64,
    /// Approximate number of documents in which pairs are looked for
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(2..))]
    sample: u64,
    /// Seed: another seed draws other pairs
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Merge these files of labels of the same pairs
    #[arg(long, value_name = "FILES", value_delimiter = ',', num_args = 1.., conflicts_with = "output", value_parser = paths())]
    merge: Vec<String>,
}

/// Runs the job; returns 0.
pub fn run(common: &Common, args: &Args) -> Result<u8> {
    let file = ReportFile::check(&args.to)?;
    let Some(output) = &args.output else { return merge(&args.merge, &args.to, &file) };
    let finished = Finished::open(&Stores::new(), output)?;
    let mut table = match Path::new(&path_of_text(&args.to)).exists() {
        true => LabelTable::parse(&args.to, &text_of_file(&args.to)?)?,
        false => draw(common, args, &finished)?,
    };
    file.replace(table.to_text())?;
    let done = ask(common, &finished, &mut table, &file)?;
    let count = |label: &str| table.rows.iter().filter(|row| row.label == label).count();
    let counts = LABELS.map(|label| format!("{} {label}", count(label))).join(", ");
    let left = if done { String::new() } else { format!(", {} not labelled yet", count("")) };
    writeln!(io::stdout(), "{} pairs in \"{}\": {counts}{left}", table.rows.len(), args.to)?;
    Ok(0)
}

/// Merges files of labels into one.
fn merge(names: &[String], file_name: &str, file: &ReportFile) -> Result<u8> {
    let read = |name: &String| Ok((name.clone(), LabelTable::parse(name, &text_of_file(name)?)?));
    let named = names.iter().map(read).collect::<Result<Vec<_>>>()?;
    let (merged, kappa) = LabelTable::merge(&named)?;
    if Path::new(&path_of_text(file_name)).exists() {
        bail!(WrongUse(format!("\"{file_name}\" exists: name another file for the merged labels")));
    }
    file.replace(merged.to_text())?;
    let kappa =
        kappa.map_or("not defined, since all labels are the same".to_owned(), |kappa| format!("{kappa:.3}"));
    let agreed =
        merged.rows.iter().filter(|row| row.merged.iter().all(|label| *label == row.merged[0])).count();
    let pairs = merged.rows.len();
    let files = named.len();
    writeln!(
        io::stdout(),
        "{pairs} pairs, {files} files, {agreed} pairs with one label in all; Fleiss' kappa {kappa}"
    )?;
    Ok(0)
}

/// Draws pairs of the input, or of a sample of its texts.
fn draw(common: &Common, args: &Args, finished: &Finished) -> Result<LabelTable> {
    let asked = json!({"output": args.output, "pairs": args.pairs, "sample": args.sample, "seed": args.seed});
    let input = finished.input(common.workers())?;
    let (watch, progress) = input.watch(&common.progress, "label", &asked)?;
    let table = watch.end(draw_of_input(args, input, &progress))?;
    if table.rows.is_empty() {
        bail!("no two documents of the input are at least {LEAST} alike, so there is nothing to label");
    }
    Ok(table)
}

/// Draws pairs of the texts of this input; none if no two are alike enough.
fn draw_of_input(args: &Args, mut input: Input, progress: &Arc<Progress>) -> Result<LabelTable> {
    let method: Spec = format!("auto:short={LEAST},long={LEAST},templates=same,search=exact").parse()?;
    let (pairs, seed) = (args.pairs as usize, args.seed);
    let census = Census::of(&input, progress)?;
    let sample = Sample::of_texts(seed, args.sample, census.documents, method.clean());
    input.plan.sample(&sample);
    let run = Run::alone(input.plan, input.reading, input.workers, progress);
    let folder = TemporaryFolder::new(&env::temp_dir())?;
    let method = method.method(&Lexicon::default(), &Statistics::default(), None)?;
    let mapped = map(CorpusSearch::in_folder(folder.path(), run, method))?;
    let (_, drawn) = find_on_workers(mapped, move |worker, clusters| {
        let mut drawn = StratifiedDraw::new(pairs, seed);
        clusters.decide(worker, |batch, _| {
            drawn.offer(batch);
            anyhow::Ok(())
        })?;
        Ok(drawn)
    })?;
    let mut all = StratifiedDraw::new(pairs, seed);
    drawn.into_iter().for_each(|drawn| all.join(drawn));
    Ok(all.finish(sample.share().powi(-2)))
}

/// Asks for the labels that are missing, and writes the file after each. Returns whether none is missing.
fn ask(common: &Common, finished: &Finished, table: &mut LabelTable, file: &ReportFile) -> Result<bool> {
    let missing: Vec<usize> = (0..table.rows.len()).filter(|&at| table.rows[at].label.is_empty()).collect();
    let ids: Vec<&str> = missing.iter().flat_map(|&at| &table.rows[at].ids).map(String::as_str).collect();
    let asked = json!({"ids": ids.len()});
    let input = finished.input(common.workers())?;
    let documents = match ids.is_empty() {
        true => Vec::new(),
        false => {
            let (watch, progress) = input.watch(&common.progress, "label", &asked)?;
            watch.end(input.with_ids(&ids, &progress))?
        }
    };
    let layout = TextLayout::of_terminal(None, true);
    let (mut out, mut answers) = (io::stdout().lock(), io::stdin().lock());
    let mut number = 0;
    while let Some(&at) = missing.get(number) {
        let row = &table.rows[at];
        writeln!(out, "\n{} of {}", number + 1, missing.len())?;
        show(&layout, row, &documents, &mut out)?;
        write!(out, "1 the same, 0 different, ? cannot say, b back, q quit: ")?;
        out.flush()?;
        let mut answer = String::new();
        if answers.read_line(&mut answer)? == 0 {
            writeln!(out)?;
            return Ok(false);
        }
        match answer.trim() {
            "q" => return Ok(false),
            "b" => number = number.saturating_sub(1),
            label if LABELS.contains(&label) => {
                table.rows[at].label = label.to_owned();
                file.replace(table.to_text())?;
                number += 1;
            }
            _ => writeln!(out, "please answer 1, 0, ?, b or q")?,
        }
    }
    Ok(true)
}

/// Shows a pair.
fn show(
    layout: &TextLayout,
    row: &LabelledRow,
    documents: &[InputDocument],
    out: &mut dyn Write,
) -> Result<()> {
    let [a, b] = &row.ids;
    let text = |id: &str| {
        let mut found = documents.iter().filter(|document| document.id == id);
        match (found.next(), found.next()) {
            (Some(document), None) => Ok(document.text.as_str()),
            (None, _) => bail!(WrongUse(format!("the input has no document called \"{}\"", one_line(id)))),
            _ => bail!(WrongUse(format!("two documents of the input are called \"{}\"", one_line(id)))),
        }
    };
    writeln!(out, "{}", layout.headings(a, b))?;
    layout.lines(text(a)?, text(b)?).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    Ok(())
}
