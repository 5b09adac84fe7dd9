//! A topic whose view is kept.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use operators::DocId;
use operators::flow::{LiveView, ViewChange};
use operators::method::KeptKeys;
use timely::worker::Worker;

use super::topic_state::{FeedChange, NewVersion, TopicState};
use super::topic_view::TopicView;
use super::what_ifs::{SeenWhatIf, WHAT_IF_MATCH_BYTES, WhatIfRule, WhatIfs};
use crate::hidden_changes::{ShownChange, ShownGroup};
use crate::index_folder::IndexFolder;
use crate::topics::{TextIdentities, Topic, TopicReader};
use crate::view::TopicMatches;

/// Reason why a topic has no view.
pub(super) const TOO_MANY: &str = "the topic has had too many documents for a view";

/// Number of rows of the view from which on a decision takes long, unless changes go on to come as fast.
const MANY: usize = 1000;
/// About how many bytes a change takes that is in no version yet.
const CHANGE_BYTES: u64 = 80;
/// About how many bytes a document that goes takes in a [`CleanSet`](crate::view::CleanSet).
const GONE_BYTES: u64 = 120;

/// A topic whose view is made, or is there and follows the changes.
pub(super) struct FollowedTopic {
    pub state: Arc<TopicState>,
    view: TopicView,
    keys: DocKeys,
    /// Whether it has the documents with which it begins. Later ones are in the groups.
    is_built: bool,
    /// Changes that readers see and that the view lacks, the oldest first.
    waiting: VecDeque<ShownGroup>,
    /// Number of the first of them that become a version each, so that clients that have one of these versions go on.
    alone: usize,
    /// Whether changes behind some versions are not known, so that the feed begins anew.
    is_feed_cut: bool,
    /// Version that readers saw when the view was begun.
    begun: u64,
    /// Number behind the last one of the documents with which the view begins.
    first_end: u64,
    /// Number behind the last document that the view has.
    end: u64,
    /// Documents that are there.
    documents: u64,
    /// Version of the documents with which it begins, and then of the changes that the view has.
    version: u64,
    /// Ids of documents of the next version that have come and gone.
    came: BTreeMap<DocId, String>,
    went: BTreeMap<DocId, String>,
    /// The last version that is seen, and the number of groups that were taken over since.
    published: Option<u64>,
    taken: usize,
    /// Number of rows of the view from which on a decision takes long.
    many: usize,
    what_ifs: WhatIfs,
}

/// The keys of documents.
pub(super) enum DocKeys {
    /// They are made of the texts, by which the index finds what may match.
    OfTexts(KeptKeys),
    /// The index keeps no texts; the dataflow joins what it keeps.
    Kept(TextIdentities),
}

/// The documents with which a view begins, and those behind them that had come before it.
pub(super) struct ViewBeginning {
    /// Number behind the last one of the documents with which it begins.
    pub end: u64,
    /// Version of these documents.
    pub version: u64,
    /// Later documents, each with the version that its insertion has led to.
    pub latest: Vec<(u64, u64)>,
    /// Version that readers see when the view is begun.
    pub shown: u64,
}

impl FollowedTopic {
    /// Begins the view of a topic.
    pub fn new(
        state: Arc<TopicState>,
        topic: &str,
        view: TopicView,
        keys: DocKeys,
        from: ViewBeginning,
    ) -> Self {
        let ViewBeginning { end, version, latest, shown } = from;
        let group = |version, changes: Vec<ShownChange>| ShownGroup {
            topic: topic.to_owned(),
            version,
            changes: Some(changes.into()),
        };
        let alone = latest.len();
        let latest = latest.into_iter().map(|(doc, version)| group(version, vec![ShownChange::Came(doc)]));
        FollowedTopic {
            state,
            view,
            keys,
            is_built: false,
            // Changes of other topics came last.
            waiting: latest.chain([group(shown, Vec::new())]).collect(),
            alone,
            is_feed_cut: false,
            begun: shown,
            first_end: end,
            end,
            documents: 0,
            version,
            came: BTreeMap::new(),
            went: BTreeMap::new(),
            published: None,
            taken: 0,
            many: MANY,
            what_ifs: WhatIfs::default(),
        }
    }

    /// Notes changes that readers see.
    pub fn wait_for(&mut self, group: ShownGroup) {
        // The view begins with all changes that were shown before it, except a drop.
        let is_known = !self.is_built && group.version <= self.begun;
        if !is_known || group.changes.is_none() {
            self.waiting.push_back(group);
        }
    }

    /// Whether the topic cannot be followed any more.
    pub fn is_lost(&self) -> bool {
        self.waiting.iter().any(|group| group.changes.is_none())
    }

    /// Whether there are documents or changes that the version which is seen lacks.
    pub fn has_work(&self) -> bool {
        self.is_built && (!self.waiting.is_empty() || self.published != Some(self.version))
    }

    /// Takes over the documents with which the view begins, and decides about them, before any that match a document which goes
    /// meanwhile are let off.
    pub fn load(&mut self, worker: &mut Worker, found: TopicMatches) {
        self.documents = found.chars.len() as u64;
        self.view.load(found);
        self.view.decide(worker);
        self.is_built = true;
    }

    /// Takes over changes, and lets documents ask again. Returns whether the view has all that belongs to a version, so that it can be
    /// decided: all that readers see, or one of the documents with which it catches up.
    pub fn work(&mut self, index: &IndexFolder, topic: &Topic, pause: Instant) -> Result<bool> {
        let (mut docs, mut reader) = (TopicReader::new(topic)?, TopicReader::new(topic)?);
        while self.alone == 0 || self.published == Some(self.version) {
            let Some(group) = self.waiting.front_mut() else { break };
            let Some(change) = group.changes.as_mut().and_then(VecDeque::pop_front) else {
                self.version = group.version;
                self.waiting.pop_front();
                self.taken += 1;
                continue;
            };
            match change {
                ShownChange::Came(number) if number >= LiveView::MOST_DOCS => bail!(TOO_MANY),
                ShownChange::Came(number) => {
                    self.end = number + 1;
                    let doc = docs.doc(number)?;
                    // One that is not there has gone already, and a later group says so. Clients may know it if it came before the view.
                    self.is_feed_cut |= doc.is_none() && self.alone > 0;
                    if let Some(doc) = doc {
                        match &mut self.keys {
                            DocKeys::OfTexts(keys) => self.view.add(index, &mut reader, keys, &doc)?,
                            DocKeys::Kept(identities) => {
                                let identity = identities.of(topic, doc.text)?;
                                let priority = reader.priority(number)?;
                                self.view.add_identity(DocId(number), identity, priority);
                            }
                        }
                        self.documents += 1;
                        self.came.insert(DocId(number), doc.id);
                    }
                }
                ShownChange::Went { number, id } => {
                    if self.view.remove(DocId(number)) {
                        self.documents -= 1;
                        if self.came.remove(&DocId(number)).is_none() {
                            self.went.insert(DocId(number), id);
                        }
                    } else if number < self.first_end {
                        // It went before it was read, and clients of an earlier view may know it.
                        self.is_feed_cut = true;
                    }
                }
            }
            if Instant::now() >= pause {
                return Ok(false);
            }
        }
        match &mut self.keys {
            DocKeys::OfTexts(keys) => {
                while let Some(doc) = self.view.next_to_ask() {
                    self.view.ask_again(index, &mut reader, keys, doc)?;
                    if Instant::now() >= pause {
                        return Ok(false);
                    }
                }
            }
            DocKeys::Kept(identities) => identities.forget(),
        }
        Ok(true)
    }

    /// Whether the next decision takes long, so that nobody should wait for it.
    pub fn decides_long(&self) -> bool {
        self.view.undecided() > self.many
    }

    /// Decides about what has been taken over.
    pub fn decide(&mut self, worker: &mut Worker) {
        if self.decides_long() {
            // If changes go on to come as fast, the next version comes with a longer decision.
            self.many *= 2;
        }
        self.view.decide(worker);
    }

    /// Makes a version of what is decided, unless documents must ask again.
    pub fn publish(&mut self, topic: &Topic) -> Result<()> {
        if !self.view.is_settled() {
            return Ok(());
        }
        let changes = self.view.take_changes();
        let what_ifs = self.what_ifs.commit(&self.view);
        let lines = match !std::mem::take(&mut self.is_feed_cut) && self.published.is_some() {
            true => Some(self.lines(topic, &changes)?),
            false => None,
        };
        self.state.publish(NewVersion {
            version: self.version,
            end: if self.alone > 0 { self.end } else { topic.end_of_shown() },
            is_last: self.alone == 0,
            documents: self.documents,
            cut: self.view.cut,
            led: self.view.led,
            changes: &changes,
            what_ifs: &what_ifs,
            lines,
        });
        if self.published.is_some() {
            self.alone = self.alone.saturating_sub(1);
        }
        (self.published, self.taken, self.many) = (Some(self.version), 0, MANY);
        (self.came, self.went) = Default::default();
        Ok(())
    }

    /// Whether decisions have changed since the version that is seen.
    pub fn has_unseen_changes(&self) -> bool {
        self.view.has_changes()
    }

    /// Begins a what-if, whose decisions are kept true from now on.
    pub fn begin_what_if(&mut self, number: u64, rule: WhatIfRule) {
        let changes = self.what_ifs.begin(&mut self.view, number, &rule);
        let mut what_if = SeenWhatIf::new(rule);
        let seen = &mut *self.state.seen.write();
        what_if.take(&changes, &seen.set, seen.set.gone().collect::<Vec<_>>());
        seen.what_ifs.insert(number, what_if);
    }

    /// Ends what-ifs that nobody wants any more. Returns how many are left.
    pub fn end_unwanted(&mut self) -> usize {
        if self.what_ifs.count() > 0 {
            let what_ifs = &mut self.state.seen.write().what_ifs;
            what_ifs.retain(|_, what_if| !what_if.is_idle());
            self.what_ifs.retain(|number| what_ifs.contains_key(&number));
        }
        self.what_ifs.count()
    }

    /// Returns about how many bytes the view takes.
    pub fn bytes(&self) -> u64 {
        let what_ifs = self.what_ifs.count() as u64 * self.what_if_bytes();
        let waiting = self.waiting.iter().filter_map(|group| group.changes.as_ref()).map(VecDeque::len);
        let changes = (self.came.len() + self.went.len() + waiting.sum::<usize>()) as u64;
        let seen = self.state.seen.read();
        let of_seen = seen.set.gone_count() * GONE_BYTES + seen.feed_bytes();
        self.view.bytes() + changes * CHANGE_BYTES + of_seen + what_ifs
    }

    /// Returns about how many bytes one more what-if takes.
    pub fn what_if_bytes(&self) -> u64 {
        let gone = self.state.seen.read().set.gone_count();
        self.view.matches() * WHAT_IF_MATCH_BYTES + gone * GONE_BYTES
    }

    /// Returns why the view is refused, if it takes more than `room` bytes.
    pub fn refusal(&self, room: u64) -> Option<String> {
        let bytes = self.bytes();
        let documents = self.documents;
        (bytes > room).then(|| no_room(room, documents, bytes))
    }

    /// Notes how many groups of changes the version lacks that is seen.
    pub fn note_behind(&self) {
        self.state.seen.write().behind = self.waiting.len() + self.taken;
    }

    /// Ends the view and frees its memory.
    pub fn end(self, worker: &mut Worker) {
        self.view.end(worker);
    }

    /// Returns the id of a document of this version, which may have gone since.
    fn id_of(&self, reader: &mut TopicReader, doc: DocId) -> Result<String> {
        if let Some(doc) = reader.doc(doc.0)? {
            return Ok(doc.id);
        }
        let mut later = self.waiting.iter().filter_map(|group| group.changes.as_ref()).flatten();
        let went = later.find_map(|change| match change {
            ShownChange::Went { number, id } if *number == doc.0 => Some(id.clone()),
            _ => None,
        });
        Ok(went.unwrap_or_default())
    }

    /// Returns the lines of the feed for a version.
    fn lines(&self, topic: &Topic, changes: &[ViewChange]) -> Result<Vec<String>> {
        let gone = changes.iter().filter(|change| change.after.is_some());
        let gone: HashSet<DocId> = gone.map(|change| change.doc).collect();
        let mut lines = Vec::new();
        let mut say = |doc: DocId, id: &str, change, duplicate_of: Option<&str>| {
            let line = FeedChange { version: self.version, id, number: doc.0, change, duplicate_of };
            lines.push(serde_json::to_string(&line)? + "\n");
            anyhow::Ok(())
        };
        // The ids of documents that go for the same document are read in their order, and the id of the one
        // that stays is read once.
        let (mut reader, mut of_kept) = (TopicReader::new(topic)?, TopicReader::new(topic)?);
        let mut last = None;
        let mut kept_id = |doc: DocId| -> Result<String> {
            if last.as_ref().is_none_or(|(known, _)| *known != doc) {
                last = Some((doc, self.id_of(&mut of_kept, doc)?));
            }
            Ok(last.as_ref().map(|(_, id)| id.clone()).unwrap_or_default())
        };
        let mut id_of = |doc: DocId| self.id_of(&mut reader, doc);
        for (doc, id) in &self.went {
            say(*doc, id, "deleted", None)?;
        }
        for (doc, id) in self.came.iter().filter(|(doc, _)| !gone.contains(doc)) {
            say(*doc, id, "kept", None)?;
        }
        for change in changes.iter().filter(|change| !self.went.contains_key(&change.doc)) {
            let doc = change.doc;
            match change.after {
                Some(removed) => {
                    say(doc, &id_of(doc)?, "removed", Some(&kept_id(removed.duplicate_of)?))?;
                }
                None if !self.came.contains_key(&doc) => say(doc, &id_of(doc)?, "restored", None)?,
                None => {}
            }
        }
        Ok(lines)
    }
}

/// Says that a view takes more memory than there is.
pub(super) fn no_room(room: u64, documents: u64, bytes: u64) -> String {
    let (room, bytes) = (room as f64 / 1e6, bytes as f64 / 1e6);
    format!(
        "there is no room for the view: --view-memory leaves {room:.1} MB, and the view of {documents} documents takes some {bytes:.1} MB"
    )
}
