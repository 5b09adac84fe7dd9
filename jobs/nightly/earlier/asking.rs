//! Texts of a state that take part in a night like new ones: those that went for a text that does not stay in its place any more,
//! and those that stay and that very many new documents meet, which ask them in rounds.

use anyhow::{Context, Result};
use foldhash::HashSet;
use operators::flow::shuffle;
use operators::search::{KeyedSearch, SearchVisitor, TextSearch};
use operators::{Doc, DocId, Priority, SpillBudget, Spool};
use timely::worker::Worker;

use crate::state::{EarlierDocs, StateTable, found, number_of};
use batch::pipeline::{CorpusSearch, Mapped};

/// Texts of the state that this worker reads and that take part, with the records that the map stage would make of them. Memory: 8
/// bytes each, and the records or the budget.
#[derive(Default)]
pub(super) struct AskingTexts {
    /// In order.
    texts: Vec<DocId>,
    /// Those of all workers that very many new documents meet.
    called: HashSet<DocId>,
    /// Those of this worker that stay in the state.
    stayed: HashSet<DocId>,
    /// Records of each section, as bytes.
    sections: Vec<Spool<u8>>,
}

impl AskingTexts {
    /// Returns them, in order.
    pub fn texts(&self) -> &[DocId] {
        &self.texts
    }

    /// Whether a text is among them.
    pub fn has(&self, text: DocId) -> bool {
        self.texts.binary_search(&text).is_ok()
    }

    /// Whether a text of this worker is among them although it stays in the state.
    pub fn has_stayed(&self, text: DocId) -> bool {
        self.stayed.contains(&text)
    }

    /// Whether a text of any worker is among them because very many new documents meet it.
    pub fn was_called(&self, text: DocId) -> bool {
        self.called.contains(&text)
    }

    /// Notes texts that take part because very many new documents meet them, of all workers. `texts`: those that this worker has met.
    /// Returns them, each once and in order.
    pub fn call(&mut self, worker: &mut Worker, texts: HashSet<DocId>) -> Vec<DocId> {
        let peers = worker.peers() as u64;
        let sent: Vec<(u64, DocId)> =
            texts.into_iter().flat_map(|doc| (0..peers).map(move |to| (to, doc))).collect();
        let arrived = shuffle(worker, "Called", sent, |sent: &(u64, DocId)| sent.0);
        let mut texts: Vec<DocId> = arrived.into_iter().map(|sent| sent.1).collect();
        texts.sort_unstable();
        texts.dedup();
        self.called.extend(&texts);
        texts
    }

    /// Calls `each` with the records in a section, as bytes: those of one text at a time, in the order of texts.
    pub fn records(
        &self,
        worker: &mut Worker,
        section: usize,
        each: &mut dyn FnMut(&mut Worker, &[u8]),
    ) -> Result<()> {
        let Some(of_section) = self.sections.get(section) else { return Ok(()) };
        of_section.scan(|_, bytes| {
            each(worker, bytes);
            Ok(())
        })
    }

    /// Adds texts that this worker reads, in order, and maps all of them.
    pub fn add(&mut self, mapped: &Mapped, docs: &EarlierDocs, more: Vec<DocId>) -> Result<()> {
        let mut parents = docs.cursor(StateTable::Parents);
        for &text in &more {
            if EarlierDocs::goes_for(&mut parents, text)?.is_none() {
                self.stayed.insert(text);
            }
        }
        self.texts.extend(more);
        self.texts.sort_unstable();
        let CorpusSearch { method, spill, .. } = &mapped.search;
        let map = MapAsking { docs, texts: &self.texts, spill };
        self.sections = method.search.visit(&mapped.search.context(), map)?;
        Ok(())
    }
}

/// Maps texts of the state, which come in order, if they have keys by which they meet others.
struct MapAsking<'a> {
    docs: &'a EarlierDocs,
    texts: &'a [DocId],
    spill: &'a SpillBudget,
}

impl SearchVisitor for MapAsking<'_> {
    type Output = Result<Vec<Spool<u8>>>;

    fn visit<S: TextSearch + Clone>(self, _: S) -> Self::Output {
        Ok(Vec::new())
    }

    /// Returns the sections that the map stage would make.
    fn visit_keyed<S: KeyedSearch>(self, mut search: S) -> Self::Output {
        let MapAsking { docs, texts, spill } = self;
        let count = search.sections();
        let budget = spill.shared_by(count);
        let mut sections: Vec<Spool<u8>> = (0..count).map(|_| Spool::new(&budget)).collect();
        let mut of_text = vec![Vec::new(); count];
        let mut rows = docs.cursor(StateTable::Texts);
        search.begin_split();
        for &doc in texts {
            let row =
                found(&mut rows, &[number_of(doc)])?.context("the state lacks a text that asks again")?;
            let text = str::from_utf8(row.bytes)?;
            search.map(&Doc { doc, id: "", text, priority: Priority::default() }, text.into(), &mut of_text);
            for (section, bytes) in
                sections.iter_mut().zip(&mut of_text).filter(|(_, bytes)| !bytes.is_empty())
            {
                section.push(doc, bytes);
                bytes.clear();
            }
        }
        Ok(sections)
    }
}
