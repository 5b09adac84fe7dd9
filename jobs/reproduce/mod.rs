//! `reproduce`: makes the tables and figures of a paper again, each published number beside ours.
//!
//! Each paper has a file that says what is claimed, runs the trials and judges them. `trials.rs` runs commands of this program
//! and keeps their output, `page.rs` writes the page of a paper, and `stand_in.rs` generates corpora
//! where those of the paper could not be had. docs/design/reproduce.md has the choices. This room uses `runtime`, `batch`, `commands`
//! and the charts of `report`; only `main.rs` uses it.

mod hbase;
mod lanceyan;
mod page;
mod peng2017;
mod sampled_pairs;
mod stand_in;
mod trials;
mod zhang2014;
mod zhou2017;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use self::page::{PaperPage, write_index};
use self::trials::{Scale, Trials};
use runtime::cli::exit::WrongUse;
use runtime::cli::terminal::print;
use runtime::cli::values::paths;

/// Make the tables and figures of a paper again, with each published number beside ours
///
/// OUTPUT, which must not exist, gets a page in Markdown, the same rows as CSV, figures as SVG, and the raw output of every
/// run with its command. Without --input, a corpus with the sizes and lengths of the paper's is generated.
#[derive(clap::Args)]
pub struct Args {
    /// The paper, or all of them
    paper: Paper,
    /// The folder to write
    output: PathBuf,
    /// Corpus of the paper in its published layout, or any other; for one paper only
    #[arg(long, value_name = "PATHS", value_delimiter = ',', value_parser = paths())]
    input: Vec<String>,
    /// File of labelled pairs of the input, as for eval: two ids and a label on each line; for lanceyan
    #[arg(long, value_name = "FILE", requires = "input", value_parser = paths())]
    labels: Option<String>,
    /// How much is run
    #[arg(long, value_name = "SCALE", default_value = "quick")]
    scale: Scale,
    /// Seed of all that is generated and drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// A paper that this program implements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Paper {
    /// Zhou 2017: Sim of fingerprints and shared words, by buckets of buckets
    Zhou2017,
    /// lanceyan.com: SimHash explained, with grades of weight
    Lanceyan,
    /// Zhang 2014: classes by four measures
    Zhang2014,
    /// The article on an index of 100 billion texts in HBase
    Hbase,
    /// Peng 2017: paragraphs by SimHash
    Peng2017,
    /// All of them
    All,
}

impl Paper {
    /// Returns the papers that this one stands for, each with its name.
    fn papers(self) -> Vec<(&'static str, Reproduce)> {
        let all: [(Paper, (&'static str, Reproduce)); 5] = [
            (Paper::Zhou2017, ("zhou2017", zhou2017::reproduce)),
            (Paper::Lanceyan, ("lanceyan", lanceyan::reproduce)),
            (Paper::Zhang2014, ("zhang2014", zhang2014::reproduce)),
            (Paper::Hbase, ("hbase", hbase::reproduce)),
            (Paper::Peng2017, ("peng2017", peng2017::reproduce)),
        ];
        let named = all.into_iter().filter(|(paper, _)| self == Paper::All || self == *paper);
        named.map(|(_, paper)| paper).collect()
    }
}

/// Runs the trials of a paper.
type Reproduce = fn(&mut Trials) -> Result<PaperPage>;

/// Runs the job; returns 0.
pub fn run(args: Args) -> Result<u8> {
    let Args { paper, output, input, labels, scale, seed } = args;
    if output.exists() {
        bail!(WrongUse(format!("the folder \"{}\" exists", output.display())));
    }
    if paper == Paper::All && !input.is_empty() {
        bail!(WrongUse("--input is for one paper, and not for all".to_owned()));
    }
    if !input.is_empty() && matches!(paper, Paper::Hbase) {
        bail!(WrongUse(
            "the article on HBase is about random fingerprints, so it takes no --input".to_owned()
        ));
    }
    if labels.is_some() && paper != Paper::Lanceyan {
        bail!(WrongUse("--labels are for lanceyan, whose distances they judge".to_owned()));
    }
    if labels.is_none() && !input.is_empty() && paper == Paper::Lanceyan {
        bail!(WrongUse(
            "of its own corpus lanceyan needs --labels too, by which its distances are judged".to_owned()
        ));
    }
    fs::create_dir_all(&output).with_context(|| format!("could not create \"{}\"", output.display()))?;
    let mut pages = Vec::new();
    for (name, reproduce) in paper.papers() {
        let mut trials = Trials::new(name, &output, scale, seed)?;
        trials.take_input(&input, labels.as_deref())?;
        let page = reproduce(&mut trials)?;
        page.write(&trials, name)?;
        print(format_args!("{}\n", page.summary(name, &output)))?;
        pages.push((name, page));
    }
    write_index(&output, &pages)?;
    Ok(0)
}
