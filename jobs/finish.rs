//! From what a search found to a committed output: survivors, guards, tables, records.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use cluster::{Cluster, Stores};
use datasets::{Reading, Removal};
use operators::method::Spec;
use operators::{DocId, Matches, Member, Pair, Removed, Resolve, Similarity, Tie, survivors};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::guards::Guards;
use crate::output::{Key, OutputFolder};
use crate::plan::Plan;
use crate::progress::{Progress, Stage, StageRow, StageTotals, Table, Watched, merge, watch};
use crate::search::{Found, Named};
use crate::summary::{Clock, Counters, InputFile, Process, SamplePair, Summary, histogram, skew};
use crate::tables::{PairsOf, write_clusters, write_pairs, write_rejects};
use crate::write::{Fates, Written, write};
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
    pub cluster: Arc<Cluster>,
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
    /// Of what a killed run may have left.
    pub key: Option<Key>,
}

/// What a process, or all together, have done before the commit.
#[derive(Deserialize, Serialize)]
struct Done {
    written: Written,
    process: Process,
    stages: Vec<StageTotals>,
}

impl Done {
    fn join(parts: Vec<Done>) -> Self {
        let mut all = Done { written: Written::default(), process: Process::default(), stages: Vec::new() };
        for mut part in parts {
            all.written.add(part.written);
            all.process.add(&part.process);
            all.stages.append(&mut part.stages);
        }
        all.stages = merge(all.stages);
        all
    }
}

/// What came of the work.
#[derive(Default)]
struct Worked {
    /// At process 0.
    summary: Option<Summary>,
    /// What the other processes did, at process 0.
    others: Vec<StageTotals>,
    /// Whether records were rejected.
    rejected: bool,
}

/// What process 0 has decided.
struct Decision {
    found: Found,
    searched: Duration,
    members: Vec<Member>,
    /// Rows of the table of pairs.
    pairs: u64,
}

impl Decision {
    fn named(&self, doc: DocId) -> &Named {
        let at = self.found.named.partition_point(|named| named.doc < doc);
        &self.found.named[at]
    }

    fn name(&self, doc: DocId) -> &str {
        &self.named(doc).id
    }
}

/// What is read again of an output that an earlier run had decided.
#[derive(Deserialize)]
struct Decided {
    counters: Counters,
}

impl Finish<'_> {
    /// Writes and commits the output of what `search` finds, and says the counters; returns 0, or 3 if records were
    /// rejected. `check` sees what all processes found, and may stop the run.
    pub fn run(
        &self,
        stores: &Stores,
        output: &str,
        overwrite: bool,
        search: impl FnOnce(&Arc<Progress>, &OutputFolder) -> Result<Found>,
        check: impl FnOnce(&mut Found) -> Result<()>,
    ) -> Result<u8> {
        if let Some(file) = self.summary_json.filter(|file| self.plan.file_below("", file).is_some()) {
            bail!(WrongUse(format!("the summary would replace the input \"{file}\"")));
        }
        let configuration = &serde_json::to_value(&self.configuration)?;
        let progress = Arc::new(Progress::default());
        let watched = Watched {
            common: self.common,
            name: self.job,
            output,
            plan: &self.plan,
            configuration,
            process: self.cluster.index(),
        };
        let Worked { summary, others, rejected } = watch(&watched, &progress, || {
            let Some(folder) = self.claim(stores, output, overwrite)? else { return Ok(Worked::default()) };
            match folder.committed() {
                Some(success) => self.say_decided(success),
                None => folder.work(|folder| self.work(folder, &progress, search, check)),
            }
        })?;
        if let Some(summary) = summary.filter(|_| !self.common.quiet) {
            say(&summary);
            say(Table(&merge(others.into_iter().chain(progress.totals()))));
        }
        Ok(if rejected { 3 } else { 0 })
    }

    /// The output folder, which process 0 claims; for others `None` if nothing is left to be done.
    fn claim(&self, stores: &Stores, output: &str, overwrite: bool) -> Result<Option<OutputFolder>> {
        let mut claimed = None;
        let shared = self.cluster.meet((), |_| -> Result<_> {
            let folder = OutputFolder::claim(stores, output, overwrite, &self.plan, self.key.as_ref())?;
            let shared = folder.committed().is_none().then(|| folder.shared());
            claimed = Some(folder);
            Ok(shared)
        })?;
        match (claimed, shared) {
            (Some(folder), _) => Ok(Some(folder)),
            (None, shared) => shared.map(|shared| OutputFolder::of_shared(stores, &shared)).transpose(),
        }
    }

    /// What each process does.
    fn work(
        &self,
        folder: &OutputFolder,
        progress: &Arc<Progress>,
        search: impl FnOnce(&Arc<Progress>, &OutputFolder) -> Result<Found>,
        check: impl FnOnce(&mut Found) -> Result<()>,
    ) -> Result<Worked> {
        let cluster = self.cluster.as_ref();
        let mut decided = None;
        let fates = cluster.meet(search(progress, folder)?, |found| -> Result<_> {
            let mut found = Found::join(found);
            check(&mut found)?;
            let (decision, fates) = self.decide(found, folder, progress)?;
            decided = Some(decision);
            Ok(fates)
        })?;
        let written = write(&self.plan, &self.reading, &fates, folder, cluster, progress)?;
        let spilled_bytes = progress.spilled_bytes.load(Ordering::Relaxed);
        let process = Process { spilled_bytes, ..Process::measure() };
        let done = Done { written, process, stages: progress.totals() };
        let (mut summary, mut others) = (None, Vec::new());
        let rejected = cluster.meet(done, |all| -> Result<_> {
            others.extend(all[1..].iter().flat_map(|done| done.stages.clone()));
            let done = Done::join(all);
            let rejected = done.written.rejected > 0;
            let commit = |decision| self.commit(&decision, &fates, done, folder, progress);
            summary = decided.map(commit).transpose()?;
            Ok(rejected)
        })?;
        Ok(Worked { summary, others, rejected })
    }

    /// Says what an earlier run had decided, which is now committed.
    fn say_decided(&self, success: &str) -> Result<Worked> {
        self.write_summary(success)?;
        let Decided { counters } = serde_json::from_str(success)?;
        if !self.common.quiet {
            let Counters { records_read, kept, removed, rejected, .. } = counters;
            say(format_args!(
                "committed what an earlier run had decided: of {records_read} records {kept} kept, {removed} removed, \
                 {rejected} rejected"
            ));
        }
        Ok(Worked { rejected: counters.rejected > 0, ..Worked::default() })
    }

    fn write_summary(&self, json: &str) -> Result<()> {
        let Some(file) = self.summary_json else { return Ok(()) };
        std::fs::write(file, json).with_context(|| format!("could not write \"{file}\""))
    }

    /// Decides what becomes of every document, and writes the tables.
    fn decide(&self, found: Found, folder: &OutputFolder, progress: &Progress) -> Result<(Decision, Fates)> {
        let searched = self.start.elapsed();
        check_names(&found)?;
        let at = progress.worker(0);
        at.enter(Stage::Resolve);
        let mut decision = Decision { found, searched, members: Vec::new(), pairs: 0 };
        decision.members = self.survivors(&decision.found.matches, |doc| decision.named(doc).chars);
        let Decision { found, members, .. } = &decision;
        let name = |doc| decision.name(doc);
        self.guards.check(found.docs, members, name)?;
        self.guards.check_sources(&self.plan, &self.reading, found, members, self.cluster.workers())?;
        let fates = fates(members, found, self.measured(), name);
        let removal = |doc| {
            let at = fates.binary_search_by_key(&doc, |fate: &(DocId, _)| fate.0);
            at.ok().and_then(|at| fates[at].1.as_ref())
        };

        at.enter(Stage::Write);
        let distance = |pair: &Pair| self.distance(pair);
        let pairs = write_pairs(folder, &found.matches, self.pairs, self.measured(), distance, name)?;
        write_clusters(folder, members, |doc| decision.named(doc), removal)?;
        write_rejects(folder, &found.rejects)?;
        drop(at);
        decision.pairs = pairs;
        Ok((decision, fates))
    }

    /// Makes the output visible once all processes have written their part of it.
    fn commit(
        &self,
        decision: &Decision,
        fates: &Fates,
        Done { written, process, stages }: Done,
        folder: &OutputFolder,
        progress: &Progress,
    ) -> Result<Summary> {
        let Decision { found, members, .. } = decision;
        let mut clock = Clock::default();
        clock.add("search", decision.searched);
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
            pairs: decision.pairs,
            kept: written.kept,
            removed: written.removed,
            rejected: written.rejected,
            ..Counters::default()
        };
        let cluster_sizes = counters.count_clusters(members);
        check_ledger(&counters, fates)?;
        let near = || found.matches.pairs.iter();
        let similarities = near().filter_map(|(_, similarity)| *similarity);
        let distance = |pair: &Pair| self.distance(pair);
        let summary = Summary {
            version: env!("CARGO_PKG_VERSION"),
            configuration: self.configuration.clone(),
            counters,
            process,
            cluster_sizes,
            pairs_by_distance: histogram(near().filter_map(|(pair, _)| distance(pair))),
            pairs_by_similarity: histogram(
                similarities.map(|similarity| similarity.as_millionths() / 10_000),
            ),
            blocks: skew(&found.loads),
            sample_pairs: sample(&found.matches, distance, |doc| decision.name(doc)),
            seconds: clock.seconds(),
            stages: stages.iter().map(StageRow::of).collect(),
            input: self.plan.files.iter().map(InputFile::of).collect(),
        };
        let json = serde_json::to_string_pretty(&summary)? + "\n";
        let at = progress.worker(0);
        at.enter(Stage::Commit);
        self.write_summary(&json)?;
        folder.commit(&json)?;
        Ok(summary)
    }

    /// Methods over sets have none.
    fn distance(&self, pair: &Pair) -> Option<u32> {
        self.method.fingerprints().then_some(pair.distance)
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
        }
        .into(),
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
