//! Documents that come with their matches.

use std::collections::{BTreeMap, HashSet};

use differential_dataflow::input::InputSession;
use foldhash::HashMap;
use timely::dataflow::Scope;

use super::decide::Touched;
use super::matches::{ArrangedMatches, TieRows};
use super::rows::{NearRow, Tie, ViewTime, number};
use crate::record::DocId;
use crate::sets::similarity::Similarity;

/// Ties of documents, and the changes of a group that the dataflow has not taken yet.
///
/// **Identical documents are a star** around the one that came first, which names the class and has its other matches. When that
/// document is removed and others of its class remain, one row marks it as a ghost. So its removal costs a row, and not the matches
/// of the class.
pub(super) struct MatchFeed {
    input: InputSession<ViewTime, (u32, NearRow), i32>,
    /// Rows that the group changes, by document, and how often each comes or goes.
    group: HashMap<u32, GroupTies>,
    /// Number of these rows.
    rows: usize,
    touched: Touched,
    /// Number of matches, those of the group included.
    matches: i64,
}

/// Changes of the ties of a document, and how often each comes or goes.
#[derive(Default)]
struct GroupTies {
    /// The tie with the document that names the class. It is looked up for each match.
    class: Vec<(NearRow, i32)>,
    others: Vec<(NearRow, i32)>,
}

impl MatchFeed {
    /// Makes a feed of no documents.
    pub fn new() -> Self {
        MatchFeed {
            input: InputSession::new(),
            group: HashMap::default(),
            rows: 0,
            touched: Touched::default(),
            matches: 0,
        }
    }

    /// Makes the rows of a view.
    pub fn rows<'s>(&mut self, scope: Scope<'s, ViewTime>) -> TieRows<'s> {
        self.input.to_collection(scope)
    }

    /// Adds a document, as [`LiveView::insert`](super::LiveView::insert) says.
    pub fn insert(
        &mut self,
        matches: &ArrangedMatches,
        doc: DocId,
        identical: Option<DocId>,
        near: impl IntoIterator<Item = (DocId, Option<Similarity>)>,
    ) {
        if let Some(identical) = identical {
            let class = self.class_of(matches, number(identical));
            self.change((class, number(doc)), Tie::COPY, 1);
            return;
        }
        self.add_ties(matches, number(doc), near, &HashSet::new());
    }

    /// Adds matches of a document that is there.
    pub fn tie(
        &mut self,
        matches: &ArrangedMatches,
        doc: DocId,
        near: impl IntoIterator<Item = (DocId, Option<Similarity>)>,
    ) {
        let class = self.class_of(matches, number(doc));
        let known = self.ties_of(matches, class).into_iter().map(|(_, other)| other).collect();
        self.add_ties(matches, class, near, &known);
    }

    fn add_ties(
        &mut self,
        matches: &ArrangedMatches,
        class: u32,
        near: impl IntoIterator<Item = (DocId, Option<Similarity>)>,
        known: &HashSet<u32>,
    ) {
        let of_class = |(near, similarity)| (self.class_of(matches, number(near)), similarity);
        let near: BTreeMap<u32, Option<Similarity>> = near.into_iter().map(of_class).collect();
        for (near, similarity) in near.into_iter().filter(|(near, _)| *near != class && !known.contains(near))
        {
            self.change((class, near), Tie::near(similarity), 1);
        }
    }

    /// Removes a document. Nothing happens if it is not there, or has no match.
    pub fn remove(&mut self, matches: &ArrangedMatches, doc: DocId) {
        let doc = number(doc);
        self.touched.went.push(doc);
        let class = self.class_of(matches, doc);
        if class != doc {
            self.change((class, doc), Tie::COPY, -1);
            let left = self.ties_of(matches, class);
            let has = |wanted: Tie| left.iter().any(|(tie, _)| *tie == wanted);
            if has(Tie::GHOST) && !has(Tie::COPY) {
                self.remove_all(class, &left);
            }
            return;
        }
        let ties = self.ties_of(matches, doc);
        let has = |wanted: Tie| ties.iter().any(|(tie, _)| *tie == wanted);
        match (has(Tie::GHOST), has(Tie::COPY)) {
            (true, _) => {}
            (false, true) => self.change((doc, doc), Tie::GHOST, 1),
            (false, false) => self.remove_all(doc, &ties),
        }
    }

    fn remove_all(&mut self, doc: u32, ties: &[NearRow]) {
        for &(tie, other) in ties {
            self.change((doc, other), tie, -1);
        }
    }

    /// Gives the changes of the group to the dataflow, which takes them as those of a time.
    pub fn flush(&mut self, time: ViewTime) {
        let touched = &mut self.touched;
        for (doc, ties) in std::mem::take(&mut self.group) {
            for (row, count) in ties.class.into_iter().chain(ties.others) {
                match row {
                    (tie, other) if tie.is_near() && doc < other => touched.pairs.push((doc, other)),
                    (tie, other) if !tie.is_near() && doc <= other => touched.classes.push(doc),
                    _ => {}
                }
                self.input.update((doc, row), count);
            }
        }
        touched.classes.sort_unstable();
        touched.classes.dedup();
        self.rows = 0;
        self.input.advance_to(time + 1);
        self.input.flush();
    }

    /// Returns what the changes have touched that the dataflow has taken.
    pub fn touched(&mut self) -> Touched {
        std::mem::take(&mut self.touched)
    }

    /// Returns the number of rows of the group.
    pub fn undecided(&self) -> usize {
        self.rows
    }

    /// Returns the number of matches.
    pub fn matches(&self) -> u64 {
        self.matches.max(0) as u64
    }

    /// Changes how often a tie of two documents is there.
    fn change(&mut self, (one, other): (u32, u32), tie: Tie, count: i32) {
        self.matches += i64::from(count);
        for (doc, other) in [(one, other), (other, one)].into_iter().take(if one == other { 1 } else { 2 }) {
            let ties = self.group.entry(doc).or_default();
            let is_class = tie == Tie::COPY && other < doc;
            if is_class { &mut ties.class } else { &mut ties.others }.push(((tie, other), count));
            self.rows += 1;
        }
    }

    /// Returns the document that names the class of identical ones. Cost: a lookup, however many ties the document has.
    fn class_of(&self, matches: &ArrangedMatches, doc: u32) -> u32 {
        // A copy has one tie of this kind to an earlier document, and any other document none.
        let of_group = self.group.get(&doc).map_or(&[][..], |ties| &ties.class);
        let is_mark = |row: NearRow| row < (Tie::COPY, doc);
        let marks = matches.reader().read_while(doc, of_group, is_mark);
        marks.iter().find(|(tie, _)| *tie == Tie::COPY).map_or(doc, |(_, class)| *class)
    }

    /// Returns the ties of a document, those of the group included.
    fn ties_of(&self, matches: &ArrangedMatches, doc: u32) -> Vec<NearRow> {
        let of_group = self.group.get(&doc).map(|ties| [&ties.class[..], &ties.others].concat());
        matches.reader().read(doc, &of_group.unwrap_or_default())
    }
}
