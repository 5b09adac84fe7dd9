//! The search of a night: new documents, and texts of the state that must ask again, look for matches with each other and with the
//! texts of the state that stay.
//!
//! A state knows of each text that goes the one for which it goes, and no other match. So when a text goes that has stayed, those
//! that went for it ask again, until nobody new must: `operators::incremental` says why that is enough.

use std::collections::BTreeSet;

use anyhow::Result;
use operators::flow::{Candidates, GatheredClusters, reads, shuffle, total};
use operators::method::Method;
use operators::{DocId, Pair};
use timely::worker::Worker;

use super::asked::FoundLinks;
use super::asking::AskingTexts;
use super::corpus_search::{CorpusSearch, SearchResult};
use super::earlier::met;
use super::earlier_join::EarlierJoin;
use super::found_docs::FoundDocs;
use super::map::IdenticalDocs;
use crate::corpus::name_spool::NameSpool;
use crate::progress::{Stage, StageTimer};
use crate::state::{EarlierDocs, NightState, StateTable};

/// Words that are sent about a text of the state: those that went for it ask again, or it does itself if it went.
const UNSEATED: u8 = 0;
const RISEN: u8 = 1;

impl CorpusSearch {
    /// Finds the clusters of this worker that the night touches. Writes what the state keeps of the new documents.
    pub(super) fn search_night(
        &self,
        worker: &mut Worker,
        at: &StageTimer,
        (method, night): (&Method, &NightState),
        found: &mut SearchResult,
    ) -> Result<GatheredClusters> {
        let copies = self.collapse(worker)?;
        self.keep(worker, &copies, method, (night, found))?;
        let moves = night.reorders || !night.docs.going().is_empty();
        let (mut asking, mut unseated) = (AskingTexts::default(), BTreeSet::new());
        let alone = alone_and_going(worker, night)?;
        let mut more = who_ask(worker, night, &mut unseated, alone)?;
        loop {
            asking = self.ask_again(method, asking, more)?;
            let docs = match self.find_of_night(worker, at, (method, night), (&copies, &asking), found)? {
                Ok(docs) => docs,
                Err(Called(texts)) => {
                    asking.call(&texts);
                    more =
                        texts.into_iter().filter(|text| reads(worker, *text) && !asking.has(*text)).collect();
                    continue;
                }
            };
            at.enter(Stage::Resolve);
            let clusters = self.gather(worker, at, &docs)?;
            if !moves {
                return Ok(clusters);
            }
            let moved = self.moved(worker, night, clusters)?;
            more = who_ask(worker, night, &mut unseated, moved)?;
            more.retain(|text| !asking.has(*text));
            if total(worker, more.len()) == 0 {
                return self.gather(worker, at, &docs);
            }
        }
    }

    /// Finds the matches of new documents and of the texts that take part, unless further ones must.
    fn find_of_night(
        &self,
        worker: &mut Worker,
        at: &StageTimer,
        (method, night): (&Method, &NightState),
        (copies, asking): (&IdenticalDocs, &AskingTexts),
        found: &mut SearchResult,
    ) -> Result<Result<FoundDocs, Called>> {
        at.enter(Stage::Compare);
        let mut earlier = EarlierJoin::new(&night.docs, asking, &self.spill);
        let Candidates { mut pairs, loads, crowd, .. } =
            self.candidates(worker, method, (copies, None), Some(&mut earlier))?;
        let EarlierJoin { pairs: mut all, called, .. } = earlier;
        let called = at_all(worker, called.into_iter().collect());
        if !called.is_empty() {
            return Ok(Err(Called(called)));
        }
        pairs.each(|pair| all.push(pair))?;
        pairs = all.finish()?;
        (found.loads, found.candidates) = (vec![loads], 0);
        at.enter(Stage::Verify);
        let copies = IdenticalDocs(copies.0.clone());
        if let Some(crowd) = crowd {
            let of_night = (method, None, Some((night, asking)));
            let docs = self.rounds(worker, at, of_night, (pairs, copies, crowd), found)?;
            return Ok(Ok(docs));
        }
        let mut touched = self.touched_by(&copies, asking);
        let mut links = FoundLinks::new(&self.spill);
        let mut add = |pair: Pair, similarity| {
            touched.extend([pair.low, pair.high].into_iter().filter(|&doc| self.is_earlier(doc)));
            links.add(pair, similarity);
        };
        let names = match method.verified {
            true => {
                let mut names = NameSpool::new(&self.spill);
                found.candidates = self.compare(
                    worker,
                    at,
                    method,
                    (pairs, copies.named(), &[]),
                    |text, _| names.add(text.doc, text.id, text.merit),
                    |_, pair, similarity| add(pair, Some(similarity)),
                )?;
                Some(names)
            }
            false => {
                pairs.each(|pair| {
                    found.candidates += 1;
                    add(pair, None);
                })?;
                None
            }
        };
        links.add_copies(copies.0.into_iter());
        self.add_stored(worker, night, touched, &mut links)?;
        Ok(Ok(FoundDocs { links: vec![links], names }))
    }

    /// Returns the documents whose texts are touched whatever matches.
    pub(super) fn touched_by(&self, copies: &IdenticalDocs, asking: &AskingTexts) -> Vec<DocId> {
        copies.firsts().into_iter().chain(asking.texts().iter().copied()).collect()
    }

    /// Returns which texts of the state that this worker reads are moved by the matches so far, each with what follows.
    fn moved(
        &self,
        worker: &mut Worker,
        night: &NightState,
        clusters: GatheredClusters,
    ) -> Result<Vec<(DocId, u8)>> {
        let change = night.change();
        let mut sent = clusters.decide(worker, |batch, send| -> Result<()> {
            let moved = change.moved(batch.matches(), |doc| self.rank(doc, &|| batch.merit(doc)));
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

/// Texts that stay and must take part, since very many documents meet them: those of all workers.
struct Called(Vec<DocId>);

/// Sends documents to all workers, and returns those of all, each once and in order.
fn at_all(worker: &mut Worker, docs: Vec<DocId>) -> Vec<DocId> {
    let peers = worker.peers() as u64;
    let sent: Vec<(u64, DocId)> =
        docs.into_iter().flat_map(|doc| (0..peers).map(move |to| (to, doc))).collect();
    let arrived = shuffle(worker, "Called", sent, |sent: &(u64, DocId)| sent.0);
    let mut docs: Vec<DocId> = arrived.into_iter().map(|sent| sent.1).collect();
    docs.sort_unstable();
    docs.dedup();
    docs
}

/// Returns the withdrawn documents of this worker that are the only ones of their texts.
fn alone_and_going(worker: &Worker, night: &NightState) -> Result<Vec<(DocId, u8)>> {
    let docs = &night.docs;
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

/// Returns the texts that this worker reads and that ask again. `moved`: texts that it reads, in order. `unseated`: those of them
/// whose followers ask already.
fn who_ask(
    worker: &mut Worker,
    night: &NightState,
    unseated: &mut BTreeSet<DocId>,
    moved: Vec<(DocId, u8)>,
) -> Result<Vec<DocId>> {
    let docs = &night.docs;
    let (mut parents, mut members) = (docs.cursor(StateTable::Parents), docs.cursor(StateTable::Members));
    let mut ask = Vec::new();
    for (text, sort) in moved {
        if sort == RISEN {
            ask.extend(EarlierDocs::goes_for(&mut parents, text)?.map(|_| text));
        } else if unseated.insert(text) {
            ask.extend(EarlierDocs::followers(&mut members, text)?);
        }
    }
    Ok(met(worker, "Asking", ask))
}
