//! Verification: reads the documents of candidates again, and compares them by their features.

use anyhow::Result;
use operators::flow::{Matching, Verify, WantedDocs};
use operators::method::map_records::StoredText;
use operators::method::{Method, Search};
use operators::sets::{PackedSets, Sets};
use operators::{Matches, Pair, Sorted};
use timely::worker::Worker;

use super::corpus_search::{CorpusSearch, SearchResult};
use crate::corpus::doc_ids::NameSpool;
use crate::corpus::plan::Split;
use crate::corpus::splits::{self, SplitReader};
use crate::progress::StageTimer;

/// Source from which documents are read again.
#[derive(Clone, Copy)]
pub(super) enum TextSource<'a> {
    /// The input, which gives texts as they are. The timer counts the reading.
    Input(&'a StageTimer<'a>),
    /// The map output, which gives cleaned texts.
    MapOutput,
}

impl CorpusSearch {
    /// Adds to `found` the candidates in `pairs` that match, and the ids of their documents and of those in
    /// groups of identical documents. If the rule of the method does not decide, every candidate matches.
    pub(super) fn verify(
        &self,
        worker: &mut Worker,
        at: &StageTimer,
        method: Method,
        mut pairs: Sorted<Pair>,
        found: &mut SearchResult,
    ) -> Result<()> {
        let Method { mut cleaner, search, rule, verified } = method;
        if !verified {
            pairs.each(|pair| found.matches.pairs.push((pair, None)))?;
            found.candidates = found.matches.pairs.len() as u64;
            drop(pairs);
            return self.name_matched(worker, at, found);
        }
        let source = match search {
            Search::Prefix => TextSource::MapOutput,
            _ => TextSource::Input(at),
        };
        let matching = rule.clone();
        let matching: Matching = Box::new(move |a, b| matching.matches(PackedSets(a), PackedSets(b)));
        let mut sets = Sets::default();
        let copies = &found.matches.copies;
        let (mut verify, mut needs) = Verify::new(worker, pairs, copies, matching, &self.spill)?;
        // Very many candidates may turn out not to match, so their ids are spilled beyond a budget.
        let mut names = NameSpool::new(&self.spill.shared_by(Verify::HOLDERS));
        let mut list = Vec::new();
        self.read_again(worker, source, &mut needs, |worker, text, needs| {
            if let Some(parts) = needs.of(text.doc)? {
                names.add(text.doc, text.id, text.chars);
                list.clear();
                if !parts.is_empty() {
                    match source {
                        TextSource::Input(_) => rule.sets(cleaner.clean(text.text), &mut sets),
                        TextSource::MapOutput => rule.sets(text.text, &mut sets),
                    }
                    sets.pack(&mut list);
                }
                parts.iter().for_each(|&part| verify.send(worker, part, text.doc, &list));
            }
            verify.read(worker, text.text.len());
            Ok(())
        })?;
        drop(needs);
        let near = &mut found.matches.pairs;
        found.candidates += verify.finish(worker, |pair, similarity| near.push((pair, Some(similarity))))?;
        let mut matched = self.matched(worker, &found.matches)?;
        names.scan(|doc, id, chars| {
            if matched.of(doc)?.is_some() {
                found.names.add(doc, id, chars);
            }
            Ok(())
        })
    }

    /// Adds to `found` the ids of the documents of its matches.
    pub(super) fn name_matched(
        &self,
        worker: &mut Worker,
        at: &StageTimer,
        found: &mut SearchResult,
    ) -> Result<()> {
        let mut matched = self.matched(worker, &found.matches)?;
        self.read_again(worker, TextSource::Input(at), &mut matched, |_, text, matched| {
            if matched.of(text.doc)?.is_some() {
                found.names.add(text.doc, text.id, text.chars);
            }
            Ok(())
        })
    }

    /// Returns the documents of this worker that are in a match of any worker.
    fn matched(&self, worker: &mut Worker, matches: &Matches) -> Result<WantedDocs> {
        Ok(WantedDocs::of_matches(worker, matches, &self.spill.shared_by(Verify::HOLDERS))?)
    }

    /// Reads again the splits of this worker that hold a wanted document.
    fn read_again(
        &self,
        worker: &mut Worker,
        source: TextSource,
        needs: &mut WantedDocs,
        mut each: impl FnMut(&mut Worker, StoredText, &mut WantedDocs) -> Result<()>,
    ) -> Result<()> {
        for (number, split) in splits::splits_of(&self.plan, worker.index(), worker.peers()) {
            if !needs.any_of(number)? {
                continue;
            }
            let each = |worker: &mut Worker, text: StoredText| each(worker, text, needs);
            match source {
                TextSource::Input(at) => self.input_of(worker, at, number, split, each)?,
                TextSource::MapOutput => self.texts_of(worker, number, each)?,
            }
        }
        Ok(())
    }

    /// Calls `each` with the documents of a split, from the input.
    fn input_of(
        &self,
        worker: &mut Worker,
        at: &StageTimer,
        number: u32,
        split: &Split,
        mut each: impl FnMut(&mut Worker, StoredText) -> Result<()>,
    ) -> Result<()> {
        at.split(number, split.uri(), || {
            let mut reader = SplitReader::new(number, split, &self.reading, at);
            while let Some(batch) = reader.next()? {
                batch.docs().try_for_each(|doc| {
                    let chars = doc.text.chars().count() as u64;
                    each(worker, StoredText { doc: doc.doc, id: doc.id, chars, text: doc.text })
                })?;
            }
            Ok(())
        })
    }
}
