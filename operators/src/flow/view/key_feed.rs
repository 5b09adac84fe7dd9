//! Documents that come with keys, whose matches the dataflow finds.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use differential_dataflow::VecCollection;
use differential_dataflow::input::InputSession;
use timely::dataflow::Scope;

use super::decide::{Touched, ViewChange};
use super::matches::{NoteTie, TieRows};
use super::rows::{Tie, ViewRank, ViewTime, number};
use crate::hash::Identity;
use crate::method::{KeptKeys, KeyOfPass};
use crate::record::DocId;
use crate::search::crowds::place::Rank;
use crate::sets::similarity::Similarity;

/// The keys by which documents match if their texts are not known: fingerprints of 64 bits, or hashes of equal
/// texts.
#[derive(Clone)]
pub struct KeyRule {
    /// Makes the keys of fingerprints; `None` if only equal texts match.
    fingerprints: Option<KeptKeys>,
    /// Largest number of bits in which the fingerprints of a match differ.
    distance: u32,
}

impl KeyRule {
    /// Takes the keys of a method; `None` if documents do not match by fingerprints of 64 bits or equal texts alone.
    pub fn of(keys: &KeptKeys) -> Option<Self> {
        if !keys.has_keys() {
            return Some(KeyRule { fingerprints: None, distance: 0 });
        }
        keys.of_fingerprint(0)?;
        Some(KeyRule { fingerprints: Some(keys.clone()), distance: keys.distance()? })
    }

    /// Returns the keys of a document. Two documents that match have at least one key in common.
    fn keys(&self, (identity, fingerprint): Identity) -> Vec<u64> {
        let Some(keys) = &self.fingerprints else { return vec![identity] };
        let key = |KeyOfPass { pass, key, .. }| {
            let first = (keys.range(pass, key).0 >> 64) as u64;
            first ^ crate::hash::spread(u64::from(pass) + 1)
        };
        keys.of_fingerprint(fingerprint).into_iter().flat_map(|of| of.keys).map(key).collect()
    }

    /// Returns the tie of documents that match.
    fn tie(&self) -> Tie {
        Tie::near(self.fingerprints.is_none().then_some(Similarity::ONE))
    }
}

/// Rows of documents: the number and the identity.
type DocRows = InputSession<ViewTime, (u32, Identity), i32>;
/// Rows by key: the number of a document and its fingerprint, or the second half of its identity, as two words, so that a row has 12
/// bytes.
type KeyRows<'s> = VecCollection<'s, ViewTime, (u64, (u32, [u32; 2])), i32>;

/// The keys of documents, which the dataflow joins.
///
/// ```text
/// all documents -- keys ---\
///                           same key, fingerprints within the distance -> matches
/// those that stay -- keys -/
/// ```
///
/// **A document is compared with those that stay.** The number of pairs of a family is the square of its size, and the greedy rule needs
/// only pairs of which one document stays. A document that comes joins those that stay, if it stays by its matches with them. One that goes
/// later is taken out, and one that stays again joins again. Documents join one by one, then two, four and so on at a time, in keep order:
/// those that match them go meanwhile. When all that stay have joined, the matches of each are known, so the decisions are the same as by
/// all matches.
///
/// Memory: 24 bytes for each number of a document, and two rows for each key.
pub(super) struct KeyFeed {
    all: DocRows,
    staying: DocRows,
    rule: KeyRule,
    rank: ViewRank,
    docs: Vec<KeyedDoc>,
    /// Documents that are to join, and some that are not any more.
    waiting: BinaryHeap<Reverse<(Rank, u32)>>,
    /// Number of documents that joined last, at most.
    round: usize,
    /// Number of documents that have come or gone and that the dataflow has not taken.
    changed: usize,
    /// Number of documents that are there.
    count: u64,
    /// Number of matches, several times where documents have several keys in common.
    matches: Rc<Cell<i64>>,
    /// Pairs that begin to match, or match no more.
    found: Rc<RefCell<Vec<(u32, u32)>>>,
    went: Vec<u32>,
}

/// A document.
#[derive(Clone, Copy, Default)]
struct KeyedDoc {
    identity: Identity,
    is_there: bool,
    /// Whether it is to join those that stay.
    is_waiting: bool,
    /// Whether it is among those that stay.
    has_joined: bool,
}

impl KeyFeed {
    /// Makes a feed of no documents.
    pub fn new(rule: KeyRule, rank: ViewRank) -> Self {
        KeyFeed {
            all: InputSession::new(),
            staying: InputSession::new(),
            rule,
            rank,
            docs: Vec::new(),
            waiting: BinaryHeap::new(),
            round: 0,
            changed: 0,
            count: 0,
            matches: Rc::default(),
            found: Rc::default(),
            went: Vec::new(),
        }
    }

    /// Makes the rows of a view.
    pub fn rows<'s>(&mut self, scope: Scope<'s, ViewTime>) -> TieRows<'s> {
        let by_key = |input: &mut DocRows, rule: KeyRule| -> KeyRows<'s> {
            let docs = input.to_collection(scope);
            docs.flat_map(move |(doc, identity)| {
                let fingerprint = [identity.1 as u32, (identity.1 >> 32) as u32];
                rule.keys(identity).into_iter().map(move |key| (key, (doc, fingerprint)))
            })
        };
        let all = by_key(&mut self.all, self.rule.clone()).arrange_by_key_named("documents by key");
        let staying =
            by_key(&mut self.staying, self.rule.clone()).arrange_by_key_named("staying documents by key");
        let tie = self.rule.tie();
        let distance = self.rule.distance;
        all.join_core(staying, move |_, &(one, [low, high]), &(other, [other_low, other_high])| {
            let apart = (low ^ other_low).count_ones() + (high ^ other_high).count_ones();
            let matches = one != other && apart <= distance;
            [(one, (tie, other)), (other, (tie, one))].into_iter().filter(move |_| matches)
        })
    }

    /// Returns what notes the pairs that begin to match, or match no more.
    pub fn note(&self) -> NoteTie {
        let (found, matches) = (Rc::clone(&self.found), Rc::clone(&self.matches));
        Box::new(move |one, (_, other), count| {
            if one < other {
                found.borrow_mut().push((one, other));
                matches.set(matches.get() + i64::from(count));
            }
        })
    }

    /// Returns the number of documents that have come or gone and that the dataflow has not taken.
    pub fn undecided(&self) -> usize {
        self.changed
    }

    /// Returns the number of documents that are there.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of matches, several times where documents have several keys in common.
    pub fn matches(&self) -> u64 {
        self.matches.get().max(0) as u64
    }

    /// Adds a document, as [`LiveView::insert_key`](super::LiveView::insert_key) says.
    pub fn insert(&mut self, doc: DocId, identity: Identity) {
        let number = number(doc);
        let at = doc.0 as usize;
        if at >= self.docs.len() {
            self.docs.resize(at + 1, KeyedDoc::default());
        }
        self.docs[at] = KeyedDoc { identity, is_there: true, is_waiting: true, has_joined: false };
        self.all.update((number, identity), 1);
        (self.changed, self.count) = (self.changed + 1, self.count + 1);
        self.waiting.push(Reverse(((self.rank)(doc), number)));
    }

    /// Removes a document. Nothing happens if it is not there.
    pub fn remove(&mut self, doc: DocId) {
        let Some(of) = self.docs.get_mut(doc.0 as usize).filter(|of| of.is_there) else { return };
        let KeyedDoc { identity, has_joined, .. } = std::mem::take(of);
        self.all.update((number(doc), identity), -1);
        if has_joined {
            self.staying.update((number(doc), identity), -1);
        }
        self.went.push(number(doc));
        (self.changed, self.count) = (self.changed + 1, self.count - 1);
    }

    /// Lets documents that wait join those that stay, as many as the round has, and gives all changes to the dataflow, which takes
    /// them as those of a time.
    pub fn flush(&mut self, time: ViewTime) {
        // New documents are compared with those that stay before any of them joins, so most copies never join.
        self.round = if std::mem::take(&mut self.changed) > 0 { 0 } else { (2 * self.round).max(1) };
        let mut room = self.round;
        while room > 0
            && let Some(Reverse((_, number))) = self.waiting.pop()
        {
            let of = &mut self.docs[number as usize];
            if of.is_waiting {
                (of.is_waiting, of.has_joined) = (false, true);
                self.staying.update((number, of.identity), 1);
                room -= 1;
            }
        }
        if self.waiting.is_empty() {
            self.waiting.shrink_to_fit();
        }
        for input in [&mut self.all, &mut self.staying] {
            input.advance_to(time + 1);
            input.flush();
        }
    }

    /// Whether the dataflow must take changes before all is decided.
    pub fn has_changes(&mut self) -> bool {
        while self.waiting.peek().is_some_and(|Reverse((_, number))| !self.docs[*number as usize].is_waiting)
        {
            self.waiting.pop();
        }
        self.changed > 0 || !self.waiting.is_empty()
    }

    /// Returns what the changes have touched that the dataflow has taken.
    pub fn touched(&mut self) -> Touched {
        let pairs = std::mem::take(&mut *self.found.borrow_mut());
        Touched { pairs, classes: Vec::new(), went: std::mem::take(&mut self.went) }
    }

    /// Takes over decisions.
    pub fn follow(&mut self, changes: &[ViewChange]) {
        for ViewChange { doc, after, .. } in changes {
            let of = &mut self.docs[doc.0 as usize];
            match after {
                Some(_) => {
                    of.is_waiting = false;
                    if std::mem::take(&mut of.has_joined) {
                        self.staying.update((number(*doc), of.identity), -1);
                    }
                }
                None if of.is_there && !of.has_joined && !of.is_waiting => {
                    of.is_waiting = true;
                    self.waiting.push(Reverse(((self.rank)(*doc), number(*doc))));
                }
                None => {}
            }
        }
    }
}
