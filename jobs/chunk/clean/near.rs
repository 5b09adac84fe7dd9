//! The search for units that are near an earlier one: the search of `dedup`, whose documents are the different units.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use operators::hash::{Identity, Secret};
use operators::method::Method;
use operators::{
    Doc, DocId, FirstUnit, MergeCursor, NearUnit, Priority, Reason, Removed, Resolve, Sides, Similarity,
    SpillBudget, UnitOccurrence, each_first, each_renamed, survivors,
};
use serde::Serialize;

use super::doc_names::SplitGroups;
use batch::keep::Keep;
use batch::pipeline::{CorpusSearch, Mapped, PartMapper, SearchResult, find_on_workers};
use runtime::corpus::at_once::each_with;
use runtime::corpus::run::Run;
use runtime::corpus::shared_sorts::{SharedSorts, sort_of};
use runtime::corpus::splits::SplitReader;
use runtime::output::map_output::MapOutputs;
use runtime::progress::{Stage, StageTimer};

/// Search for the units that are near an earlier one which stays, and so are occurrences of that one.
///
/// ```text
/// take      occurrences sorted by hash      the first of each hash, sorted by its document
/// map       the corpus is read again        each first unit is a document of its split; its hash is the id
/// search    as `dedup` does                 clusters, of each of which some units stay
/// rename    occurrences sorted by hash      those of a unit that goes get the hash of the one that stays
/// ```
///
/// A unit goes if it matches an earlier one that stays, and no two that stay match.
///
/// Memory: three sorts of all occurrences within a part of the budget, and the search within another part. Disk: 80 bytes
/// and the cleaned text of each different unit, below the output.
pub(super) struct NearSearch<'a> {
    pub run: &'a Run,
    pub method: Method,
    /// Memory that all workers share for what they sort.
    pub sorting: SpillBudget,
    /// Memory of each worker for the search.
    pub searching: SpillBudget,
    /// Folder for the texts of the units.
    pub outputs: MapOutputs,
}

/// Counts of a search for near units.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct NearCounts {
    /// Number of different units.
    pub different_units: u64,
    /// Number of pairs of them whose features were compared.
    pub candidates: u64,
    /// Number of different units that are near an earlier one which stays.
    pub near_units: u64,
}

impl NearSearch<'_> {
    /// Returns the occurrences, where those of a unit that goes are occurrences of the unit that stays.
    pub fn rename(
        self,
        units: SharedSorts<UnitOccurrence>,
        groups: &SplitGroups,
    ) -> Result<(SharedSorts<UnitOccurrence>, NearCounts)> {
        let sorts: Vec<usize> = (0..units.count()).collect();
        let again = SharedSorts::<UnitOccurrence>::new(units.count(), &self.sorting);
        let firsts = SharedSorts::<FirstUnit>::new(groups.count(), &self.sorting);
        each_with(
            self.run.group.workers(),
            &sorts,
            |index| self.run.progress.worker_at(index, Stage::Resolve),
            |_, &sort| {
                let (mut to_again, mut to_firsts) = (again.writer(), firsts.writer());
                each_first(
                    units.take(sort)?,
                    |unit| to_again.push(sort, unit),
                    |first| to_firsts.push(groups.of_split(first.place.doc.split()), first),
                )?;
                to_again.finish();
                to_firsts.finish();
                Ok(())
            },
        )?;
        drop(units);
        let (near, counts) = self.search(&firsts, groups, again.count())?;
        drop(firsts);
        let renamed = SharedSorts::<UnitOccurrence>::new(again.count(), &self.sorting);
        each_with(
            self.run.group.workers(),
            &sorts,
            |index| self.run.progress.worker_at(index, Stage::Resolve),
            |_, &sort| {
                let mut writer = renamed.writer();
                each_renamed(again.take(sort)?, near.take(sort)?, |unit| {
                    writer.push(sort_of(unit.identity, again.count()), unit);
                })?;
                writer.finish();
                Ok(())
            },
        )?;
        Ok((renamed, counts))
    }

    /// Returns the units that are near an earlier one which stays, in as many sorts as asked for.
    fn search(
        &self,
        firsts: &SharedSorts<FirstUnit>,
        groups: &SplitGroups,
        sorts: usize,
    ) -> Result<(Arc<SharedSorts<NearUnit>>, NearCounts)> {
        let search = CorpusSearch {
            run: self.run.clone(),
            method: self.method.clone(),
            sides: Sides::default(),
            max_rejects: None,
            outputs: self.outputs.clone(),
            secret: Secret::random(),
            spill: self.searching.clone(),
            keeps_texts: false,
            ignored: None,
            leaders: Some(Keep::First.order()),
        };
        let numbers: Vec<usize> = (0..groups.count()).collect();
        let mapped = each_with(
            self.run.group.workers(),
            &numbers,
            |index| self.run.progress.worker_at(index, Stage::Map),
            |at, &group| {
                let mut firsts = MergeCursor::new(firsts.take(group)?);
                let splits = groups.splits(group).map(|split| {
                    let parts = search.map_parts(split)?;
                    at.split(split, self.run.plan.split(split).uri(), || {
                        self.map(at, split, &mut firsts, parts)
                    })
                });
                Ok(SearchResult::join(splits.collect::<Result<Vec<_>>>()?))
            },
        )?;
        let near = Arc::new(SharedSorts::<NearUnit>::new(sorts, &self.sorting));
        let found = Arc::clone(&near);
        let mapped = (Mapped::new(search), SearchResult::join(mapped));
        let (counts, near_units) = find_on_workers(mapped, move |worker, clusters| {
            let mut writer = found.writer();
            let mut count = 0;
            clusters.decide(worker, |batch, _| -> Result<()> {
                for member in survivors(batch.matches(), Resolve::Greedy, Sides::default(), |doc| doc) {
                    let Some(Removed { duplicate_of, tie }) = member.removed else { continue };
                    let [identity, kept] = [member.doc, duplicate_of].map(|unit| identity_of(batch.id(unit)));
                    let similarity = match tie {
                        Reason::Similar(Some(similarity)) => similarity,
                        // The two differ only in what is cleaned away.
                        _ => Similarity::ONE,
                    };
                    let (identity, kept) = (identity?, kept?);
                    writer.push(sort_of(identity, sorts), NearUnit { identity, kept, similarity });
                    count += 1;
                }
                Ok(())
            })?;
            writer.finish();
            Ok(count)
        })?;
        let near_units = near_units.into_iter().sum();
        let SearchResult { input, candidates, .. } = counts;
        Ok((near, NearCounts { different_units: input.docs, candidates, near_units }))
    }

    /// Maps the units of a split that are the first of their kind. `firsts`: those of its documents come next.
    fn map(
        &self,
        at: &StageTimer,
        split: u32,
        firsts: &mut MergeCursor<FirstUnit>,
        mut parts: PartMapper,
    ) -> Result<SearchResult> {
        let changed = || anyhow!("the input has changed while it was read");
        let mut reader = SplitReader::new(split, self.run.plan.split(split), &self.run.reading, at);
        let mut numbers = 0..;
        while let Some(batch) = reader.next_batch()? {
            for doc in batch.docs() {
                while let Some(FirstUnit { place, bytes, identity }) =
                    firsts.next_if(|first| first.place.doc == doc.doc)?
                {
                    let start = place.start as usize;
                    let text = doc.text.get(start..start + bytes as usize).ok_or_else(changed)?.trim();
                    let number = numbers.next().unwrap_or_default();
                    let id = &name_of(identity);
                    let priority = Priority::default();
                    parts.add(&Doc { doc: DocId::new(split, number), id, text, priority })?;
                }
            }
        }
        match firsts.peek()?.filter(|first| first.place.doc.split() == split) {
            Some(_) => Err(changed()),
            None => parts.finish(),
        }
    }
}

/// Returns the id of a unit among the documents of the search.
fn name_of(identity: Identity) -> String {
    format!("{:016x}{:016x}", identity.0, identity.1)
}

/// Returns the identity of a unit by its id.
fn identity_of(name: &str) -> Result<Identity> {
    let halves = name.split_at_checked(16).context("the id of a unit is damaged")?;
    Ok((u64::from_str_radix(halves.0, 16)?, u64::from_str_radix(halves.1, 16)?))
}
