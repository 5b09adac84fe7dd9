//! A list of documents that compares each query with all of them.

use operators::Similarity;
use operators::method::Method;
use operators::search::MappedText;
use operators::sets::PackedSets;

use super::LIMITS;
use crate::query::{AnsweredMatch, QueryAnswer};

/// Documents in the order in which they came, each compared with every query.
pub(super) struct NaiveList {
    pub method: Method,
    pub docs: Vec<NaiveDoc>,
    /// Whether answers are verified.
    pub texts: bool,
}

pub(super) struct NaiveDoc {
    pub topic: u8,
    pub id: u8,
    pub time: u64,
    pub text: String,
}

impl NaiveList {
    /// Returns the answer to a query: similarity, distance, id and time of each match, in order.
    pub fn query(&mut self, topic: u8, text: &str) -> Vec<(Option<Similarity>, u32, u8, u64)> {
        let text = self.method.cleaner.clean(text).to_owned();
        if text.trim().is_empty() {
            return Vec::new();
        }
        let mut search = self.method.text_search();
        let mapped = MappedText::new(&mut *search, text.as_str().into());
        let sets = self.method.rule.packed(&text);
        let mut found = Vec::new();
        // The first document of a text tells the order of texts that are equally near.
        for (at, doc) in self.docs.iter().enumerate().filter(|(_, doc)| doc.topic == topic) {
            let other = self.method.clone().cleaner.clean(&doc.text).to_owned();
            if other.trim().is_empty() {
                continue;
            }
            let of_other = MappedText::new(&mut *search, other.as_str().into());
            let distance = search.distance(&mapped, &of_other);
            let is_equal = match (distance, self.method.verified) {
                (Some(distance), false) => distance == 0,
                _ => text == other,
            };
            let similarity = match is_equal {
                true => self.method.verified.then_some(Similarity::ONE),
                false if search.are_candidates(&mapped, &of_other) => {
                    let others = self.method.rule.packed(&other);
                    match self.method.rule.matches(PackedSets(&sets), PackedSets(&others)) {
                        _ if !self.texts => None,
                        None => continue,
                        some => some,
                    }
                }
                false => continue,
            };
            found.push((similarity, distance.unwrap_or(0), doc.id, doc.time, at));
        }
        found.sort_by_key(|&(similarity, distance, _, _, at)| (std::cmp::Reverse(similarity), distance, at));
        found
            .into_iter()
            .map(|(similarity, distance, id, time, _)| (similarity, distance, id, time))
            .collect()
    }
}

/// Compares an answer with what a list says.
pub(super) fn assert_answer(
    answer: &QueryAnswer,
    expected: Vec<(Option<Similarity>, u32, u8, u64)>,
    now: u64,
    has_distance: bool,
) {
    assert_eq!(answer.matches.len() + answer.more, expected.len(), "{answer:?} {expected:?}");
    let first = expected.iter().take(LIMITS.matches).map(|(similarity, distance, id, time)| AnsweredMatch {
        id: id.to_string(),
        similarity: similarity.map(Similarity::as_f64),
        distance: has_distance.then_some(*distance),
        age: now - time,
    });
    assert_eq!(answer.matches, first.collect::<Vec<_>>());
}
