//! The tables of an output as CSV and as JSON lines, for people without Parquet.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cluster::path_of_text;
use operators::Similarity;
use serde::Serialize;
use serde_json::Value;

use batch::finished::{Finished, MemberRow, PairRow};

#[derive(Serialize)]
struct PairLine {
    a: String,
    b: String,
    hamming: Option<u32>,
    similarity: Option<f64>,
    identical: bool,
}

#[derive(Serialize)]
struct MemberLine {
    id: String,
    cluster: String,
    characters: u64,
    kept: bool,
    duplicate_of: Option<String>,
    similarity: Option<f64>,
    reason: Option<String>,
}

impl From<PairRow> for PairLine {
    fn from(PairRow { a, b, hamming, similarity, identical, .. }: PairRow) -> Self {
        PairLine { a, b, hamming, similarity: similarity.map(Similarity::as_f64), identical }
    }
}

impl From<MemberRow> for MemberLine {
    fn from(MemberRow { id, cluster, characters, removed, .. }: MemberRow) -> Self {
        let kept = removed.is_none();
        let (duplicate_of, similarity, reason) = removed
            .map_or((None, None, None), |(of, similarity, reason)| (Some(of), similarity, Some(reason)));
        let similarity = similarity.map(Similarity::as_f64);
        MemberLine { id, cluster, characters, kept, duplicate_of, similarity, reason }
    }
}

/// Writes `pairs.csv`, `clusters.csv` and `counters.csv`.
pub(super) fn write_csv(finished: &Finished, folder: &str) -> Result<()> {
    let folder = create(folder)?;
    let writer = |name: &str| -> Result<_> { Ok(csv::Writer::from_writer(file(&folder, name)?)) };
    let mut pairs = writer("pairs.csv")?;
    all(|each| finished.pairs(each), |pair| Ok(pairs.serialize(PairLine::from(pair))?))?;
    pairs.flush()?;
    let mut clusters = writer("clusters.csv")?;
    all(|each| finished.members(each), |member| Ok(clusters.serialize(MemberLine::from(member))?))?;
    clusters.flush()?;
    let mut counters = writer("counters.csv")?;
    counters.write_record(["counter", "value"])?;
    for (name, value) in finished.summary()?["counters"].as_object().into_iter().flatten() {
        if let Value::Number(number) = value {
            counters.write_record([name, &number.to_string()])?;
        }
    }
    Ok(counters.flush()?)
}

/// Writes `pairs.jsonl`, `clusters.jsonl` and `counters.json`.
pub(super) fn write_json(finished: &Finished, folder: &str) -> Result<()> {
    let folder = create(folder)?;
    let writer = |name: &str| -> Result<_> { Ok(BufWriter::new(file(&folder, name)?)) };
    let mut pairs = writer("pairs.jsonl")?;
    all(|each| finished.pairs(each), |pair| write_line(&mut pairs, &PairLine::from(pair)))?;
    pairs.flush()?;
    let mut clusters = writer("clusters.jsonl")?;
    all(|each| finished.members(each), |member| write_line(&mut clusters, &MemberLine::from(member)))?;
    clusters.flush()?;
    let counters = serde_json::to_string_pretty(&finished.summary()?["counters"])? + "\n";
    fs::write(folder.join("counters.json"), counters).context("could not write counters.json")
}

/// Gives all rows of a table to `write` until it fails.
fn all<R>(
    rows: impl FnOnce(&mut dyn FnMut(R)) -> Result<()>,
    mut write: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let mut result = Ok(());
    rows(&mut |row| {
        if result.is_ok() {
            result = write(row);
        }
    })?;
    result.context("could not write a table of the report")
}

fn write_line(to: &mut impl Write, row: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *to, row)?;
    Ok(to.write_all(b"\n")?)
}

fn create(folder: &str) -> Result<PathBuf> {
    let path = path_of_text(folder);
    fs::create_dir_all(&path).with_context(|| format!("could not create \"{folder}\""))?;
    Ok(path)
}

fn file(folder: &Path, name: &str) -> Result<File> {
    let path = folder.join(name);
    File::create(&path).with_context(|| format!("could not create \"{}\"", path.display()))
}
