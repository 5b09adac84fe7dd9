//! The pipeline: map, collapse, join, verify and gather, each a function that takes what the one before returns. Rounds repeat join and
//! verify.
//!
//! ```text
//! map         the splits of this process      Mapped          what the search needs of each document
//! collapse    identities                      IdenticalDocs   equal texts are one
//! join        records                         Joined          candidates, and the documents with crowded keys
//! verify      candidates and their texts      Matched         matches of these
//! rounds      the crowd, as often as needed   Matched         more matches, until those that stay are known
//! gather      matches of all workers          clusters        each on one worker, with the names of its documents
//! ```
//!
//! The caller decides the clusters. `zhou2017` has a search of its own (`retrieve.rs`). What documents of earlier nights add is
//! `Earlier`. This room uses `runtime` and the keep order of `batch`; all jobs that search use it.

mod collapse;
mod corpus_search;
mod crowd;
mod earlier;
mod gather;
mod join;
mod links;
mod map;
mod mapped;
mod matched;
mod name_spool;
mod prefixes;
mod retrieve;
mod verify;

use std::iter;

use anyhow::Result;
use operators::flow::GatheredClusters;
use operators::search::Search;
use timely::worker::Worker;

use self::collapse::collapse;
pub use self::corpus_search::{CorpusSearch, SearchResult, SideCounts};
use self::earlier::NoEarlier;
pub use self::earlier::{Earlier, IdentityLookup, KeptPass, NewKey, NewKeySink};
use self::gather::gather;
use self::join::{join, join_round};
pub use self::links::{FoundLinks, IdenticalDocs};
pub use self::map::{PartMapper, map};
pub use self::mapped::Mapped;
use self::retrieve::retrieve;
use self::verify::{verify, verify_round};
use runtime::progress::{Stage, StageTimer};

/// Finds clusters on all workers of this process, in a run without earlier nights. `mapped_counts`: those of the map stage. `decide` gets the
/// clusters of each worker. Returns all counts of this process, and what `decide` has returned, in the order of the workers.
pub fn find_on_workers<T: Send + 'static>(
    (mapped, mapped_counts): (Mapped, SearchResult),
    decide: impl Fn(&mut Worker, GatheredClusters) -> Result<T> + Send + Sync + 'static,
) -> Result<(SearchResult, Vec<T>)> {
    let run = mapped.search.run.clone();
    let of_workers = run.group.run(move |worker| {
        let at = mapped.search.run.progress.worker(worker.index());
        let (clusters, counts) = find(worker, &at, &mapped, &mut NoEarlier)?;
        anyhow::Ok((counts, decide(worker, clusters)?))
    })?;
    let (counts, decided): (Vec<_>, Vec<_>) = of_workers.into_iter().unzip();
    Ok((SearchResult::join(iter::once(mapped_counts).chain(counts)), decided))
}

/// Finds the clusters of one worker in the map output. Returns also what it has counted. All workers must call it.
pub fn find(
    worker: &mut Worker,
    at: &StageTimer,
    mapped: &Mapped,
    earlier: &mut dyn Earlier,
) -> Result<(GatheredClusters, SearchResult)> {
    at.enter(Stage::Compare);
    if let Search::Zhou(zhou) = &mapped.search.method.search {
        let found = retrieve(worker, at, mapped, zhou)?;
        at.enter(Stage::Resolve);
        return Ok(found);
    }
    let mut copies = collapse(worker, mapped, earlier)?;
    earlier.collapsed(worker, mapped, &copies)?;
    loop {
        let Some(joined) = join(worker, at, mapped, &copies, earlier)? else { continue };
        let of_search =
            if earlier.may_reverse_decisions() { copies.clone() } else { std::mem::take(&mut copies) };
        let mut matched = verify(worker, at, mapped, joined, of_search, earlier)?;
        while let Some(round) = matched.next_round(worker, mapped, earlier)? {
            let candidates = join_round(worker, at, mapped, &matched, round, earlier)?;
            verify_round(worker, at, mapped, &mut matched, round, candidates, earlier)?;
        }
        at.enter(Stage::Resolve);
        let clusters = gather(worker, at, mapped, &matched, earlier)?;
        if !earlier.may_reverse_decisions() {
            return Ok((clusters, matched.counts()));
        }
        if !earlier.asks_again(worker, mapped, clusters)? {
            return Ok((gather(worker, at, mapped, &matched, earlier)?, matched.counts()));
        }
    }
}
