//! Adding documents that nothing matches, while other processes do the same.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::layout::{DocState, DocToken, HBaseDoc};
use super::meeting::{NearDoc, NearDocs};
use super::query::{answer_of, forget_of_empty};
use super::settings_row::HBaseIndex;
use crate::query::{QueryAnswer, QueryLimits};
use crate::topics::PreparedDoc;
use runtime::corpus::at_once::each;

/// Time that earlier documents have to be decided, from when a group has found them. Their process may be dead.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause between two looks at a document that is not decided.
const PAUSE: Duration = Duration::from_millis(20);
/// Number of times that a document is put again because another process has given it up.
const ATTEMPTS: usize = 20;
/// Number of documents whose states are changed at the same time.
const CHANGES_AT_ONCE: usize = 8;

/// Outcome for a document of a group.
enum Decision {
    /// Nothing matches it, and it is in the index.
    New,
    /// These documents match it, and it is to be removed.
    Known(Vec<(u32, HBaseDoc)>),
    /// Another process has given it up, so it must be put again.
    GivenUp,
}

/// A document of a group.
struct Contender<'a> {
    prepared: &'a PreparedDoc,
    doc: HBaseDoc,
}

impl HBaseIndex {
    /// Adds each document of a group that nothing in the topic matches, neither what was there nor an earlier document
    /// of the group. Returns the answers to the queries before that. `now`: milliseconds since 1970.
    ///
    /// All documents are put as pending first, and looked for then. So of two that match, at least one sees the other,
    /// whatever the clocks of their processes say. The one that sees must have the other decided before it becomes new:
    ///
    /// ```text
    /// the other is     it
    /// kept             is known, and is removed
    /// pending, later   gives the other up: its process puts it again, and will see this one
    /// pending, earlier waits until the other is decided; gives it up after 10 s, since its process may be dead
    /// ```
    ///
    /// To give a document up and to keep it are changes of one cell of its id row that exclude each other, in HBase. A
    /// document waits for earlier ones alone, so that no two wait for each other.
    ///
    /// Cost: that of the insertion and of the query, and a request for each document that is kept, eight at a time.
    ///
    /// # Errors
    /// Those of the table. Documents may be pending then, which no query sees, and kept ones may not have been answered.
    pub fn query_and_insert(
        &mut self,
        topic: &str,
        docs: &[PreparedDoc],
        limits: QueryLimits,
        now: u64,
    ) -> Result<Vec<QueryAnswer>> {
        let mut answers: Vec<Option<QueryAnswer>> = docs.iter().map(|_| None).collect();
        let mut left: Vec<usize> = (0..docs.len()).collect();
        let mut contenders: Vec<Contender> = docs
            .iter()
            .map(|prepared| Contender { prepared, doc: self.stamps.stamp(prepared, now) })
            .collect();
        for _ in 0..ATTEMPTS {
            let (decisions, cuts) = self.decide(topic, &contenders, self.within(limits))?;
            let mut again = Vec::new();
            let mut again_at = Vec::new();
            for (((decision, cut), contender), at) in
                decisions.into_iter().zip(cuts).zip(contenders).zip(left)
            {
                let (matches, is_new) = match decision {
                    Decision::New => (Vec::new(), true),
                    Decision::Known(matches) => (matches, false),
                    Decision::GivenUp => {
                        // A deletion hides a cell that is put later with the same token.
                        let doc = HBaseDoc { token: self.stamps.token(), ..contender.doc };
                        again.push(Contender { doc, ..contender });
                        again_at.push(at);
                        continue;
                    }
                };
                let mut answer = answer_of(&contender.prepared.id, &matches, cut, limits, now);
                answer.new = Some(is_new);
                answers[at] = Some(answer);
            }
            (contenders, left) = (again, again_at);
            if contenders.is_empty() {
                return answers.into_iter().collect::<Option<_>>().context("a document has no answer");
            }
        }
        bail!("other processes have given up {} documents {ATTEMPTS} times", contenders.len())
    }

    /// Puts documents, decides each of them in order, and removes those that are not kept. Returns with each decision
    /// whether there may be matches that were not looked at.
    fn decide(
        &self,
        topic: &str,
        contenders: &[Contender],
        within: u32,
    ) -> Result<(Vec<Decision>, Vec<bool>)> {
        let docs: Vec<HBaseDoc> = contenders.iter().map(|of| of.doc.clone()).collect();
        self.put(topic, &docs, DocState::Pending)?;
        let fingerprints: Vec<u64> = docs.iter().map(|doc| doc.fingerprint).collect();
        let mut near = self.near(topic, &fingerprints, within)?;
        forget_of_empty(&mut near, contenders.iter().map(|of| of.prepared));
        let found = Instant::now();
        let places: HashMap<DocToken, usize> =
            docs.iter().enumerate().map(|(at, doc)| (doc.token, at)).collect();
        let alone: Vec<usize> =
            (0..docs.len()).filter(|&at| near[at].docs.iter().all(|of| of.doc == docs[at])).collect();
        let mut decisions: Vec<Option<Decision>> = docs.iter().map(|_| None).collect();
        let kept = each(CHANGES_AT_ONCE, &alone, |&at| self.keep(topic, &docs[at]))?;
        for (&at, decision) in alone.iter().zip(kept) {
            decisions[at] = Some(decision);
        }
        for at in 0..docs.len() {
            if decisions[at].is_none() {
                let decision = self.decide_one(topic, &docs[at], &near[at].docs, found, |doc| {
                    // Later documents of the same group see this one as decided.
                    let place = places.get(&doc.token)?;
                    Some(matches!(decisions[*place], Some(Decision::New)))
                })?;
                decisions[at] = Some(decision);
            }
        }
        let decisions: Option<Vec<Decision>> = decisions.into_iter().collect();
        let decisions = decisions.context("a document is not decided")?;
        let is_lost = |decision: &Decision| !matches!(decision, Decision::New);
        let lost = docs.into_iter().zip(&decisions).filter(|(_, decision)| is_lost(decision));
        self.remove(topic, &lost.map(|(doc, _)| doc).collect::<Vec<_>>())?;
        let cuts = near.iter().map(|NearDocs { cut, .. }| *cut).collect();
        Ok((decisions, cuts))
    }

    fn keep(&self, topic: &str, doc: &HBaseDoc) -> Result<Decision> {
        let [pending, kept] = [DocState::Pending, DocState::Kept].map(|state| doc.id_cell(topic, state));
        Ok(if self.table.replace(&pending, &kept)? { Decision::New } else { Decision::GivenUp })
    }

    /// Decides a document. `near`: all that is near it, found at `found`. `of_group`: whether a document of the group is
    /// kept; `None` for one of another process.
    fn decide_one(
        &self,
        topic: &str,
        doc: &HBaseDoc,
        near: &[NearDoc],
        found: Instant,
        of_group: impl Fn(&HBaseDoc) -> Option<bool>,
    ) -> Result<Decision> {
        let (mut matches, mut pending) = (Vec::new(), Vec::new());
        for NearDoc { distance, doc: other, state } in near {
            match (of_group(other), state) {
                (Some(true), _) | (None, DocState::Kept) => matches.push((*distance, other.clone())),
                (Some(false), _) => {}
                (None, DocState::Pending) => pending.push((*distance, other.clone())),
            }
        }
        if matches.is_empty() {
            for (distance, other) in pending {
                let patience = if other < *doc { PATIENCE } else { Duration::ZERO };
                if self.is_kept_at_last(topic, &other, found + patience)? {
                    matches.push((distance, other));
                }
            }
        }
        if matches.is_empty() { self.keep(topic, doc) } else { Ok(Decision::Known(matches)) }
    }

    /// Waits until a pending document is decided, and gives it up at `end`. Returns whether it is kept.
    fn is_kept_at_last(&self, topic: &str, doc: &HBaseDoc, end: Instant) -> Result<bool> {
        while Instant::now() < end {
            match self.states(topic, std::slice::from_ref(doc))?[..] {
                [Some(DocState::Pending)] => thread::sleep(PAUSE),
                [Some(DocState::Kept)] => return Ok(true),
                _ => return Ok(false),
            }
        }
        if self.table.delete_if_present(&doc.id_cell(topic, DocState::Pending))? {
            self.forget(topic, std::slice::from_ref(doc))?;
            return Ok(false);
        }
        let state = self.states(topic, std::slice::from_ref(doc))?;
        Ok(state == [Some(DocState::Kept)])
    }
}
