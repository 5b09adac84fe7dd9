//! Texts of a state that take part in a night like new ones: those that went for a text that does not stay in its place any more,
//! and those that stay and that very many new documents meet, which ask them in rounds.

use anyhow::{Context, Result};
use foldhash::HashSet;
use operators::method::map_records::{Bands, Fingerprints, Mapper, records};
use operators::method::{Method, Search};
use operators::{Doc, DocId, Priority, Record, SpillBudget, Spool};
use timely::worker::Worker;

use super::corpus_search::CorpusSearch;
use crate::state::{StateTable, found, number_of};

/// Texts of the state that this worker reads and that take part, with the records that the map stage would make of them. Memory: 8
/// bytes each, and the records or the budget.
#[derive(Default)]
pub(super) struct AskingTexts {
    /// In order.
    texts: Vec<DocId>,
    /// Those of them that stay, and those of other workers.
    called: HashSet<DocId>,
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

    /// Whether a text of any worker is among them although it stays.
    pub fn was_called(&self, text: DocId) -> bool {
        self.called.contains(&text)
    }

    /// Notes texts of any worker that take part although they stay.
    pub fn call(&mut self, texts: &[DocId]) {
        self.called.extend(texts);
    }

    /// Calls `each` with the records in a section, in the order of texts.
    pub fn records<R: Record>(
        &self,
        worker: &mut Worker,
        section: usize,
        mut each: impl FnMut(&mut Worker, R),
    ) -> Result<()> {
        let Some(of_section) = self.sections.get(section) else { return Ok(()) };
        of_section.scan(|_, bytes| {
            records(bytes).for_each(|record| each(worker, record));
            Ok(())
        })
    }
}

impl CorpusSearch {
    /// Returns these texts of the state and more, mapped. `more`: texts that this worker reads, in any order.
    pub(super) fn ask_again(
        &self,
        method: &Method,
        asking: AskingTexts,
        more: Vec<DocId>,
    ) -> Result<AskingTexts> {
        let AskingTexts { mut texts, called, .. } = asking;
        texts.extend(more);
        texts.sort_unstable();
        let by_text = Some(self.secret).filter(|_| method.verified);
        let sections = match &method.search {
            Search::SimHash64(simhash) => self.mapped(&texts, Fingerprints::new(simhash.clone(), by_text))?,
            Search::SimHash128(simhash) => {
                self.mapped(&texts, Fingerprints::new(simhash.clone(), by_text))?
            }
            Search::Bands(minhash) => {
                self.mapped(&texts, Bands::new(method.rule.clone(), *minhash, self.secret))?
            }
            Search::Nothing | Search::Prefix | Search::Zhou(_) => Vec::new(),
        };
        Ok(AskingTexts { texts, called, sections })
    }

    fn mapped(&self, texts: &[DocId], mut mapper: impl Mapper) -> Result<Vec<Spool<u8>>> {
        let count = mapper.sections();
        let budget: SpillBudget = self.spill.shared_by(count);
        let mut sections: Vec<Spool<u8>> = (0..count).map(|_| Spool::new(&budget)).collect();
        let mut of_text = vec![Vec::new(); count];
        let Some(night) = &self.night else { return Ok(sections) };
        let mut rows = night.docs.cursor(StateTable::Texts);
        for &doc in texts {
            let row =
                found(&mut rows, &[number_of(doc)])?.context("the state lacks a text that asks again")?;
            let text = str::from_utf8(row.bytes)?;
            mapper.map(&Doc { doc, id: "", text, priority: Priority::default() }, text.into(), &mut of_text);
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
