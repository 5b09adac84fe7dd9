//! Answers queries: which documents of a topic match a document.

use std::sync::Arc;
use std::time::Instant;
use std::vec;

use anyhow::{Result, bail};
use operators::Similarity;
use operators::sets::PackedSets;
use serde::Serialize;

use super::index_folder::IndexFolder;
use super::topics::{IndexCandidate, IndexedDoc, PreparedDoc, QueryWork, TopicReader};
use runtime::cli::exit::WrongUse;

/// Largest number of documents of matching texts that are counted for one query.
const MOST_COUNTED: usize = 10_000;

/// Limits of the answers to queries.
#[derive(Clone, Copy, Debug)]
pub struct QueryLimits {
    /// Largest number of matches in an answer.
    pub matches: usize,
    /// Largest number of bits in which fingerprints may differ; `None` for that of the method.
    pub within: Option<u32>,
}

/// The answer to a query.
#[derive(Debug, PartialEq, Serialize)]
pub struct QueryAnswer {
    /// Id of the document that was asked about.
    pub id: String,
    /// Documents that match it, the most similar first, and of equally similar ones the oldest.
    pub matches: Vec<AnsweredMatch>,
    /// Number of further matches.
    pub more: usize,
    /// Whether there may be matches that were not looked at, because too many documents resemble this one.
    #[serde(skip_serializing_if = "is_false")]
    pub cut: bool,
    /// Whether matches are candidates whose texts were not compared, because the index keeps none.
    #[serde(skip_serializing_if = "is_false")]
    pub unverified: bool,
    /// Whether the document was added to the index because nothing in it matches; `None` if it was only asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<bool>,
}

impl QueryAnswer {
    /// Decides whether the document is new, because nothing matches it, and notes it in the answer.
    pub fn decide_new(&mut self) -> bool {
        let is_new = self.matches.is_empty() && self.more == 0;
        self.new = Some(is_new);
        is_new
    }
}

/// A document that matches.
#[derive(Debug, PartialEq, Serialize)]
pub struct AnsweredMatch {
    /// Id of the document.
    pub id: String,
    /// Similarity of the texts, from 0 to 1; `None` if they were not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f64>,
    /// Number of bits in which the fingerprints differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance: Option<u32>,
    /// Time since the document was added, in seconds.
    pub age: u64,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// A text that matches, in the order of answers.
pub(super) struct MatchingText {
    pub similarity: Option<Similarity>,
    distance: u32,
    text: u64,
}

/// Queries about documents of one topic, which are answered one after the other. Whoever shares the index answers them for a
/// while at a time, so that changes are made in between:
///
/// ```text
/// query    candidates 0 to 299 | candidates 300 to 611 | ...
/// change                       | insert                |
/// ```
pub(super) struct Queries {
    limits: QueryLimits,
    /// Seconds since 1970.
    now: u64,
    /// Whether the writer asks. The writer sees documents that are not durable yet.
    of_writer: bool,
    /// Answers to the first queries.
    pub answers: Vec<QueryAnswer>,
    /// The query behind them, if it has begun.
    begun: Option<BegunQuery>,
}

/// A query whose candidates are being compared.
struct BegunQuery {
    answer: QueryAnswer,
    sets: Vec<u64>,
    candidates: vec::IntoIter<IndexCandidate>,
    texts: Vec<MatchingText>,
    /// Numbering of the topic by which candidates and texts are named.
    numbering: Arc<()>,
}

impl Queries {
    /// Makes queries of which none is answered. `now`: seconds since 1970.
    pub fn new(limits: QueryLimits, now: u64) -> Self {
        Queries { limits, now, of_writer: false, answers: Vec::new(), begun: None }
    }

    /// Makes queries of the writer, who sees documents that are not durable yet.
    pub fn of_writer(limits: QueryLimits, now: u64) -> Self {
        Queries { of_writer: true, ..Queries::new(limits, now) }
    }
}

fn is_over(pause: Option<Instant>) -> bool {
    pause.is_some_and(|pause| Instant::now() >= pause)
}

impl IndexFolder {
    /// Returns an error if the fingerprints of a method that has none are to be near.
    ///
    /// # Errors
    /// [`WrongUse`].
    pub fn check_limits(&self, limits: QueryLimits) -> Result<()> {
        if limits.within.is_some() && self.keys.distance().is_none() {
            bail!(WrongUse(format!(
                "--within is for fingerprints, which {} does not have",
                self.settings.method
            )));
        }
        Ok(())
    }

    /// Finds the documents of a topic that match a document. `now`: seconds since 1970.
    ///
    /// Cost: for each key and segment a seek, and the keys that it meets; for each candidate the reading of its text, and a
    /// pass over its features.
    ///
    /// # Errors
    /// Those of the store, and [`cluster::Error::Damaged`].
    pub fn query(
        &self,
        topic: &str,
        doc: &PreparedDoc,
        limits: QueryLimits,
        now: u64,
    ) -> Result<QueryAnswer> {
        self.query_all(topic, std::slice::from_ref(doc), limits, now).map(|mut answers| answers.remove(0))
    }

    /// Answers for several documents, which costs less for each of them.
    pub fn query_all(
        &self,
        topic: &str,
        docs: &[PreparedDoc],
        limits: QueryLimits,
        now: u64,
    ) -> Result<Vec<QueryAnswer>> {
        let mut queries = Queries::new(limits, now);
        self.answer_until(topic, docs, &mut queries, None)?;
        Ok(queries.answers)
    }

    /// Goes on answering queries about documents. Returns whether all are answered; those behind `pause` wait for the next
    /// call. A candidate at least is compared in each call.
    pub(super) fn answer_until(
        &self,
        topic: &str,
        docs: &[PreparedDoc],
        queries: &mut Queries,
        pause: Option<Instant>,
    ) -> Result<bool> {
        let begin = if queries.of_writer { TopicReader::of_writer } else { TopicReader::new };
        let mut reader = self.topic(topic).map(begin).transpose()?;
        while let Some(doc) = docs.get(queries.answers.len()) {
            let Some(answer) = self.query_by(reader.as_mut(), doc, queries, pause)? else {
                return Ok(false);
            };
            queries.answers.push(answer);
            if is_over(pause) {
                break;
            }
        }
        Ok(queries.answers.len() == docs.len())
    }

    /// Answers for several documents, and returns what was looked at for that.
    pub(super) fn query_work(
        &self,
        topic: &str,
        docs: &[PreparedDoc],
        limits: QueryLimits,
        now: u64,
    ) -> Result<QueryWork> {
        let Some(mut reader) = self.topic(topic).map(TopicReader::new).transpose()? else {
            return Ok(QueryWork::default());
        };
        let mut queries = Queries::new(limits, now);
        docs.iter()
            .try_for_each(|doc| self.query_by(Some(&mut reader), doc, &mut queries, None).map(|_| ()))?;
        Ok(reader.work())
    }

    /// Adds a document to a topic if nothing in the topic matches it. Returns the answer to the query before that.
    pub fn query_and_insert(
        &mut self,
        topic: &str,
        doc: &PreparedDoc,
        limits: QueryLimits,
        now: u64,
    ) -> Result<QueryAnswer> {
        let mut answer = self.query(topic, doc, limits, now)?;
        if answer.decide_new() {
            self.insert(topic, doc, now)?;
        }
        Ok(answer)
    }

    /// Goes on with a query, or begins it. Returns its answer; `None` if there is none at `pause`.
    fn query_by(
        &self,
        reader: Option<&mut TopicReader>,
        doc: &PreparedDoc,
        queries: &mut Queries,
        pause: Option<Instant>,
    ) -> Result<Option<QueryAnswer>> {
        let Some(reader) = reader.filter(|_| !doc.keys.is_empty) else {
            return Ok(Some(self.without_matches(doc)));
        };
        let is_valid = |begun: &BegunQuery| Arc::ptr_eq(&begun.numbering, &reader.topic().numbering);
        let mut begun = match queries.begun.take().filter(is_valid) {
            Some(begun) => begun,
            None => self.begin_query(reader, doc, queries.limits)?,
        };
        while let Some(candidate) = begun.candidates.next() {
            if let Some(text) = self.matching_text(reader, &begun.sets, candidate)? {
                begun.texts.push(text);
            }
            if is_over(pause) {
                queries.begun = Some(begun);
                return Ok(None);
            }
        }
        let BegunQuery { mut answer, mut texts, .. } = begun;
        texts.sort_unstable_by_key(|of| (std::cmp::Reverse(of.similarity), of.distance, of.text));
        self.answer(&mut answer, reader, texts, queries.limits, queries.now)?;
        Ok(Some(answer))
    }

    fn without_matches(&self, doc: &PreparedDoc) -> QueryAnswer {
        QueryAnswer {
            id: doc.id.clone(),
            matches: Vec::new(),
            more: 0,
            cut: false,
            unverified: self.is_unverified(),
            new: None,
        }
    }

    /// Whether matches are candidates whose texts are not compared, because the index keeps none.
    pub(super) fn is_unverified(&self) -> bool {
        !self.settings.texts && self.keys.has_keys()
    }

    /// Whether texts are compared.
    fn compares(&self) -> bool {
        self.settings.texts && self.method.verified
    }

    /// Finds the candidates of a query.
    fn begin_query(
        &self,
        reader: &mut TopicReader,
        doc: &PreparedDoc,
        limits: QueryLimits,
    ) -> Result<BegunQuery> {
        let (candidates, cut) = reader.candidates(&doc.keys, &self.keys, limits.within)?;
        Ok(BegunQuery {
            answer: QueryAnswer { cut, ..self.without_matches(doc) },
            sets: self.sets_of(&doc.text),
            candidates: candidates.into_iter(),
            texts: Vec::new(),
            numbering: Arc::clone(&reader.topic().numbering),
        })
    }

    /// Returns the sets by which a text is compared.
    pub(super) fn sets_of(&self, text: &str) -> Vec<u64> {
        if self.compares() { self.method.rule.packed(text) } else { Vec::new() }
    }

    /// Compares a candidate; `None` if it does not match. `sets`: those of the text that is asked about.
    pub(super) fn matching_text(
        &self,
        reader: &mut TopicReader,
        sets: &[u64],
        candidate: IndexCandidate,
    ) -> Result<Option<MatchingText>> {
        let similarity = match candidate.is_equal {
            true => self.method.verified.then_some(Similarity::ONE),
            false if self.compares() => {
                let other = self.method.rule.packed(&reader.text(candidate.text)?);
                let Some(similarity) = self.method.rule.matches(PackedSets(sets), PackedSets(&other)) else {
                    return Ok(None);
                };
                Some(similarity)
            }
            false => None,
        };
        Ok(Some(MatchingText { similarity, distance: candidate.distance, text: candidate.text }))
    }

    /// Fills in the matches of an answer. `texts`: the texts that match, in the order of the answer.
    fn answer(
        &self,
        answer: &mut QueryAnswer,
        reader: &mut TopicReader,
        texts: Vec<MatchingText>,
        limits: QueryLimits,
        now: u64,
    ) -> Result<()> {
        let nearness = |of: &MatchingText| (of.similarity, of.distance);
        let mut counted = 0;
        for equally_near in texts.chunk_by(|one, other| nearness(one) == nearness(other)) {
            let mut numbers = Vec::new();
            for of in equally_near {
                reader.docs_of(of.text, MOST_COUNTED - counted - numbers.len(), &mut numbers)?;
            }
            // A later document may have an earlier text.
            numbers.sort_unstable();
            counted += numbers.len();
            let (similarity, distance) = nearness(&equally_near[0]);
            for number in numbers {
                if answer.matches.len() == limits.matches {
                    answer.more += 1;
                    continue;
                }
                let Some(IndexedDoc { id, time, .. }) = reader.doc(number)? else { continue };
                answer.matches.push(AnsweredMatch {
                    id,
                    similarity: similarity.map(Similarity::as_f64),
                    distance: self.keys.distance().map(|_| distance),
                    age: now.saturating_sub(time),
                });
            }
            if counted == MOST_COUNTED {
                answer.cut = true;
                break;
            }
        }
        Ok(())
    }
}
