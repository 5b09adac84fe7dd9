//! The page of a paper: what it claims, what was measured, and whether the claim holds.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::fs;
use std::path::Path;

use anyhow::Result;

use super::trials::{RunNumber, Trials};
use runtime::report::parts::{PagePart, PageTable, page_of_parts};

/// Verdict about a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ClaimVerdict {
    Holds,
    HoldsInPart,
    DoesNotHold,
    CannotBeSaid,
}

impl ClaimVerdict {
    /// Returns the verdict for a claim of which all parts were tried.
    pub fn of_parts(parts: &[bool]) -> Self {
        match parts.iter().filter(|part| **part).count() {
            all if all == parts.len() => ClaimVerdict::Holds,
            0 => ClaimVerdict::DoesNotHold,
            _ => ClaimVerdict::HoldsInPart,
        }
    }

    fn name(self) -> &'static str {
        match self {
            ClaimVerdict::Holds => "holds",
            ClaimVerdict::HoldsInPart => "holds in part",
            ClaimVerdict::DoesNotHold => "does not hold",
            ClaimVerdict::CannotBeSaid => "cannot be said",
        }
    }
}

/// A claim of a paper, beside what was measured.
pub(super) struct Claim {
    pub claim: String,
    pub published: String,
    pub measured: String,
    pub verdict: ClaimVerdict,
    /// Explains a difference, or why the claim holds.
    pub because: String,
    /// Runs from which the figures come.
    pub runs: Vec<RunNumber>,
}

/// Columns of the table of claims.
const HEAD: [&str; 6] = ["claim", "published", "measured", "verdict", "why", "runs"];

/// The page of a paper.
pub(super) struct PaperPage {
    /// Title of the paper.
    pub title: &'static str,
    /// Says which corpora this run has, and how they differ from those of the paper.
    pub corpus: String,
    pub claims: Vec<Claim>,
    pub parts: Vec<PagePart>,
}

impl PaperPage {
    /// Returns the number of claims of each verdict, for a terminal.
    pub fn summary(&self, name: &str, folder: &Path) -> String {
        let mut counts = BTreeMap::<ClaimVerdict, usize>::new();
        self.claims.iter().for_each(|claim| *counts.entry(claim.verdict).or_default() += 1);
        let counts: Vec<_> =
            counts.into_iter().map(|(verdict, count)| format!("{count} {}", verdict.name())).collect();
        format!(
            "{name}: {} claims ({}): {}/{name}.md",
            self.claims.len(),
            counts.join(", "),
            folder.display()
        )
    }

    /// Writes the page, its rows as CSV and its figures.
    pub fn write(&self, trials: &Trials, name: &str) -> Result<()> {
        let folder = trials.folder();
        let mut page = format!("# {}\n\n", self.title);
        write_table(&mut page, &["", ""], self.head(trials, name).into_iter());
        page += "\n\n## Claims\n\n";
        let runs = |claim: &Claim| {
            let links = claim.runs.iter().map(|run| format!("[{run}]({})", trials.runs()[run - 1].file));
            links.collect::<Vec<_>>().join(" ")
        };
        let rows = self.claims.iter().map(|claim| {
            let Claim { claim: text, published, measured, verdict, because, .. } = claim;
            vec![
                text.clone(),
                published.clone(),
                measured.clone(),
                format!("**{}**", verdict.name()),
                because.clone(),
                runs(claim),
            ]
        });
        write_table(&mut page, &HEAD, rows);
        let mut figures = 0;
        for part in &self.parts {
            match part {
                PagePart::Text(text) => writeln!(page, "\n{text}")?,
                PagePart::Table(PageTable { caption, head, rows }) => {
                    writeln!(page, "\n**{caption}**\n")?;
                    write_table(&mut page, head, rows.iter().cloned());
                }
                PagePart::Figure(caption, chart) => {
                    figures += 1;
                    let file = format!("{name}-figure-{figures}.svg");
                    fs::write(folder.join(&file), chart.svg()?)?;
                    writeln!(page, "\n![{caption}]({file})\n\n*{caption}*")?;
                }
            }
        }
        fs::write(folder.join(format!("{name}.html")), self.html(trials, name)?)?;
        writeln!(page, "\n## Runs\n")?;
        for (number, run) in (1..).zip(trials.runs()) {
            writeln!(page, "{number}. [`{}`]({})", run.command.replace('|', "\\|"), run.file)?;
        }
        fs::write(folder.join(format!("{name}.md")), page)?;
        self.write_csv(trials, name)
    }

    /// Returns the page as HTML that needs no other file.
    fn html(&self, trials: &Trials, name: &str) -> Result<String> {
        let row = |claim: &Claim| {
            let Claim { claim, published, measured, verdict, because, runs } = claim;
            let verdict = verdict.name().to_owned();
            let runs = listed(runs);
            vec![claim.clone(), published.clone(), measured.clone(), verdict, because.clone(), runs]
        };
        let table = |caption: &str, head: &[&'static str], rows| {
            PagePart::Table(PageTable { caption: caption.to_owned(), head: head.to_vec(), rows })
        };
        let runs = (1..)
            .zip(trials.runs())
            .map(|(number, run)| vec![number.to_string(), format!("`{}`", run.command), run.file.clone()]);
        let above = [
            table("How this page was made", &["", ""], self.head(trials, name)),
            table("Claims", &HEAD, self.claims.iter().map(row).collect()),
        ];
        let below = [table("Runs", &["run", "command", "output"], runs.collect())];
        page_of_parts(self.title, above.iter().chain(&self.parts).chain(&below))
    }

    /// Returns how the page was made, as rows of a key and a value.
    fn head(&self, trials: &Trials, name: &str) -> Vec<Vec<String>> {
        let place = &trials.place;
        let scale = trials.sized("quick", "paper");
        let rows = [
            (
                "command",
                format!("`dedup-job reproduce {name} OUTPUT --scale {scale} --seed {}`", trials.seed),
            ),
            ("commit", place.commit.clone()),
            ("machine", place.machine.clone()),
            ("corpus", self.corpus.clone()),
        ];
        rows.into_iter().map(|(key, value)| vec![key.to_owned(), value]).collect()
    }

    fn write_csv(&self, trials: &Trials, name: &str) -> Result<()> {
        let mut csv = csv::Writer::from_path(trials.folder().join(format!("{name}.csv")))?;
        csv.write_record([
            "claim",
            "published",
            "measured",
            "verdict",
            "why",
            "commands",
            "raw_runs",
            "commit",
            "machine",
        ])?;
        for claim in &self.claims {
            let of_runs = |what: fn(&super::trials::TrialRun) -> &String| {
                let all: Vec<&str> =
                    claim.runs.iter().map(|run| what(&trials.runs()[run - 1]).as_str()).collect();
                all.join("\n")
            };
            csv.write_record([
                &claim.claim,
                &claim.published,
                &claim.measured,
                claim.verdict.name(),
                &claim.because,
                &of_runs(|run| &run.command),
                &of_runs(|run| &run.file),
                &trials.place.commit,
                &trials.place.machine,
            ])?;
        }
        Ok(csv.flush()?)
    }
}

/// Adds a table in Markdown.
fn write_table(page: &mut String, head: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let line = |cells: &mut dyn Iterator<Item = String>| {
        let cells: Vec<String> = cells.map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    *page += &line(&mut head.iter().map(|name| (*name).to_owned()));
    *page += &line(&mut head.iter().map(|_| "---".to_owned()));
    rows.for_each(|row| *page += &line(&mut row.into_iter()));
}

/// Writes the list of all pages of a run, with the verdict of each claim.
pub(super) fn write_index(folder: &Path, pages: &[(&str, PaperPage)]) -> Result<()> {
    let mut index = "# Papers reproduced\n\n".to_owned();
    let rows = pages.iter().flat_map(|(name, page)| {
        let link = format!("[{name}]({name}.md)");
        page.claims.iter().map(move |claim| {
            vec![
                link.clone(),
                claim.claim.clone(),
                claim.published.clone(),
                claim.measured.clone(),
                claim.verdict.name().to_owned(),
            ]
        })
    });
    write_table(&mut index, &["paper", "claim", "published", "measured", "verdict"], rows);
    Ok(fs::write(folder.join("README.md"), index)?)
}

/// Writes a share as a percentage.
pub(super) fn percent(share: impl Into<f64>) -> String {
    format!("{:.1} %", 100.0 * share.into())
}

/// Joins values by commas.
pub(super) fn listed<T: Display>(values: impl IntoIterator<Item = T>) -> String {
    values.into_iter().map(|value| value.to_string()).collect::<Vec<_>>().join(", ")
}
