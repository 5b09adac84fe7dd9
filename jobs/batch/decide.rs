//! The decision about the clusters of a worker: which documents stay, written to the tables and sent to those
//! who write the records.

use std::sync::Arc;

use anyhow::Result;
use operators::flow::{ClusterBatch, GatheredClusters};
use operators::{Member, Pair, Reason, Resolve, Sides, SpillBudget, survivors};
use timely::worker::Worker;

use super::keep::Keep;
use super::options::DedupOptions;
use super::stars::{StarEncoder, StarWriter, by_survivor};
use super::tally::Tally;
use super::verdicts::DecidedDocs;
use runtime::output::OutputFolder;
use runtime::output::tables::{ClusterTable, PairTable, PairsOf};

/// Rules by which clusters are decided, and the folder of the tables.
///
/// A cluster is decided by one worker, and nothing about it is known elsewhere. A hash of its first document selects the worker, and each
/// member goes to the worker that reads it, which writes its row. If every pair is written, the worker that reads the first document
/// decides, writes the rows of the cluster itself, and sends the removals alone.
pub struct Decider {
    folder: Arc<OutputFolder>,
    resolve: Resolve,
    keep: Keep,
    sides: Sides,
    pairs: PairsOf,
    /// Whether pairs have a distance; those of methods over sets have none.
    distances: bool,
    /// Whether the similarity of each pair is known.
    measured: bool,
    /// As for [`PairTable::with_sim`].
    weight_of_sim: Option<u32>,
    /// Whether identical documents may only have equal fingerprints.
    approximate: bool,
    /// Whether records that stay are told their clusters.
    annotates: bool,
    spill: SpillBudget,
}

/// Outcome of the decisions, of one worker or of all workers of a process.
pub struct Decided {
    /// Counts of the clusters of these workers.
    pub tally: Tally,
    /// Decisions about the documents that these workers read.
    pub docs: DecidedDocs,
}

impl Decided {
    /// Joins the outcomes of several workers.
    pub fn join(parts: Vec<Decided>) -> Self {
        let (tallies, docs): (Vec<_>, Vec<_>) = parts.into_iter().map(|part| (part.tally, part.docs)).unzip();
        Decided { tally: Tally::join(tallies), docs: DecidedDocs::join(docs) }
    }
}

impl Decider {
    /// Makes the rules of a run. With a budget in `spill`, decisions are held on disk.
    pub fn new(
        folder: &Arc<OutputFolder>,
        options: &DedupOptions,
        sides: Sides,
        spill: &SpillBudget,
    ) -> Self {
        let measured = options.threshold().is_some() || options.method.measures();
        Decider {
            folder: Arc::clone(folder),
            resolve: options.resolve,
            keep: options.keep.clone(),
            sides,
            weight_of_sim: options.method.weight_of_sim(),
            pairs: options.pairs,
            distances: options.method.fingerprints(),
            measured,
            approximate: !measured && options.method.approximate(),
            annotates: options.write.annotate,
            spill: spill.clone(),
        }
    }

    /// Decides the clusters of this worker, and writes their rows of `pairs/` and `clusters/`. Returns also
    /// what all workers have decided about the documents of this one.
    pub fn decide(&self, worker: &mut Worker, clusters: GatheredClusters) -> Result<Decided> {
        let mut pairs = PairTable::new(&self.folder, self.pairs, self.sides).with_sim(self.weight_of_sim);
        let mut rows = ClusterTable::new(&self.folder);
        let mut tally = Tally::default();
        let mut value = Vec::new();
        let stars = self.pairs == PairsOf::Deciding;
        let measured = self.measured;
        let decisions = clusters.decide(worker, |batch, send| -> Result<()> {
            let members = self.survivors(batch);
            if members.is_empty() {
                return Ok(()); // With a reference, identical documents of the input alone are in no cluster.
            }
            tally.count(batch, &batch.matches().copies, &members, self.sides);
            if stars {
                let encoder = StarEncoder::new(batch);
                return members.iter().try_for_each(|member| {
                    value.clear();
                    encoder.encode(member, None, &mut value)?;
                    send(member.doc, &value);
                    Ok(())
                });
            }
            let distance = |pair: &Pair| self.distances.then_some(pair.distance);
            pairs.write(batch, measured, distance, |row| tally.row(row))?;
            rows.write(batch, &members, measured)?;
            for member in &members {
                if member.removed.is_some() || self.annotates {
                    value.clear();
                    DecidedDocs::encode(batch, member, measured, &mut value)?;
                    send(member.doc, &value);
                }
            }
            Ok(())
        })?;
        let mut writer = StarWriter {
            pairs: &mut pairs,
            clusters: &mut rows,
            tally: &mut tally,
            distances: self.distances,
            measured,
            annotates: self.annotates,
        };
        let docs = DecidedDocs::collect(decisions, &self.spill, |split, values| match stars {
            true => writer.write(split, &values),
            false => Ok(values),
        })?;
        tally.pairs = pairs.finish()?;
        rows.finish()?;
        Ok(Decided { tally, docs })
    }

    /// Resolves the pairs of clusters, of whose members some are removed.
    fn survivors(&self, batch: &ClusterBatch) -> Vec<Member> {
        let rank = |doc| self.keep.rank(doc, || batch.merit(doc));
        let mut members = survivors(batch.matches(), self.resolve, self.sides, rank);
        if self.approximate {
            for removed in members.iter_mut().filter_map(|member| member.removed.as_mut()) {
                removed.tie = removed.tie.max(Reason::Similar(None));
            }
        }
        match self.pairs {
            PairsOf::Deciding => by_survivor(members),
            PairsOf::Firsts | PairsOf::All => members,
        }
    }
}
