//! `eval`: scores how well a finished output agrees with labels. `page.rs` shows the scores on a page.

mod page;

use std::collections::HashMap;
use std::io::Write;

use anyhow::{Result, bail};
use cluster::Stores;
use operators::{Core2020, RankedPair, Removals, Score, Similarity, TruthGroups};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::labels::agreement::{self, ComparedPair};
use super::labels::{JudgedPair, LabelOptions, Labels, Truth};
use batch::finished::Finished;
use runtime::cli::exit::WrongUse;
use runtime::cli::report_file::ReportFile;
use runtime::cli::terminal::{grouped, print};
use runtime::cli::values::{paths, text_of_file};
use runtime::output::tables::PairsOf;

/// Score a finished output against labelled pairs or clusters
///
/// Prints precision, recall and F1 of pairs, and the figures of the CORE-2020 benchmark's older convention.
/// Where the labels name all true pairs, it also prints those of removed documents.
/// docs/design/accuracy.md defines each figure.
#[derive(clap::Args)]
pub struct Args {
    /// Finished outputs of dedup, and last the file of labels: two ids and a label on each line, or an id and its cluster. Several outputs
    /// give a table of one line for each
    #[arg(required = true, num_args = 1.., value_name = "OUTPUT> <LABELS", value_parser = paths())]
    paths: Vec<String>,
    #[command(flatten)]
    options: LabelOptions,
    /// Pairs that count as found: those of the output, or every two documents of one of its clusters [default: pairs,
    /// unless the output has only those that decided]
    #[arg(long, value_name = "WHAT")]
    by: Option<By>,
    /// List the found pairs that are false, or the true pairs that were missed, or both
    #[arg(long, value_name = "WHICH", value_delimiter = ',')]
    list: Vec<Listed>,
    /// Write that list to this file [default: the terminal]
    #[arg(long, value_name = "FILE", requires = "list", value_parser = paths())]
    list_to: Option<String>,
    /// Write the figures to this file as JSON
    #[arg(long, value_name = "FILE", value_parser = paths())]
    json: Option<String>,
    /// Write a page with the figures, and with the curve of precision and recall, to this file
    #[arg(long, value_name = "FILE", value_parser = paths())]
    html: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum By {
    Pairs,
    Clusters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Listed {
    False,
    Missed,
}

/// Runs the job; returns 0.
pub fn run(args: Args) -> Result<u8> {
    let (labels_file, outputs) = match args.paths.split_last() {
        Some((labels, outputs @ [_, ..])) => (labels, outputs),
        _ => bail!(WrongUse(
            "expected <OUTPUT> <LABELS>: at least one output, and the file of labels last".to_owned()
        )),
    };
    let [output] = outputs else { return compare_outputs(&args, outputs, labels_file) };
    let list_to = args.list_to.as_deref().map(ReportFile::check).transpose()?;
    let json_file = args.json.as_deref().map(ReportFile::check).transpose()?;
    let html_file = args.html.as_deref().map(ReportFile::check).transpose()?;
    let finished = Finished::open(&Stores::new(), output)?;
    let by = counted(args.by, &finished)?;
    let labels = Labels::parse(labels_file, &text_of_file(labels_file)?, &args.options)?;
    let said = labels.to_string();
    let found = Evaluated::read(&finished, by, labels.ids)?;
    if found.labelled == 0 {
        log::warn!("no labelled document is in a cluster of the output; are these its ids?");
    }
    let counters = &finished.success.counters;
    let figures = Figures::new(&found, &labels.truth, counters.kept + counters.removed);

    let by = if by == By::Pairs { "the pairs" } else { "every two documents of a cluster" };
    let mut out = std::io::stdout().lock();
    // A reader that has seen enough, such as `head`, is no failure.
    let _ = write!(out, "Labels: {said}.\nFound: {by} of {output}.\n\n{}", figures.table());
    if !args.list.is_empty() {
        match list_to {
            None => drop(writeln!(out).and_then(|()| figures.list(&args.list, &found.ids, &mut out))),
            Some(file) => file.replace_with(|file| figures.list(&args.list, &found.ids, file))?,
        }
    }
    if let Some(file) = json_file {
        let json = serde_json::to_string_pretty(&figures.json())? + "\n";
        file.replace(json)?;
    }
    if let Some(file) = html_file {
        file.replace(figures.page(output, &said)?)?;
    }
    Ok(0)
}

/// Returns what counts as found in an output. `by`: what the user asks for.
///
/// # Errors
/// [`WrongUse`] when pairs are asked for and the output does not have all of them.
fn counted(by: Option<By>, finished: &Finished) -> Result<By> {
    let deciding = finished.options().pairs == PairsOf::Deciding;
    let by = by.unwrap_or(if deciding { By::Clusters } else { By::Pairs });
    if deciding && by == By::Pairs {
        bail!(WrongUse(format!(
            "\"{}\" has the pairs that decided alone: run dedup with --pairs firsts to evaluate all",
            finished.uri
        )));
    }
    Ok(by)
}

/// Returns precision, recall and F1 of the pairs of an output by labels; `None` where there is no whole.
///
/// # Errors
/// Those of the output; when two of its documents have one id.
pub(super) fn pair_scores(finished: &Finished, labels: &Labels) -> Result<[Option<f64>; 3]> {
    Ok(Figures::of_output(finished, None, labels)?.pair_scores())
}

/// Prints a line for each of several outputs.
fn compare_outputs(args: &Args, outputs: &[String], labels_file: &str) -> Result<u8> {
    if !args.list.is_empty() || args.html.is_some() {
        bail!(WrongUse("--list and --html are for one output".to_owned()));
    }
    let json_file = args.json.as_deref().map(ReportFile::check).transpose()?;
    let width = outputs.iter().map(|output| output.width()).max().unwrap_or(0).max("output".len());
    let mut table =
        format!("{:width$} {:>12} {:>12} precision    recall        F1\n", "output", "kept", "removed");
    let labels = Labels::parse(labels_file, &text_of_file(labels_file)?, &args.options)?;
    let mut all = serde_json::Map::new();
    for output in outputs {
        let finished = Finished::open(&Stores::new(), output)?;
        let figures = Figures::of_output(&finished, args.by, &labels)?;
        let counters = &finished.success.counters;
        let [kept, removed] = [counters.kept, counters.removed].map(grouped);
        let [precision, recall, f1] = figures.pair_scores().map(part);
        let name = cluster::one_line(output);
        let room = width - output.width().min(width);
        table += &format!("{name}{:room$} {kept:>12} {removed:>12} {precision:>9} {recall:>9} {f1:>9}\n", "");
        all.insert(output.clone(), figures.json());
    }
    print(table)?;
    json_file.map_or(Ok(()), |file| file.replace(serde_json::to_string_pretty(&all)? + "\n"))?;
    Ok(0)
}

/// Pairs and removals of an output, of documents by number: the labelled ones first.
struct Evaluated {
    ids: Vec<String>,
    partners: TruthGroups,
    /// Pairs of the output that are not identical, with their similarities; none if clusters are evaluated.
    pairs: Vec<(u32, u32, Option<Similarity>)>,
    removed: Vec<bool>,
    /// Number of labelled documents that are in a cluster of the output.
    labelled: usize,
}

impl Evaluated {
    fn read(finished: &Finished, by: By, mut ids: Vec<String>) -> Result<Self> {
        let known = ids.len();
        let mut numbers: HashMap<String, u32> = ids.iter().cloned().zip(0..).collect();
        let mut number = |id: String| {
            *numbers.entry(id).or_insert_with_key(|id| {
                ids.push(id.clone());
                ids.len() as u32 - 1
            })
        };
        let (mut same, mut pairs) = (Vec::new(), Vec::new());
        let mut gone = Vec::new();
        let mut labelled = 0;
        let mut places = HashMap::new();
        let mut twice = None;
        finished.members(|member| {
            let doc = number(member.id);
            if places.insert(doc, member.place).is_some_and(|place| place != member.place) {
                twice = Some(doc);
            }
            labelled += usize::from((doc as usize) < known);
            if by == By::Clusters {
                same.push((doc, number(member.cluster)));
            }
            if member.removed.is_some() {
                gone.push(doc);
            }
        })?;
        if by == By::Pairs {
            finished.pairs(|pair| {
                let (a, b) = (number(pair.a), number(pair.b));
                match pair.identical {
                    true => same.push((a, b)),
                    false => pairs.push((a, b, pair.similarity)),
                }
            })?;
        }
        if let Some(doc) = twice {
            bail!(
                "two documents of the output are called \"{}\", so its labels say nothing",
                ids[doc as usize]
            );
        }
        let of_classes: Vec<_> = pairs.iter().map(|&(a, b, _)| (a, b)).collect();
        let partners = TruthGroups::new(ids.len(), &same, &of_classes);
        let mut removed = vec![false; ids.len()];
        gone.into_iter().for_each(|doc| removed[doc as usize] = true);
        Ok(Evaluated { ids, partners, pairs, removed, labelled })
    }

    /// Returns what was made of labelled pairs. A found pair without similarity is ranked as an identical one.
    fn compared(&self, labelled: &[JudgedPair]) -> Vec<ComparedPair> {
        let classes = |a: u32, b: u32| {
            let (a, b) = (self.partners.class(a), self.partners.class(b));
            (a.min(b), a.max(b))
        };
        let mut known: HashMap<_, _> =
            labelled.iter().map(|pair| (classes(pair.docs.0, pair.docs.1), Similarity::ONE)).collect();
        for &(a, b, similarity) in &self.pairs {
            if let (Some(place), Some(similarity)) = (known.get_mut(&classes(a, b)), similarity) {
                *place = similarity;
            }
        }
        let compared = labelled.iter().map(|pair| {
            let (a, b) = pair.docs;
            let found = self.partners.related(a, b);
            let similarity = if found { known[&classes(a, b)] } else { Similarity::millionths(0) };
            let ranked = RankedPair { similarity, same: pair.same, weight: pair.weight };
            ComparedPair { ranked, class: pair.class.clone(), found }
        });
        compared.collect()
    }
}

/// True pairs and found pairs, as far as they are judged, and their scores.
struct Figures {
    truth: TruthGroups,
    found: TruthGroups,
    pairs: Score,
    /// Scores of removed documents, if the labels name all true pairs of the documents that they judge.
    removals: Option<Removals>,
    core: Core2020,
    documents: u64,
    /// Labelled pairs, if only these are judged.
    compared: Vec<ComparedPair>,
}

impl Figures {
    /// Evaluates an output. `by`: what the user wants to count as found.
    fn of_output(finished: &Finished, by: Option<By>, labels: &Labels) -> Result<Self> {
        let found = Evaluated::read(finished, counted(by, finished)?, labels.ids.clone())?;
        let counters = &finished.success.counters;
        Ok(Figures::new(&found, &labels.truth, counters.kept + counters.removed))
    }

    /// Returns precision, recall and F1 of the pairs.
    fn pair_scores(&self) -> [Option<f64>; 3] {
        [self.pairs.precision(), self.pairs.recall(), self.pairs.f1()]
    }

    /// Scores an output. `documents`: number of documents of the corpus.
    fn new(found: &Evaluated, labels: &Truth, documents: u64) -> Self {
        let compared = match labels {
            Truth::Judged(pairs) => found.compared(pairs),
            _ => Vec::new(),
        };
        let all = found.partners.documents();
        let (truth, found, removed, documents) = match labels {
            Truth::Whole(pairs) => (
                TruthGroups::new(all, &[], pairs),
                found.partners.clone(),
                Some(&found.removed[..]),
                documents,
            ),
            Truth::Clusters(members) => {
                let listed = members.len();
                let partners = found.partners.clone().first(listed);
                (
                    TruthGroups::new(listed, members, &[]),
                    partners,
                    Some(&found.removed[..listed]),
                    listed as u64,
                )
            }
            Truth::Judged(pairs) => {
                let listed = 1 + pairs.iter().map(|pair| pair.docs.1).max().unwrap_or(0) as usize;
                let of = |which: &dyn Fn(&JudgedPair) -> bool| {
                    let pairs: Vec<_> =
                        pairs.iter().filter(|pair| which(pair)).map(|pair| pair.docs).collect();
                    TruthGroups::new(listed, &[], &pairs)
                };
                let related = |pair: &JudgedPair| found.partners.related(pair.docs.0, pair.docs.1);
                (of(&|pair| pair.same), of(&related), None, listed as u64)
            }
        };
        let pairs = Score::of_pairs(&truth, &found);
        let removals = removed.map(|removed| Removals::new(&truth, removed));
        let core = Core2020::new(&truth, &found, documents);
        Figures { truth, found, pairs, removals, core, documents, compared }
    }

    fn table(&self) -> String {
        let (pairs, core) = (&self.pairs, &self.core);
        let three =
            |precision, recall, f1| format!("{:>9} {:>9} {:>9}", part(precision), part(recall), part(f1));
        let of = |score: &Score| three(score.precision(), score.recall(), score.f1());
        let mut table = format!("{:38} precision    recall        F1\n", "");
        table += &format!("{:38} {}\n", "pairs", of(pairs));
        table += &format!("    right {}, false {}, missed {}\n", pairs.right, pairs.wrong, pairs.missed);
        if let Some(all) = &self.removals {
            table += &format!("{:38} {}\n", "documents", three(all.precision(), all.recall(), all.f1()));
            table += &format!(
                "    removed {}, with a true partner {}; removable {}, of these removed {}\n    \
                 unsound {} (removed, and no true partner stays), left {} (true pairs of which both stay), \
                 wiped out {} (groups of which none stays)\n",
                all.removed,
                all.with_partner,
                all.removable,
                all.removed_of_removable,
                all.unsound,
                all.left,
                all.wiped
            );
        }
        if !self.compared.is_empty() {
            // Labelled pairs alone say nothing about whole documents.
            return table + &format!("\n{}", agreement::table(&self.compared.iter().collect::<Vec<_>>()));
        }
        let (duplicates, others) = (core.duplicates(), core.others());
        table += "by CORE-2020's older convention: each document is right or wrong as a whole\n";
        table += &format!("{:38} {}\n", "    documents with duplicates", of(&duplicates));
        table += &format!("{:38} {}\n", "    documents without", of(&others));
        let precision = part(mean(duplicates.precision(), others.precision()));
        let f1 = part(mean(duplicates.f1(), others.f1()));
        let accuracy = part(core.accuracy());
        table + &format!("    mean precision {precision}, mean F1 {f1}, accuracy {accuracy}\n")
    }

    fn json(&self) -> Value {
        let score = |score: &Score| {
            json!({
                "right": score.right, "false": score.wrong, "missed": score.missed,
                "precision": score.precision(), "recall": score.recall(), "f1": score.f1(),
            })
        };
        let (duplicates, others) = (self.core.duplicates(), self.core.others());
        json!({
            "documents_judged": self.documents,
            "pairs": score(&self.pairs),
            "labelled_pairs": agreement::to_json(&self.compared.iter().collect::<Vec<_>>()),
            "documents": self.removals.map(|all| json!({
                "removed": all.removed, "with_partner": all.with_partner, "unsound": all.unsound,
                "removable": all.removable, "removed_of_removable": all.removed_of_removable,
                "wiped_out": all.wiped, "left": all.left,
                "precision": all.precision(), "recall": all.recall(), "f1": all.f1(),
            })),
            "core_2020_older_convention": {
                "with_duplicates": score(&duplicates),
                "without": score(&others),
                "mean_precision": mean(duplicates.precision(), others.precision()),
                "mean_f1": mean(duplicates.f1(), others.f1()),
                "accuracy": self.core.accuracy(),
            },
        })
    }

    /// Writes a line for each pair: the list that it is in, and the two ids.
    fn list(&self, which: &[Listed], ids: &[String], out: &mut dyn Write) -> std::io::Result<()> {
        for (listed, name, of, other) in [
            (Listed::False, "false", &self.found, &self.truth),
            (Listed::Missed, "missed", &self.truth, &self.found),
        ] {
            if which.contains(&listed) {
                for (a, b) in of.pairs().filter(|&(a, b)| !other.related(a, b)) {
                    writeln!(out, "{name}\t{}\t{}", ids[a as usize], ids[b as usize])?;
                }
            }
        }
        Ok(())
    }
}

fn mean(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some((a? + b?) / 2.0)
}

/// Returns a share with four digits, or a dash if there is no whole.
fn part(of: Option<f64>) -> String {
    of.map_or("-".to_owned(), |of| format!("{of:.4}"))
}
