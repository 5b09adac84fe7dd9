//! Counts of the clusters that were decided, which add up to the summary of the run.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use cluster::InputFile;
use operators::flow::ClusterBatch;
use operators::{DocId, Member, Pair, Reason, Sides, Similarity};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::pipeline::SearchResult;
use runtime::corpus::plan::{PLACES, Plan};
use runtime::output::summary::{Counters, InputCounters, InputEntry, ReferenceCounters, Summary, skew};
use runtime::output::tables::WrittenPair;
use runtime::progress::usage::ResourceUsage;
use runtime::report::lengths::LengthCounts;
use runtime::report::samples::RunSamples;

/// Counts of some clusters, of one worker or of all together.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Tally {
    /// Documents that are identical to an earlier one, with which they are a pair.
    copies: u64,
    /// Rows of `pairs/`.
    pub pairs: u64,
    removed_identical: u64,
    removed_similar: u64,
    removed_chain: u64,
    /// Earlier documents that a night removes.
    pub removed_earlier: u64,
    /// Number of clusters of each size, in documents.
    cluster_sizes: BTreeMap<u64, u64>,
    /// The largest cluster, of several the first one.
    largest: Option<LargestCluster>,
    pairs_by_distance: BTreeMap<u32, u64>,
    /// Number of pairs of each similarity, in hundredths.
    pairs_by_similarity: BTreeMap<u32, u64>,
    removed_by_length: LengthCounts,
    samples: RunSamples,
}

/// A cluster by its size and its first document, whose id comes last.
pub(crate) type LargestCluster = (u64, Reverse<DocId>, String);

impl Tally {
    /// Adds the tallies of several workers or processes.
    pub fn join(parts: impl IntoIterator<Item = Tally>) -> Self {
        let mut all = Tally::default();
        for part in parts {
            all.copies += part.copies;
            all.pairs += part.pairs;
            all.removed_identical += part.removed_identical;
            all.removed_similar += part.removed_similar;
            all.removed_chain += part.removed_chain;
            all.removed_earlier += part.removed_earlier;
            all.largest = all.largest.max(part.largest);
            add(&mut all.cluster_sizes, part.cluster_sizes);
            add(&mut all.pairs_by_distance, part.pairs_by_distance);
            add(&mut all.pairs_by_similarity, part.pairs_by_similarity);
            all.samples.join(part.samples);
            all.removed_by_length += part.removed_by_length;
        }
        all
    }

    /// Counts some clusters. `copies`: documents that are identical to an earlier one. `members`: all members of all of them, ordered
    /// by cluster. `sides`: the pairs that are looked for.
    pub fn count(
        &mut self,
        batch: &ClusterBatch,
        copies: &[(DocId, DocId)],
        members: &[Member],
        sides: Sides,
    ) {
        let is_pair = |&&(doc, first): &&(DocId, DocId)| sides.compares(&Pair::new(first, doc, 0));
        self.copies += copies.iter().filter(is_pair).count() as u64;
        for cluster in members.chunk_by(|a, b| a.cluster == b.cluster) {
            self.samples.cluster(batch, cluster);
            let size = cluster.len() as u64;
            let first = Reverse(cluster[0].cluster);
            *self.cluster_sizes.entry(size).or_default() += 1;
            if self.largest.as_ref().is_none_or(|largest| (largest.0, largest.1) < (size, first)) {
                self.largest = Some((size, first, batch.id(first.0).to_owned()));
            }
        }
        for (doc, removed) in members.iter().filter_map(|member| Some((member.doc, member.removed?))) {
            self.removed_by_length.add(batch.merit(doc).chars);
            *match removed.tie {
                Reason::Identical => &mut self.removed_identical,
                Reason::Similar(_) => &mut self.removed_similar,
                Reason::Chain => &mut self.removed_chain,
            } += 1;
        }
    }

    /// Counts a row of `pairs/`, and perhaps takes it as a sample, unless the documents are identical.
    pub fn row(&mut self, row: &WrittenPair) {
        if row.identical {
            return;
        }
        if let Some(distance) = row.hamming {
            *self.pairs_by_distance.entry(distance).or_default() += 1;
        }
        if let Some(similarity) = row.similarity.map(Similarity::as_millionths) {
            *self.pairs_by_similarity.entry(similarity / 10_000).or_default() += 1;
        }
        self.samples.pair(row);
    }

    /// Whether no cluster was counted.
    pub fn has_no_clusters(&self) -> bool {
        self.cluster_sizes.is_empty()
    }

    /// Returns the number of documents to be removed.
    pub fn to_remove(&self) -> u64 {
        self.removed_identical + self.removed_similar + self.removed_chain
    }

    /// Returns the largest cluster.
    pub fn largest(&self) -> Option<&LargestCluster> {
        self.largest.as_ref()
    }

    /// Returns the summary of a run as far as it is known before the records are written. `found`: the result
    /// of the search of all processes. `searched`: seconds until all was decided.
    pub fn summary(self, plan: &Plan, configuration: Value, found: &SearchResult, searched: f64) -> Summary {
        let (reference_files, input_files) = plan.files_by_side();
        let reference_rejected = found.rejects.count_before(plan.reference_splits);
        let bytes = |files: &[InputFile]| files.iter().map(|file| file.bytes).sum();
        let reference = (!reference_files.is_empty()).then(|| ReferenceCounters {
            files: reference_files.len() as u64,
            bytes: bytes(reference_files),
            splits: plan.reference_splits.into(),
            documents: found.reference.docs,
            text_bytes: found.reference.text_bytes,
            replaced: found.reference.replaced,
            without_text: found.reference.without_text,
            rejected: reference_rejected,
        });
        let counters = Counters {
            input: InputCounters::of(plan),
            reference,
            records_read: found.input.docs + found.rejects.count() - reference_rejected,
            text_bytes: found.input.text_bytes,
            replaced: found.input.replaced,
            without_text: found.input.without_text,
            code: found.input.code,
            ignored_lines: found.ignored_lines,
            shortened: found.ignored_lines.map(|_| found.input.shortened + found.reference.shortened),
            distinct: found.input.docs - self.copies,
            candidates: found.candidates,
            comparisons: found.comparisons.map(|comparisons| comparisons.of_words),
            block_comparisons: found.comparisons.map(|comparisons| comparisons.of_bits),
            pairs: self.pairs,
            clusters: self.cluster_sizes.values().sum(),
            largest_cluster: self.largest.as_ref().map_or(0, |largest| largest.0),
            removed_identical: self.removed_identical,
            removed_similar: self.removed_similar,
            removed_chain: self.removed_chain,
            dropped: found.rejects.dropped(),
            ..Counters::default()
        };
        let (sample_pairs, borderline_pairs, largest_clusters) = self.samples.finish();
        Summary {
            version: env!("CARGO_PKG_VERSION"),
            configuration,
            counters,
            process: ResourceUsage::default(),
            cluster_sizes: self.cluster_sizes,
            pairs_by_distance: self.pairs_by_distance,
            pairs_by_similarity: self.pairs_by_similarity,
            blocks: skew(&found.loads),
            removed_by_length: found.input.by_length.shares(&self.removed_by_length),
            removed_by_source: Vec::new(),
            sample_pairs,
            borderline_pairs,
            largest_clusters,
            reject_reasons: found.rejects.reasons(),
            seconds: BTreeMap::from([("search", searched)]),
            stages: Vec::new(),
            reference: reference_files.iter().map(InputEntry::of).collect(),
            input: input_files.iter().map(InputEntry::of).collect(),
            places: PLACES,
            state: None,
        }
    }
}

fn add<K: Ord>(all: &mut BTreeMap<K, u64>, part: BTreeMap<K, u64>) {
    for (kind, count) in part {
        *all.entry(kind).or_default() += count;
    }
}
