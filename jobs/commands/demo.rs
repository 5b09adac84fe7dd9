//! `demo`: writes a synthetic corpus with known duplicates, to try the program with.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use datasets::{Synthetic, SyntheticDoc, SyntheticMixture};
use serde_json::json;

use runtime::cli::exit::WrongUse;

/// Write a synthetic Chinese corpus with known duplicates
///
/// FOLDER gets three files. corpus.jsonl has one document a line. truth.tsv has the id of each duplicate, the
/// id of its original, and how the duplicate was made. clusters.tsv has each of these ids with its cluster,
/// which is named after the original: labels for `eval` and `tune`.
#[derive(clap::Args)]
pub struct Args {
    /// The folder to write, which must not exist
    folder: PathBuf,
    /// Number of documents to write
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    documents: u64,
    /// Seed of the corpus: another seed gives another corpus
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write a corpus as hard as a crawl: posts and reposts, headlines, news, reports of one template, a family of near-equal pages, and
    /// long articles in several editions
    #[arg(long)]
    mixture: bool,
}

/// Runs the job; returns 0.
pub fn run(args: Args) -> Result<u8> {
    let Args { folder, documents, seed, mixture } = args;
    if folder.exists() {
        bail!(WrongUse(format!("the folder \"{}\" exists", folder.display())));
    }
    let create = |name: &str| -> Result<_> {
        let file = folder.join(name);
        let opened =
            File::create(&file).with_context(|| format!("could not create \"{}\"", file.display()))?;
        Ok(BufWriter::new(opened))
    };
    fs::create_dir_all(&folder).with_context(|| format!("could not create \"{}\"", folder.display()))?;
    let (mut corpus, mut truth) = (create("corpus.jsonl")?, create("truth.tsv")?);
    let mut clusters = create("clusters.tsv")?;
    let mut originals = HashSet::new();
    let mut duplicates = 0;
    let docs: Box<dyn Iterator<Item = SyntheticDoc>> = match mixture {
        false => Box::new(Synthetic { documents, seed }.docs()),
        true => Box::new(SyntheticMixture { documents, seed }.docs()),
    };
    for doc in docs {
        serde_json::to_writer(&mut corpus, &json!({"id": doc.id, "text": doc.text}))?;
        corpus.write_all(b"\n")?;
        if let Some((original, how)) = doc.duplicate {
            duplicates += 1;
            writeln!(truth, "{}\t{original}\t{how}", doc.id)?;
            writeln!(clusters, "{}\t{original}", doc.id)?;
            if !originals.contains(&original) {
                writeln!(clusters, "{original}\t{original}")?;
                originals.insert(original);
            }
        }
    }
    corpus.flush()?;
    truth.flush()?;
    clusters.flush()?;
    let of_seed = if mixture { format!(", of seed {seed}") } else { String::new() };
    let said = format!(
        "{documents} documents, {duplicates} of them duplicates, in \"{}\"{of_seed}",
        folder.display()
    );
    let corpus = folder.join("corpus.jsonl");
    let corpus = corpus.display().to_string();
    let corpus = shlex::try_quote(&corpus).unwrap_or((&*corpus).into());
    let _ = writeln!(std::io::stdout(), "{said}\nnext: dedup-job dedup {corpus} clean");
    Ok(0)
}
