//! The decisions about the documents of a topic, kept true.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use anyhow::Result;
use operators::flow::{KeyRule, LiveView, ViewChange, ViewRank, WhatIf};
use operators::hash::Identity;
use operators::method::KeptKeys;
use operators::{DocId, Merit, Priority, Reason, Removed, Similarity};
use timely::worker::Worker;

use super::asked_doc::AskedDoc;
use super::crowded_keys::CrowdedKeys;
use super::text_sets::TextSets;
use crate::index_folder::IndexFolder;
use crate::topics::{IndexedDoc, TopicReader};
use crate::view::TopicMatches;
use nightly::Policy;

/// Properties of documents that keep orders compare, by the documents' numbers.
#[derive(Default)]
struct DocMerits {
    /// Numbers of characters.
    chars: Vec<u32>,
    /// Priorities of those that have one. The others have the least.
    priorities: HashMap<DocId, Priority>,
}

/// About how many bytes the priority of a document takes.
const PRIORITY_BYTES: u64 = 32;

/// Decides which documents of a topic stay. Documents come in the order of their numbers.
///
/// **Families.** A document that shares keys with many texts is compared with those alone that stay: it is *led*. So a family of n
/// documents takes n matches, and not their square. While two led documents stay they have been compared, since one of them has asked
/// while the other one stayed. When a document stays again, a led one may have passed it over, so it asks again, of all that stay. The same documents
/// stay as by all matches; a led one that goes may be named after another document that stays than the most similar one.
///
/// Memory: that of [`LiveView`], 6 bytes for each document that has ever come, and 48 MB of [`TextSets`].
pub(super) struct TopicView {
    live: LiveView,
    policy: Policy,
    merits: Rc<RefCell<DocMerits>>,
    /// Whether each document is there.
    is_there: Vec<bool>,
    /// Whether the text of each document goes: it matches another one that stays.
    text_goes: Vec<bool>,
    /// Documents of the group that match an earlier one which stays, by what is known before the group is decided.
    expected_to_go: HashSet<DocId>,
    /// Documents that stay again, and have not asked yet which others match.
    again: BTreeSet<DocId>,
    /// How many of them ask before the next decision, and how many have.
    round: usize,
    asked: usize,
    /// Decisions that have changed and are in no version yet.
    changed: BTreeMap<DocId, ViewChange>,
    /// Number of documents that may have matches which were not looked at.
    pub cut: u64,
    /// Number of documents of which those matches alone are known that decide: those that were led, or have keys.
    pub led: u64,
    /// Sets of texts that were compared lately.
    sets: TextSets,
    crowded: CrowdedKeys,
}

impl TopicView {
    /// Makes a view of no documents. `policy`: which of two matching documents stays. `rule`: finds the matches of documents; `None` if
    /// their texts are compared.
    pub fn new(worker: &mut Worker, policy: Policy, rule: Option<KeyRule>) -> Self {
        let merits = Rc::default();
        let rank = rank_by(&policy, &merits);
        TopicView {
            live: match rule {
                Some(rule) => LiveView::by_keys(worker, rank, rule),
                None => LiveView::new(worker, rank),
            },
            policy,
            merits,
            is_there: Vec::new(),
            text_goes: Vec::new(),
            expected_to_go: HashSet::new(),
            again: BTreeSet::new(),
            round: 1,
            asked: 0,
            changed: BTreeMap::new(),
            cut: 0,
            led: 0,
            sets: TextSets::default(),
            crowded: CrowdedKeys::default(),
        }
    }

    /// Takes over the documents of a topic, with their matches.
    pub fn load(&mut self, found: TopicMatches) {
        for &(doc, chars) in &found.chars {
            self.note(doc, chars);
        }
        self.merits.borrow_mut().priorities.extend(found.priorities);
        self.led = found.led + found.identities.len() as u64;
        for (doc, identity) in found.identities {
            self.live.insert_key(doc, identity);
        }
        for (doc, first) in found.matches.copies {
            self.live.insert(doc, Some(first), []);
        }
        for of_doc in found.matches.pairs.chunk_by(|one, other| one.0.high == other.0.high) {
            let near = of_doc.iter().map(|(pair, similarity)| (pair.low, *similarity));
            self.live.insert(of_doc[0].0.high, None, near);
        }
    }

    /// Notes that a document is there. `chars`: number of characters of its text, since a what-if may ask for the longest.
    fn note(&mut self, doc: DocId, chars: u32) {
        let of_docs = &mut self.merits.borrow_mut().chars;
        let end = of_docs.len().max(doc.0 as usize + 1);
        of_docs.resize(end, 0);
        of_docs[doc.0 as usize] = chars;
        self.is_there.resize(end, false);
        self.text_goes.resize(end, false);
        self.is_there[doc.0 as usize] = true;
    }

    /// Adds a document by its identity; `None` if it matches nothing.
    pub fn add_identity(&mut self, doc: DocId, identity: Option<Identity>, priority: Priority) {
        self.note_priority(doc, priority);
        self.note(doc, 0);
        if let Some(identity) = identity {
            self.live.insert_key(doc, identity);
            self.led += 1;
        }
    }

    fn note_priority(&mut self, doc: DocId, priority: Priority) {
        if priority != Priority::default() {
            self.merits.borrow_mut().priorities.insert(doc, priority);
        }
    }

    /// Adds a document, whose number is higher than those before.
    pub fn add(
        &mut self,
        index: &IndexFolder,
        reader: &mut TopicReader,
        keys: &mut KeptKeys,
        doc: &IndexedDoc,
    ) -> Result<()> {
        let asked = self.ask(index, reader, keys, doc)?;
        let (doc, priority) = (asked.doc, reader.priority(doc.number)?);
        self.note_priority(doc, priority);
        (self.cut, self.led) = (self.cut + u64::from(asked.is_cut), self.led + u64::from(asked.is_led));
        let identical = self.first_there(reader, &asked.equal)?;
        let near = match identical {
            Some(_) => Vec::new(),
            None => self.near(index, reader, &asked)?,
        };
        if !self.policy.reorders()
            && (identical.is_some() || near.iter().any(|(other, _)| self.stays(*other)))
        {
            self.expected_to_go.insert(doc);
        }
        self.live.insert(doc, identical, near);
        self.note(doc, asked.chars);
        Ok(())
    }

    /// Removes a document. Returns whether it was there.
    pub fn remove(&mut self, doc: DocId) -> bool {
        let was_there = self.is_there.get_mut(doc.0 as usize).is_some_and(std::mem::take);
        if was_there {
            self.live.remove(doc);
            self.expected_to_go.remove(&doc);
        }
        was_there
    }

    /// Decides about all that has come, gone and asked again. Afterwards others may have to ask again.
    pub fn decide(&mut self, worker: &mut Worker) {
        let changes = self.live.commit(worker);
        let mut again: BTreeSet<DocId> = std::mem::take(&mut self.expected_to_go).into_iter().collect();
        for change in changes {
            let text_goes = |of: Option<Removed>| matches!(of, Some(Removed { tie: Reason::Similar(_), .. }));
            self.text_goes[change.doc.0 as usize] = text_goes(change.after);
            // A text stays again also if a document that comes makes it the first of two.
            match change.after {
                Some(Removed { tie: Reason::Identical, duplicate_of }) if text_goes(change.before) => {
                    again.insert(duplicate_of);
                    again.remove(&change.doc);
                }
                None => _ = again.insert(change.doc),
                Some(_) => _ = again.remove(&change.doc),
            }
            self.changed.entry(change.doc).or_insert(change).after = change.after;
        }
        if self.led > 0 && !self.live.has_keys() {
            self.again.append(&mut again);
        }
        let mut waiting = std::mem::take(&mut self.again);
        waiting.retain(|doc| self.is_there(*doc) && self.stays(*doc));
        self.again = waiting;
        self.round = if self.asked == 0 { 1 } else { self.round.saturating_mul(2) };
        self.asked = 0;
    }

    /// Returns the next document that must ask again; `None` if there is none before the next decision.
    ///
    /// Those are asked first that stay the longest, one before the first decision, then two, four, and so on: what matches them goes
    /// then, and asks no more.
    pub fn next_to_ask(&mut self) -> Option<DocId> {
        let has_room = self.asked < self.round;
        let next = match self.policy == Policy::Newest {
            _ if !has_room => None,
            true => self.again.pop_last(),
            false => self.again.pop_first(),
        };
        self.asked += usize::from(next.is_some());
        next
    }

    /// Returns the number of changes that are not decided yet.
    pub fn undecided(&self) -> usize {
        self.live.undecided()
    }

    /// Whether all is decided, and nobody must ask again.
    pub fn is_settled(&self) -> bool {
        self.again.is_empty() && self.undecided() == 0
    }

    /// Whether decisions have changed since they were taken.
    pub fn has_changes(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Returns the decisions that have changed since the last call about documents that are there or were, in the order of documents.
    pub fn take_changes(&mut self) -> Vec<ViewChange> {
        let changed = std::mem::take(&mut self.changed).into_values();
        changed.filter(|change| change.before != change.after).collect()
    }

    /// Compares a document that stays again with all that stay.
    pub fn ask_again(
        &mut self,
        index: &IndexFolder,
        reader: &mut TopicReader,
        keys: &mut KeptKeys,
        doc: DocId,
    ) -> Result<()> {
        // One that has gone meanwhile need not be compared.
        if let Some(row) = reader.doc(doc.0)? {
            let asked = self.ask(index, reader, keys, &row)?;
            self.cut += u64::from(asked.is_cut);
            let near = self.near(index, reader, &asked)?;
            self.live.tie(doc, near);
        }
        Ok(())
    }

    /// Begins a what-if of the version of the last commit. Returns it with what it decides.
    /// `least`: matches of which the similarity is less are passed over.
    pub fn what_if(&mut self, least: Option<Similarity>, policy: &Policy) -> (WhatIf, Vec<ViewChange>) {
        self.live.what_if(least, rank_by(policy, &self.merits))
    }

    /// Returns what has changed of a what-if since the last call.
    pub fn follow(&self, what_if: &mut WhatIf) -> Vec<ViewChange> {
        what_if.commit(&self.live)
    }

    /// Returns the number of matches.
    pub fn matches(&self) -> u64 {
        self.live.matches()
    }

    /// Returns about how many bytes it takes.
    pub fn bytes(&self) -> u64 {
        let numbers = self.is_there.len() as u64;
        let priorities = self.merits.borrow().priorities.len() as u64;
        self.live.bytes()
            + 6 * numbers
            + PRIORITY_BYTES * priorities
            + (self.sets.bytes() + self.crowded.bytes()) as u64
    }

    /// Ends the view and frees its memory.
    pub fn end(self, worker: &mut Worker) {
        self.live.end(worker);
    }

    /// Asks the index about a document.
    fn ask(
        &mut self,
        index: &IndexFolder,
        reader: &mut TopicReader,
        keys: &mut KeptKeys,
        doc: &IndexedDoc,
    ) -> Result<AskedDoc> {
        let mut crowded = std::mem::take(&mut self.crowded);
        let asked = AskedDoc::ask(index, reader, (keys, &mut crowded), doc, |text| self.may_stay(text));
        self.crowded = crowded;
        asked
    }

    /// Returns a document of each text that matches, if it is there: of all texts, or of those that stay if the candidates are many.
    fn near(
        &mut self,
        index: &IndexFolder,
        reader: &mut TopicReader,
        asked: &AskedDoc,
    ) -> Result<Vec<(DocId, Option<Similarity>)>> {
        let mut near = Vec::new();
        for candidate in &asked.candidates {
            let other = self.first_there(reader, &[candidate.text])?;
            if let Some(other) = other.filter(|other| !asked.is_led || self.stays(*other)) {
                let matching = asked.similarity(index, reader, &mut self.sets, candidate.text)?;
                near.extend(matching.map(|similarity| (other, Some(similarity))));
            }
        }
        Ok(near)
    }

    /// Returns the first document of some texts that is there. One that the index has and that is not there comes later.
    fn first_there(&self, reader: &mut TopicReader, texts: &[u64]) -> Result<Option<DocId>> {
        let mut numbers = Vec::new();
        for text in texts {
            // A text has the number of the first document that had it.
            match self.is_there(DocId(*text)) {
                true => numbers.push(*text),
                false => reader.docs_of(*text, 1, &mut numbers)?,
            }
        }
        Ok(numbers.into_iter().map(DocId).filter(|doc| self.is_there(*doc)).min())
    }

    fn is_there(&self, doc: DocId) -> bool {
        self.is_there.get(doc.0 as usize).is_some_and(|is_there| *is_there)
    }

    /// Whether a text may stay, by what is known of the first document that had it.
    fn may_stay(&self, text: u64) -> bool {
        !self.is_there(DocId(text)) || self.stays(DocId(text))
    }

    /// Whether the text of a document stays, by what is known.
    fn stays(&self, doc: DocId) -> bool {
        let goes = self.text_goes.get(doc.0 as usize).is_some_and(|goes| *goes);
        !goes && !self.expected_to_go.contains(&doc)
    }
}

/// Returns the keep order of a policy.
fn rank_by(policy: &Policy, merits: &Rc<RefCell<DocMerits>>) -> ViewRank {
    let policy = policy.clone();
    let merits = Rc::clone(merits);
    let merit = move |doc: DocId| {
        let DocMerits { chars, priorities } = &*merits.borrow();
        Merit {
            chars: chars.get(doc.0 as usize).copied().unwrap_or(0).into(),
            priority: priorities.get(&doc).copied().unwrap_or(Priority::LEAST),
        }
    };
    Rc::new(move |doc: DocId| policy.rank(doc, || doc.0, || merit(doc)))
}
