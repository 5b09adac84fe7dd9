//! `build` from a nightly state, whose tables have the rows of a segment already.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use cluster::runs::MergedRuns;
use cluster::{Entry, Stores};
use operators::hash::Secret;
use operators::method::{KeptKeys, Spec};
use operators::text::features::Lexicon;

use crate::args::CorpusArgs;
use crate::fingerprints::word_of_pass;
use crate::index_folder::IndexFolder;
use crate::settings;
use crate::topics::{IndexTable, SegmentEntry, SegmentWriter};
use batch::options::Verification;
use nightly::state::{EarlierDocs, NightEntry, StateFolder, StateManifest, StateTable, doc_of, number_of};
use runtime::Common;
use runtime::cli::exit::WrongUse;
use runtime::clock::seconds_now;

/// Number of passes of fingerprints with four blocks.
const FOUR_PASSES: u64 = 4;

/// Returns the nightly state that is the only input; `None` if the inputs are a corpus.
///
/// # Errors
/// Those of the stores, and [`WrongUse`] when a state is one of several inputs.
pub(super) fn state_among(inputs: &[String]) -> Result<Option<StateFolder>> {
    let lists = inputs.iter().filter(|uri| uri.contains(',')).flat_map(|uri| uri.split(','));
    for uri in inputs.iter().map(String::as_str).chain(lists) {
        let (store, path) = Stores::new().locate(uri)?;
        let is_versions =
            |entry: &Entry| entry.directory && entry.path.trim_end_matches('/').ends_with("/versions");
        if !store.children_if_any(path.trim_end_matches('/'))?.iter().any(is_versions) {
            continue;
        }
        let state = StateFolder::open(&Stores::new(), uri)?;
        if state.versions()?.is_empty() {
            continue;
        }
        if *inputs != [uri] {
            bail!(WrongUse(format!("\"{uri}\" is a nightly state: an index is built of a state alone")));
        }
        return Ok(Some(state));
    }
    Ok(None)
}

/// Makes an index of all documents of a state that are not withdrawn, with the method of the state. Nothing is mapped
/// again. The time of a document is that at which its night has ended.
///
/// Cost: reads and writes each row once. Memory: 32 bytes for each document that is not the first with its text, some 16 for
/// each text that has such documents, and the withdrawn documents.
///
/// # Errors
/// Those of the stores, and [`WrongUse`] when the method of the state has no keys that an index can keep.
pub(super) fn build_from_state(
    common: &Common,
    path: &str,
    state: &StateFolder,
    corpus: &CorpusArgs,
    no_text: bool,
) -> Result<()> {
    if Stores::new().lies_in(path, &state.uri)? {
        bail!(WrongUse(format!("\"{path}\" lies in the state \"{}\"", state.uri)));
    }
    let manifest = state.newest()?.context("the state is gone")?;
    if let Some(warning) = manifest.warning_of_lost() {
        common.warn(warning);
    }
    let pinned = &manifest.pinned;
    let method: Spec = pinned.method.parse()?;
    let given = Some(&pinned.verify).filter(|_| !method.measures());
    let verify: Option<Verification> =
        given.map(|verify| verify.parse().map_err(anyhow::Error::msg)).transpose()?;
    let lexicon = Lexicon::default();
    let mut settings = settings::new(&method, verify, no_text, &lexicon, Secret::of_words(manifest.secret))?;
    settings.words.clone_from(&pinned.words);
    let (_, keys) = settings.method(&lexicon)?;
    let rows = SegmentOfState::open(state, &manifest)?;
    let times = Times::of(common, state, &manifest)?;
    let mut index = IndexFolder::build(path, &settings, &lexicon)?;
    let documents = index.fill(&corpus.topic, times.last(), |writer| {
        rows.write(writer, &keys, settings.texts, &manifest, &times)
    })?;
    index.finish_build()?;
    common.tell(format_args!("{documents} documents of the state \"{}\"", state.uri));
    Ok(())
}

/// Refuses options for a method that the state decides.
///
/// # Errors
/// [`WrongUse`].
pub(super) fn refuse_options(method: Option<&Spec>, verify: Option<Verification>) -> Result<()> {
    if method.is_some() || verify.is_some() {
        bail!(WrongUse(
            "an index of a nightly state has its method: leave --method and --verify out".to_owned()
        ));
    }
    Ok(())
}

/// Times at which nights have ended, by the number behind the last document of each. They ascend.
struct Times(Vec<(u64, u64)>);

impl Times {
    /// Takes them from the history, which may lack some: a night that it does not tell of has the time of the next one.
    fn of(common: &Common, state: &StateFolder, manifest: &StateManifest) -> Result<Self> {
        let history = state.history()?;
        let finished = |version| history.iter().rev().find(|of| of.version == version)?.finished;
        if manifest.nights.iter().any(|night| finished(night.version).is_none()) {
            common.warn(format_args!(
                "history.jsonl of the state \"{}\" lacks the times of some nights: their documents are as young as the next night",
                state.uri
            ));
        }
        let mut next = seconds_now();
        let time = |night: &NightEntry| {
            next = finished(night.version).map_or(next, |time| time.min(next));
            (night.end, next)
        };
        let mut times: Vec<(u64, u64)> = manifest.nights.iter().rev().map(time).collect();
        times.reverse();
        Ok(Times(times))
    }

    fn of_doc(&self, number: u64) -> u64 {
        let night = self.0.partition_point(|(end, _)| *end <= number);
        self.0.get(night).map_or(self.last(), |(_, time)| *time)
    }

    fn last(&self) -> u64 {
        self.0.last().map_or(0, |(_, time)| *time)
    }
}

/// The rows of a state that an index wants.
struct SegmentOfState {
    docs: EarlierDocs,
    /// Document and text, of documents that are not the first with their text, in order.
    copies: Vec<(u64, u64)>,
}

impl SegmentOfState {
    fn open(state: &StateFolder, manifest: &StateManifest) -> Result<Self> {
        let docs = EarlierDocs::open(state, manifest)?;
        let mut copies = Vec::new();
        docs.each_copy(|doc, text| copies.push((number_of(doc), number_of(text))))?;
        copies.sort_unstable();
        Ok(SegmentOfState { docs, copies })
    }

    fn is_alive(&self, number: u64) -> bool {
        self.docs.withdrawn().binary_search(&doc_of(number)).is_err()
    }

    fn has_docs(&self, text: u64) -> bool {
        !self.docs.is_dead(doc_of(text))
    }

    fn text_of(&self, doc: u64) -> u64 {
        let copy = self.copies.binary_search_by_key(&doc, |of| of.0);
        copy.map_or(doc, |at| self.copies[at].1)
    }

    /// Writes the segment. Returns its entry, and the texts whose first document is gone while others are there.
    fn write(
        &self,
        mut writer: SegmentWriter,
        keys: &KeptKeys,
        with_texts: bool,
        manifest: &StateManifest,
        times: &Times,
    ) -> Result<(SegmentEntry, BTreeSet<u64>)> {
        let mut copies: Vec<[u64; 2]> = self.copies.iter().map(|&(doc, text)| [text, doc]).collect();
        copies.sort_unstable();
        let mut headless: BTreeSet<u64> = copies.iter().map(|of| of[0]).collect();
        if keys.need_identities() {
            let text = |words: &[u64]| words[2];
            self.copy(&mut writer, (StateTable::Identities, IndexTable::Identities), text)?;
        }
        if keys.have_four_blocks() {
            let entries = manifest.runs_of(StateTable::Keys).map(|run| run.summary.rows).sum::<u64>();
            writer.fingerprints(entries / FOUR_PASSES, (0, manifest.end), |file| {
                self.each_print(0, |word, text| file.push_first(word, text))?;
                file.push_others(|block, each| {
                    self.each_print(block as u64, |key, _| each(word_of_pass(key, block)))
                })
            })?;
        } else {
            self.copy(&mut writer, (StateTable::Keys, IndexTable::Keys), |words| words[3])?;
        }
        self.copy(&mut writer, (StateTable::Sketches, IndexTable::Sketches), |words| words[0])?;
        if with_texts {
            self.copy(&mut writer, (StateTable::Texts, IndexTable::Texts), |words| words[0])?;
        }
        writer.table(IndexTable::Documents, |push| {
            let mut rows = self.docs.cursor(StateTable::Documents);
            while let Some(row) = rows.next_row()? {
                let number = row.words[0];
                if self.is_alive(number) {
                    headless.remove(&number);
                    push(&[number, times.of_doc(number), number - self.text_of(number)], row.bytes)?;
                }
            }
            Ok(())
        })?;
        writer.table(IndexTable::Copies, |push| {
            let mut alive = copies.iter().filter(|of| self.is_alive(of[1]));
            alive.try_for_each(|row| push(row, b""))
        })?;
        writer.table(IndexTable::Ids, |push| {
            let mut rows = self.docs.cursor(StateTable::Ids);
            while let Some(row) = rows.next_row()? {
                if self.is_alive(row.words[1]) {
                    push(row.words, b"")?;
                }
            }
            Ok(())
        })?;
        headless.retain(|&text| self.has_docs(text));
        Ok((writer.finish((0, manifest.end))?, headless))
    }

    /// Calls `each` with the key in a pass and the text of each fingerprint, in the order of the keys.
    fn each_print(&self, pass: u64, mut each: impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
        let mut rows = self.docs.cursor(StateTable::Keys);
        rows.seek(&[pass])?;
        while let Some(row) = rows.next_row()?.filter(|row| row.words[0] == pass) {
            let &[_, key, _, text] = row.words else { continue };
            if self.has_docs(text) {
                each(key, text)?;
            }
        }
        Ok(())
    }

    /// Copies the rows of a table whose texts have documents. `text`: returns the text of a row.
    fn copy(
        &self,
        writer: &mut SegmentWriter,
        (from, to): (StateTable, IndexTable),
        text: impl Fn(&[u64]) -> u64,
    ) -> Result<()> {
        let mut rows: MergedRuns = self.docs.cursor(from);
        writer.table(to, |push| {
            while let Some(row) = rows.next_row()? {
                if self.has_docs(text(row.words)) {
                    push(row.words, row.bytes)?;
                }
            }
            Ok(())
        })
    }
}
