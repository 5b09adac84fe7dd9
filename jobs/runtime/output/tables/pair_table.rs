//! The table of the pairs of an output.

use std::sync::Arc;

use anyhow::Result;
use arrow_array::{BooleanArray, Float64Array, UInt32Array};
use operators::flow::ClusterBatch;
use operators::{DocId, Pair, Sides, Similarity};
use serde::{Deserialize, Serialize};

use super::cluster_table::ClusterTable;
use super::output_table::{OutputTable, TableColumn, TableRows, places, strings};
use crate::output::OutputFolder;

/// The pairs that are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum PairsOf {
    /// Every match, but identical documents give one pair each, with the first of them.
    Firsts,
    /// Every match of two documents.
    All,
    /// One pair for each removed document: with the one that stays in its place.
    #[default]
    Deciding,
}

/// The table `pairs/` as one worker writes it.
pub struct PairTable<'a> {
    table: OutputTable<'a>,
    of: PairsOf,
    sides: Sides,
    /// Weight of the similarity in the column `sim`, if there is one.
    weight_of_sim: Option<u32>,
}

impl<'a> PairTable<'a> {
    /// Begins the table in an output, without a part. `sides`: the pairs that are looked for.
    pub fn new(folder: &'a OutputFolder, of: PairsOf, sides: Sides) -> Self {
        PairTable { table: OutputTable::new(folder, "pairs"), of, sides, weight_of_sim: None }
    }

    /// Gives the table a column `sim` if there is a weight: 1 / (distance + 1) + weight * similarity.
    pub fn with_sim(self, weight: Option<u32>) -> Self {
        PairTable { weight_of_sim: weight, ..self }
    }

    /// Adds rows to the part of a split.
    pub fn rows<'r>(
        &mut self,
        split: u32,
    ) -> TableRows<'_, 'a, WrittenPair<'r>, impl Fn(&[WrittenPair<'r>]) -> Vec<TableColumn> + use<'r>> {
        let weight = self.weight_of_sim;
        self.table.rows(split, move |rows: &[WrittenPair]| {
            let mut columns = pair_columns(rows);
            columns.extend(weight.map(|weight| sim_column(rows, weight)));
            columns
        })
    }

    /// Writes the pairs of some clusters that are looked for, and calls `each` with every row. `distance`: the distance of a
    /// pair, if the method has one. `measured`: whether the similarity of each pair is known.
    pub fn write(
        &mut self,
        batch: &ClusterBatch,
        measured: bool,
        distance: impl Fn(&Pair) -> Option<u32>,
        mut each: impl FnMut(&WrittenPair),
    ) -> Result<()> {
        let all = self.of == PairsOf::All;
        let sides = self.sides;
        let mut rows = self.rows(batch.split());
        let same = measured.then_some(Similarity::ONE);
        let mut row = |pair: Pair, similarity: Option<Similarity>, identical: bool| {
            let (a, b) = (batch.id(pair.low), batch.id(pair.high));
            if !sides.compares(&pair) {
                return Ok(());
            }
            let places = (pair.low, pair.high);
            let row = WrittenPair { a, b, hamming: distance(&pair), similarity, identical, places };
            each(&row);
            rows.push(row)
        };
        for (copies, pairs) in batch.clusters() {
            let class = |first: DocId| {
                let copies = ClusterBatch::copies_of(copies, first);
                std::iter::once(first).chain(copies.iter().map(|copy| copy.0))
            };
            for identical in copies.chunk_by(|a, b| a.1 == b.1) {
                let members: Vec<DocId> = class(identical[0].1).collect();
                let ones = if all { members.len() } else { 1 };
                for (i, &one) in members[..ones].iter().enumerate() {
                    for &other in &members[i + 1..] {
                        row(Pair::new(one, other, 0), same, true)?;
                    }
                }
            }
            for &(pair, similarity) in pairs {
                // Without `within`, no row says which documents of the input are identical, so each of them
                // gets its rows.
                let (lows, highs) = (all, all || !sides.within());
                for low in class(pair.low).take(if lows { usize::MAX } else { 1 }) {
                    for high in class(pair.high).take(if highs { usize::MAX } else { 1 }) {
                        row(Pair::new(low, high, pair.distance), similarity, false)?;
                    }
                }
            }
        }
        rows.finish()
    }

    /// Ends the table. Returns the number of rows.
    pub fn finish(self) -> Result<u64> {
        self.table.finish()
    }
}

/// Row of `pairs/`, as it is written.
pub struct WrittenPair<'a> {
    /// Id of the document that comes first in the corpus.
    pub a: &'a str,
    /// Id of the document that comes later in the corpus.
    pub b: &'a str,
    /// Number of bits in which the fingerprints differ; `None` if the method has no distances.
    pub hamming: Option<u32>,
    /// Similarity of the two texts; `None` if it was not measured.
    pub similarity: Option<Similarity>,
    /// Whether the cleaned texts are equal, or without verification the fingerprints.
    pub identical: bool,
    /// Positions of `a` and `b` in the corpus.
    pub places: (DocId, DocId),
}

fn pair_columns(rows: &[WrittenPair]) -> Vec<TableColumn> {
    let similarity = rows.iter().map(|row| row.similarity.map(Similarity::as_f64));
    let identical = rows.iter().map(|row| Some(row.identical));
    vec![
        ("a", strings(rows.iter().map(|row| Some(row.a))), false),
        ("b", strings(rows.iter().map(|row| Some(row.b))), false),
        ("hamming", Arc::new(UInt32Array::from_iter(rows.iter().map(|row| row.hamming))), true),
        ("similarity", Arc::new(Float64Array::from_iter(similarity)), true),
        ("identical", Arc::new(BooleanArray::from_iter(identical)), false),
        ("a_place", places(rows.iter().map(|row| row.places.0)), false),
        ("b_place", places(rows.iter().map(|row| row.places.1)), false),
    ]
}

fn sim_column(rows: &[WrittenPair], weight: u32) -> TableColumn {
    let sim = |row: &WrittenPair| {
        let (distance, similarity) = (row.hamming?, row.similarity?);
        Some(1.0 / f64::from(distance + 1) + f64::from(weight) * similarity.as_f64())
    };
    ("sim", Arc::new(Float64Array::from_iter(rows.iter().map(sim))), true)
}

/// Writes `pairs/` and `clusters/` of an output without clusters: one part each, without rows. `weight_of_sim`: as for
/// [`PairTable::with_sim`].
pub fn write_no_clusters(folder: &OutputFolder, weight_of_sim: Option<u32>) -> Result<()> {
    let none = ClusterBatch::default();
    let pairs = PairTable::new(folder, PairsOf::Firsts, Sides::default());
    let mut pairs = pairs.with_sim(weight_of_sim);
    let mut clusters = ClusterTable::new(folder);
    pairs.write(&none, false, |_| None, |_| ())?;
    clusters.write(&none, &[], false)?;
    pairs.finish()?;
    clusters.finish()
}
