//! The map stage: stores what the later stages need of each document, one map output for each split.

use anyhow::Result;
use operators::search::map_records::StoredText;
use operators::search::prefix::PrefixTexts;
use operators::search::{SearchVisitor, TextSearch};
use operators::text::Cleaner;
use operators::text::cleaned::is_code;
use operators::text::ignored_lines::LineCleaner;
use operators::{Doc, DocBatch, Reject};

use super::corpus_search::{CorpusSearch, SearchResult, SideCounts};
use super::mapped::{Head, Mapped};
use runtime::corpus::run::Run;
use runtime::corpus::split::Split;
use runtime::corpus::splits::{self, SplitReader};
use runtime::output::map_output::MapOutputWriter;
use runtime::output::rejects::{RejectLimit, Rejects};
use runtime::progress::{Stage, StageTimer};

/// Maps the splits of this process. Returns the counts and rejects of all of them, too.
///
/// # Errors
/// Those of reading; [`Guarded`](runtime::cli::exit::Guarded) when this process meets too many rejects.
pub fn map(search: CorpusSearch) -> Result<(Mapped, SearchResult)> {
    let counts = search.method.search.visit(&search.context(), MapSplits { search: &search })?;
    Ok((Mapped::new(search), counts))
}

/// Maps the splits of this process by the search of the method.
struct MapSplits<'a> {
    search: &'a CorpusSearch,
}

impl SearchVisitor for MapSplits<'_> {
    type Output = Result<SearchResult>;

    fn visit<S: TextSearch + Clone>(self, search: S) -> Result<SearchResult> {
        self.search.map_by(&search)
    }
}

impl CorpusSearch {
    /// Begins the map output of a split whose documents the caller makes of parts of those of the input. It serves the
    /// search by prefixes alone, since parts have no bands or fingerprints.
    pub fn map_parts(&self, split: u32) -> Result<PartMapper> {
        let texts = PrefixTexts::new(self.secret);
        let cleaner = self.method.cleaner.clone();
        let writer = self.outputs.create(split, texts.sections())?;
        let head = Head { secret: self.secret.identity(""), ..Head::default() };
        Ok(PartMapper { cleaner, texts, writer, head })
    }

    /// Maps the splits of this process, except those whose map output exists. Returns the counts and rejects
    /// of all of them.
    fn map_by(&self, search: &(impl TextSearch + Clone)) -> Result<SearchResult> {
        let Run { group, plan, reading, progress } = &self.run;
        let limit = RejectLimit::new(self.max_rejects, plan, reading);
        let cleaner = LineCleaner::new(self.method.cleaner.clone(), self.ignored.clone());
        let mapped = splits::each_split(plan, group, (progress, Stage::Map), |at, number, split| {
            let Head { counts, rejects, .. } =
                self.map_split(at, number, split, (cleaner.clone(), search.clone()), &limit)?;
            let records = [(number, counts.docs + rejects.count())].into();
            let [input, reference] = match plan.is_reference(number) {
                true => [SideCounts::default(), counts],
                false => [counts, SideCounts::default()],
            };
            Ok(SearchResult { rejects, input, reference, records, ..SearchResult::default() })
        })?;
        Ok(SearchResult::join(mapped))
    }

    fn map_split(
        &self,
        at: &StageTimer,
        number: u32,
        split: &Split,
        (mut cleaner, mut search): (LineCleaner, impl TextSearch),
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
        let sections = search.sections();
        search.begin_split();
        let of_state = usize::from(self.keeps_texts && !search.stores_texts());
        let mut writer = self.outputs.create(number, sections + of_state)?;
        let mut reader = SplitReader::new(number, split, &self.run.reading, at);
        while let Some(mut batch) = reader.next_batch()? {
            let refused = refuse(&mut batch, &search, reader.path());
            head.counts.docs += batch.docs().len() as u64;
            head.counts.text_bytes += batch.text_bytes() as u64;
            head.counts.replaced += batch.replaced();
            let mut rejects = Rejects::default();
            let mut all = batch.take_rejects();
            all.extend(refused);
            all.sort_by_key(|reject| reject.doc);
            for reject in &all {
                rejects.add(reject);
                writer.reject(reject)?;
            }
            limit.count(&rejects)?;
            head.rejects.join(rejects);
            for doc in batch.docs() {
                head.counts.by_length.add(doc.text.chars().count() as u64);
                let text = cleaner.clean(doc.text);
                if let Some(code) = &mut head.counts.code {
                    *code += u64::from(is_code(text.whole));
                }
                head.counts.shortened += u64::from(text.compared.len() < text.whole.len());
                let (of_mapper, of_state) = writer.sections().split_at_mut(sections);
                head.counts.without_text += u64::from(!search.map(&doc, text, of_mapper));
                // A night ignores no lines, so what is compared is the whole text.
                of_state.iter_mut().for_each(|section| StoredText::put(&doc, text.whole, section));
            }
            writer.write()?;
        }
        head.counts.without_field = reader.without_field().map(|missing| (number, missing));
        head.sums = split.sums();
        writer.finish(&head)?;
        Ok(head)
    }
}

/// Takes the documents out of a batch that a search cannot compare, and returns them as rejects. `path`: that of their file.
fn refuse(batch: &mut DocBatch, search: &impl TextSearch, path: String) -> Vec<Reject> {
    let refused = batch.docs().filter_map(|doc| Some((doc, search.refuses(doc.text)?)));
    let rejects: Vec<Reject> = refused
        .map(|(doc, reason)| Reject {
            doc: doc.doc,
            path: path.clone(),
            offset: doc.doc.record(),
            reason: reason + Reject::BY_RECORD,
            head: doc.text.chars().take(Reject::HEAD_BYTES / 4).collect(),
        })
        .collect();
    if !rejects.is_empty() {
        batch.retain(|doc| rejects.binary_search_by_key(&doc.doc, |reject| reject.doc).is_err());
    }
    rejects
}

/// Map output of a split whose documents are not those of the input but parts of them.
pub struct PartMapper {
    cleaner: Cleaner,
    texts: PrefixTexts,
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
