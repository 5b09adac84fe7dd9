//! Writes what a state keeps of the new documents of a night, from the map output.

use anyhow::{Result, ensure};
use operators::flow::{RecordSink, SortingShuffle};
use operators::hash::Identity;
use operators::search::map_records::{StoredText, records};
use operators::search::{KeyedSearch, SearchVisitor, TextSearch};
use operators::sets::small_sketch::SmallSketch;
use operators::{DocId, ExternalSort, Merit, Record, SpillBudget, memory_plan};
use timely::worker::Worker;

use crate::state::{NightState, RunEntry, RunsOfNight, StateTable, TableWriter, key_of_id};
use batch::pipeline::{IdenticalDocs, Mapped};

/// Writes what a state keeps of the documents of this worker. Returns the files.
pub(super) fn keep(
    worker: &mut Worker,
    mapped: &Mapped,
    copies: &IdenticalDocs,
    night: &NightState,
) -> Result<Vec<RunEntry>> {
    let mut runs = night.runs(&format!("{:05}", worker.index()));
    let search = &mapped.search;
    let keep = KeepTexts { worker, mapped, copies, night, runs: &mut runs };
    search.method.search.visit(&search.context(), keep)?;
    Ok(runs.entries())
}

/// Writes what a state keeps of the documents of this worker.
struct KeepTexts<'a> {
    worker: &'a mut Worker,
    mapped: &'a Mapped,
    copies: &'a IdenticalDocs,
    night: &'a NightState,
    runs: &'a mut RunsOfNight,
}

impl SearchVisitor for KeepTexts<'_> {
    type Output = Result<()>;

    fn visit<S: TextSearch + Clone>(self, search: S) -> Result<()> {
        ensure!(search.only_equal(), "this method keeps no keys");
        let KeepTexts { worker, mapped, copies, night, runs } = self;
        keep_documents(worker, mapped, (night, runs), copies, (section_of_texts(&search), false))
    }

    fn visit_keyed<S: KeyedSearch>(self, search: S) -> Result<()> {
        let KeepTexts { worker, mapped, copies, night, runs } = self;
        keep_keys(worker, mapped, (night, runs), copies, &search)?;
        keep_documents(worker, mapped, (night, runs), copies, (section_of_texts(&search), true))
    }
}

/// Returns the section of a night's map output that has the texts: one of the search, or the one behind all of these.
fn section_of_texts(search: &impl TextSearch) -> usize {
    if search.stores_texts() { StoredText::SECTION } else { search.sections() }
}

/// Writes the documents of this worker with their ids, and what is kept once for each text: the identity, and
/// the text itself if the method compares texts, so that one can ask again. Rows that are sorted by a hash are exchanged, so that each
/// worker writes a range of them. `section`: the section with the texts.
fn keep_documents(
    worker: &mut Worker,
    mapped: &Mapped,
    (night, runs): (&NightState, &mut RunsOfNight),
    copies: &IdenticalDocs,
    (section, with_texts): (usize, bool),
) -> Result<()> {
    let number = |doc: DocId| night.numbering.number(doc);
    let spill = &mapped.search.spill;
    let mut identities =
        ranges::<(Identity, u64)>(worker, spill, "Identities", |of: &(Identity, u64)| of.0.0);
    let mut firsts = copies.walk();
    mapped.section(worker, 0, |worker, frame| {
        for (identity, doc) in records::<(Identity, DocId)>(frame) {
            if firsts.is_first(doc) {
                identities.send(worker, (identity, number(doc)));
            }
        }
    })?;
    let mut table = runs.table(StateTable::Identities)?;
    each_row(worker, identities, |(identity, text)| table.push(&[identity.0, identity.1, text], b""))?;
    runs.finish(table)?;

    let mut ids = ranges::<(u64, u64)>(worker, spill, "Ids", |of: &(u64, u64)| of.0);
    let (mut documents, mut texts) = (runs.table(StateTable::Documents)?, runs.table(StateTable::Texts)?);
    let mut firsts = copies.walk();
    for (split, _) in mapped.splits(worker) {
        mapped.stored_texts(worker, split, section, |worker, text| {
            let document = number(text.doc);
            let Merit { chars, priority } = text.merit;
            documents.push(&[document, chars, priority.0], text.id.as_bytes())?;
            ids.send(worker, (key_of_id(text.id.as_bytes()), document));
            if with_texts && !text.text.is_empty() && firsts.is_first(text.doc) {
                texts.push(&[document], text.text.as_bytes())?;
            }
            Ok(())
        })?;
    }
    runs.finish(documents)?;
    runs.finish(texts)?;
    let mut table = runs.table(StateTable::Ids)?;
    each_row(worker, ids, |(id, document)| table.push(&[id, document], b""))?;
    runs.finish(table)
}

/// Writes the keys of the texts of this worker, pass by pass, and the sketches of their sets.
fn keep_keys<S: KeyedSearch>(
    worker: &mut Worker,
    mapped: &Mapped,
    (night, runs): (&NightState, &mut RunsOfNight),
    copies: &IdenticalDocs,
    search: &S,
) -> Result<()> {
    let number = |doc: DocId| night.numbering.number(doc);
    let spill = &mapped.search.spill;
    let (mut keys, mut sketches) = (runs.table(StateTable::Keys)?, runs.table(StateTable::Sketches)?);
    for (pass_number, pass) in (0..).zip(search.passes()) {
        let high = |of: &(u128, u64)| (of.0 >> 64) as u64;
        let mut sorted = ranges::<(u128, u64)>(worker, spill, "Keys", high);
        let mut of_text = SketchesOfText::default();
        let mut failed = Ok(());
        let mut sink = |worker: &mut Worker, record: S::Record| {
            let text = number(S::doc(&record));
            sorted.send(worker, (S::kept_key(&pass, &record), text));
            if pass_number == 0 && search.sieve().is_some() && failed.is_ok() {
                failed = of_text.add(text, S::sketch(&record), &mut sketches);
            }
        };
        let sink: RecordSink<S::Record> = &mut sink;
        let mut firsts = copies.walk();
        mapped.section(worker, S::section(&pass), |worker, frame| {
            for record in records(frame) {
                if firsts.is_first(S::doc(&record)) {
                    sink(worker, record);
                }
            }
        })?;
        failed?;
        of_text.write(&mut sketches)?;
        each_row(worker, sorted, |(key, text)| {
            keys.push(&[pass_number, (key >> 64) as u64, key as u64, text], b"")
        })?;
    }
    runs.finish(keys)?;
    runs.finish(sketches)
}

/// Opens an exchange that gives each worker a range of rows. `high`: the first word of a row, which is spread
/// over all numbers.
fn ranges<R: Record + Ord>(
    worker: &mut Worker,
    spill: &SpillBudget,
    name: &str,
    high: impl Fn(&R) -> u64 + 'static,
) -> SortingShuffle<R> {
    let peers = worker.peers() as u128;
    let owner = move |row: &R| ((u128::from(high(row)) * peers) >> 64) as u64;
    SortingShuffle::new(
        worker,
        name,
        owner,
        ExternalSort::new(&spill.shared_by(memory_plan::STATE_ROWS)).once(),
    )
}

/// Sketches of the sets of one text, whose records come behind each other.
#[derive(Default)]
struct SketchesOfText(Option<(u64, [u64; 2])>);

impl SketchesOfText {
    fn add(&mut self, text: u64, sketch: SmallSketch, table: &mut TableWriter) -> Result<()> {
        if self.0.is_some_and(|(of, _)| of != text) {
            self.write(table)?;
        }
        let (_, sketches) = self.0.get_or_insert((text, [0; 2]));
        sketch.put_among(sketches);
        Ok(())
    }

    fn write(&mut self, table: &mut TableWriter) -> Result<()> {
        match self.0.take() {
            Some((text, [short, long])) => table.push(&[text, short, long], b""),
            None => Ok(()),
        }
    }
}

/// Ends an exchange, and calls `each` with every row that has arrived, in order.
fn each_row<R: Record + Ord>(
    worker: &mut Worker,
    rows: SortingShuffle<R>,
    mut each: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let mut rows = operators::MergeCursor::new(rows.finish(worker)?);
    while let Some(row) = rows.next_if(|_| true)? {
        each(row)?;
    }
    Ok(())
}
