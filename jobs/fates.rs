//! What becomes of the records that do not simply stay.

use std::hash::{Hash, Hasher};

use cluster::Cluster;
use datasets::{Fate, Removal};
use operators::{DocId, Member, Removed, Similarity, Tie};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::drive;
use crate::names::Names;

/// What was decided for the splits of a process, with the names that are written.
///
/// Memory: 32 bytes for each removed document, 8 for each rejected record, and the names.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Fates {
    /// Those that go, sorted by place.
    pub removed: Vec<Member>,
    /// Sorted.
    pub rejected: Vec<DocId>,
    pub names: Names,
    /// Whether the similarity of each pair is known.
    pub measured: bool,
}

impl Fates {
    /// What was decided for all, in parts: for each process that of its splits. That of process 0, which is not copied,
    /// has all names, others what they need.
    pub fn parts(mut self, cluster: &Cluster) -> Vec<Fates> {
        let process = |doc: DocId| drive::process_of(doc.split(), cluster);
        self.removed.sort_unstable_by_key(|member| (process(member.doc), member.doc));
        self.rejected.sort_unstable_by_key(|&doc| (process(doc), doc));
        let mut parts = Vec::new();
        for index in (1..cluster.processes()).rev() {
            let first = self.removed.partition_point(|member| process(member.doc) < index);
            let removed = self.removed.split_off(first);
            let first = self.rejected.partition_point(|&doc| process(doc) < index);
            let rejected = self.rejected.split_off(first);
            let mut docs: Vec<DocId> = removed.iter().flat_map(named).collect();
            docs.sort_unstable();
            docs.dedup();
            parts.push(Fates { removed, rejected, names: self.names.of(&docs), measured: self.measured });
        }
        self.removed.shrink_to_fit();
        parts.push(self);
        parts.reverse();
        parts
    }

    /// Those of one split.
    pub fn of_split(&self, split: u32) -> OfSplit<'_> {
        let removed = |split| self.removed.partition_point(|member| member.doc.split() < split);
        let rejected = |split| self.rejected.partition_point(|doc| doc.split() < split);
        OfSplit {
            removed: &self.removed[removed(split)..removed(split + 1)],
            rejected: &self.rejected[rejected(split)..rejected(split + 1)],
            fates: self,
        }
    }

    fn removal(&self, member: &Member, removed: Removed) -> Removal {
        let name = |doc| self.names.id(doc).to_owned();
        Removal {
            id: name(member.doc),
            duplicate_of: name(removed.duplicate_of),
            similarity: similarity(removed.tie, self.measured),
            cluster: name(member.cluster),
            reason: reason(removed.tie).into(),
        }
    }
}

/// The documents whose names are written of one that goes.
fn named(member: &Member) -> impl Iterator<Item = DocId> {
    let of = member.removed.map(|removed| removed.duplicate_of);
    [member.doc, member.cluster].into_iter().chain(of)
}

/// The similarity of a removed document to the one that stays, as it is written. `measured`: that of each pair is known.
pub(crate) fn similarity(tie: Tie, measured: bool) -> Option<f64> {
    match tie {
        Tie::Identical => measured.then_some(1.0),
        Tie::Similar(similarity) => similarity.map(Similarity::as_f64),
        Tie::Chain => None,
    }
}

/// What ties the two, as it is written.
pub(crate) fn reason(tie: Tie) -> &'static str {
    match tie {
        Tie::Identical => "identical",
        Tie::Similar(_) => "similar",
        Tie::Chain => "chain",
    }
}

/// What becomes of the records of one split, to be asked from the first to the last.
pub(crate) struct OfSplit<'a> {
    removed: &'a [Member],
    rejected: &'a [DocId],
    fates: &'a Fates,
}

impl OfSplit<'_> {
    /// A hash of all that is written because of them.
    pub fn hash(&self) -> u64 {
        let mut hash = Xxh3::new();
        self.fates.measured.hash(&mut hash);
        for member in self.removed {
            let tie = member.removed.map(|removed| removed.tie);
            (member.doc, tie).hash(&mut hash);
            named(member).for_each(|doc| self.fates.names.id(doc).hash(&mut hash));
        }
        self.rejected.hash(&mut hash);
        hash.finish()
    }

    /// What becomes of the next record, `doc`.
    pub fn next(&mut self, doc: DocId) -> Fate {
        if self.next_rejected(doc) {
            return Fate::Rejected;
        }
        let Some((member, rest)) = self.removed.split_first().filter(|(member, _)| member.doc == doc) else {
            return Fate::Kept;
        };
        self.removed = rest;
        member.removed.map_or(Fate::Kept, |removed| Fate::Removed(self.fates.removal(member, removed)))
    }

    /// Whether the next record, `doc`, is rejected.
    pub fn next_rejected(&mut self, doc: DocId) -> bool {
        let rest = self.rejected.strip_prefix(&[doc]);
        self.rejected = rest.unwrap_or(self.rejected);
        rest.is_some()
    }
}
