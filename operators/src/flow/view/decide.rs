//! The decisions about the documents of a cluster.

use std::collections::HashMap;

use super::rows::{GoneDoc, Tie, Tied, ViewRank};
use crate::record::{DocId, Pair};
use crate::sets::similarity::Similarity;
use crate::sides::Sides;
use crate::survivors::{Matches, Reason, Removed, Resolve, survivors};

/// Decides which documents of a cluster go, by the greedy rule of [`survivors`].
///
/// `tied`: the matches of the cluster, each once. A document that is identical to another one has a copy's tie to the document that
/// names its class, and all other ties of a class are those of that document, which is a ghost once it is gone.
/// `least`: matches below are passed over.
pub(super) fn decide<'t>(
    tied: impl Iterator<Item = &'t Tied> + Clone,
    least: Option<Similarity>,
    rank: &ViewRank,
) -> Vec<GoneDoc> {
    let firsts = firsts_of_ghosts(tied.clone());
    let first = |doc: u32| DocId(firsts.get(&doc).copied().unwrap_or(doc).into());
    let mut matches = Matches::default();
    for &Tied { low, high, tie } in tied {
        match tie.reason() {
            _ if tie == Tie::GHOST => {}
            Reason::Similar(similarity) if similarity.is_none_or(|similarity| Some(similarity) >= least) => {
                matches.pairs.push((Pair::new(first(low), first(high), 0), similarity));
            }
            Reason::Identical if first(low) != DocId(high.into()) => {
                matches.copies.push((DocId(high.into()), first(low)));
            }
            _ => {}
        }
    }
    let members = survivors(&matches, Resolve::Greedy, Sides::default(), |doc| rank(doc));
    let gone = members.iter().filter_map(|member| {
        let Removed { duplicate_of, tie } = member.removed?;
        let tie = Tie::of_reason(tie);
        Some(GoneDoc { doc: member.doc.0 as u32, duplicate_of: duplicate_of.0 as u32, tie })
    });
    gone.collect()
}

/// Returns the first document of each class whose name is that of a ghost.
fn firsts_of_ghosts<'t>(tied: impl Iterator<Item = &'t Tied> + Clone) -> HashMap<u32, u32> {
    let ghosts = tied.clone().filter(|tied| tied.tie == Tie::GHOST);
    let mut firsts: HashMap<u32, u32> = ghosts.map(|tied| (tied.low, u32::MAX)).collect();
    if !firsts.is_empty() {
        for tied in tied.filter(|tied| tied.tie == Tie::COPY) {
            if let Some(first) = firsts.get_mut(&tied.low) {
                *first = tied.high.min(*first);
            }
        }
    }
    firsts
}
