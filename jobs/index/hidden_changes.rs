//! Keeps the changes of an index that many share from readers until they are durable, and tells a follower of them then.

use std::collections::{BTreeSet, VecDeque};

use anyhow::Result;

use super::topics::{ChangeKind, Topic, TopicReader};

/// Changes that are in the log, and that no reader sees yet, since a failed write would undo them.
///
/// ```text
/// writer     insert a   query-insert b   delete c   commit               show
/// readers    no a       no b             c          no a, no b, c        a, b, no c
/// ```
///
/// A document that comes is in memory at once, where the writer sees it, and is hidden by its number. What takes documents
/// away is made when it is durable. If the commit fails, readers go on seeing what is durable.
#[derive(Default)]
pub(super) struct HiddenChanges {
    /// Topics that have hidden documents.
    pub topics: Vec<String>,
    /// Deletions and expiries that are not made yet.
    pub removals: Vec<HiddenRemoval>,
}

/// A deletion or expiry.
pub(super) struct HiddenRemoval {
    pub topic: String,
    /// Number in the log.
    pub number: u64,
    pub what: ChangeKind,
}

/// Changes of a topic that readers have begun to see at the same time.
#[derive(Debug)]
pub(super) struct ShownGroup {
    pub topic: String,
    /// Number of the next change in the log, which later versions exceed.
    pub version: u64,
    /// The changes in their order; `None` if the topic was dropped, or if they could not be read.
    pub changes: Option<VecDeque<ShownChange>>,
}

/// A change that readers see.
#[derive(Debug)]
pub(super) enum ShownChange {
    /// A document has come.
    Came(u64),
    /// A document has gone.
    Went {
        /// Its number.
        number: u64,
        /// Its id, which the index may have forgotten.
        id: String,
    },
}

/// The one that is told of the changes of some topics.
pub(super) struct Follower {
    topics: BTreeSet<String>,
    /// Number of the next change in the log, when readers saw changes last.
    shown: u64,
    tell: Box<dyn Fn(ShownGroup) + Send + Sync>,
}

impl Follower {
    /// Makes one that follows no topic yet. `shown`: the number of the next change in the log. `tell`: tells it of a group.
    pub fn new(shown: u64, tell: impl Fn(ShownGroup) + Send + Sync + 'static) -> Self {
        Follower { topics: BTreeSet::new(), shown, tell: Box::new(tell) }
    }

    /// Follows a topic from now on. Returns the version that readers see.
    pub fn follow(&mut self, topic: &str) -> u64 {
        self.topics.insert(topic.to_owned());
        self.shown
    }

    /// Follows a topic no more.
    pub fn leave(&mut self, topic: &str) {
        self.topics.remove(topic);
    }

    /// Returns the topics that are followed.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        self.topics.iter().map(String::as_str)
    }

    /// Notes that readers see all changes that are in the log. `next`: the number of the next one.
    pub fn note_shown(&mut self, next: u64) {
        self.shown = next;
    }

    /// Tells of changes of a topic that is followed. One that was dropped or could not be read is followed no more.
    pub fn tell(&mut self, topic: &str, changes: Option<VecDeque<ShownChange>>) {
        if changes.is_none() {
            self.topics.remove(topic);
        }
        (self.tell)(ShownGroup { topic: topic.to_owned(), version: self.shown, changes });
    }
}

/// Returns the follower of a topic, if it has one.
pub(super) fn follower_of<'f>(follower: &'f mut Option<Follower>, topic: &str) -> Option<&'f mut Follower> {
    follower.as_mut().filter(|follower| follower.topics.contains(topic))
}

impl ShownChange {
    /// Returns the documents that a change takes away, which is not made yet.
    ///
    /// # Errors
    /// Those of the store.
    pub fn removals(topic: &Topic, what: &ChangeKind) -> Result<VecDeque<Self>> {
        let mut reader = TopicReader::of_writer(topic)?;
        let mut went = VecDeque::new();
        match what {
            ChangeKind::Delete(numbers) => {
                for number in numbers {
                    let doc = reader.doc(*number)?;
                    went.extend(doc.map(|doc| ShownChange::Went { number: doc.number, id: doc.id }));
                }
            }
            ChangeKind::Expire(oldest) => {
                let mut next = topic.oldest;
                while let Some(doc) = reader.living_doc_from(next)?.filter(|doc| doc.number < *oldest) {
                    next = doc.number + 1;
                    went.push_back(ShownChange::Went { number: doc.number, id: doc.id });
                }
            }
            ChangeKind::Insert(_) | ChangeKind::Prioritize { .. } | ChangeKind::Drop => {}
        }
        Ok(went)
    }
}
