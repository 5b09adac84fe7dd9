//! What is decided about the documents of a topic.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use operators::Reason;

/// Reason why a document goes.
#[derive(Clone, Copy, Debug)]
pub(in crate::index) struct RemovedDoc {
    /// Number of the document that stays in its place.
    pub duplicate_of: u64,
    pub tie: Reason,
}

/// The decisions about the documents of a topic, by their numbers. All documents stay that do not go.
#[derive(Debug, Default)]
pub(in crate::index) struct CleanSet {
    /// Number of documents that are there.
    pub documents: u64,
    /// Number of documents that may have matches which were not looked at, because too many resemble them.
    pub cut: u64,
    gone: HashMap<u64, RemovedDoc>,
    /// Each document that goes, behind the one that stays in its place.
    members: BTreeSet<(u64, u64)>,
}

impl CleanSet {
    /// Notes why a document goes; `None` if it stays, or is not there any more.
    pub fn decide(&mut self, number: u64, removed: Option<RemovedDoc>) {
        if let Some(before) = self.gone.remove(&number) {
            self.members.remove(&(before.duplicate_of, number));
        }
        if let Some(removed) = removed {
            self.members.insert((removed.duplicate_of, number));
            self.gone.insert(number, removed);
        }
    }

    /// Returns why a document goes; `None` if it stays.
    pub fn removed(&self, number: u64) -> Option<RemovedDoc> {
        self.gone.get(&number).copied()
    }

    /// Returns the number of documents that stay.
    pub fn kept(&self) -> u64 {
        self.documents - self.gone.len() as u64
    }

    /// Returns the documents that go for one that stays, in order, with their reasons.
    pub fn members(&self, kept: u64) -> impl Iterator<Item = (u64, Reason)> {
        let members = self.members.range((kept, 0)..=(kept, u64::MAX));
        members.filter_map(|(_, number)| Some((*number, self.removed(*number)?.tie)))
    }

    /// Returns each document that stays and for which others go, with the size of its cluster, the largest first.
    ///
    /// Cost: sorting them.
    pub fn clusters(&self) -> Vec<(usize, u64)> {
        let mut clusters: Vec<(usize, u64)> = Vec::new();
        for &(kept, _) in &self.members {
            match clusters.last_mut().filter(|(_, of)| *of == kept) {
                Some((size, _)) => *size += 1,
                None => clusters.push((2, kept)),
            }
        }
        clusters.sort_unstable_by_key(|(size, kept)| (Reverse(*size), *kept));
        clusters
    }
}
