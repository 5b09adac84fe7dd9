//! The search of a night, as far as a state adds to it: new documents, and texts of the state that must ask again, look for matches with each
//! other and with the texts of the state that stay.
//!
//! A state knows of each text that goes the one for which it goes, and no other match. So when a text goes that has stayed, those
//! that went for it ask again, until nobody new must: `operators::incremental` says why that is enough.

mod asking;
mod join;
mod kept_rows;
mod stored;

use std::collections::BTreeSet;

use anyhow::Result;
use operators::flow::{GatheredClusters, MatchedDocs, WantedDocs, reads, total};
use operators::search::map_records::StoredText;
use operators::sets::small_sketch::SketchSieve;
use operators::{DocId, Pair, Sorted, SpillBudget};
use timely::worker::Worker;

use self::asking::AskingTexts;
use self::join::EarlierJoin;
use self::stored::at_readers;
use crate::state::{EarlierDocs, NightState, RunEntry, StateTable};
use batch::pipeline::{Earlier, FoundLinks, IdenticalDocs, IdentityLookup, KeptPass, Mapped, NewKeySink};

/// Words that are sent about a text of the state: those that went for it ask again, or it does itself if it went.
const UNSEATED: u8 = 0;
const RISEN: u8 = 1;

/// The documents of a state in the search of one worker.
pub(super) struct StateSearch {
    night: NightState,
    spill: SpillBudget,
    asking: AskingTexts,
    /// Texts whose followers ask already.
    unseated: BTreeSet<DocId>,
    /// The join that is being made.
    join: Option<EarlierJoin>,
    /// Files of the state that were written.
    pub runs: Vec<RunEntry>,
}

impl StateSearch {
    /// Begins a search in which no text of the state asks.
    pub fn new(night: &NightState, spill: &SpillBudget) -> Self {
        StateSearch {
            night: night.clone(),
            spill: spill.clone(),
            asking: AskingTexts::default(),
            unseated: BTreeSet::new(),
            join: None,
            runs: Vec::new(),
        }
    }

    /// Returns the withdrawn documents of this worker that are the only ones of their texts.
    fn alone_and_going(&self, worker: &Worker) -> Result<Vec<(DocId, u8)>> {
        let docs = &self.night.docs;
        let (mut parents, mut members) = (docs.cursor(StateTable::Parents), docs.cursor(StateTable::Members));
        let mut alone = Vec::new();
        for doc in docs.going().iter().copied().filter(|&doc| reads(worker, doc)) {
            let is_copy = EarlierDocs::text_of_doc(&mut parents, doc)? != doc;
            if !is_copy && EarlierDocs::copies(&mut members, doc)?.is_empty() {
                alone.push((doc, UNSEATED));
            }
        }
        Ok(alone)
    }

    /// Returns the texts that this worker reads and that ask again. `moved`: texts that it reads, in order, each with what follows.
    fn who_ask(&mut self, worker: &mut Worker, moved: Vec<(DocId, u8)>) -> Result<Vec<DocId>> {
        let docs = &self.night.docs;
        let (mut parents, mut members) = (docs.cursor(StateTable::Parents), docs.cursor(StateTable::Members));
        let mut ask = Vec::new();
        for (text, sort) in moved {
            if sort == RISEN {
                ask.extend(EarlierDocs::goes_for(&mut parents, text)?.map(|_| text));
            } else if self.unseated.insert(text) {
                ask.extend(EarlierDocs::followers(&mut members, text)?);
            }
        }
        let mut ask = at_readers(worker, "Asking", ask);
        ask.retain(|text| !self.asking.has(*text));
        Ok(ask)
    }

    /// Returns which texts of the state that this worker reads are moved by the matches so far, each with what follows.
    fn moved(
        &self,
        worker: &mut Worker,
        mapped: &Mapped,
        clusters: GatheredClusters,
    ) -> Result<Vec<(DocId, u8)>> {
        let change = self.night.change();
        let mut sent = clusters.decide(worker, |batch, send| -> Result<()> {
            let rank = |doc| mapped.search.rank(doc, &|| batch.merit(doc));
            let moved = change.moved(batch.matches(), rank);
            moved.unseated.into_iter().for_each(|text| send(text, &[UNSEATED]));
            moved.risen.into_iter().for_each(|text| send(text, &[RISEN]));
            Ok(())
        })?;
        let mut moved = Vec::new();
        while let Some(((text, _), sort)) = sent.next_value()? {
            moved.extend(sort.iter().map(|&sort| (text, sort)));
        }
        Ok(moved)
    }
}

impl Earlier for StateSearch {
    fn has(&self, doc: DocId) -> bool {
        doc.split() < self.night.docs.first_split()
    }

    /// Known only of texts that take part; `false` for all others.
    fn has_stayed(&self, doc: DocId) -> bool {
        self.asking.has_stayed(doc)
    }

    fn is_withdrawn(&self, doc: DocId) -> bool {
        self.night.is_gone(doc)
    }

    fn texts_of_identities(&self) -> IdentityLookup<'_> {
        let docs = &self.night.docs;
        let mut identities = docs.cursor(StateTable::Identities);
        Box::new(move |identity| docs.text_of(&mut identities, identity))
    }

    /// Writes what the state keeps of the new documents, and lets those ask that went for documents which are withdrawn.
    fn collapsed(&mut self, worker: &mut Worker, mapped: &Mapped, copies: &IdenticalDocs) -> Result<()> {
        self.runs = kept_rows::keep(worker, mapped, copies, &self.night)?;
        let alone = self.alone_and_going(worker)?;
        let ask = self.who_ask(worker, alone)?;
        self.asking.add(mapped, &self.night.docs, ask)
    }

    fn records(
        &self,
        worker: &mut Worker,
        section: usize,
        each: &mut dyn FnMut(&mut Worker, &[u8]),
    ) -> Result<()> {
        self.asking.records(worker, section, each)
    }

    fn meet(
        &mut self,
        worker: &mut Worker,
        pass: &KeptPass,
        scan: &mut dyn FnMut(&mut Worker, NewKeySink) -> Result<()>,
    ) -> Result<()> {
        let join = self.join.get_or_insert_with(|| EarlierJoin::new(&self.night.docs, &self.spill));
        join.pass(worker, pass, &self.asking, &mut |worker, each| {
            self.asking.records(worker, pass.section, &mut |_, bytes| (pass.keys)(bytes, &mut *each))?;
            scan(worker, each)
        })
    }

    fn end_passes(&mut self, sieve: Option<&SketchSieve>) -> Result<()> {
        self.join.as_mut().map_or(Ok(()), |join| join.finish(sieve))
    }

    fn candidates(
        &mut self,
        worker: &mut Worker,
        mapped: &Mapped,
        mut pairs: Sorted<Pair>,
    ) -> Result<Option<Sorted<Pair>>> {
        let Some(EarlierJoin { pairs: mut all, called, .. }) = self.join.take() else {
            return Ok(Some(pairs));
        };
        let called = self.asking.call(worker, called);
        if called.is_empty() {
            pairs.each(|pair| all.push(pair))?;
            return Ok(Some(all.finish()?));
        }
        let ask = called.into_iter().filter(|text| reads(worker, *text) && !self.asking.has(*text)).collect();
        self.asking.add(mapped, &self.night.docs, ask)?;
        Ok(None)
    }

    fn texts(
        &self,
        worker: &mut Worker,
        wanted: &mut WantedDocs,
        noted: &dyn Fn(DocId) -> bool,
        each: &mut dyn FnMut(&mut Worker, StoredText, &[u64]),
    ) -> Result<()> {
        stored::texts(worker, &self.night.docs, wanted, noted, each)
    }

    fn add_stored(&mut self, worker: &mut Worker, links: &mut FoundLinks) -> Result<()> {
        let mut touched = self.asking.texts().to_vec();
        links.each_doc(|doc| touched.extend(Some(doc).filter(|&doc| self.has(doc))))?;
        stored::add(worker, &self.night.docs, touched, links)
    }

    fn may_reverse_decisions(&self) -> bool {
        self.night.change().may_reverse_decisions()
    }

    fn asks_again(
        &mut self,
        worker: &mut Worker,
        mapped: &Mapped,
        clusters: GatheredClusters,
    ) -> Result<bool> {
        let moved = self.moved(worker, mapped, clusters)?;
        let ask = self.who_ask(worker, moved)?;
        let again = total(worker, ask.len()) > 0;
        if again {
            self.asking.add(mapped, &self.night.docs, ask)?;
        }
        Ok(again)
    }

    fn name(
        &self,
        worker: &mut Worker,
        matched: &mut MatchedDocs,
        name: &dyn for<'a> Fn(DocId, &'a str) -> &'a str,
    ) -> Result<()> {
        stored::name(worker, &self.night.docs, matched, name)
    }
}
