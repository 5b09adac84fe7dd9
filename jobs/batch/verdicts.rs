//! The verdicts of a run: what happens to each record, for the process that writes it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use anyhow::{Error, Result};
use datasets::{Annotation, Fate, Removal};
use operators::flow::{ClusterBatch, SortedValues};
use operators::{DocId, Member, Reason, Removed, SpillBudget, ValueFile};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use runtime::output::split_rejects::SplitRejects;
use runtime::output::tables::{reason, similarity};

/// Decisions about documents of the splits of a worker or of a process: those that are removed and, where records are annotated, those that
/// stay in a cluster. Each has the names that are written for it.
///
/// Memory: for each such document the three names and some 10 bytes. With a budget they are on disk, and
/// one split at a time is in memory.
#[derive(Default)]
pub struct DecidedDocs {
    by_split: BTreeMap<u32, EncodedDecisions>,
}

/// Decisions of a split, encoded one after the other in the order of the corpus.
enum EncodedDecisions {
    InMemory(Vec<u8>),
    /// Decisions at this offset of a file.
    Spilled(Arc<ValueFile>, u64),
}

/// A decision as it travels and is held.
#[derive(Deserialize, Serialize)]
struct StoredDecision<'a> {
    /// Ordinal of the document in its split.
    record: u64,
    id: &'a str,
    /// Name of the cluster, if that is not the document that stays.
    cluster: Option<&'a str>,
    /// `None` if the document stays.
    removal: Option<StoredRemoval<'a>>,
}

/// Reason why a document is removed.
#[derive(Deserialize, Serialize)]
struct StoredRemoval<'a> {
    duplicate_of: &'a str,
    tie: Reason,
    /// Whether the similarity of each pair is known.
    measured: bool,
    /// Night of the document that stays, if that is an earlier one.
    night: Option<&'a str>,
}

impl DecidedDocs {
    /// Encodes the decision about a member of a cluster. `measured`: whether the similarity of each pair is known.
    pub fn encode(batch: &ClusterBatch, member: &Member, measured: bool, to: &mut Vec<u8>) -> Result<()> {
        let stays = member.removed.map_or(member.doc, |removed| removed.duplicate_of);
        let removal = member.removed.map(|Removed { duplicate_of, tie }| StoredRemoval {
            duplicate_of: batch.id(duplicate_of),
            tie,
            measured,
            night: None,
        });
        let record = member.doc.record();
        let id = batch.id(member.doc);
        let cluster = Some(batch.id(member.cluster)).filter(|_| member.cluster != stays);
        postcard::to_io(&StoredDecision { record, id, cluster, removal }, to)?;
        Ok(())
    }

    /// Encodes the decision about a document of a cluster that is named after the document that stays. `goes_for`: the name of that
    /// document, its night if that is an earlier one, and the relation to it; `None` if this one stays. `measured`: whether the
    /// similarity of each pair is known.
    pub fn encode_decision(
        doc: DocId,
        id: &str,
        goes_for: Option<(&str, Option<&str>, Reason)>,
        measured: bool,
        to: &mut Vec<u8>,
    ) -> Result<()> {
        let removal =
            goes_for.map(|(duplicate_of, night, tie)| StoredRemoval { duplicate_of, tie, measured, night });
        postcard::to_io(&StoredDecision { record: doc.record(), id, cluster: None, removal }, to)?;
        Ok(())
    }

    /// Collects what was sent about the documents of a worker. `decisions`: makes the encoded decisions of a split of all that was
    /// sent about it.
    pub fn collect(
        mut values: SortedValues,
        spill: &SpillBudget,
        mut decisions: impl FnMut(u32, Vec<u8>) -> Result<Vec<u8>>,
    ) -> Result<Self> {
        let mut file = spill.budget().map(|_| ValueFile::new(spill)).transpose()?;
        let (mut in_memory, mut offsets) = (BTreeMap::new(), BTreeMap::new());
        while let Some((split, encoded)) = values.next_split()? {
            let encoded = decisions(split, encoded)?;
            match &mut file {
                Some(file) => _ = offsets.insert(split, file.append(&encoded)?),
                None => _ = in_memory.insert(split, EncodedDecisions::InMemory(encoded)),
            }
        }
        if let Some(file) = file.map(Arc::new) {
            let spilled = |(split, offset)| (split, EncodedDecisions::Spilled(Arc::clone(&file), offset));
            in_memory.extend(offsets.into_iter().map(spilled));
        }
        Ok(DecidedDocs { by_split: in_memory })
    }

    /// Joins the decisions of several workers, no two of which have the same split.
    pub fn join(parts: Vec<DecidedDocs>) -> Self {
        DecidedDocs { by_split: parts.into_iter().flat_map(|part| part.by_split).collect() }
    }

    /// Returns the decisions of one split, to be asked from the first record to the last.
    pub fn of_split(&self, split: u32) -> Result<SplitDecisions<'_>> {
        let encoded = match self.by_split.get(&split) {
            None => Cow::default(),
            Some(EncodedDecisions::InMemory(encoded)) => Cow::Borrowed(encoded.as_slice()),
            Some(EncodedDecisions::Spilled(file, offset)) => Cow::Owned(file.read(*offset)?),
        };
        Ok(SplitDecisions { encoded, passed: 0 })
    }
}

/// Decisions about one split, read in order.
pub struct SplitDecisions<'a> {
    encoded: Cow<'a, [u8]>,
    /// Number of bytes of the decisions that are passed.
    passed: usize,
}

impl SplitDecisions<'_> {
    /// Returns the decision about the next record, `doc`, if there is one, and passes it. Records may be left out.
    pub fn pass(&mut self, doc: DocId) -> Result<Option<Annotation>> {
        while self.passed < self.encoded.len() {
            let (decision, rest) = postcard::take_from_bytes::<StoredDecision>(&self.encoded[self.passed..])?;
            if decision.record > doc.record() {
                break;
            }
            self.passed = self.encoded.len() - rest.len();
            if decision.record == doc.record() {
                return Ok(Some(decision.annotation()));
            }
        }
        Ok(None)
    }
}

impl StoredDecision<'_> {
    fn annotation(self) -> Annotation {
        let StoredDecision { id, cluster, removal, .. } = self;
        let stays = removal.as_ref().map_or(id, |removal| removal.duplicate_of);
        let cluster = cluster.unwrap_or(stays).to_owned();
        let removal = removal.map(|StoredRemoval { duplicate_of, tie, measured, night }| Removal {
            id: id.to_owned(),
            duplicate_of: duplicate_of.to_owned(),
            similarity: similarity(tie, measured),
            cluster: cluster.clone(),
            reason: match night {
                Some(night) => format!("{}@{night}", reason(tie)).into(),
                None => reason(tie).into(),
            },
        });
        Annotation { cluster: Some(cluster), removal }
    }
}

/// Verdicts about the splits of a process.
pub struct Verdicts {
    /// Decisions about the documents of clusters; a document without one is kept.
    pub decided: DecidedDocs,
    /// Whether all records lie together, and say what was decided about them.
    pub annotates: bool,
    /// Number of the first split of the input, if no record of it is kept.
    pub stands_for_all: Option<u32>,
}

impl Verdicts {
    /// Returns the verdicts of one split with its rejected records.
    pub fn of_split(&self, split: u32, rejected: SplitRejects) -> Result<SplitVerdicts<'_>> {
        let decisions = self.decided.of_split(split)?;
        let stands_for_all = self.stands_for_all == Some(split);
        Ok(SplitVerdicts { decisions, annotates: self.annotates, rejected, failed: None, stands_for_all })
    }
}

/// Fates of the records of one split, to be asked from the first record to the last. Implemented by the verdicts of
/// `dedup` and by the cuts of `chunk clean`.
pub trait RecordFates {
    /// Returns the fate of the next record, `doc`.
    fn next(&mut self, doc: DocId) -> Fate;
    /// Whether the next record, `doc`, is rejected.
    fn next_rejected(&mut self, doc: DocId) -> bool;
    /// Returns the first error so far. Fates that were returned since then do not count.
    fn check(&mut self) -> Result<()>;
    /// Whether nothing is kept, and this is the split that puts an empty part into `kept/`.
    fn stands_for_all(&self) -> bool {
        false
    }
}

/// Verdicts of the records of one split, to be asked from the first record to the last.
pub struct SplitVerdicts<'a> {
    decisions: SplitDecisions<'a>,
    annotates: bool,
    rejected: SplitRejects,
    /// Error after which the verdicts are unknown.
    failed: Option<Error>,
    stands_for_all: bool,
}

impl SplitVerdicts<'_> {
    /// Returns a hash of everything that is written because of these verdicts.
    pub fn hash(&self) -> u64 {
        let mut hash = Xxh3::new();
        self.decisions.encoded.hash(&mut hash);
        self.rejected.hash().hash(&mut hash);
        self.stands_for_all.hash(&mut hash);
        hash.finish()
    }

    /// Returns a result, and keeps the first error for [`RecordFates::check`].
    fn known<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.failed = self.failed.take().or(Some(error))).ok()
    }
}

impl RecordFates for SplitVerdicts<'_> {
    fn next(&mut self, doc: DocId) -> Fate {
        if self.next_rejected(doc) {
            return Fate::Rejected;
        }
        let decision = self.decisions.pass(doc);
        let decision = self.known(decision).flatten().unwrap_or_default();
        if self.annotates {
            return Fate::Annotated(decision);
        }
        decision.removal.map_or(Fate::Kept, Fate::Removed)
    }

    fn next_rejected(&mut self, doc: DocId) -> bool {
        let rejected = self.rejected.pass(doc);
        self.known(rejected).unwrap_or(false)
    }

    fn check(&mut self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }

    fn stands_for_all(&self) -> bool {
        self.stands_for_all
    }
}

#[cfg(test)]
mod tests {
    use cluster::Local;
    use operators::{Reason, Reject};

    use super::*;
    use runtime::output::map_output::MapOutputs;

    const REMOVED: DocId = DocId(7);

    /// Returns the verdicts of a split of which document 7 is removed in favour of `duplicate_of`.
    fn verdicts(duplicate_of: &str, tie: Reason, measured: bool) -> Verdicts {
        let cluster = Some("first").filter(|&first| first != duplicate_of);
        let removal = Some(StoredRemoval { duplicate_of, tie, measured, night: None });
        let decision = StoredDecision { record: REMOVED.record(), id: "it", cluster, removal };
        let encoded = EncodedDecisions::InMemory(postcard::to_stdvec(&decision).unwrap());
        let by_split = BTreeMap::from([(0, encoded)]);
        Verdicts { decided: DecidedDocs { by_split }, annotates: false, stands_for_all: None }
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
        let mut of_split = verdicts.of_split(0, rejects(&[8])).unwrap();
        let removal = Removal {
            id: "it".to_owned(),
            duplicate_of: "best".to_owned(),
            similarity: None,
            cluster: "first".to_owned(),
            reason: "similar".into(),
        };
        let next: Vec<Fate> = (6..10).map(|doc| of_split.next(DocId(doc))).collect();
        assert_eq!(next, [Fate::Kept, Fate::Removed(removal), Fate::Rejected, Fate::Kept]);
        assert_eq!(verdicts.of_split(1, rejects(&[])).unwrap().next(DocId::new(1, 7)), Fate::Kept);
    }

    #[test]
    fn all_that_is_written_is_in_the_hash() {
        let hash_of =
            |verdicts: Verdicts, rejected: &[u64]| verdicts.of_split(0, rejects(rejected)).unwrap().hash();
        let hash = |verdicts: Verdicts| hash_of(verdicts, &[8]);
        let usual = hash(verdicts("best", Reason::Identical, false));
        assert_eq!(usual, hash(verdicts("best", Reason::Identical, false)));
        assert_ne!(usual, hash_of(verdicts("best", Reason::Identical, false), &[]));
        let mut none = verdicts("best", Reason::Identical, false);
        none.stands_for_all = Some(0);
        let others = [
            none,
            verdicts("bess", Reason::Identical, false),
            verdicts("best", Reason::Chain, false),
            verdicts("best", Reason::Identical, true),
        ];
        others.into_iter().for_each(|other| assert_ne!(hash(other), usual));
    }
}
