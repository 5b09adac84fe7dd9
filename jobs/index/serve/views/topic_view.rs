//! The decisions about the documents of a topic, kept true.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;

use anyhow::Result;
use operators::flow::{LiveView, ViewChange};
use operators::method::KeptKeys;
use operators::{DocId, Merit, Reason, Removed, Similarity};
use timely::worker::Worker;

use crate::index::index_folder::IndexFolder;
use crate::index::topics::{IndexedDoc, TopicReader};
use crate::index::view::AskedDoc;
use crate::nightly::Policy;

/// Numbers of characters of documents, by the documents' numbers.
type TextLengths = Rc<RefCell<Vec<u32>>>;

/// Decides which documents of a topic stay. Documents come in the order of their numbers.
///
/// **Families.** A document with many candidates is compared with those alone that stay: it is *led*. So a family of n documents takes
/// n matches, and not their square. While two led documents stay they have been compared, since one of them has asked while the other
/// one stayed. When a document stays again, a led one may have passed it over, so it asks again, of all that stay. The same documents
/// stay as by all matches; a led one that goes may be named after another document that stays than the most similar one.
///
/// Memory: that of [`LiveView`], a byte for each document that has ever come, and 24 for each that goes.
pub(super) struct TopicView {
    live: LiveView,
    policy: Policy,
    lengths: TextLengths,
    /// Whether each document is there.
    is_there: Vec<bool>,
    /// Documents whose text goes: they match another one that stays.
    gone_texts: HashSet<DocId>,
    /// Whether a document was led.
    has_led: bool,
    /// Documents of the group that match an earlier one which stays, by what is known before the group is decided.
    expected_to_go: HashSet<DocId>,
    /// Number of documents that may have matches which were not looked at.
    pub cut: u64,
}

impl TopicView {
    /// Makes a view of no documents. `policy`: which of two matching documents stays.
    pub fn new(worker: &mut Worker, policy: Policy) -> Self {
        let lengths = TextLengths::default();
        let (of_docs, keep) = (Rc::clone(&lengths), policy.clone());
        let chars = move |doc: DocId| of_docs.borrow().get(doc.0 as usize).copied().unwrap_or(0);
        let merit = move |doc: DocId| Merit { chars: chars(doc).into(), ..Merit::default() };
        let rank = Rc::new(move |doc: DocId| keep.rank(doc, || doc.0, || merit(doc)));
        TopicView {
            live: LiveView::new(worker, rank),
            policy,
            lengths,
            is_there: Vec::new(),
            gone_texts: HashSet::new(),
            has_led: false,
            expected_to_go: HashSet::new(),
            cut: 0,
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
        let (asked, doc) = (AskedDoc::ask(index, reader, keys, doc)?, DocId(doc.number));
        self.cut += u64::from(asked.is_cut);
        if self.policy.keeps_longest() {
            let mut lengths = self.lengths.borrow_mut();
            lengths.resize(doc.0 as usize + 1, 0);
            lengths[doc.0 as usize] = asked.chars;
        }
        let identical = self.first_there(reader, &asked.equal)?;
        let near = match identical {
            Some(_) => Vec::new(),
            None => self.near(index, reader, &asked)?,
        };
        self.has_led |= asked.is_led();
        if !self.policy.reorders()
            && (identical.is_some() || near.iter().any(|(other, _)| self.stays(*other)))
        {
            self.expected_to_go.insert(doc);
        }
        self.live.insert(doc, identical, near);
        self.is_there.resize(doc.0 as usize + 1, false);
        self.is_there[doc.0 as usize] = true;
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

    /// Decides about the changes since the last call. Returns the decisions that have changed about documents that are there or were,
    /// in the order of documents.
    pub fn commit(
        &mut self,
        worker: &mut Worker,
        mut ask: impl FnMut(&mut Self, DocId) -> Result<()>,
    ) -> Result<Vec<ViewChange>> {
        let mut changed: BTreeMap<DocId, ViewChange> = BTreeMap::new();
        loop {
            let changes = self.live.commit(worker);
            let mut again: BTreeSet<DocId> = std::mem::take(&mut self.expected_to_go).into_iter().collect();
            for change in changes {
                let text_goes =
                    |of: Option<Removed>| matches!(of, Some(Removed { tie: Reason::Similar(_), .. }));
                match text_goes(change.after) {
                    true => _ = self.gone_texts.insert(change.doc),
                    false => _ = self.gone_texts.remove(&change.doc),
                }
                // A text stays again also if a document that comes makes it the first of two.
                match change.after.is_none() || text_goes(change.before) && !text_goes(change.after) {
                    true => _ = again.insert(change.doc),
                    false => _ = again.remove(&change.doc),
                }
                changed.entry(change.doc).or_insert(change).after = change.after;
            }
            again.retain(|doc| self.has_led && self.is_there(*doc) && self.stays(*doc));
            for doc in &again {
                ask(self, *doc)?;
            }
            if again.is_empty() {
                break;
            }
        }
        Ok(changed.into_values().filter(|change| change.before != change.after).collect())
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
            let asked = AskedDoc::ask(index, reader, keys, &row)?;
            let near = self.near(index, reader, &asked)?;
            self.live.tie(doc, near);
        }
        Ok(())
    }

    /// Ends the view and frees its memory.
    pub fn end(self, worker: &mut Worker) {
        self.live.end(worker);
    }

    /// Returns a document of each text that matches, if it is there: of all texts, or of those that stay if the candidates are many.
    fn near(
        &self,
        index: &IndexFolder,
        reader: &mut TopicReader,
        asked: &AskedDoc,
    ) -> Result<Vec<(DocId, Option<Similarity>)>> {
        let mut near = Vec::new();
        for &(text, similarity) in &asked.near {
            near.extend(self.first_there(reader, &[text])?.map(|other| (other, similarity)));
        }
        for candidate in &asked.many {
            if let Some(other) =
                self.first_there(reader, &[candidate.text])?.filter(|other| self.stays(*other))
            {
                let matching = asked.matches(index, reader, *candidate)?;
                near.extend(matching.map(|similarity| (other, similarity)));
            }
        }
        Ok(near)
    }

    /// Returns the first document of some texts that is there. One that the index has and that is not there comes later.
    fn first_there(&self, reader: &mut TopicReader, texts: &[u64]) -> Result<Option<DocId>> {
        let mut numbers = Vec::new();
        for text in texts {
            reader.docs_of(*text, 1, &mut numbers)?;
        }
        Ok(numbers.into_iter().map(DocId).filter(|doc| self.is_there(*doc)).min())
    }

    fn is_there(&self, doc: DocId) -> bool {
        self.is_there.get(doc.0 as usize).is_some_and(|is_there| *is_there)
    }

    /// Whether the text of a document stays, by what is known.
    fn stays(&self, doc: DocId) -> bool {
        !self.gone_texts.contains(&doc) && !self.expected_to_go.contains(&doc)
    }
}
