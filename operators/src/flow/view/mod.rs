//! A live view: which documents stay while documents come and go, kept true by differential dataflow.
//!
//! ```text
//! insert, remove -> matches -> contract: clusters -> decide: documents that go -> changes of a version
//!                      \------ what if ------------> decide, with another threshold or keep order
//! ```
//!
//! A view has one row for each match and none for a document without one. It decides as [`survivors`](crate::survivors) does, since
//! that function decides about each cluster whose matches have changed. docs/design/0077-live-view.md has the choices and figures.

mod contract;
mod decide;
mod rows;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use differential_dataflow::consolidation::consolidate;
use differential_dataflow::input::InputSession;
use differential_dataflow::operators::arrange::TraceAgent;
use differential_dataflow::trace::implementations::ValSpine;
use differential_dataflow::trace::{Cursor, TraceReader};
use timely::dataflow::operators::probe::Handle;
use timely::progress::frontier::AntichainRef;
use timely::worker::Worker;

use self::contract::by_cluster;
use self::decide::decide;
pub use self::rows::ViewRank;
use self::rows::{GoneDoc, NearRow, Tie, Tied, ViewVersion, reduced};
use crate::record::DocId;
use crate::sets::similarity::Similarity;
use crate::survivors::Removed;

/// Documents by their numbers, of which the first has those with lower ones. Both can be asked for by either.
type Near = TraceAgent<ValSpine<u32, NearRow, ViewVersion, i32>>;
type Clusters = TraceAgent<ValSpine<u32, Tied, ViewVersion, i32>>;

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

/// The decisions about the documents of a corpus that changes.
///
/// Documents are numbered from 0, in the order of the corpus, up to [`LiveView::MOST_DOCS`]. Changes are made in groups, each of
/// which is one version. Memory: see docs/design/0077-live-view.md; a document without a match takes none.
pub struct LiveView {
    input: InputSession<ViewVersion, (u32, NearRow), i32>,
    near: Near,
    clusters: Clusters,
    decided: DecidedRows,
    version: ViewVersion,
    /// Rows that the group changes, in order, and how often each comes or goes.
    group: BTreeMap<(u32, NearRow), i32>,
    /// Number of matches, those of the group included.
    matches: i64,
    dataflow: usize,
}

impl LiveView {
    /// Largest number of documents, removed ones included.
    pub const MOST_DOCS: u64 = u32::MAX as u64;
    /// About how many bytes a match takes (docs/benchmarks/2026-11-29-view.txt).
    pub const MATCH_BYTES: u64 = 340;

    /// Makes a view of no documents. `rank`: the keep order.
    pub fn new(worker: &mut Worker, rank: ViewRank) -> Self {
        let dataflow = worker.next_dataflow_index();
        let decided = DecidedRows::default();
        let (input, near, clusters) = worker.dataflow::<ViewVersion, _, _>(|scope| {
            let mut input = InputSession::new();
            let near = input.to_collection(scope).arrange_by_key_named("matches");
            let clusters = by_cluster(&near);
            decided.follow(clusters.clone(), None, rank);
            (input, near.trace, clusters.trace)
        });
        LiveView { input, near, clusters, decided, version: 0, group: BTreeMap::new(), matches: 0, dataflow }
    }

    /// Adds a document. `identical`: one that is there and is identical to it. `near`: those that match and are not identical;
    /// of identical ones, one is enough. They are not looked at if the document is identical to another one, since what matches it
    /// is known then.
    pub fn insert(
        &mut self,
        doc: DocId,
        identical: Option<DocId>,
        near: impl IntoIterator<Item = (DocId, Option<Similarity>)>,
    ) {
        if let Some(identical) = identical {
            let class = self.class_of(number(identical));
            self.change(Tied { low: class, high: number(doc), tie: Tie::COPY }, 1);
            return;
        }
        self.add_ties(number(doc), near, &HashSet::new());
    }

    /// Adds matches of a document that is there. Those that are known already are passed over.
    pub fn tie(&mut self, doc: DocId, near: impl IntoIterator<Item = (DocId, Option<Similarity>)>) {
        let class = self.class_of(number(doc));
        let known = self.ties_of(class).into_iter().map(|(_, other)| other).collect();
        self.add_ties(class, near, &known);
    }

    fn add_ties(
        &mut self,
        class: u32,
        near: impl IntoIterator<Item = (DocId, Option<Similarity>)>,
        known: &HashSet<u32>,
    ) {
        let near = near.into_iter().map(|(near, similarity)| (self.class_of(number(near)), similarity));
        let near: BTreeMap<u32, Option<Similarity>> = near.collect();
        for (near, similarity) in near.into_iter().filter(|(near, _)| *near != class && !known.contains(near))
        {
            self.change(Tied { low: near.min(class), high: near.max(class), tie: Tie::near(similarity) }, 1);
        }
    }

    /// Removes a document. Nothing happens if it is not there, or has no match.
    pub fn remove(&mut self, doc: DocId) {
        let doc = number(doc);
        let class = self.class_of(doc);
        if class != doc {
            self.change(Tied { low: class, high: doc, tie: Tie::COPY }, -1);
            let left = self.ties_of(class);
            let has = |wanted: Tie| left.iter().any(|(tie, _)| *tie == wanted);
            if has(Tie::GHOST) && !has(Tie::COPY) {
                self.remove_all(class, &left);
            }
            return;
        }
        let ties = self.ties_of(doc);
        let has = |wanted: Tie| ties.iter().any(|(tie, _)| *tie == wanted);
        match (has(Tie::GHOST), has(Tie::COPY)) {
            (true, _) => {}
            (false, true) => self.change(Tied { low: doc, high: doc, tie: Tie::GHOST }, 1),
            (false, false) => self.remove_all(doc, &ties),
        }
    }

    fn remove_all(&mut self, doc: u32, ties: &[NearRow]) {
        for &(tie, other) in ties {
            self.change(Tied { low: doc.min(other), high: doc.max(other), tie }, -1);
        }
    }

    /// Makes the changes since the last call one version. Returns the decisions that have changed, in the order of documents.
    ///
    /// Cost: what the clusters cost whose matches have changed.
    pub fn commit(&mut self, worker: &mut Worker) -> Vec<ViewChange> {
        if self.group.is_empty() {
            return Vec::new();
        }
        for (row, count) in std::mem::take(&mut self.group) {
            self.input.update(row, count);
        }
        // Whoever asks later sees these rows, with this version at the latest.
        let made = [self.version];
        self.near.set_logical_compaction(AntichainRef::new(&made));
        self.near.set_physical_compaction(AntichainRef::new(&made));
        self.clusters.set_logical_compaction(AntichainRef::new(&made));
        self.clusters.set_physical_compaction(AntichainRef::new(&made));
        self.version += 1;
        self.input.advance_to(self.version);
        self.input.flush();
        self.decided.changes(worker, self.version)
    }

    /// Begins a view of the same documents with another threshold or keep order, and returns it with what it decides about them.
    /// `least`: matches below are passed over; those of a method have at least its threshold. It is of the version of the
    /// last commit.
    pub fn what_if(
        &mut self,
        worker: &mut Worker,
        least: Option<Similarity>,
        rank: ViewRank,
    ) -> (WhatIf, Vec<ViewChange>) {
        let dataflow = worker.next_dataflow_index();
        let decided = DecidedRows::default();
        worker.dataflow::<ViewVersion, _, _>(|scope| {
            decided.follow(self.clusters.import_named(scope, "what if"), least, rank);
        });
        let mut what_if = WhatIf { decided, dataflow };
        let changes = what_if.commit(worker, self);
        (what_if, changes)
    }

    /// Ends the view and frees its memory.
    pub fn end(self, worker: &mut Worker) {
        let LiveView { dataflow, .. } = self;
        worker.drop_dataflow(dataflow);
    }

    /// Returns the number of matches.
    pub fn matches(&self) -> u64 {
        self.matches.max(0) as u64
    }

    /// Returns the number of rows that have changed since the last commit.
    pub fn undecided(&self) -> usize {
        self.group.len()
    }

    /// Returns about how many bytes the view takes.
    pub fn bytes(&self) -> u64 {
        self.matches() * LiveView::MATCH_BYTES
    }

    /// Changes how often a tie is there.
    fn change(&mut self, Tied { low, high, tie }: Tied, count: i32) {
        self.matches += i64::from(count);
        for (one, other) in [(low, high), (high, low)].into_iter().take(if low == high { 1 } else { 2 }) {
            *self.group.entry((one, (tie, other))).or_default() += count;
        }
    }

    /// Returns the document that names the class of identical ones. Cost: a lookup, however many ties the document has.
    fn class_of(&mut self, doc: u32) -> u32 {
        // A copy has one tie of this kind to an earlier document, and any other document none.
        let mut copies: Vec<(u32, i32)> = Vec::new();
        let of_group = self.group.range((doc, (Tie::COPY, 0))..(doc, (Tie::COPY, doc)));
        copies.extend(of_group.map(|((_, (_, class)), count)| (*class, *count)));
        let (mut cursor, batches) = self.near.cursor();
        cursor.seek_key(&batches, &doc);
        if cursor.get_key(&batches) == Some(&doc) {
            while let Some(&(tie, class)) = cursor.get_val(&batches).filter(|row| **row < (Tie::COPY, doc)) {
                if tie == Tie::COPY {
                    cursor.map_times(&batches, |_, count| copies.push((class, *count)));
                }
                cursor.step_val(&batches);
            }
        }
        consolidate(&mut copies);
        copies.iter().find(|(_, count)| *count > 0).map_or(doc, |(class, _)| *class)
    }

    /// Returns the ties of a document, those of the group included.
    fn ties_of(&mut self, doc: u32) -> Vec<NearRow> {
        let of_group = self.group.range((doc, NearRow::default())..=(doc, (Tie::LAST, u32::MAX)));
        let mut ties: Vec<(NearRow, i32)> = of_group.map(|((_, row), count)| (*row, *count)).collect();
        let (mut cursor, batches) = self.near.cursor();
        cursor.seek_key(&batches, &doc);
        if cursor.get_key(&batches) == Some(&doc) {
            while let Some(&row) = cursor.get_val(&batches) {
                cursor.map_times(&batches, |_, count| ties.push((row, *count)));
                cursor.step_val(&batches);
            }
        }
        consolidate(&mut ties);
        ties.into_iter().filter(|(_, count)| *count > 0).map(|(row, _)| row).collect()
    }
}

/// A view of the documents of another one, with another threshold or keep order.
pub struct WhatIf {
    decided: DecidedRows,
    dataflow: usize,
}

impl WhatIf {
    /// Returns the decisions that have changed since the last call. `view`: the view that it was made from.
    pub fn commit(&mut self, worker: &mut Worker, view: &LiveView) -> Vec<ViewChange> {
        self.decided.changes(worker, view.version)
    }

    /// Ends it and frees its memory.
    pub fn end(self, worker: &mut Worker) {
        worker.drop_dataflow(self.dataflow);
    }
}

/// Documents that go, as rows that come and leave.
#[derive(Default)]
struct DecidedRows {
    rows: Rc<RefCell<Vec<(GoneDoc, i32)>>>,
    probe: Handle<ViewVersion>,
}

impl DecidedRows {
    /// Decides about clusters from now on.
    fn follow(
        &self,
        clusters: rows::ByKey<'_, ViewVersion, u32, Tied>,
        least: Option<Similarity>,
        rank: ViewRank,
    ) {
        let gone = reduced(clusters, "documents that go", move |_, tied: &[(&Tied, i32)], gone| {
            gone.extend(
                decide(tied.iter().map(|(tied, _)| *tied), least, &rank).into_iter().map(|gone| (gone, 1)),
            );
        });
        let rows = Rc::clone(&self.rows);
        let gone = gone.as_collection(|_, gone| *gone);
        gone.inspect(move |(gone, _, count)| rows.borrow_mut().push((*gone, *count))).probe_with(&self.probe);
    }

    /// Waits until a version is decided. Returns the decisions that have changed, in the order of documents.
    fn changes(&self, worker: &mut Worker, version: ViewVersion) -> Vec<ViewChange> {
        while self.probe.less_than(&version) {
            worker.step();
        }
        let mut rows = std::mem::take(&mut *self.rows.borrow_mut());
        // A cluster that gets another name brings all of its rows again.
        consolidate(&mut rows);
        rows.sort_unstable_by_key(|(gone, _)| gone.doc);
        let changes = rows.chunk_by(|one, other| one.0.doc == other.0.doc).map(|rows| {
            let removed = |wanted: i32| {
                let gone = rows.iter().find(|(_, count)| *count == wanted)?.0;
                Some(Removed { duplicate_of: DocId(gone.duplicate_of.into()), tie: gone.tie.reason() })
            };
            ViewChange { doc: DocId(rows[0].0.doc.into()), before: removed(-1), after: removed(1) }
        });
        changes.collect()
    }
}

fn number(doc: DocId) -> u32 {
    u32::try_from(doc.0).expect("a view has fewer documents")
}
