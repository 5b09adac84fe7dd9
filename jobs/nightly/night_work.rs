//! The work of a night that is claimed: it finds the pairs, decides, and writes the output and the files of the state.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Result;
use operators::hash::Secret;
use operators::method::Spec;
use operators::text::document_frequencies::Statistics;
use operators::text::features::Lexicon;
use operators::{DocId, Sides, SpillBudget};

use super::args::NightArgs;
use super::decide::{NightDecided, NightDecider, NightRows};
use super::earlier::StateSearch;
use crate::state::{
    EarlierDocs, NightCommit, NightEntry, NightState, Numbering, RunEntry, StateManifest, StateTable,
    StatisticsFile, number_of,
};
use batch::corpus_counts;
use batch::decide::Decided;
use batch::dedup_job::DedupJob;
use batch::pipeline::{CorpusSearch, SearchResult, find, map};
use runtime::output::summary::Summary;
use runtime::output::{JobEnd, OutputFolder};

/// Inputs of the work of a claimed night.
pub(super) struct NightWork<'a> {
    pub dedup: &'a DedupJob<'a>,
    pub args: &'a NightArgs,
    pub lexicon: &'a Lexicon,
    pub state: NightState,
    /// Version of the state before the night.
    pub manifest: StateManifest,
    pub night: NightEntry,
    pub commit: &'a NightCommit,
}

impl NightWork<'_> {
    /// Finds the pairs of the night, decides, and writes the output and the files of the state.
    pub fn search_and_write(
        self,
        folder: &Arc<OutputFolder>,
        statistics: Option<Statistics>,
        spill: SpillBudget,
    ) -> Result<JobEnd<Summary>> {
        let NightWork { dedup, args, lexicon, mut state, mut manifest, mut night, commit } = self;
        let (run, method) = (&dedup.job.run, &args.options.method);
        let statistics = corpus_counts::count_unless_given(statistics, method, lexicon, run)?;
        let outputs = folder.map_outputs().of_input(run.plan.text_bytes);
        let of_run = outputs.secret(&run.group)?;
        let secret = if manifest.nights.is_empty() { of_run } else { Secret::of_words(manifest.secret) };
        let search = CorpusSearch {
            run: run.clone(),
            method: method.method(lexicon, &statistics, dedup.options.threshold())?,
            sides: Sides::default(),
            max_rejects: dedup.max_rejects,
            outputs,
            secret,
            spill: spill.clone(),
            keeps_texts: true,
            ignored: None,
            leaders: None,
        };
        let (mut mapped, found) = map(search)?;
        let records = run.group.all_reduce(found.records.clone(), |all| -> Result<_> {
            Ok(all.into_iter().flatten().collect::<BTreeMap<u32, u64>>())
        })?;
        state.numbering = Numbering::new(state.docs.first_split(), records.into_values());
        let before = manifest.clone();
        let keep = args.options.policy.clone().order(manifest.clone(), state.numbering.clone());
        mapped.search.leaders = Some(Arc::clone(&keep));
        let decider =
            NightDecider::new(folder, state.clone(), before, keep, &args.options, dedup.options, &spill);
        let progress = Arc::clone(&run.progress);
        let of_worker = state.clone();
        let budget = spill.clone();
        let of_workers = run.group.run(move |worker| {
            let at = progress.worker(worker.index());
            let mut earlier = StateSearch::new(&of_worker, &budget);
            let (clusters, found) = find(worker, &at, &mapped, &mut earlier)?;
            let decided = decider.decide(worker, clusters)?;
            anyhow::Ok((found, decided, earlier.runs))
        })?;
        run.progress.spilled_bytes.fetch_add(spill.spilled().bytes, Ordering::Relaxed);

        let mut counts = vec![found];
        let mut parts = Vec::new();
        let mut rows = Vec::new();
        for (found, NightDecided { decided, of_state }, runs) in of_workers {
            counts.push(found);
            parts.push(decided);
            rows.extend([of_state, NightRows { runs, ..NightRows::default() }]);
        }
        run.group.all_reduce(NightRows::join(rows), |all| -> Result<()> {
            let NightRows { mut runs, dead_texts, succeeded, corrections } = NightRows::join(all);
            runs.extend(withdrawn_rows(&state, dead_texts, succeeded)?);
            night.corrections = corrections;
            if manifest.nights.is_empty() {
                manifest.secret = secret.words();
                manifest.statistics = write_statistics(&state, method, lexicon, &statistics)?;
            }
            (night.first, night.end) = (number_of(state.numbering.first_new()), state.numbering.end());
            manifest.version = state.version;
            manifest.made_by.clone_from(&night.name);
            manifest.end = night.end;
            manifest.lost.retain(|lost| lost.name != night.name);
            manifest.nights.push(night);
            commit.set(manifest, runs)
        })?;
        dedup.write(folder, SearchResult::join(counts), Decided::join(parts))
    }
}

/// Writes the rows of the withdrawn documents, and of the texts that no document has any more. `succeeded`:
/// withdrawn documents whose text a new document has.
fn withdrawn_rows(
    state: &NightState,
    dead_texts: Vec<DocId>,
    mut succeeded: Vec<DocId>,
) -> Result<Vec<RunEntry>> {
    succeeded.sort_unstable();
    let mut parents = state.docs.cursor(StateTable::Parents);
    let mut members = state.docs.cursor(StateTable::Members);
    let mut rows = BTreeMap::new();
    for &doc in state.docs.going() {
        let only = EarlierDocs::parent(&mut parents, doc)?.is_none()
            && EarlierDocs::copies(&mut members, doc)?.is_empty();
        let alone = only && succeeded.binary_search(&doc).is_err();
        rows.insert(number_of(doc), u64::from(alone));
    }
    rows.extend(dead_texts.into_iter().map(|text| (number_of(text), 1)));
    let mut runs = state.runs("00000");
    let mut table = runs.table(StateTable::Withdrawn)?;
    rows.into_iter().try_for_each(|(doc, dead)| table.push(&[doc, dead], b""))?;
    runs.finish(table)?;
    Ok(runs.entries())
}

/// Writes the statistics that the method needs into the state. Returns their file.
fn write_statistics(
    state: &NightState,
    method: &Spec,
    lexicon: &Lexicon,
    statistics: &Statistics,
) -> Result<Option<StatisticsFile>> {
    let Some((bytes, _)) = corpus_counts::encode(method, lexicon, statistics)? else { return Ok(None) };
    let file = format!("runs/{:08}/statistics-{}.parquet", state.version, state.folder.run());
    state.folder.write_file(&file, &bytes)?;
    Ok(Some(StatisticsFile { file, blake3: blake3::hash(&bytes).to_hex().to_string() }))
}
