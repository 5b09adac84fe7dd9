//! `demo`: writes a synthetic corpus with known duplicates, to try the program with.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, bail};
use datasets::{Synthetic, SyntheticDoc, SyntheticMixture};
use serde_json::json;

use runtime::Common;
use runtime::cli::exit::WrongUse;
use runtime::corpus::at_once::each;

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
pub fn run(common: &Common, args: Args) -> Result<u8> {
    let Args { folder, documents, seed, mixture } = args;
    let could_not = || format!("could not create \"{}\"", folder.display());
    if let Some(above) = folder.parent() {
        fs::create_dir_all(above).with_context(could_not)?;
    }
    match fs::create_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!(WrongUse(format!("\"{}\" exists: name a new folder", folder.display())))
        }
        created => created.with_context(could_not)?,
    }
    let written = write(&folder, (documents, seed, mixture), common.workers());
    if written.is_err() {
        // A part of a corpus would keep the next run away.
        let _ = fs::remove_dir_all(&folder);
    }
    let duplicates = written?;
    let of_seed = if mixture { format!(", of seed {seed}") } else { String::new() };
    let said = format!(
        "{documents} documents, {duplicates} of them duplicates, in \"{}\"{of_seed}",
        folder.display()
    );
    let corpus = folder.join("corpus.jsonl").display().to_string();
    let corpus = shlex::try_quote(&corpus).unwrap_or((&*corpus).into());
    let _ = writeln!(std::io::stdout(), "{said}\nnext: dedup-job dedup {corpus} clean");
    Ok(0)
}

/// Writes the corpus. Returns the number of duplicates. Memory: a block of some 20 MB for each worker, of which no more work than there are cores.
fn write(folder: &Path, (documents, seed, mixture): (u64, u64, bool), workers: usize) -> Result<u64> {
    let workers = workers.min(thread::available_parallelism().map_or(1, usize::from));
    let files = ["corpus.jsonl", "truth.tsv", "clusters.tsv"].map(|name| folder.join(name));
    let create = |file: &PathBuf| {
        File::create(file).with_context(|| format!("could not create \"{}\"", file.display()))
    };
    let mut open = files.iter().map(create).collect::<Result<Vec<File>>>()?;
    let plain = Synthetic { documents, seed };
    let mixed = SyntheticMixture { documents, seed };
    let blocks = plain.blocks();
    let mut duplicates = 0;
    // Each worker makes a block, and then all of these are written.
    for first in (0..blocks).step_by(workers) {
        let some: Vec<u64> = (first..blocks.min(first + workers as u64)).collect();
        let made = each(workers, &some, |&block| match mixture {
            false => DemoBlock::new(plain.block(block)),
            true => DemoBlock::new(mixed.block(block)),
        })?;
        for block in made {
            duplicates += block.duplicates;
            for ((file, open), bytes) in files.iter().zip(&mut open).zip(&block.files) {
                open.write_all(bytes).with_context(|| format!("could not write \"{}\"", file.display()))?;
            }
        }
    }
    Ok(duplicates)
}

/// A block of the corpus.
struct DemoBlock {
    /// Its bytes in corpus.jsonl, truth.tsv and clusters.tsv.
    files: [Vec<u8>; 3],
    duplicates: u64,
}

impl DemoBlock {
    fn new(docs: impl Iterator<Item = SyntheticDoc>) -> Result<Self> {
        let [mut corpus, mut truth, mut clusters] = [const { Vec::new() }; 3];
        let mut originals = HashSet::new();
        let mut duplicates = 0;
        for SyntheticDoc { id, text, duplicate } in docs {
            serde_json::to_writer(&mut corpus, &json!({"id": id, "text": text}))?;
            corpus.push(b'\n');
            if let Some((original, how)) = duplicate {
                duplicates += 1;
                writeln!(truth, "{id}\t{original}\t{how}")?;
                writeln!(clusters, "{id}\t{original}")?;
                if !originals.contains(&original) {
                    writeln!(clusters, "{original}\t{original}")?;
                    originals.insert(original);
                }
            }
        }
        Ok(DemoBlock { files: [corpus, truth, clusters], duplicates })
    }
}
