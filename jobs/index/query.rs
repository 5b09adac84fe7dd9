//! Answers queries: which documents of a topic match a document.

use anyhow::{Result, bail};
use operators::Similarity;
use operators::sets::PackedSets;
use serde::Serialize;

use super::index_folder::IndexFolder;
use super::topics::{IndexedDoc, PreparedDoc, QueryWork, TopicReader};
use crate::cli::exit::WrongUse;

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
struct MatchingText {
    similarity: Option<Similarity>,
    distance: u32,
    text: u64,
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
        let mut reader = self.topic(topic).map(TopicReader::new).transpose()?;
        docs.iter().map(|doc| self.query_by(reader.as_mut(), doc, limits, now)).collect()
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
        docs.iter().try_for_each(|doc| self.query_by(Some(&mut reader), doc, limits, now).map(|_| ()))?;
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

    fn query_by(
        &self,
        reader: Option<&mut TopicReader>,
        doc: &PreparedDoc,
        limits: QueryLimits,
        now: u64,
    ) -> Result<QueryAnswer> {
        let mut answer = QueryAnswer {
            id: doc.id.clone(),
            matches: Vec::new(),
            more: 0,
            cut: false,
            unverified: !self.settings.texts && self.keys.has_keys(),
            new: None,
        };
        let Some(reader) = reader else { return Ok(answer) };
        let (candidates, is_cut) = reader.candidates(&doc.keys, &self.keys, limits.within)?;
        answer.cut = is_cut;
        let compares = self.settings.texts && self.method.verified;
        let sets = if compares { self.method.rule.packed(&doc.text) } else { Vec::new() };
        let mut texts = Vec::new();
        for candidate in candidates {
            let similarity = match candidate.is_equal {
                true => self.method.verified.then_some(Similarity::ONE),
                false if compares => {
                    let other = self.method.rule.packed(&reader.text(candidate.text)?);
                    let Some(similarity) = self.method.rule.matches(PackedSets(&sets), PackedSets(&other))
                    else {
                        continue;
                    };
                    Some(similarity)
                }
                false => None,
            };
            texts.push(MatchingText { similarity, distance: candidate.distance, text: candidate.text });
        }
        texts.sort_unstable_by_key(|of| (std::cmp::Reverse(of.similarity), of.distance, of.text));
        self.answer(&mut answer, reader, texts, limits, now)?;
        Ok(answer)
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
