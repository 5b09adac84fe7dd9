//! The map stage of a search, and the reading of its output by the later stages.

use anyhow::{Result, bail};
use operators::flow::{FoundMatches, collapse};
use operators::hash::Identity;
use operators::method::map_records::{Mapper, StoredText, Texts, records};
use operators::text::Cleaner;
use operators::text::cleaned::is_code;
use operators::text::ignored_lines::LineCleaner;
use operators::{Doc, DocId, ExternalSort, Sides};
use serde::{Deserialize, Serialize};
use timely::worker::Worker;

use super::corpus_search::{CorpusSearch, SearchResult, SideCounts};
use crate::corpus::split::Split;
use crate::corpus::splits::{self, SplitReader};
use crate::output::map_output::MapOutputWriter;
use crate::output::rejects::{RejectLimit, Rejects};
use crate::progress::{Stage, StageTimer};
use crate::state::StateTable;

/// Facts about a mapped split, which are kept in the head of its map output.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Head {
    /// Identity of the empty text, by which the secret of the identities is recognised.
    secret: Identity,
    /// Checksums of the bytes that were read of each piece.
    sums: Vec<Vec<(u64, u64)>>,
    counts: SideCounts,
    rejects: Rejects,
}

/// Documents of a worker that are identical to an earlier one, each with the first of them, sorted.
pub(super) struct IdenticalDocs(pub Vec<(DocId, DocId)>);

impl IdenticalDocs {
    /// Begins to walk over all documents in their order, to tell the first ones from the others.
    pub fn walk(&self) -> FirstsWalk<'_> {
        FirstsWalk { rest: &self.0 }
    }

    /// Returns the first document of each of them.
    pub fn firsts(&self) -> Vec<DocId> {
        self.0.iter().map(|copy| copy.1).collect()
    }

    /// Returns all documents that are identical to another one.
    pub fn named(&self) -> impl Iterator<Item = DocId> {
        self.0.iter().flat_map(|&(doc, first)| [doc, first])
    }

    /// Leaves out the documents of the reference. The first of those that are identical stands for all of them.
    pub fn of_input(mut self, sides: Sides) -> Self {
        self.0.retain(|copy| !sides.is_reference(copy.0));
        self
    }

    /// Adds all of them to the matches.
    pub fn add_to(self, worker: &mut Worker, matches: &mut FoundMatches) {
        self.0.into_iter().for_each(|(doc, first)| matches.add_copy(worker, doc, first));
    }
}

/// Tells of documents in ascending order whether no earlier one is identical.
pub(super) struct FirstsWalk<'a> {
    /// Documents that are identical to an earlier one, without those that were passed.
    rest: &'a [(DocId, DocId)],
}

impl FirstsWalk<'_> {
    /// Whether no earlier document is identical to this one. Documents must be asked for in ascending order.
    pub fn is_first(&mut self, doc: DocId) -> bool {
        while self.rest.first().is_some_and(|copy| copy.0 < doc) {
            self.rest = &self.rest[1..];
        }
        self.rest.first().is_none_or(|copy| copy.0 != doc)
    }
}

/// Map output of a split whose documents are not those of the input but parts of them.
pub(crate) struct PartMapper {
    cleaner: Cleaner,
    texts: Texts,
    writer: MapOutputWriter,
    head: Head,
}

impl PartMapper {
    /// Maps the next part. The parts of a split come in order, and each has a number of its own.
    pub fn add(&mut self, part: &Doc) -> Result<()> {
        let text = self.cleaner.clean(part.text);
        let has_text = self.texts.map(part, text.into(), self.writer.sections());
        self.head.counts.without_text += u64::from(!has_text);
        self.head.counts.docs += 1;
        self.head.counts.text_bytes += part.text.len() as u64;
        self.writer.write()
    }

    /// Ends the map output of the split.
    pub fn finish(self) -> Result<SearchResult> {
        self.writer.finish(&self.head)?;
        Ok(SearchResult { input: self.head.counts, ..SearchResult::default() })
    }
}

impl CorpusSearch {
    /// Begins the map output of a split whose documents the caller makes of parts of those of the input. It serves the
    /// search by prefixes alone, since parts have no bands or fingerprints.
    pub fn map_parts(&self, split: u32, cleaner: Cleaner) -> Result<PartMapper> {
        let texts = Texts::new(self.secret);
        let writer = self.outputs.create(split, texts.sections())?;
        let head = Head { secret: self.secret.identity(""), ..Head::default() };
        Ok(PartMapper { cleaner, texts, writer, head })
    }

    /// Maps the splits of this process, except those whose map output exists. Returns the counts and rejects
    /// of all of them.
    ///
    /// # Errors
    /// Those of reading; [`Guarded`](crate::cli::exit::Guarded) when this process meets too many rejects.
    pub(super) fn map(&self, cleaner: Cleaner, mapper: &impl Mapper) -> Result<SearchResult> {
        let limit = RejectLimit::new(self.max_rejects, &self.plan, &self.reading);
        let cleaner = LineCleaner::new(cleaner, self.ignored.clone());
        let mapped = splits::each_split(
            &self.plan,
            &self.group,
            (&self.progress, Stage::Map),
            |at, number, split| {
                let Head { counts, rejects, .. } =
                    self.map_split(at, number, split, (cleaner.clone(), mapper.clone()), &limit)?;
                let records = [(number, counts.docs + rejects.count())].into();
                let [input, reference] = match self.plan.is_reference(number) {
                    true => [SideCounts::default(), counts],
                    false => [counts, SideCounts::default()],
                };
                Ok(SearchResult { rejects, input, reference, records, ..SearchResult::default() })
            },
        )?;
        Ok(SearchResult::join(mapped))
    }

    fn map_split(
        &self,
        at: &StageTimer,
        number: u32,
        split: &Split,
        (mut cleaner, mut mapper): (LineCleaner, impl Mapper),
        limit: &RejectLimit,
    ) -> Result<Head> {
        let secret = self.secret.identity("");
        if let Some(head) = self.outputs.finished::<Head>(number)?.filter(|head| head.secret == secret) {
            // Later readings of the split are compared with these checksums.
            split.restore(&head.sums)?;
            limit.count(&head.rejects)?;
            split.pieces.iter().for_each(|piece| at.done(piece.bytes()));
            return Ok(head);
        }
        let split = &split.noting();
        let mut head = Head { secret, ..Head::default() };
        head.counts.code = cleaner.knows_code().then_some(0);
        let sections = mapper.sections();
        // A night ignores no lines, so what is compared is the whole text.
        let texts_of_state = usize::from(self.night.is_some() && !mapper.stores_texts());
        let mut writer = self.outputs.create(number, sections + texts_of_state)?;
        let mut reader = SplitReader::new(number, split, &self.reading, at);
        while let Some(mut batch) = reader.next()? {
            head.counts.docs += batch.docs().len() as u64;
            head.counts.text_bytes += batch.text_bytes() as u64;
            head.counts.replaced += batch.replaced();
            let mut rejects = Rejects::default();
            for reject in &batch.take_rejects() {
                rejects.add(reject);
                writer.reject(reject)?;
            }
            limit.count(&rejects)?;
            head.rejects.join(rejects);
            for doc in batch.docs() {
                let text = cleaner.clean(doc.text);
                if let Some(code) = &mut head.counts.code {
                    *code += u64::from(is_code(text.whole));
                }
                head.counts.shortened += u64::from(text.compared.len() < text.whole.len());
                let (of_mapper, of_state) = writer.sections().split_at_mut(sections);
                head.counts.without_text += u64::from(!mapper.map(&doc, text, of_mapper));
                of_state.iter_mut().for_each(|section| Texts::put(&doc, text.whole, section));
            }
            writer.write()?;
        }
        head.counts.without_field = reader.without_field().map(|missing| (number, missing));
        head.sums = split.sums();
        writer.finish(&head)?;
        Ok(head)
    }

    /// Reads a section of the map output of this worker's splits, frame by frame.
    pub(super) fn section(
        &self,
        worker: &mut Worker,
        section: usize,
        mut each: impl FnMut(&mut Worker, &[u8]),
    ) -> Result<()> {
        for (number, _) in splits::splits_of(&self.plan, worker.index(), worker.peers()) {
            let (_, output) = self.outputs.open::<Head>(number)?;
            output.read(section, |frame| {
                each(worker, frame);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Returns the number of documents of this worker's splits.
    pub(super) fn docs_of(&self, worker: &Worker) -> Result<u64> {
        let splits = splits::splits_of(&self.plan, worker.index(), worker.peers());
        splits.map(|(number, _)| Ok(self.outputs.open::<Head>(number)?.0.counts.docs)).sum()
    }

    /// Collapses identical documents by their identities, which are the first section of the map output.
    /// Returns those of this worker that are identical to an earlier one.
    pub(super) fn collapse(&self, worker: &mut Worker) -> Result<IdenticalDocs> {
        // One holder for the identities of this worker, and two for those that come to it.
        let budget = self.spill.shared_by(3);
        let mut identities = ExternalSort::new(&budget);
        self.section(worker, 0, |_, frame| identities.extend(records(frame)))?;
        let docs = self.night.as_ref().map(|night| &night.docs);
        let mut earlier = docs.map(|docs| (docs, docs.cursor(StateTable::Identities)));
        let found = |identity| match &mut earlier {
            Some((docs, identities)) => docs.text_of(identities, identity),
            None => Ok(None),
        };
        Ok(IdenticalDocs(collapse(worker, identities, &budget, found)?))
    }

    /// Calls `each` with the documents of this worker's splits that are the first of their text, from the map output. Documents
    /// without text are left out, since they are nobody's duplicates.
    pub(super) fn first_texts(
        &self,
        worker: &mut Worker,
        copies: &IdenticalDocs,
        mut each: impl FnMut(StoredText),
    ) -> Result<()> {
        let mut firsts = copies.walk();
        for (number, _) in splits::splits_of(&self.plan, worker.index(), worker.peers()) {
            self.texts_of(worker, number, |_, text| {
                if !text.text.is_empty() && firsts.is_first(text.doc) {
                    each(text);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Calls `each` with every document of a split and its text, from the map output. Lets the engine work
    /// after each frame.
    ///
    /// # Errors
    /// When the map output has another number of texts than its head says; those of reading and of `each`.
    pub(super) fn texts_of<T>(
        &self,
        worker: &mut Worker,
        number: u32,
        each: impl FnMut(&mut Worker, StoredText) -> Result<T>,
    ) -> Result<()> {
        self.stored_texts(worker, number, Texts::TEXTS, each)
    }

    /// Does the same as [`CorpusSearch::texts_of`] with the section of that number.
    pub(super) fn stored_texts<T>(
        &self,
        worker: &mut Worker,
        number: u32,
        section: usize,
        mut each: impl FnMut(&mut Worker, StoredText) -> Result<T>,
    ) -> Result<()> {
        let (head, output) = self.outputs.open::<Head>(number)?;
        let mut docs = 0;
        output.read(section, |frame| {
            for text in Texts::of(frame) {
                docs += 1;
                each(worker, text)?;
            }
            worker.step();
            Ok(())
        })?;
        if docs != head.counts.docs {
            bail!("the map output of split {number} has {docs} of {} texts", head.counts.docs);
        }
        Ok(())
    }
}
