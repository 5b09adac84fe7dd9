//! The decisions about documents, in keep order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use foldhash::{HashMap, HashMapExt, HashSet};

use super::matches::TieReader;
use super::rows::{Gone, NearRow, Tie, ViewRank};
use crate::decide::Removed;
use crate::record::DocId;
use crate::search::crowds::place::Rank;
use crate::sets::similarity::Similarity;

/// A change of a decision. A document of which none is known stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewChange {
    /// Document that the change is about.
    pub doc: DocId,
    /// Reason why it went before; `None` if it stayed, or was not there.
    pub before: Option<Removed>,
    /// Reason why it goes now; `None` if it stays, or is not there any more.
    pub after: Option<Removed>,
}

/// Matches, classes and documents that have changed, so that they must be decided anew.
#[derive(Clone, Default)]
pub(super) struct Touched {
    /// Documents that begin to match, or match no more: each pair once, by the names of their classes.
    pub pairs: Vec<(u32, u32)>,
    /// Classes of identical documents that get or lose one, by their names.
    pub classes: Vec<u32>,
    /// Documents that go.
    pub went: Vec<u32>,
}

impl Touched {
    /// Takes over what another one has.
    pub fn add(&mut self, other: &Touched) {
        self.pairs.extend(&other.pairs);
        self.classes.extend(&other.classes);
        self.went.extend(&other.went);
    }
}

/// The decisions about all documents, by one threshold and one keep order.
///
/// **Method.** The greedy rule lets a document go if one that comes before it in keep order matches it and stays. So a decision
/// depends on earlier documents alone, and when matches change, the later document of each is decided anew, in keep order; if it goes now
/// and stayed before, or the other way round, those behind it that match it are, too. This stops at documents whose decision has not
/// changed, however large the cluster is: a new link of a chain costs two documents, and a new leaf of a hub one. (The rule is the
/// lexicographically first maximal independent set. Censor-Hillel, Haramaty and Karnin, Optimal Dynamic Distributed MIS, 2016, maintain
/// it so, and show that in a random order a change decides one document in expectation.)
///
/// A class of identical documents is decided as one document, at the place of its best one.
///
/// Memory: some 16 bytes for each document that goes, and 8 for each class whose best document is not its first one.
pub(super) struct Decisions {
    rank: ViewRank,
    /// Matches below do not count.
    least: Option<Similarity>,
    gone: HashMap<u32, Gone>,
    /// The best document in keep order of each class, if it is not the one that names the class.
    best: HashMap<u32, u32>,
}

/// A class of identical documents, and what matches it.
struct SameTexts {
    /// Its documents that are there.
    members: Vec<u32>,
    /// Classes that match it, by their names.
    near: Vec<NearRow>,
}

impl SameTexts {
    /// Reads a class; `None` if the document does not name one.
    fn read(name: u32, reader: &mut TieReader, least: Option<Similarity>) -> Option<Self> {
        let mut near = reader.read(name, &[]);
        let marks = near.partition_point(|(tie, _)| !tie.is_near());
        let is_ghost = near.first().is_some_and(|(tie, _)| *tie == Tie::GHOST);
        let mut members = if is_ghost { Vec::new() } else { vec![name] };
        for (_, copy) in near.drain(..marks).filter(|(tie, _)| *tie == Tie::COPY) {
            if copy < name {
                return None;
            }
            members.push(copy);
        }
        near.retain(|(tie, _)| tie.counts_from(least));
        Some(SameTexts { members, near })
    }
}

/// Classes that are to be decided, the first in keep order first.
type Queue = BinaryHeap<Reverse<(Rank, u32)>>;

impl Decisions {
    /// Makes them for no documents.
    pub fn new(rank: ViewRank, least: Option<Similarity>) -> Self {
        Decisions { rank, least, gone: HashMap::new(), best: HashMap::new() }
    }

    /// Decides about what has changed. Returns the changes, in the order of documents.
    ///
    /// Cost: for each class whose decision must be looked at, its matches.
    pub fn decide(&mut self, reader: &mut TieReader, touched: &Touched) -> Vec<ViewChange> {
        let mut before: HashMap<u32, Option<Gone>> = HashMap::new();
        for &doc in &touched.went {
            if let Some(gone) = self.gone.remove(&doc) {
                before.insert(doc, Some(gone));
            }
        }
        let mut queue = self.begin(reader, touched);
        let mut last = None;
        while let Some(Reverse((_, name))) = queue.pop() {
            if last.replace(name) == Some(name) {
                continue;
            }
            let Some(class) = SameTexts::read(name, reader, self.least) else { continue };
            let (best, place) = (self.best_of(name), self.place_of(name));
            let stayed = !self.gone.contains_key(&best);
            let gone = self.removed(place, &class);
            for doc in class.members {
                let identical = (doc != best).then_some(Gone { duplicate_of: best, tie: Tie::COPY });
                let gone = gone.or(identical);
                let known = match gone {
                    Some(gone) => self.gone.insert(doc, gone),
                    None => self.gone.remove(&doc),
                };
                if known != gone {
                    before.entry(doc).or_insert(known);
                }
            }
            if stayed != gone.is_none() {
                let places = class.near.iter().map(|&(_, other)| (self.place_of(other), other));
                queue.extend(places.filter(|(other, _)| *other > place).map(Reverse));
            }
        }
        let removed = |gone: Option<Gone>| gone.map(Into::into);
        let changes = before.into_iter().map(|(doc, before)| (doc, before, self.gone.get(&doc).copied()));
        let changes = changes.filter(|(_, before, after)| before != after);
        let mut changes: Vec<_> = changes
            .map(|(doc, before, after)| ViewChange {
                doc: DocId(doc.into()),
                before: removed(before),
                after: removed(after),
            })
            .collect();
        changes.sort_unstable_by_key(|change| change.doc);
        changes
    }

    /// Finds the best documents of classes that have changed. Returns the classes that must be decided.
    fn begin(&mut self, reader: &mut TieReader, touched: &Touched) -> Queue {
        let (mut moved, mut queued) = (HashSet::default(), Vec::new());
        for &name in &touched.classes {
            let Some(class) = SameTexts::read(name, reader, self.least) else {
                self.best.remove(&name);
                continue;
            };
            let best = class.members.iter().copied().min_by_key(|doc| self.rank(*doc)).unwrap_or(name);
            if best != self.best_of(name) {
                match best == name {
                    true => _ = self.best.remove(&name),
                    false => _ = self.best.insert(name, best),
                }
                moved.insert(name);
                queued.extend(class.near.iter().map(|(_, other)| *other));
            }
            queued.push(name);
        }
        for &(one, other) in &touched.pairs {
            if moved.contains(&one) || moved.contains(&other) {
                queued.extend([one, other]);
            } else {
                queued.push(if self.place_of(one) < self.place_of(other) { other } else { one });
            }
        }
        // They are ordered by the places that they have now.
        queued.into_iter().map(|name| Reverse((self.place_of(name), name))).collect()
    }

    /// Returns why the documents of a class go, if they do: the most similar earlier class that stays, and of equally similar ones the
    /// first.
    fn removed(&self, place: Rank, class: &SameTexts) -> Option<Gone> {
        let earlier = class.near.iter().map(|&(tie, other)| (tie, self.place_of(other), self.best_of(other)));
        let staying = earlier.filter(|(_, other, best)| *other < place && !self.gone.contains_key(best));
        let most = staying.max_by_key(|&(tie, other, _)| (tie, Reverse(other)))?;
        Some(Gone { duplicate_of: most.2, tie: most.0 })
    }

    fn best_of(&self, name: u32) -> u32 {
        self.best.get(&name).copied().unwrap_or(name)
    }

    fn place_of(&self, name: u32) -> Rank {
        self.rank(self.best_of(name))
    }

    fn rank(&self, doc: u32) -> Rank {
        (self.rank)(DocId(doc.into()))
    }
}
