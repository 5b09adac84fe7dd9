//! Gathering: brings the clusters of all matches together, with the names of their documents.

use anyhow::Result;
use operators::flow::{FoundMatches, GatheredClusters};
use timely::worker::Worker;

use super::earlier::Earlier;
use super::mapped::Mapped;
use super::matched::Matched;
use super::name_spool::NameSpool;
use super::verify::input_of;
use runtime::progress::StageTimer;

/// Returns the clusters of the matches of all workers.
pub(super) fn gather(
    worker: &mut Worker,
    at: &StageTimer,
    mapped: &Mapped,
    matched: &Matched,
    earlier: &dyn Earlier,
) -> Result<GatheredClusters> {
    let mut matches = FoundMatches::new(worker, &mapped.search.spill);
    // Where every match is wanted, the worker that decides a cluster writes its rows.
    if mapped.search.leaders.is_some() {
        matches = matches.spread();
    }
    matched.settled.add_to(worker, &mut matches)?;
    matched.open.add_to(worker, &mut matches)?;
    match &matched.names {
        Some(names) => name_by_spool(worker, matches, names, earlier),
        None => name_by_input(worker, at, mapped, matches, earlier),
    }
}

/// Returns the clusters of matches whose documents the verification has named.
fn name_by_spool(
    worker: &mut Worker,
    matches: FoundMatches,
    names: &NameSpool,
    earlier: &dyn Earlier,
) -> Result<GatheredClusters> {
    let mut docs = matches.finish(worker)?;
    earlier.name(worker, &mut docs, &|_, id| id)?;
    names.scan(|doc, id, merit| Ok(docs.name(worker, doc, id, merit)?))?;
    Ok(docs.finish(worker)?)
}

/// Returns the clusters of matches, for which the input is read again: the names of their documents.
pub(super) fn name_by_input(
    worker: &mut Worker,
    at: &StageTimer,
    mapped: &Mapped,
    matches: FoundMatches,
    earlier: &dyn Earlier,
) -> Result<GatheredClusters> {
    let mut docs = matches.finish(worker)?;
    earlier.name(worker, &mut docs, &|_, id| id)?;
    for (number, split) in mapped.splits(worker) {
        let Some(first) = docs.next_of(number)? else { continue };
        input_of(worker, at, mapped, split, first, |worker, text| {
            docs.name(worker, text.doc, text.id, text.merit)?;
            docs.note_read(worker, text.text.len());
            Ok(docs.next_of(number)?)
        })?;
    }
    Ok(docs.finish(worker)?)
}
