//! Decides the clusters that a night touches: which new documents stay, which earlier decisions change, and what the
//! state keeps.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use operators::flow::{ClusterBatch, GatheredClusters};
use operators::incremental::{ChangedClusters, CorpusChange};
use operators::{DocId, Matches, Member, Pair, Sides, SpillBudget};
use timely::worker::Worker;

use super::options::{NightlyOptions, Policy, night_of};
use crate::dedup::decide::Decided;
use crate::dedup::options::DedupOptions;
use crate::dedup::tally::Tally;
use crate::dedup::verdicts::RemovedDocs;
use crate::output::OutputFolder;
use crate::output::pair_table::{PairTable, PairsOf};
use crate::output::tables::{ClusterTable, CorrectionRow, CorrectionTable};
use crate::state::{NO_LABEL, NightState, RunEntry, StateManifest, StateTable, encode_cluster, number_of};

/// Rules by which the clusters of a night are decided, the folder of the tables, and the state.
pub(crate) struct NightDecider {
    folder: Arc<OutputFolder>,
    night: NightState,
    /// Version of the state before the night.
    manifest: StateManifest,
    policy: Policy,
    pairs: PairsOf,
    /// Whether pairs have a distance; those of methods over sets have none.
    distances: bool,
    /// Whether the similarity of each pair is known.
    measured: bool,
    spill: SpillBudget,
}

/// Outcome of the decisions of one worker.
pub(crate) struct NightDecided {
    pub decided: Decided,
    /// Files of the state with the labels and clusters of this worker.
    pub runs: Vec<RunEntry>,
    /// Texts of which every document is withdrawn.
    pub dead_texts: Vec<DocId>,
    /// Documents that the night withdraws, that were in no cluster, and whose text a new document has.
    pub succeeded: Vec<DocId>,
    /// Number of earlier decisions that have changed.
    pub corrections: u64,
}

/// Rows of a worker for the state, by documents.
#[derive(Default)]
struct StateRows {
    labels: Vec<(u64, u64)>,
    clusters: Vec<(u64, Vec<u8>)>,
}

impl NightDecider {
    /// Makes the rules of a night.
    pub fn new(
        folder: &Arc<OutputFolder>,
        night: NightState,
        manifest: StateManifest,
        options: &NightlyOptions,
        of_dedup: &DedupOptions,
        spill: &SpillBudget,
    ) -> Self {
        NightDecider {
            folder: Arc::clone(folder),
            night,
            manifest,
            policy: options.policy.clone(),
            pairs: options.pairs,
            distances: options.method.fingerprints(),
            measured: of_dedup.threshold().is_some() || options.method.measures(),
            spill: spill.clone(),
        }
    }

    /// Decides the clusters of this worker, and writes their rows of the tables and of the state.
    pub fn decide(&self, worker: &mut Worker, clusters: GatheredClusters) -> Result<NightDecided> {
        let mut pairs = PairTable::new(&self.folder, self.pairs, Sides::default());
        let mut members = ClusterTable::new(&self.folder);
        let mut corrections = CorrectionTable::new(&self.folder);
        let (mut tally, mut removal) = (Tally::default(), Vec::new());
        let (mut rows, mut dead_texts, mut succeeded) = (StateRows::default(), Vec::new(), Vec::new());
        let docs = &self.night.docs;
        let change = CorpusChange {
            first_new: self.night.numbering.first_new(),
            gone_before: docs.withdrawn(),
            going: docs.going(),
            reorders: self.policy.reorders(),
        };
        let removals = clusters.decide(worker, |batch, send| -> Result<()> {
            let changed = change.decide(batch.matches(), |doc| self.rank(batch, doc));
            let is_new = |doc: DocId| doc >= change.first_new;
            let new = batch.with_matches(new_matches(&changed, is_new));
            let distance = |pair: &Pair| self.distances.then_some(pair.distance);
            if !changed.members.is_empty() {
                pairs.write(&new, self.measured, distance, |row| tally.row(row))?;
                members.write(batch, &changed.members, self.measured)?;
            }
            // Decisions about earlier documents belong to earlier nights.
            let counted: Vec<Member> =
                changed.members.iter().map(|&member| of_night(member, is_new(member.doc))).collect();
            tally.count(&new, &counted, Sides::default());
            for member in &counted {
                if let Some(removed) = member.removed {
                    removal.clear();
                    let night = self.night_name(removed.duplicate_of);
                    RemovedDocs::encode(batch, member, removed, self.measured, night, &mut removal)?;
                    send(member.doc, &removal);
                }
            }
            let row = |&(doc, removed): &(DocId, Option<operators::Removed>)| CorrectionRow {
                id: batch.id(doc),
                night: self.night_name(doc).unwrap_or_default(),
                removed: removed.map(|removed| (batch.id(removed.duplicate_of), removed.tie)),
            };
            tally.removed_earlier +=
                changed.corrections.iter().filter(|(_, removed)| removed.is_some()).count() as u64;
            corrections.write(batch.split(), changed.corrections.iter().map(row))?;
            rows.add(&changed, &self.night)?;
            dead_texts.extend(changed.dead_texts);
            let labelled = changed.labels.iter().filter(|(_, label)| label.is_some()).map(|&(doc, _)| doc);
            succeeded.extend(labelled.filter(|doc| docs.going().binary_search(doc).is_ok()));
            Ok(())
        })?;
        tally.pairs = pairs.finish()?;
        members.finish()?;
        let corrections = corrections.finish()?;
        let runs = rows.write(&self.night, worker.index())?;
        let removals = RemovedDocs::collect(removals, &self.spill, |_, removals| Ok(removals))?;
        Ok(NightDecided { decided: Decided { tally, removals }, runs, dead_texts, succeeded, corrections })
    }

    /// Returns the name of the night of an earlier document.
    fn night_name(&self, doc: DocId) -> Option<&str> {
        let earlier = Some(doc).filter(|&doc| doc < self.night.numbering.first_new())?;
        Some(&self.manifest.night_of(number_of(earlier))?.name)
    }

    fn rank(&self, batch: &ClusterBatch, doc: DocId) -> (u64, DocId) {
        let night = || night_of(&self.manifest, self.night.numbering.number(doc));
        self.policy.rank(doc, night, || batch.merit(doc))
    }
}

/// Returns a member without its decision, unless it is about a document of this night.
fn of_night(member: Member, is_new: bool) -> Member {
    Member { removed: member.removed.filter(|_| is_new), ..member }
}

/// Returns the matches with a new document, by the clusters that these are in.
fn new_matches(changed: &ChangedClusters, is_new: impl Fn(DocId) -> bool) -> Vec<Matches> {
    let cluster: HashMap<DocId, DocId> =
        changed.members.iter().map(|member| (member.doc, member.cluster)).collect();
    let mut clusters: Vec<(DocId, Matches)> = Vec::new();
    let mut at: HashMap<DocId, usize> = HashMap::new();
    let mut of = |doc: DocId, clusters: &mut Vec<(DocId, Matches)>| {
        let name = cluster[&doc];
        *at.entry(name).or_insert_with(|| {
            clusters.push((name, Matches::default()));
            clusters.len() - 1
        })
    };
    let mut copies: Vec<_> = changed.live.copies.iter().filter(|copy| is_new(copy.0)).copied().collect();
    copies.sort_unstable_by_key(|&(doc, first)| (first, doc));
    for copy in copies {
        let at = of(copy.0, &mut clusters);
        clusters[at].1.copies.push(copy);
    }
    for &pair in changed.live.pairs.iter().filter(|(pair, _)| is_new(pair.high)) {
        let at = of(pair.0.low, &mut clusters);
        clusters[at].1.pairs.push(pair);
    }
    clusters.sort_unstable_by_key(|cluster| cluster.0);
    clusters.into_iter().map(|(_, matches)| matches).collect()
}

impl StateRows {
    fn add(&mut self, changed: &ChangedClusters, night: &NightState) -> Result<()> {
        let number = |doc| night.numbering.number(doc);
        let label = |label: Option<DocId>| label.map_or(NO_LABEL, number);
        self.labels.extend(changed.labels.iter().map(|&(doc, of)| (number(doc), label(of))));
        for (label, cluster) in &changed.stored {
            self.clusters.push((number(*label), encode_cluster(cluster, &night.numbering)?));
        }
        Ok(())
    }

    fn write(mut self, night: &NightState, worker: usize) -> Result<Vec<RunEntry>> {
        let mut runs = night.runs(&format!("{worker:05}"));
        self.labels.sort_unstable();
        let mut labels = runs.table(StateTable::Labels)?;
        self.labels.iter().try_for_each(|&(doc, label)| labels.push(&[doc, label], b""))?;
        runs.finish(labels)?;
        self.clusters.sort_unstable();
        let mut clusters = runs.table(StateTable::Clusters)?;
        self.clusters.iter().try_for_each(|(label, bytes)| clusters.push(&[*label], bytes))?;
        runs.finish(clusters)?;
        Ok(runs.entries())
    }
}
