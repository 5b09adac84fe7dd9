//! The verdicts of a run: what happens to each record, for the process that writes it.

use std::hash::{Hash, Hasher};

use anyhow::{Error, Result};
use cluster::Group;
use datasets::{Fate, Removal};
use operators::{DocId, Member, Removed};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::corpus::doc_ids::DocIds;
use crate::corpus::splits;
use crate::output::split_rejects::SplitRejects;
use crate::output::tables::{reason, similarity};

/// Removed documents of the splits of a process, with the names that are written for them.
///
/// Memory: 32 bytes for each removed document, and the names.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Verdicts {
    /// Removed documents, sorted by position.
    pub removed: Vec<Member>,
    pub names: DocIds,
    /// Whether the similarity of each pair is known.
    pub measured: bool,
    /// Whether no record of the corpus is kept.
    pub keeps_none: bool,
}

impl Verdicts {
    /// Divides the removed documents among the processes, each of which gets those of its splits. Process 0
    /// gets all names, and nothing of it is copied; the others get the names that they write.
    pub fn parts(mut self, group: &Group) -> Vec<Verdicts> {
        let process = |doc: DocId| splits::process_of(doc.split(), group);
        self.removed.sort_unstable_by_key(|member| (process(member.doc), member.doc));
        let mut parts = Vec::new();
        for index in (1..group.processes()).rev() {
            let first = self.removed.partition_point(|member| process(member.doc) < index);
            let removed = self.removed.split_off(first);
            let mut docs: Vec<DocId> = removed.iter().flat_map(named).collect();
            docs.sort_unstable();
            docs.dedup();
            let (names, measured, keeps_none) = (self.names.of(&docs), self.measured, self.keeps_none);
            parts.push(Verdicts { removed, names, measured, keeps_none });
        }
        self.removed.shrink_to_fit();
        parts.push(self);
        parts.reverse();
        parts
    }

    /// Returns the verdicts of one split with its rejected records.
    pub fn of_split(&self, split: u32, rejected: SplitRejects) -> SplitVerdicts<'_> {
        let removed = |split| self.removed.partition_point(|member| member.doc.split() < split);
        let removed = &self.removed[removed(split)..removed(split + 1)];
        SplitVerdicts { removed, rejected, failed: None, is_first: split == 0, verdicts: self }
    }

    /// Returns the row of `removed/` for a removed document.
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

/// Returns the documents that are named in a removal.
fn named(member: &Member) -> impl Iterator<Item = DocId> {
    let of = member.removed.map(|removed| removed.duplicate_of);
    [member.doc, member.cluster].into_iter().chain(of)
}

/// Verdicts of the records of one split, to be asked from the first record to the last.
pub(crate) struct SplitVerdicts<'a> {
    removed: &'a [Member],
    rejected: SplitRejects,
    /// Error after which the rejected records are unknown.
    failed: Option<Error>,
    is_first: bool,
    verdicts: &'a Verdicts,
}

impl SplitVerdicts<'_> {
    /// Returns a hash of everything that is written because of these verdicts.
    pub fn hash(&self) -> u64 {
        let mut hash = Xxh3::new();
        self.verdicts.measured.hash(&mut hash);
        for member in self.removed {
            let tie = member.removed.map(|removed| removed.tie);
            (member.doc, tie).hash(&mut hash);
            named(member).for_each(|doc| self.verdicts.names.id(doc).hash(&mut hash));
        }
        self.rejected.hash().hash(&mut hash);
        self.stands_for_all().hash(&mut hash);
        hash.finish()
    }

    /// Whether nothing is kept, and this is the split that puts an empty part into `kept/`.
    pub fn stands_for_all(&self) -> bool {
        self.is_first && self.verdicts.keeps_none
    }

    /// Returns the verdict of the next record, `doc`.
    pub fn next(&mut self, doc: DocId) -> Fate {
        if self.next_rejected(doc) {
            return Fate::Rejected;
        }
        let Some((member, rest)) = self.removed.split_first().filter(|(member, _)| member.doc == doc) else {
            return Fate::Kept;
        };
        self.removed = rest;
        member.removed.map_or(Fate::Kept, |removed| Fate::Removed(self.verdicts.removal(member, removed)))
    }

    /// Whether the next record, `doc`, is rejected.
    pub fn next_rejected(&mut self, doc: DocId) -> bool {
        let found = self.rejected.pass(doc);
        found.unwrap_or_else(|error| {
            self.failed = self.failed.take().or(Some(error));
            false
        })
    }

    /// Returns an error if the verdicts so far cannot be relied on.
    pub fn check(&mut self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cluster::Local;
    use operators::{Reason, Reject};

    use super::*;
    use crate::output::map_output::MapOutputs;

    const REMOVED: DocId = DocId(7);

    /// Returns the verdicts of a split of which document 7 is removed in favour of `duplicate_of`.
    fn verdicts(duplicate_of: &str, tie: Reason, measured: bool) -> Verdicts {
        let mut names = DocIds::default();
        for (doc, id) in [(DocId(1), "first"), (DocId(2), duplicate_of), (REMOVED, "it")] {
            names.add(doc, id, 1);
        }
        let removed = Some(Removed { duplicate_of: DocId(2), tie });
        let removed = vec![Member { cluster: DocId(1), doc: REMOVED, removed }];
        Verdicts { removed, names, measured, keeps_none: false }
    }

    /// Makes a map output with rejects at these positions, and reads them back.
    fn rejects(positions: &[u64]) -> SplitRejects {
        let folder = tempfile::tempdir().unwrap();
        let outputs = MapOutputs::new(Arc::new(Local), folder.path().to_str().unwrap().to_owned());
        let mut writer = outputs.create(0, 0).unwrap();
        for &position in positions {
            let (path, reason, head) = Default::default();
            writer.reject(&Reject { doc: DocId(position), path, offset: 0, reason, head }).unwrap();
        }
        writer.finish(()).unwrap();
        outputs.open_rejects(0).unwrap()
    }

    #[test]
    fn a_removal_says_the_names_of_its_documents() {
        let verdicts = verdicts("best", Reason::Similar(None), false);
        let mut of_split = verdicts.of_split(0, rejects(&[8]));
        let removal = Removal {
            id: "it".to_owned(),
            duplicate_of: "best".to_owned(),
            similarity: None,
            cluster: "first".to_owned(),
            reason: "similar".into(),
        };
        let next: Vec<Fate> = (6..10).map(|doc| of_split.next(DocId(doc))).collect();
        assert_eq!(next, [Fate::Kept, Fate::Removed(removal), Fate::Rejected, Fate::Kept]);
        assert_eq!(verdicts.of_split(1, rejects(&[])).next(DocId::new(1, 7)), Fate::Kept);
    }

    #[test]
    fn all_that_is_written_is_in_the_hash() {
        let hash_of = |verdicts: Verdicts, rejected: &[u64]| verdicts.of_split(0, rejects(rejected)).hash();
        let hash = |verdicts: Verdicts| hash_of(verdicts, &[8]);
        let usual = hash(verdicts("best", Reason::Identical, false));
        assert_eq!(usual, hash(verdicts("best", Reason::Identical, false)));
        assert_ne!(usual, hash_of(verdicts("best", Reason::Identical, false), &[]));
        let mut none = verdicts("best", Reason::Identical, false);
        none.keeps_none = true;
        let others = [
            none,
            verdicts("bess", Reason::Identical, false),
            verdicts("best", Reason::Chain, false),
            verdicts("best", Reason::Identical, true),
        ];
        others.into_iter().for_each(|other| assert_ne!(hash(other), usual));
    }
}
