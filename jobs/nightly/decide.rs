//! Decides the clusters that a night touches: which new documents stay, which earlier decisions change, and what the
//! state keeps.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use operators::flow::{GatheredClusters, ValueShuffle, reader_of};
use operators::incremental::ChangedClusters;
use operators::{DocId, Matches, Member, Sides, SpillBudget, Spool, pack_apart};
use serde::{Deserialize, Serialize};
use timely::worker::Worker;

use super::options::NightlyOptions;
use crate::state::{
    EarlierDocs, GOES, HAS_TEXT, NO_MEMBER, NO_PARENT, NightState, OF_TEXT, RunEntry, StateManifest,
    StateTable, number_of,
};
use batch::decide::Decided;
use batch::keep::KeepOrder;
use batch::options::DedupOptions;
use batch::stars::{StarEncoder, StarWriter, by_survivor};
use batch::tally::Tally;
use batch::verdicts::DecidedDocs;
use runtime::output::tables::{ClusterTable, CorrectionRow, CorrectionTable, PairTable, PairsOf};
use runtime::output::{OutputFolder, each_encoded};

/// Rules by which the clusters of a night are decided, the folder of the tables, and the state.
pub(crate) struct NightDecider {
    folder: Arc<OutputFolder>,
    night: NightState,
    /// Version of the state before the night.
    manifest: StateManifest,
    keep: KeepOrder,
    /// Whether pairs have a distance; those of methods over sets have none.
    distances: bool,
    /// Whether the similarity of each pair is known.
    measured: bool,
    spill: SpillBudget,
}

/// Outcome of the decisions of one worker.
pub(crate) struct NightDecided {
    pub decided: Decided,
    pub of_state: NightRows,
}

/// Rows and files that a state keeps of a night, of one worker, of one process or of all together.
#[derive(Default, Deserialize, Serialize)]
pub(crate) struct NightRows {
    /// Files of the state that were written.
    pub runs: Vec<RunEntry>,
    /// Texts of which every document is withdrawn.
    pub dead_texts: Vec<DocId>,
    /// Documents that the night withdraws, that were in no cluster, and whose text a new document has.
    pub succeeded: Vec<DocId>,
    /// Number of earlier decisions that have changed.
    pub corrections: u64,
}

impl NightRows {
    /// Joins what several workers or processes have.
    pub fn join(parts: impl IntoIterator<Item = NightRows>) -> Self {
        let mut all = NightRows::default();
        for part in parts {
            all.runs.extend(part.runs);
            all.dead_texts.extend(part.dead_texts);
            all.succeeded.extend(part.succeeded);
            all.corrections += part.corrections;
        }
        all
    }
}

/// Rows of a worker for the state.
#[derive(Default)]
struct StateRows {
    parents: Vec<[u64; 3]>,
    members: Vec<[u64; 4]>,
}

impl NightDecider {
    /// Makes the rules of a night.
    pub fn new(
        folder: &Arc<OutputFolder>,
        night: NightState,
        manifest: StateManifest,
        keep: KeepOrder,
        options: &NightlyOptions,
        of_dedup: &DedupOptions,
        spill: &SpillBudget,
    ) -> Self {
        NightDecider {
            folder: Arc::clone(folder),
            night,
            manifest,
            keep,
            distances: options.method.fingerprints(),
            measured: of_dedup.threshold().is_some() || options.method.measures(),
            spill: spill.clone(),
        }
    }

    /// Decides the clusters of this worker, and writes their rows of the tables and of the state.
    pub fn decide(&self, worker: &mut Worker, clusters: GatheredClusters) -> Result<NightDecided> {
        let mut pairs = PairTable::new(&self.folder, PairsOf::Deciding, Sides::default());
        let mut clusters_table = ClusterTable::new(&self.folder);
        let mut corrections = Spool::new(&self.spill);
        let mut tally = Tally::default();
        let mut value = Vec::new();
        let (mut rows, mut dead_texts, mut succeeded) = (StateRows::default(), Vec::new(), Vec::new());
        let docs = &self.night.docs;
        let change = self.night.change();
        let is_new = |doc: DocId| doc >= change.first_new;
        let members = clusters.decide(worker, |batch, send| -> Result<()> {
            let went = match change.may_reverse_decisions() {
                true => self.went(batch.matches())?,
                false => HashMap::new(),
            };
            let changed = change.decide(batch.matches(), &went, |doc| (self.keep)(doc, &|| batch.merit(doc)));
            rows.add(&changed, &self.night)?;
            let ChangedClusters { live, members, corrections: changes, living_texts, .. } = changed;
            dead_texts.extend(changed.dead_texts);
            succeeded
                .extend(living_texts.into_iter().filter(|text| docs.going().binary_search(text).is_ok()));
            tally.removed_earlier += changes.iter().filter(|(_, removed)| removed.is_some()).count() as u64;
            for (doc, removed) in changes {
                let night = self.night_name(doc).unwrap_or_default();
                let removed = removed.map(|removed| (batch.id(removed.duplicate_of), removed.tie));
                let row = CorrectionRow { id: batch.id(doc), night, removed };
                corrections.push(doc, &postcard::to_allocvec(&row)?);
            }
            let members = of_night(members, is_new);
            let copies: Vec<_> = live.copies.iter().copied().filter(|copy| is_new(copy.0)).collect();
            tally.count(batch, &copies, &members, Sides::default());
            let live = batch.with_matches(vec![live]);
            let encoder = StarEncoder::new(&live);
            members.iter().try_for_each(|member| {
                value.clear();
                let night = member.removed.and_then(|removed| self.night_name(removed.duplicate_of));
                encoder.encode(member, night, &mut value)?;
                send(member.doc, &value);
                Ok(())
            })
        })?;
        let corrections = self.write_corrections(worker, &corrections)?;
        let runs = rows.write(&self.night, worker.index())?;
        let mut writer = StarWriter {
            pairs: &mut pairs,
            clusters: &mut clusters_table,
            tally: &mut tally,
            distances: self.distances,
            measured: self.measured,
            annotates: false,
        };
        let docs =
            DecidedDocs::collect(members, &self.spill, |split, members| writer.write(split, &members))?;
        tally.pairs = pairs.finish()?;
        clusters_table.finish()?;
        let of_state = NightRows { runs, dead_texts, succeeded, corrections };
        Ok(NightDecided { decided: Decided { tally, docs }, of_state })
    }

    /// Writes corrections in the order of their documents, which the clusters have not: which documents are in one depends on the
    /// matches that were found, and so on the number of workers. The corrections are kept until all clusters are decided, since one channel is open at a
    /// time. Returns the number of rows of this worker.
    fn write_corrections(&self, worker: &mut Worker, found: &Spool<u8>) -> Result<u64> {
        let mut sent = ValueShuffle::new(worker, "Corrections", reader_of, &self.spill);
        found.scan(|doc, row| {
            sent.send(worker, (doc, DocId::default()), row);
            anyhow::Ok(())
        })?;
        let mut arrived = sent.finish(worker)?;
        let mut table = CorrectionTable::new(&self.folder);
        while let Some((split, encoded)) = arrived.next_split()? {
            let mut rows: Vec<CorrectionRow> = Vec::new();
            each_encoded(&encoded, |row| {
                rows.push(row);
                Ok(())
            })?;
            table.write(split, rows.into_iter())?;
        }
        table.finish()
    }

    /// Returns the text for which each text of the state has gone, as far as some matches touch them.
    fn went(&self, matches: &Matches) -> Result<HashMap<DocId, DocId>> {
        let of_pairs = matches.pairs.iter().flat_map(|(pair, _)| [pair.low, pair.high]);
        let mut texts: Vec<DocId> =
            of_pairs.filter(|&text| text < self.night.numbering.first_new()).collect();
        texts.sort_unstable();
        texts.dedup();
        let mut parents = self.night.docs.cursor(StateTable::Parents);
        let mut went = HashMap::new();
        for text in texts {
            went.extend(EarlierDocs::goes_for(&mut parents, text)?.map(|above| (text, above)));
        }
        Ok(went)
    }

    /// Returns the name of the night of an earlier document.
    fn night_name(&self, doc: DocId) -> Option<&str> {
        let earlier = Some(doc).filter(|&doc| doc < self.night.numbering.first_new())?;
        Some(&self.manifest.night_of(number_of(earlier))?.name)
    }
}

/// Returns the stars in which a new document goes: those that go, and the document that stays, of this or of an earlier night.
/// Decisions about earlier documents belong to earlier nights.
fn of_night(members: Vec<Member>, is_new: impl Fn(DocId) -> bool) -> Vec<Member> {
    by_survivor(members.into_iter().filter(|member| is_new(member.doc) || member.removed.is_none()).collect())
}

impl StateRows {
    fn add(&mut self, changed: &ChangedClusters, night: &NightState) -> Result<()> {
        let first_new = night.numbering.first_new();
        let mut parents = night.docs.cursor(StateTable::Parents);
        let number = |doc| night.numbering.number(doc);
        for &(doc, parent) in &changed.parents {
            let was = if doc < first_new { EarlierDocs::parent(&mut parents, doc)? } else { None };
            let is = parent.map(|parent| (parent.text, if parent.apart.is_some() { GOES } else { OF_TEXT }));
            if was == is {
                continue;
            }
            let (of, sort) = is.map_or((NO_PARENT, 0), |(text, sort)| (number(text), sort));
            self.parents.push([number(doc), of, sort]);
            if let Some((text, sort)) = was {
                self.members.push([number(text), sort, number(doc), NO_MEMBER]);
            }
            if let (Some((text, sort)), Some(parent)) = (is, parent) {
                let value =
                    parent.apart.map_or(HAS_TEXT, |(distance, similarity)| pack_apart(distance, similarity));
                self.members.push([number(text), sort, number(doc), value]);
            }
        }
        Ok(())
    }

    fn write(mut self, night: &NightState, worker: usize) -> Result<Vec<RunEntry>> {
        let mut runs = night.runs(&format!("{worker:05}"));
        self.parents.sort_unstable();
        let mut parents = runs.table(StateTable::Parents)?;
        self.parents.iter().try_for_each(|row| parents.push(row, b""))?;
        runs.finish(parents)?;
        self.members.sort_unstable();
        let mut members = runs.table(StateTable::Members)?;
        self.members.iter().try_for_each(|row| members.push(row, b""))?;
        runs.finish(members)?;
        Ok(runs.entries())
    }
}
