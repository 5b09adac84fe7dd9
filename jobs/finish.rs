//! From what a search found to a committed output: survivors, guards, tables, records.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use cluster::Stores;
use datasets::{Reading, Removal};
use operators::method::Spec;
use operators::{DocId, Matches, Member, Pair, Removed, Resolve, Similarity, Tie, survivors};
use serde_json::Value;

use crate::guards::Guards;
use crate::output::OutputFolder;
use crate::plan::Plan;
use crate::progress::{Progress, Stage, Table, Watched, watch};
use crate::search::Found;
use crate::summary::{Clock, Counters, InputFile, Process, SamplePair, Summary, histogram, skew};
use crate::tables::{PairsOf, write_clusters, write_pairs, write_rejects};
use crate::write::{Fates, write};
use crate::{Common, WrongUse, say};

/// Which of two matching documents stays.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Keep {
    /// The first of the corpus.
    First,
    /// The one with the most characters, and of equal ones the first.
    Longest,
}

/// As in `--verify`.
pub(crate) fn verified_by(verify: Option<Similarity>) -> String {
    verify.map_or("none".to_owned(), |least| format!("jaccard:{least}"))
}

/// An output that is to be made.
pub(crate) struct Finish<'a> {
    pub common: &'a Common,
    /// The name of the job.
    pub job: &'static str,
    pub start: Instant,
    pub plan: Arc<Plan>,
    pub reading: Reading,
    pub method: &'a Spec,
    /// The least similarity of a pair of matching fingerprints; `None`: none.
    pub verify: Option<Similarity>,
    pub resolve: Resolve,
    pub keep: Keep,
    pub pairs: PairsOf,
    pub guards: &'a Guards,
    pub configuration: BTreeMap<String, Value>,
    pub summary_json: Option<&'a str>,
}

impl Finish<'_> {
    /// Writes and commits the output of what `search` finds, and says the counters; returns 0, or 3 if records were
    /// rejected.
    pub fn run(
        &self,
        stores: &Stores,
        output: &str,
        overwrite: bool,
        search: impl FnOnce(&Arc<Progress>, &OutputFolder) -> Result<Found>,
    ) -> Result<u8> {
        if let Some(file) = self.summary_json.filter(|file| self.plan.file_below("", file).is_some()) {
            bail!(WrongUse(format!("the summary would replace the input \"{file}\"")));
        }
        let (common, plan) = (self.common, &self.plan);
        let configuration = &serde_json::to_value(&self.configuration)?;
        let progress = Arc::new(Progress::default());
        let watched = Watched { common, name: self.job, output, plan, configuration, process: 0 };
        let summary = watch(&watched, &progress, || {
            OutputFolder::fill(stores, output, overwrite, plan, |folder| {
                self.commit(&search(&progress, folder)?, folder, &progress)
            })
        })?;
        if !common.quiet {
            say(&summary);
            say(Table(&progress.totals()));
        }
        Ok(if summary.counters.rejected > 0 { 3 } else { 0 })
    }

    fn commit(&self, found: &Found, folder: &OutputFolder, progress: &Progress) -> Result<Summary> {
        let mut clock = Clock::default();
        clock.add("search", self.start.elapsed());
        check_names(found)?;

        let at = progress.worker(0);
        at.enter(Stage::Resolve);
        let workers = self.common.workers();
        let named = |doc: DocId| {
            let at = found.named.partition_point(|named| named.doc < doc);
            &found.named[at]
        };
        let name = |doc| named(doc).id.as_str();
        let members = self.survivors(&found.matches, |doc| named(doc).chars);
        let guarded = self.guards.check(found.docs, &members, name);
        guarded
            .and_then(|()| self.guards.check_sources(&self.plan, &self.reading, found, &members, workers))?;
        let fates = fates(&members, found, self.measured(), name);
        let removal = |doc| {
            let at = fates.binary_search_by_key(&doc, |fate: &(DocId, _)| fate.0);
            at.ok().and_then(|at| fates[at].1.as_ref())
        };

        // Methods over sets have none.
        let distance = |pair: &Pair| self.method.fingerprints().then_some(pair.distance);
        at.enter(Stage::Write);
        let pairs = write_pairs(folder, &found.matches, self.pairs, self.measured(), distance, name)?;
        write_clusters(folder, &members, named, removal)?;
        write_rejects(folder, &found.rejects)?;
        drop(at);
        let written = write(&self.plan, &self.reading, &fates, folder, workers, progress)?;
        clock.add("whole", self.start.elapsed());

        let mut counters = Counters {
            input_files: self.plan.files.len() as u64,
            input_bytes: self.plan.bytes(),
            splits: self.plan.splits.len() as u64,
            records_read: found.docs + found.rejects.len() as u64,
            text_bytes: found.text_bytes,
            replaced: found.replaced,
            distinct: found.distinct,
            candidates: found.candidates,
            comparisons: found.comparisons.map(|comparisons| comparisons.of_words),
            block_comparisons: found.comparisons.map(|comparisons| comparisons.of_bits),
            pairs,
            kept: written.kept,
            removed: written.removed,
            rejected: written.rejected,
            ..Counters::default()
        };
        let cluster_sizes = counters.count_clusters(&members);
        check_ledger(&counters, &fates)?;
        let summary = Summary {
            version: env!("CARGO_PKG_VERSION"),
            configuration: self.configuration.clone(),
            counters,
            process: Process::measure(),
            cluster_sizes,
            pairs_by_distance: histogram(found.matches.pairs.iter().filter_map(|(pair, _)| distance(pair))),
            pairs_by_similarity: histogram(found.matches.pairs.iter().filter_map(|(_, similarity)| {
                similarity.map(|similarity| similarity.as_millionths() / 10_000)
            })),
            blocks: skew(&found.loads),
            sample_pairs: sample(&found.matches, distance, name),
            seconds: clock.seconds(),
            stages: progress.rows(),
            input: self.plan.files.iter().map(InputFile::of).collect(),
        };
        let json = serde_json::to_string_pretty(&summary)? + "\n";
        let at = progress.worker(0);
        at.enter(Stage::Commit);
        if let Some(file) = self.summary_json {
            std::fs::write(file, &json).with_context(|| format!("could not write \"{file}\""))?;
        }
        folder.commit(&json, progress)?;
        Ok(summary)
    }

    /// Whether the similarity of each pair is known.
    fn measured(&self) -> bool {
        self.verify.is_some() || self.method.measures()
    }

    fn survivors(&self, matches: &Matches, chars: impl Fn(DocId) -> u64) -> Vec<Member> {
        let mut members = match self.keep {
            Keep::First => survivors(matches, self.resolve, |doc| doc),
            Keep::Longest => survivors(matches, self.resolve, |doc| (Reverse(chars(doc)), doc)),
        };
        // Equal fingerprints of an approximate method are no proof of equal texts.
        if !self.measured() && self.method.approximate() {
            for removed in members.iter_mut().filter_map(|member| member.removed.as_mut()) {
                removed.tie = removed.tie.max(Tie::Similar(None));
            }
        }
        members
    }
}

/// What becomes of every record that does not simply stay.
fn fates<'a>(members: &[Member], found: &Found, verified: bool, name: impl Fn(DocId) -> &'a str) -> Fates {
    let removal = |member: &Member, removed: Removed| Removal {
        id: name(member.doc).to_owned(),
        duplicate_of: name(removed.duplicate_of).to_owned(),
        similarity: match removed.tie {
            Tie::Identical => verified.then_some(1.0),
            Tie::Similar(similarity) => similarity.map(Similarity::as_f64),
            Tie::Chain => None,
        },
        cluster: name(member.cluster).to_owned(),
        reason: match removed.tie {
            Tie::Identical => "identical",
            Tie::Similar(_) => "similar",
            Tie::Chain => "chain",
        },
    };
    let mut fates: Fates =
        members.iter().filter_map(|m| m.removed.map(|removed| (m.doc, Some(removal(m, removed))))).collect();
    fates.extend(found.rejects.iter().map(|reject| (reject.doc, None)));
    fates.sort_unstable_by_key(|fate| fate.0);
    fates
}

/// Up to 20 pairs, evenly from all.
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

/// Every document of a match was found again in the reading that asks for ids.
fn check_names(found: &Found) -> Result<()> {
    let copies = found.matches.copies.iter().flat_map(|&(doc, first)| [doc, first]);
    let pairs = found.matches.pairs.iter().flat_map(|(pair, _)| [pair.low, pair.high]);
    let known = |doc: DocId| found.named.binary_search_by_key(&doc, |named| named.doc).is_ok();
    match copies.chain(pairs).find(|&doc| !known(doc)) {
        Some(_) => {
            bail!("a document was not found again in its second reading; did the input change meanwhile?")
        }
        None => Ok(()),
    }
}

/// Every record read is kept, removed or rejected, and as many are removed as were decided to be.
fn check_ledger(counters: &Counters, fates: &Fates) -> Result<()> {
    let removed = fates.iter().filter(|fate| fate.1.is_some()).count() as u64;
    let Counters { records_read, kept, rejected, .. } = *counters;
    if records_read != kept + removed + rejected || counters.removed != removed {
        bail!(
            "the ledger does not close: {records_read} records read, {kept} kept, {} of {removed} removed, \
             {rejected} rejected; did the input change meanwhile?",
            counters.removed
        );
    }
    Ok(())
}
