//! Stars: documents that stay, each with those that go for it, as `pairs/` and `clusters/` have them.
//!
//! All documents that are tied to a star by matches are decided by one worker. Which matches are found depends on
//! the number of workers, so each row is written by the worker that reads the document of the row.

use std::collections::HashMap;

use anyhow::Result;
use operators::flow::ClusterBatch;
use operators::{DocId, Member, Pair, Reason, Similarity};
use serde::{Deserialize, Serialize};

use super::tally::Tally;
use super::verdicts::DecidedDocs;
use runtime::output::each_encoded;
use runtime::output::tables::{ClusterRow, ClusterTable, PairTable, WrittenPair};

/// Member of a star on its way to the worker that reads the document.
#[derive(Deserialize, Serialize)]
struct StarMember<'a> {
    doc: DocId,
    id: &'a str,
    characters: u64,
    goes_for: Option<GoesFor<'a>>,
}

/// The document that stays in the place of another one.
#[derive(Clone, Copy, Deserialize, Serialize)]
struct GoesFor<'a> {
    doc: DocId,
    id: &'a str,
    /// Its night, if that is an earlier one.
    night: Option<&'a str>,
    tie: Reason,
    /// Number of bits in which the fingerprints differ; 0 if there are none.
    distance: u32,
    /// Whether the two have one text, or without verification one fingerprint.
    identical: bool,
}

/// Names each cluster by the document that stays in it: the document and those that go for it. Leaves out the others that stay,
/// and orders the rest by cluster and then by document.
///
/// ```text
/// one component        1, 2 goes for 1, 3 stays, 4 stays, 5 goes for 4
/// clusters             1: 1, 2    4: 4, 5
/// ```
pub fn by_survivor(mut members: Vec<Member>) -> Vec<Member> {
    for member in &mut members {
        member.cluster = member.removed.map_or(member.doc, |removed| removed.duplicate_of);
    }
    members.sort_unstable();
    let clusters = members.chunk_by(|a, b| a.cluster == b.cluster);
    clusters.filter(|cluster| cluster.len() > 1).flatten().copied().collect()
}

/// Encodes the members of the stars of a batch.
pub struct StarEncoder<'a> {
    batch: &'a ClusterBatch,
    /// The first of the identical documents of each that is identical to an earlier one.
    firsts: HashMap<DocId, DocId>,
    /// Distances of matches, but for those of distance 0.
    distances: HashMap<(DocId, DocId), u32>,
}

impl<'a> StarEncoder<'a> {
    /// Prepares a batch. Cost and memory: those of its matches.
    pub fn new(batch: &'a ClusterBatch) -> Self {
        let matches = batch.matches();
        let apart = matches.pairs.iter().filter(|(pair, _)| pair.distance > 0);
        StarEncoder {
            batch,
            firsts: matches.copies.iter().copied().collect(),
            distances: apart.map(|(pair, _)| ((pair.low, pair.high), pair.distance)).collect(),
        }
    }

    /// Encodes a member of a star. `night`: that of the document for which it goes, if that is an earlier one.
    pub fn encode(&self, member: &Member, night: Option<&str>, to: &mut Vec<u8>) -> Result<()> {
        let first = |doc: DocId| self.firsts.get(&doc).copied().unwrap_or(doc);
        let goes_for = member.removed.map(|removed| {
            let classes = [removed.duplicate_of, member.doc].map(first);
            let Pair { low, high, .. } = Pair::new(classes[0], classes[1], 0);
            GoesFor {
                doc: removed.duplicate_of,
                id: self.batch.id(removed.duplicate_of),
                night,
                tie: removed.tie,
                distance: self.distances.get(&(low, high)).copied().unwrap_or(0),
                identical: low == high,
            }
        });
        let doc = member.doc;
        let characters = self.batch.merit(member.doc).chars;
        postcard::to_io(&StarMember { doc, id: self.batch.id(doc), characters, goes_for }, to)?;
        Ok(())
    }
}

/// Writes the members of stars, and counts their pairs.
pub struct StarWriter<'t, 'a> {
    /// Table that gets a row for each document that goes, with the one that stays.
    pub pairs: &'t mut PairTable<'a>,
    /// Table that gets a row for each member of a star.
    pub clusters: &'t mut ClusterTable<'a>,
    /// Counts to which each row of `pairs/` is added, and from which samples are drawn.
    pub tally: &'t mut Tally,
    /// Whether pairs have a distance.
    pub distances: bool,
    /// Whether the similarity of each pair is known.
    pub measured: bool,
    /// Whether records that stay are told their clusters.
    pub annotates: bool,
}

impl StarWriter<'_, '_> {
    /// Writes the rows of a split. `members`: encoded one after the other, in the order of the corpus. Returns the decisions about the
    /// split, encoded for [`DecidedDocs`].
    pub fn write(&mut self, split: u32, members: &[u8]) -> Result<Vec<u8>> {
        let mut decisions = Vec::new();
        let mut rows = self.clusters.rows(split, self.measured);
        each_encoded(members, |StarMember { doc, id, characters, goes_for }| {
            let removed = goes_for.map(|stays| (stays.id, stays.tie));
            let cluster = removed.map_or(id, |(stays, _)| stays);
            if goes_for.is_some() || self.annotates {
                let goes_for = goes_for.map(|GoesFor { id, night, tie, .. }| (id, night, tie));
                DecidedDocs::encode_decision(doc, id, goes_for, self.measured, &mut decisions)?;
            }
            rows.push(ClusterRow { id, cluster, removed, characters, doc })
        })?;
        rows.finish()?;
        if decisions.is_empty() {
            return Ok(decisions);
        }
        let mut rows = self.pairs.rows(split);
        each_encoded(members, |member: StarMember| {
            let Some(stays) = member.goes_for else { return Ok(()) };
            let (one, other) = ((stays.doc, stays.id), (member.doc, member.id));
            let (low, high) = (one.min(other), one.max(other));
            let same = self.measured.then_some(Similarity::ONE);
            let row = WrittenPair {
                a: low.1,
                b: high.1,
                hamming: self.distances.then_some(stays.distance),
                similarity: if stays.identical { same } else { stays.tie.similarity() },
                identical: stays.identical,
                places: (low.0, high.0),
            };
            self.tally.row(&row);
            rows.push(row)
        })?;
        rows.finish()?;
        Ok(decisions)
    }
}
