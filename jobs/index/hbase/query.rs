//! Answers queries.

use anyhow::Result;

use super::layout::{DocState, HBaseDoc, fingerprint_of};
use super::meeting::{NearDoc, NearDocs};
use super::settings_row::HBaseIndex;
use crate::query::{AnsweredMatch, QueryAnswer, QueryLimits};
use crate::topics::PreparedDoc;

impl HBaseIndex {
    /// Finds the documents of a topic that match each of some documents. `now`: milliseconds since 1970. Cost: see
    /// [`HBaseIndex::near`].
    ///
    /// # Errors
    /// Those of the table.
    pub fn query(
        &self,
        topic: &str,
        docs: &[PreparedDoc],
        limits: QueryLimits,
        now: u64,
    ) -> Result<Vec<QueryAnswer>> {
        let fingerprints: Vec<u64> = docs.iter().map(fingerprint_of).collect();
        let mut near = self.near(topic, &fingerprints, self.within(limits))?;
        forget_of_empty(&mut near, docs.iter());
        let answer = |(doc, NearDocs { docs: near, cut }): (&PreparedDoc, NearDocs)| {
            let kept = near.into_iter().filter(|of| of.state == DocState::Kept);
            let kept: Vec<_> = kept.map(|NearDoc { distance, doc, .. }| (distance, doc)).collect();
            answer_of(&doc.id, &kept, cut, limits, now)
        };
        Ok(docs.iter().zip(near).map(answer).collect())
    }

    /// Returns the largest distance of a match.
    pub fn within(&self, limits: QueryLimits) -> u32 {
        limits.within.map_or(self.distance, |within| within.min(self.distance))
    }
}

/// Forgets what is near the fingerprints of documents without text, which match nothing.
pub(super) fn forget_of_empty<'a>(near: &mut [NearDocs], docs: impl Iterator<Item = &'a PreparedDoc>) {
    let of_empty = near.iter_mut().zip(docs).filter(|(_, doc)| doc.keys.is_empty);
    of_empty.for_each(|(near, _)| *near = NearDocs::default());
}

/// Makes an answer. `matches`: all of them with their distances, in the order of the answer.
pub(super) fn answer_of(
    id: &str,
    matches: &[(u32, HBaseDoc)],
    cut: bool,
    limits: QueryLimits,
    now: u64,
) -> QueryAnswer {
    let answered = matches.iter().take(limits.matches).map(|(distance, doc)| AnsweredMatch {
        id: doc.id.clone(),
        similarity: None,
        distance: Some(*distance),
        age: now.saturating_sub(doc.time) / 1000,
    });
    QueryAnswer {
        id: id.to_owned(),
        matches: answered.collect(),
        more: matches.len().saturating_sub(limits.matches),
        cut,
        unverified: true,
        new: None,
    }
}
