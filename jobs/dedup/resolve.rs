//! The decision of process 0: which documents stay, whether the run may go on, and what its summary says.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::{Result, bail};
use operators::{DocId, Matches, Member, Pair, Reason, Similarity, survivors};

use super::guards::SourceReading;
use super::options::Keep;
use super::run::DedupRun;
use super::search::SearchResult;
use super::verdicts::Verdicts;
use crate::corpus::doc_ids::DocIds;
use crate::corpus::plan::PLACES;
use crate::output::OutputFolder;
use crate::output::summary::{Counters, InputEntry, SamplePair, Summary, histogram, skew};
use crate::output::tables::{write_clusters, write_pairs};
use crate::progress::usage::ResourceUsage;
use crate::progress::{Stage, seconds};

impl DedupRun<'_> {
    /// Decides for every document whether it stays, and writes the tables. Returns the summary as far as it
    /// is known before the records are written, and the decisions.
    ///
    /// # Errors
    /// [`Guarded`](crate::cli::exit::Guarded) when a guard stops the run.
    ///
    /// Memory: docs/design/0019.
    pub(super) fn decide(
        &self,
        mut found: SearchResult,
        folder: &OutputFolder,
    ) -> Result<(Summary, Verdicts)> {
        let searched = seconds(self.start.elapsed());
        let at = self.progress.worker(0);
        at.enter(Stage::Resolve);
        keep_names(&mut found)?;
        let SearchResult { matches, names, .. } = &found;
        let measured = self.measured();
        let mut members = self.survivors(matches, names);
        let name = |doc| names.id(doc);
        self.guards.check(found.docs, &members, name)?;
        let outputs = folder.map_outputs();
        // The reading of the guard has a worker 0 of its own.
        drop(at);
        let input = SourceReading {
            plan: &self.plan,
            reading: &self.reading,
            outputs: &outputs,
            workers: self.group.workers(),
            progress: &self.progress,
        };
        self.guards.check_sources(found.docs, &members, &input)?;

        let at = self.progress.worker(0);
        at.enter(Stage::Write);
        let distance = |pair: &Pair| self.distance(pair);
        let pairs = write_pairs(folder, matches, self.options.pairs, measured, distance, name)?;
        let summary = self.summary(&found, &members, pairs, searched);
        let SearchResult { docs, matches, names, rejects, .. } = found;
        drop(matches);
        write_clusters(folder, &members, &names, measured)?;
        rejects.write(folder, 0, &outputs, &self.plan, &self.reading)?;
        members.retain(|member| member.removed.is_some());
        Ok((summary, Verdicts { removed: members, names, measured, keeps_none: docs == 0 }))
    }

    fn summary(&self, found: &SearchResult, members: &[Member], pairs: u64, searched: f64) -> Summary {
        let mut counters = Counters {
            input_files: self.plan.files.len() as u64,
            input_bytes: self.plan.bytes(),
            splits: self.plan.splits.len() as u64,
            records_read: found.docs + found.rejects.count(),
            text_bytes: found.text_bytes,
            replaced: found.replaced,
            distinct: found.docs - found.matches.copies.len() as u64,
            candidates: found.candidates,
            comparisons: found.comparisons.map(|comparisons| comparisons.of_words),
            block_comparisons: found.comparisons.map(|comparisons| comparisons.of_bits),
            pairs,
            ..Counters::default()
        };
        let cluster_sizes = counters.count_clusters(members);
        let near = || found.matches.pairs.iter();
        let similarities = near().filter_map(|(_, similarity)| *similarity);
        let distance = |pair: &Pair| self.distance(pair);
        Summary {
            version: env!("CARGO_PKG_VERSION"),
            configuration: self.configuration.clone(),
            counters,
            process: ResourceUsage::default(),
            cluster_sizes,
            pairs_by_distance: histogram(near().filter_map(|(pair, _)| distance(pair))),
            pairs_by_similarity: histogram(
                similarities.map(|similarity| similarity.as_millionths() / 10_000),
            ),
            blocks: skew(&found.loads),
            sample_pairs: sample(&found.matches, distance, |doc| found.names.id(doc)),
            seconds: BTreeMap::from([("search", searched)]),
            stages: Vec::new(),
            input: self.plan.files.iter().map(InputEntry::of).collect(),
            places: PLACES,
        }
    }

    /// Returns the distance of a pair; methods over sets have none.
    fn distance(&self, pair: &Pair) -> Option<u32> {
        self.options.method.fingerprints().then_some(pair.distance)
    }

    /// Whether the similarity of each pair is known.
    fn measured(&self) -> bool {
        self.options.threshold().is_some() || self.options.method.measures()
    }

    /// Resolves the pairs into clusters, of whose members some are removed.
    fn survivors(&self, matches: &Matches, names: &DocIds) -> Vec<Member> {
        let mut members = match self.options.keep {
            Keep::First => survivors(matches, self.options.resolve, |doc| doc),
            Keep::Longest => survivors(matches, self.options.resolve, |doc| (Reverse(names.chars(doc)), doc)),
        };
        // Equal fingerprints of an approximate method do not prove equal texts.
        if !self.measured() && self.options.method.approximate() {
            for removed in members.iter_mut().filter_map(|member| member.removed.as_mut()) {
                removed.tie = removed.tie.max(Reason::Similar(None));
            }
        }
        members
    }
}

/// Drops the names of documents that are in no match: `rethreshold` also reads those of pairs that it drops.
///
/// # Errors
/// When the second reading, which asks for names, did not find a document of a match.
fn keep_names(found: &mut SearchResult) -> Result<()> {
    let docs = found.matches.docs();
    found.names.retain(|doc| docs.binary_search(&doc).is_ok());
    if found.names.len() < docs.len() {
        bail!("a document was not found again in its second reading; did the input change meanwhile?");
    }
    Ok(())
}

/// Returns up to 20 pairs, spread evenly over all.
fn sample<'a>(
    matches: &Matches,
    distance: impl Fn(&Pair) -> Option<u32>,
    name: impl Fn(DocId) -> &'a str,
) -> Vec<SamplePair> {
    let step = matches.pairs.len().div_ceil(20).max(1);
    let sampled = matches.pairs.iter().step_by(step);
    sampled
        .map(|(pair, similarity)| SamplePair {
            a: name(pair.low).to_owned(),
            b: name(pair.high).to_owned(),
            distance: distance(pair),
            similarity: similarity.map(Similarity::as_f64),
        })
        .collect()
}
