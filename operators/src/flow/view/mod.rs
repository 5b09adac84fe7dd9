//! A live view: which documents stay while documents come and go, kept true by differential dataflow.
//!
//! ```text
//! match_feed: documents with matches --------\
//! key_feed:   documents with keys -> joined ---> matches: arranged by document -> decide -> changes of a version
//!                                                                            \-> decide, with another threshold or keep order
//! ```
//!
//! A view decides as [`survivors`](crate::survivors) does, but only about documents that a change can affect.
//! docs/design/live-view.md has the choices and figures.

mod decide;
mod key_feed;
mod match_feed;
mod matches;
mod rows;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use timely::worker::Worker;

pub use self::decide::ViewChange;
use self::decide::{Decisions, Touched};
use self::key_feed::KeyFeed;
pub use self::key_feed::KeyRule;
use self::match_feed::MatchFeed;
use self::matches::ArrangedMatches;
pub use self::rows::ViewRank;
use self::rows::ViewTime;
use crate::hash::Identity;
use crate::record::DocId;
use crate::sets::similarity::Similarity;

/// The decisions about the documents of a corpus that changes.
///
/// Documents are numbered from 0, in the order of the corpus, up to [`LiveView::MOST_DOCS`]. Changes are made in groups, each of
/// which is one version. Memory: see docs/design/live-view.md; a document that comes without a match takes none.
pub struct LiveView {
    feed: Feed,
    matches: ArrangedMatches,
    decisions: Decisions,
    time: ViewTime,
    /// Matches, classes and documents that have changed since each what-if was decided last.
    what_ifs: Vec<Weak<RefCell<Touched>>>,
}

/// Documents that come, and where their matches come from.
enum Feed {
    Matches(Box<MatchFeed>),
    Keys(Box<KeyFeed>),
}

impl LiveView {
    /// Largest number of documents, removed ones included.
    pub const MOST_DOCS: u64 = u32::MAX as u64;
    /// About how many bytes a match takes (docs/benchmarks/2026-11-30-view.txt).
    pub const MATCH_BYTES: u64 = 150;
    /// About how many bytes a document takes that comes with keys.
    pub const KEYED_DOC_BYTES: u64 = 300;

    /// Makes a view of no documents, which come with their matches. `rank`: the keep order.
    pub fn new(worker: &mut Worker, rank: ViewRank) -> Self {
        LiveView::fed(worker, Feed::Matches(Box::new(MatchFeed::new())), rank)
    }

    /// Makes a view of no documents, which come with keys, by which the dataflow finds their matches.
    ///
    /// The joins are done by all workers of the dataflow, each of which makes the view. The first one decides, and has all changes; the
    /// others [end](LiveView::end) it at once, and help until it has ended.
    pub fn by_keys(worker: &mut Worker, rank: ViewRank, rule: KeyRule) -> Self {
        let feed = KeyFeed::new(rule, Rc::clone(&rank));
        LiveView::fed(worker, Feed::Keys(Box::new(feed)), rank)
    }

    fn fed(worker: &mut Worker, mut feed: Feed, rank: ViewRank) -> Self {
        let matches = worker.dataflow::<ViewTime, _, _>(|scope| match &mut feed {
            Feed::Matches(feed) => ArrangedMatches::new(feed.rows(scope), None),
            Feed::Keys(feed) => ArrangedMatches::new(feed.rows(scope), Some(feed.note())),
        });
        let decisions = Decisions::new(rank, None);
        LiveView { feed, matches, decisions, time: 0, what_ifs: Vec::new() }
    }

    /// Adds a document. `identical`: one that is there and is identical to it. `near`: those that match and are not identical;
    /// of identical ones, one is enough. They are not looked at if the document is identical to another one, since what matches it
    /// is known then.
    ///
    /// # Panics
    /// When documents come with keys.
    pub fn insert(
        &mut self,
        doc: DocId,
        identical: Option<DocId>,
        near: impl IntoIterator<Item = (DocId, Option<Similarity>)>,
    ) {
        match &mut self.feed {
            Feed::Matches(feed) => feed.insert(&self.matches, doc, identical, near),
            Feed::Keys(_) => panic!("the documents of this view come with keys"),
        }
    }

    /// Adds matches of a document that is there. Those that are known already are passed over.
    ///
    /// # Panics
    /// When documents come with keys.
    pub fn tie(&mut self, doc: DocId, near: impl IntoIterator<Item = (DocId, Option<Similarity>)>) {
        match &mut self.feed {
            Feed::Matches(feed) => feed.tie(&self.matches, doc, near),
            Feed::Keys(_) => panic!("the documents of this view come with keys"),
        }
    }

    /// Adds a document by its identity: that of its text, or twice its fingerprint.
    ///
    /// # Panics
    /// When documents come with their matches.
    pub fn insert_key(&mut self, doc: DocId, identity: Identity) {
        match &mut self.feed {
            Feed::Keys(feed) => feed.insert(doc, identity),
            Feed::Matches(_) => panic!("the documents of this view come with their matches"),
        }
    }

    /// Removes a document. Nothing happens if it is not there, or has no match.
    pub fn remove(&mut self, doc: DocId) {
        match &mut self.feed {
            Feed::Matches(feed) => feed.remove(&self.matches, doc),
            Feed::Keys(feed) => feed.remove(doc),
        }
    }

    /// Makes the changes since the last call one version. Returns the decisions that have changed, in the order of documents.
    ///
    /// Cost: for each match that comes or goes, the matches of the later one of its documents, and those of each document whose
    /// decision changes. For documents with keys, this cost arises once a round; the number of rounds is the logarithm of the
    /// number of documents that come or stay again.
    pub fn commit(&mut self, worker: &mut Worker) -> Vec<ViewChange> {
        let mut changes: BTreeMap<DocId, ViewChange> = BTreeMap::new();
        while self.has_changes() {
            for change in self.step(worker) {
                changes.entry(change.doc).or_insert(change).after = change.after;
            }
        }
        changes.into_values().filter(|change| change.before != change.after).collect()
    }

    fn has_changes(&mut self) -> bool {
        match &mut self.feed {
            Feed::Matches(feed) => feed.undecided() > 0,
            Feed::Keys(feed) => feed.has_changes(),
        }
    }

    /// Gives changes to the dataflow, and decides about what they touch.
    fn step(&mut self, worker: &mut Worker) -> Vec<ViewChange> {
        match &mut self.feed {
            Feed::Matches(feed) => feed.flush(self.time),
            Feed::Keys(feed) => feed.flush(self.time),
        }
        self.time += 1;
        self.matches.wait(worker, self.time);
        let touched = match &mut self.feed {
            Feed::Matches(feed) => feed.touched(),
            Feed::Keys(feed) => feed.touched(),
        };
        let changes = self.decisions.decide(&mut self.matches.reader(), &touched);
        if let Feed::Keys(feed) = &mut self.feed {
            feed.follow(&changes);
        }
        self.what_ifs.retain(|what_if| {
            let what_if = what_if.upgrade();
            what_if.inspect(|what_if| what_if.borrow_mut().add(&touched)).is_some()
        });
        changes
    }

    /// Begins a view of the same documents with another threshold or keep order, and returns it with what it decides about them.
    /// `least`: matches below are passed over; those of a method have at least its threshold. It is of the version of the
    /// last commit.
    pub fn what_if(&mut self, least: Option<Similarity>, rank: ViewRank) -> (WhatIf, Vec<ViewChange>) {
        let all = Touched { classes: self.matches.reader().docs(), ..Touched::default() };
        let mut what_if =
            WhatIf { decisions: Decisions::new(rank, least), touched: Rc::new(RefCell::new(all)) };
        self.what_ifs.push(Rc::downgrade(&what_if.touched));
        let changes = what_if.commit(self);
        (what_if, changes)
    }

    /// Ends the view and frees its memory. Other workers than the first one take part in it until that one has ended it.
    pub fn end(self, worker: &mut Worker) {
        let LiveView { feed, matches, .. } = self;
        drop(feed);
        matches.end(worker);
    }

    /// Whether documents come with keys.
    pub fn has_keys(&self) -> bool {
        matches!(self.feed, Feed::Keys(_))
    }

    /// Returns the number of matches; of documents with keys, several times where they have several in common.
    pub fn matches(&self) -> u64 {
        match &self.feed {
            Feed::Matches(feed) => feed.matches(),
            Feed::Keys(feed) => feed.matches(),
        }
    }

    /// Returns the number of rows that have changed since the last commit; that of documents, where they have keys.
    pub fn undecided(&self) -> usize {
        match &self.feed {
            Feed::Matches(feed) => feed.undecided(),
            Feed::Keys(feed) => feed.undecided(),
        }
    }

    /// Returns about how many bytes the view takes.
    pub fn bytes(&self) -> u64 {
        let of_docs = match &self.feed {
            Feed::Matches(_) => 0,
            Feed::Keys(feed) => feed.count() * LiveView::KEYED_DOC_BYTES,
        };
        of_docs + self.matches() * LiveView::MATCH_BYTES
    }
}

/// A view of the documents of another one, with another threshold or keep order.
pub struct WhatIf {
    decisions: Decisions,
    /// Matches, classes and documents that have changed since it was decided last.
    touched: Rc<RefCell<Touched>>,
}

impl WhatIf {
    /// Returns the decisions that have changed since the last call. `view`: the view that it was made from.
    pub fn commit(&mut self, view: &LiveView) -> Vec<ViewChange> {
        let touched = self.touched.take();
        self.decisions.decide(&mut view.matches.reader(), &touched)
    }
}
