//! Verification: reads the documents of candidates again, and compares them by their features.

use std::iter;

use anyhow::Result;
use operators::flow::{FoundMatches, GatheredClusters, Matching, Verify};
use operators::method::Method;
use operators::method::map_records::StoredText;
use operators::sets::{PackedSets, Rule, Sets};
use operators::text::ignored_lines::LineCleaner;
use operators::{DocId, Pair, Similarity, Sorted, Spool};
use timely::worker::Worker;

use super::corpus_search::{CorpusSearch, SearchResult};
use super::map::IdenticalDocs;
use crate::corpus::name_spool::NameSpool;
use crate::corpus::split::Split;
use crate::corpus::splits::{self, SplitReader};
use crate::progress::{Stage, StageTimer};

/// Source from which documents are read again.
#[derive(Clone, Copy)]
pub(super) enum TextSource<'a> {
    /// The input, which gives texts as they are. The timer counts the reading.
    Input(&'a StageTimer<'a>),
    /// The map output, which gives what is compared of cleaned texts.
    MapOutput,
}

/// Makes the sets of texts, and packs them to be sent.
struct SetPacker<'a> {
    rule: &'a Rule,
    sets: Sets,
    packed: Vec<u64>,
}

impl<'a> SetPacker<'a> {
    fn new(rule: &'a Rule) -> Self {
        SetPacker { rule, sets: Sets::default(), packed: Vec::new() }
    }

    /// Returns the comparison of packed sets.
    fn matching(&self) -> Matching {
        let rule = self.rule.clone();
        Box::new(move |a, b| rule.matches(PackedSets(a), PackedSets(b)))
    }

    /// Returns the sets of a text, and the same packed.
    fn pack(&mut self, text: &str) -> (&Sets, &[u64]) {
        self.packed.clear();
        self.rule.sets(text, &mut self.sets);
        self.sets.pack(&mut self.packed);
        (&self.sets, &self.packed)
    }
}

impl CorpusSearch {
    /// Returns the clusters of the candidates in `pairs` that match and of the identical documents. If the rule
    /// of the method does not decide, every candidate matches. Counts the candidates in `found`.
    pub(super) fn verify(
        &self,
        worker: &mut Worker,
        at: &StageTimer,
        method: &Method,
        mut pairs: Sorted<Pair>,
        copies: IdenticalDocs,
        found: &mut SearchResult,
    ) -> Result<GatheredClusters> {
        let mut matches = FoundMatches::new(worker, &self.spill);
        if !method.verified {
            pairs.each(|pair| {
                found.candidates += 1;
                matches.add_pair(worker, pair, None);
            })?;
            drop(pairs);
            copies.add_to(worker, &mut matches);
            return self.name_matched(worker, at, matches);
        }
        // Very many candidates may turn out not to match, so their ids are spilled beyond a budget.
        let mut names = NameSpool::new(&self.spill.shared_by(Verify::HOLDERS));
        found.candidates += self.compare(
            worker,
            at,
            method,
            (pairs, copies.named(), &[]),
            |text, _| names.add(text.doc, text.id, text.merit),
            |worker, pair, similarity| matches.add_pair(worker, pair, Some(similarity)),
        )?;
        copies.add_to(worker, &mut matches);
        at.enter(Stage::Resolve);
        self.name_by(worker, matches, &names)
    }

    /// Returns the clusters of the matches of all workers, whose documents the verification has named.
    pub(super) fn name_by(
        &self,
        worker: &mut Worker,
        matches: FoundMatches,
        names: &NameSpool,
    ) -> Result<GatheredClusters> {
        let mut docs = matches.finish(worker)?;
        self.name_earlier(worker, &mut docs, |_, id| id)?;
        names.scan(|doc, id, merit| Ok(docs.name(worker, doc, id, merit)?))?;
        Ok(docs.finish(worker)?)
    }

    /// Compares candidates by the rule of the method, and gives those that match to `each`. Returns the number of candidates
    /// that this worker has decided. Calls `note` with the documents of candidates and those of `named`, which are named too, and
    /// with the sets of those of the crowd, a sorted list.
    pub(super) fn compare(
        &self,
        worker: &mut Worker,
        at: &StageTimer,
        Method { cleaner, search, rule, .. }: &Method,
        (pairs, named, crowd): (Sorted<Pair>, impl Iterator<Item = DocId>, &[DocId]),
        mut note: impl FnMut(StoredText, Option<&Sets>),
        each: impl FnMut(&mut Worker, Pair, Similarity),
    ) -> Result<u64> {
        let mut cleaner = LineCleaner::new(cleaner.clone(), self.ignored.clone());
        let source = if search.stores_texts() { TextSource::MapOutput } else { TextSource::Input(at) };
        let mut packer = SetPacker::new(rule);
        let (mut verify, mut needs) = Verify::new(worker, pairs, named, packer.matching(), &self.spill)?;
        let of_crowd = |doc: DocId| crowd.binary_search(&doc).is_ok();
        self.earlier_texts(worker, &mut needs, of_crowd, |worker, doc, parts, (text, merit)| {
            let (sets, packed) = packer.pack(text);
            if let Some(merit) = merit {
                note(StoredText { doc, id: "", merit, text }, Some(sets));
            }
            parts.iter().for_each(|&part| verify.send(worker, part, doc, packed));
            verify.read(worker, text.len());
        })?;
        for (number, split) in splits::splits_of(&self.plan, worker.index(), worker.peers()) {
            let Some(first) = needs.next_of(number)? else { continue };
            let each = |worker: &mut Worker, text: StoredText| {
                if let Some(parts) = needs.of(text.doc)? {
                    let of_crowd = of_crowd(text.doc);
                    if !of_crowd && parts.is_empty() {
                        note(text, None);
                    } else {
                        let compared = match source {
                            TextSource::Input(_) => cleaner.compared(text.text),
                            TextSource::MapOutput => text.text,
                        };
                        let (sets, packed) = packer.pack(compared);
                        note(StoredText { text: compared, ..text }, of_crowd.then_some(sets));
                        parts.iter().for_each(|&part| verify.send(worker, part, text.doc, packed));
                    }
                }
                verify.read(worker, text.text.len());
                Ok(needs.next_of(number)?)
            };
            match source {
                TextSource::Input(at) => self.input_of(worker, at, split, first, each)?,
                TextSource::MapOutput => self.texts_of(worker, number, each)?,
            }
        }
        drop(needs);
        Ok(verify.finish(worker, each)?)
    }

    /// Does the same with texts that were kept, which are given in order.
    pub(super) fn compare_kept(
        &self,
        worker: &mut Worker,
        Method { rule, .. }: &Method,
        pairs: Sorted<Pair>,
        texts: &Spool<u8>,
        each: impl FnMut(&mut Worker, Pair, Similarity),
    ) -> Result<u64> {
        let mut packer = SetPacker::new(rule);
        let (mut verify, mut needs) =
            Verify::new(worker, pairs, iter::empty(), packer.matching(), &self.spill)?;
        texts.scan(|doc, text| -> Result<()> {
            if let Some(parts) = needs.of(doc)? {
                let (_, packed) = packer.pack(str::from_utf8(text)?);
                parts.iter().for_each(|&part| verify.send(worker, part, doc, packed));
            }
            verify.read(worker, text.len());
            Ok(())
        })?;
        drop(needs);
        Ok(verify.finish(worker, each)?)
    }

    /// Returns the clusters of the matches of all workers, for which it reads the names of their documents.
    pub(super) fn name_matched(
        &self,
        worker: &mut Worker,
        at: &StageTimer,
        matches: FoundMatches,
    ) -> Result<GatheredClusters> {
        let mut docs = matches.finish(worker)?;
        self.name_earlier(worker, &mut docs, |_, id| id)?;
        for (number, split) in splits::splits_of(&self.plan, worker.index(), worker.peers()) {
            let Some(first) = docs.next_of(number)? else { continue };
            self.input_of(worker, at, split, first, |worker, text| {
                docs.name(worker, text.doc, text.id, text.merit)?;
                docs.note_read(worker, text.text.len());
                Ok(docs.next_of(number)?)
            })?;
        }
        Ok(docs.finish(worker)?)
    }

    /// Calls `each` with documents of a split, from the input. `first`: the first document that is needed.
    /// `each` returns the next one; where none is needed any more, the rest of the split is not read.
    fn input_of(
        &self,
        worker: &mut Worker,
        at: &StageTimer,
        split: &Split,
        first: DocId,
        mut each: impl FnMut(&mut Worker, StoredText) -> Result<Option<DocId>>,
    ) -> Result<()> {
        let number = first.split();
        at.split(number, split.uri(), || {
            let mut reader = SplitReader::new(number, split, &self.reading, at);
            let mut needed = Some(first);
            while let Some(doc) = needed {
                reader.pass_files_before(doc);
                let Some(batch) = reader.next()? else { break };
                for doc in batch.docs() {
                    let merit = doc.merit();
                    needed = each(worker, StoredText { doc: doc.doc, id: doc.id, merit, text: doc.text })?;
                }
            }
            Ok(())
        })
    }
}
