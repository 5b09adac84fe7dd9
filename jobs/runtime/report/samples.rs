//! Pairs and clusters of a run that people look at: in `_SUCCESS`, and with their texts on the page.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use operators::flow::ClusterBatch;
use operators::{DocId, Member, Similarity, hash};
use serde::{Deserialize, Serialize};

use crate::output::summary::{SampleCluster, SampleMember, SamplePair};
use crate::output::tables::WrittenPair;

/// Greatest number of pairs of each kind, and of those from which they are chosen.
const PAIRS: usize = 25;
const CANDIDATES: usize = 8 * PAIRS;
/// Greatest number of clusters, and of the members of each.
const CLUSTERS: usize = 10;
const MEMBERS: usize = 5;

/// Similarity of a pair in millionths, and its distance, as far as they are known: the least similar pair comes first.
type LeastSimilar = (Option<u32>, Reverse<Option<u32>>);

/// Samples of some pairs and clusters. Memory: some 100 KB.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct RunSamples {
    /// The pairs with the least hashes of their places.
    anywhere: BTreeMap<(u64, DocId, DocId), SamplePair>,
    /// The least similar pairs, and of equally similar ones those of the largest distance.
    borderline: BTreeMap<(LeastSimilar, DocId, DocId), SamplePair>,
    /// The largest clusters by their sizes, and of equal ones the first in the corpus.
    clusters: BTreeMap<(u64, Reverse<DocId>), SampleCluster>,
}

impl RunSamples {
    /// Adds the samples of another part of the run.
    pub fn join(&mut self, mut other: RunSamples) {
        self.anywhere.append(&mut other.anywhere);
        self.borderline.append(&mut other.borderline);
        self.clusters.append(&mut other.clusters);
        self.drop_others();
    }

    fn drop_others(&mut self) {
        while self.anywhere.len() > CANDIDATES {
            self.anywhere.pop_last();
        }
        while self.borderline.len() > CANDIDATES {
            self.borderline.pop_last();
        }
        while self.clusters.len() > CLUSTERS {
            self.clusters.pop_first();
        }
    }

    /// Takes a row of `pairs/` as a sample, unless others are better ones. The documents are not identical.
    pub fn pair(&mut self, row: &WrittenPair) {
        let (low, high) = row.places;
        let anywhere = (hash::spread(low.0 ^ hash::spread(high.0)), low, high);
        let millionths = row.similarity.map(Similarity::as_millionths);
        let borderline = ((millionths, Reverse(row.hamming)), low, high);
        let is_full = |count: usize| count >= CANDIDATES;
        let of_anywhere = !is_full(self.anywhere.len())
            || self.anywhere.last_key_value().is_some_and(|last| anywhere < *last.0);
        let of_borderline = !is_full(self.borderline.len())
            || self.borderline.last_key_value().is_some_and(|last| borderline < *last.0);
        if !of_anywhere && !of_borderline {
            return;
        }
        let sample = SamplePair {
            a: row.a.to_owned(),
            b: row.b.to_owned(),
            distance: row.hamming,
            similarity: row.similarity.map(Similarity::as_f64),
            places: row.places,
        };
        if of_borderline {
            self.borderline.insert(borderline, sample.clone());
        }
        if of_anywhere {
            self.anywhere.insert(anywhere, sample);
        }
        self.drop_others();
    }

    /// Takes a cluster as a sample, unless enough others are larger.
    pub fn cluster(&mut self, batch: &ClusterBatch, members: &[Member]) {
        let name = members[0].cluster;
        let key = (members.len() as u64, Reverse(name));
        let is_full = self.clusters.len() >= CLUSTERS;
        if is_full && self.clusters.first_key_value().is_some_and(|first| key < *first.0) {
            return;
        }
        let mut first: Vec<&Member> = members.iter().collect();
        first.sort_by_key(|member| (member.doc.record(), member.doc));
        let member = |member: &Member| SampleMember {
            id: batch.id(member.doc).to_owned(),
            place: member.doc,
            kept: member.removed.is_none(),
        };
        let shown = first.into_iter().take(MEMBERS).map(member).collect();
        let name = batch.id(name).to_owned();
        self.clusters.insert(key, SampleCluster { name, size: key.0, members: shown });
        self.drop_others();
    }

    /// Returns the pairs from all over the corpus in its order, the least similar ones, and the largest clusters.
    pub fn finish(self) -> (Vec<SamplePair>, Vec<SamplePair>, Vec<SampleCluster>) {
        let mut anywhere = soon_read(self.anywhere);
        anywhere.sort_by_key(|pair| pair.places);
        (anywhere, soon_read(self.borderline), self.clusters.into_values().rev().collect())
    }
}

/// Returns those pairs, in their order, whose documents are nearest to the beginnings of their splits: their texts are read again, and
/// a split is read up to the last of them.
fn soon_read<K>(pairs: BTreeMap<K, SamplePair>) -> Vec<SamplePair> {
    let last_record = |pair: &SamplePair| pair.places.0.record().max(pair.places.1.record());
    let mut records: Vec<u64> = pairs.values().map(last_record).collect();
    records.sort_unstable();
    let most = records.get(PAIRS - 1).copied().unwrap_or(u64::MAX);
    pairs.into_values().filter(|pair| last_record(pair) <= most).take(PAIRS).collect()
}
