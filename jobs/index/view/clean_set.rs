//! The decisions about the documents of a topic.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use operators::{DocId, Reason, Removed, Similarity};

/// The decisions about the documents of a topic, which are named by their numbers in the index. All documents stay that do not go.
#[derive(Debug, Default)]
pub(crate) struct CleanSet {
    /// Number of documents that are there.
    pub documents: u64,
    gone: HashMap<DocId, Removed>,
    /// Each document that goes, behind the one that stays in its place.
    members: BTreeSet<(DocId, DocId)>,
}

/// Number of clusters of a clean set, and of the documents of the largest one; 0 if there is none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClusterCounts {
    pub clusters: usize,
    pub largest: usize,
}

impl CleanSet {
    /// Notes why a document goes; `None` if it stays, or is not there any more.
    pub fn decide(&mut self, doc: DocId, removed: Option<Removed>) {
        if let Some(before) = self.gone.remove(&doc) {
            self.members.remove(&(before.duplicate_of, doc));
        }
        if let Some(removed) = removed {
            self.members.insert((removed.duplicate_of, doc));
            self.gone.insert(doc, removed);
        }
    }

    /// Returns why a document goes; `None` if it stays.
    pub fn removed(&self, doc: DocId) -> Option<Removed> {
        self.gone.get(&doc).copied()
    }

    /// Returns the documents that go.
    pub fn gone(&self) -> impl Iterator<Item = DocId> {
        self.gone.keys().copied()
    }

    /// Returns the number of documents that go.
    pub fn gone_count(&self) -> u64 {
        self.gone.len() as u64
    }

    /// Returns the number of documents that stay.
    pub fn kept(&self) -> u64 {
        self.documents - self.gone_count()
    }

    /// Returns the documents that go for one that stays, in order, with their reasons.
    pub fn members(&self, kept: DocId) -> impl Iterator<Item = (DocId, Reason)> {
        let members = self.members.range((kept, DocId(0))..=(kept, DocId(u64::MAX)));
        members.filter_map(|(_, doc)| Some((*doc, self.removed(*doc)?.tie)))
    }

    /// Returns the number of clusters, and the size of the largest.
    ///
    /// Cost: a walk through the documents that go.
    pub fn counts(&self) -> ClusterCounts {
        let mut counts = ClusterCounts::default();
        let (mut last, mut size) = (None, 0);
        for &(kept, _) in &self.members {
            if last.replace(kept) != Some(kept) {
                counts.clusters += 1;
                size = 1;
            }
            size += 1;
            counts.largest = counts.largest.max(size);
        }
        counts
    }

    /// Returns each document that stays and for which others go, with the size of its cluster, the largest first.
    ///
    /// Cost: sorting them.
    pub fn clusters(&self) -> Vec<(usize, DocId)> {
        let mut clusters: Vec<(usize, DocId)> = Vec::new();
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

/// Returns the similarity of a removed document to the one that stays, which is one if they are identical; `None` if it was not
/// measured.
pub(crate) fn similarity(tie: Reason) -> Option<f64> {
    match tie {
        Reason::Identical => Some(1.0),
        Reason::Similar(_) | Reason::Chain => tie.similarity().map(Similarity::as_f64),
    }
}
