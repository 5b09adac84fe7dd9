//! Changes that requests ask for, and the work for them, which is done a while at a time.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use parking_lot::RwLock;
use tokio::sync::oneshot;

use crate::changes::GroupSize;
use crate::index_folder::IndexFolder;
use crate::query::{Queries, QueryAnswer, QueryLimits};
use crate::serve::deadline::Deadline;
use crate::topics::{PreparedDoc, TopicFiles};
use runtime::clock::seconds_now;

/// Time for which a task keeps others from changing the index at once.
const SLICE: Duration = Duration::from_millis(5);
/// Number of ids that are looked up between two looks at the time.
const IDS_AT_ONCE: usize = 64;
/// Time between two looks at whether a job still writes files of a topic that is dropped.
const PAUSE: Duration = Duration::from_millis(5);

/// A change that a request asks for.
pub(in crate::serve) enum WriteRequest {
    /// Adds documents: all of them, or none.
    Insert { docs: Vec<PreparedDoc> },
    /// Asks about documents one after the other, and adds each that nothing matches.
    QueryAndInsert { docs: Vec<PreparedDoc>, limits: QueryLimits },
    /// Deletes the documents with these ids, which are sorted: all of them, or none.
    Delete { ids: Vec<String> },
    /// Deletes documents that were added before a time, in seconds since 1970.
    Expire { before: u64 },
    /// Removes the topic.
    Drop,
}

/// The part of a change that was done, all of which is durable.
pub(in crate::serve) struct WriteReply {
    /// Answers about the first documents of a request, if it asks about them.
    pub answers: Vec<QueryAnswer>,
    /// Number of documents that were added, deleted or answered, or of topics that were dropped.
    pub count: usize,
}

/// Reason why a change was not made, or not all of it.
pub(in crate::serve) enum Refused {
    ReadOnly,
    /// Too many requests wait, or the server is ending.
    Busy,
    /// The time of the request is over, and this much was done.
    TooSlow(WriteReply),
    /// The change failed, and this much was done.
    Failed(anyhow::Error, WriteReply),
}

/// Outcome of the work for a change.
pub(super) enum TaskEnd {
    Done,
    TooSlow,
    Failed(anyhow::Error),
}

/// The work for a change of a topic.
pub(super) struct ChangeTask {
    pub topic: String,
    work: ChangeWork,
    deadline: Deadline,
    reply: oneshot::Sender<Result<WriteReply, Refused>>,
    /// Number of documents or answers whose changes are durable.
    durable: usize,
}

/// A change, and the part of it that was done.
enum ChangeWork {
    Insert {
        docs: Vec<PreparedDoc>,
        inserted: usize,
    },
    QueryAndInsert {
        docs: Vec<PreparedDoc>,
        queries: Queries,
    },
    Delete {
        ids: Vec<String>,
        looked_up: usize,
        numbers: Vec<u64>,
        deleted: usize,
    },
    Expire {
        before: u64,
    },
    /// Removes the topic once no job writes its `files` any more.
    Drop {
        files: Option<Arc<TopicFiles>>,
        dropped: usize,
    },
}

impl ChangeTask {
    /// Makes the task of a request, and what its result comes from.
    pub fn new(
        topic: String,
        request: WriteRequest,
        deadline: Deadline,
    ) -> (Self, oneshot::Receiver<Result<WriteReply, Refused>>) {
        let work = match request {
            WriteRequest::Insert { docs } => ChangeWork::Insert { docs, inserted: 0 },
            WriteRequest::QueryAndInsert { docs, limits } => {
                ChangeWork::QueryAndInsert { docs, queries: Queries::of_writer(limits, seconds_now()) }
            }
            WriteRequest::Delete { ids } => {
                ChangeWork::Delete { ids, looked_up: 0, numbers: Vec::new(), deleted: 0 }
            }
            WriteRequest::Expire { before } => ChangeWork::Expire { before },
            WriteRequest::Drop => ChangeWork::Drop { files: None, dropped: 0 },
        };
        let (reply, result) = oneshot::channel();
        (ChangeTask { topic, work, deadline, reply, durable: 0 }, result)
    }

    /// Whether the task makes changes durable by itself, so that no other one may share its group.
    pub fn is_alone(&self) -> bool {
        matches!(self.work, ChangeWork::Drop { .. })
    }

    /// Whether the next task of the topic may share its group. What is removed goes once the group is durable, and the next
    /// one is to see that.
    pub fn lets_next_share(&self) -> bool {
        matches!(self.work, ChangeWork::Insert { .. } | ChangeWork::QueryAndInsert { .. })
    }

    /// Whether nobody waits for the result any more, or the time is over.
    pub fn is_late(&self) -> bool {
        self.reply.is_closed() || self.deadline.is_over()
    }

    /// Works up to `pause`. Returns the end of the task; `None` if it goes on in its next turn. `size`: that of the group.
    ///
    /// No other thread makes documents, and tasks of a topic follow each other, so a document is still new when it is added.
    pub fn work(
        &mut self,
        folder: &RwLock<IndexFolder>,
        pause: Instant,
        size: &mut GroupSize,
    ) -> Option<TaskEnd> {
        while !self.is_late() {
            match self.work_once(folder, size) {
                Ok(true) => return Some(TaskEnd::Done),
                Ok(false) if Instant::now() >= pause => return None,
                Ok(false) => {}
                Err(error) => return Some(TaskEnd::Failed(error)),
            }
        }
        Some(TaskEnd::TooSlow)
    }

    /// Works for about [`SLICE`], and returns whether all is done.
    fn work_once(&mut self, folder: &RwLock<IndexFolder>, size: &mut GroupSize) -> Result<bool> {
        let topic = &*self.topic;
        match &mut self.work {
            ChangeWork::Insert { docs, inserted } => {
                for doc in docs {
                    folder.write().insert(topic, doc, seconds_now())?;
                    size.add(doc);
                    *inserted += 1;
                }
                Ok(true)
            }
            ChangeWork::QueryAndInsert { docs, queries } => {
                let at = queries.answers.len();
                let Some(doc) = docs.get(at) else { return Ok(true) };
                let pause = Some(Instant::now() + SLICE);
                if folder.read().answer_until(topic, &docs[..=at], queries, pause)?
                    && queries.answers[at].decide_new()
                {
                    let inserted = folder.write().insert(topic, doc, seconds_now());
                    // Without it, the answer would say that the document was added.
                    inserted.inspect_err(|_| queries.answers.truncate(at))?;
                    size.add(doc);
                }
                Ok(queries.answers.len() == docs.len())
            }
            ChangeWork::Delete { ids, looked_up, numbers, deleted } => {
                if *looked_up == 0 {
                    let is_one = |id: &str| ids.binary_search_by(|one| one.as_str().cmp(id)).is_ok();
                    *numbers = folder.read().numbers_in_memory(topic, is_one);
                }
                let some = ids.iter().skip(*looked_up).take(IDS_AT_ONCE);
                numbers.extend(folder.read().numbers_in_segments(topic, some)?);
                *looked_up += IDS_AT_ONCE;
                if *looked_up < ids.len() {
                    return Ok(false);
                }
                // A flush may have moved documents from memory to a segment meanwhile.
                numbers.sort_unstable();
                numbers.dedup();
                *deleted = folder.write().delete_numbers(topic, std::mem::take(numbers))?;
                Ok(true)
            }
            ChangeWork::Expire { before } => folder.write().expire(topic, *before).map(|()| true),
            ChangeWork::Drop { files, dropped } => {
                *files = folder.read().topic(topic).map(|topic| Arc::clone(&topic.files));
                if files.as_ref().is_some_and(|files| !files.have_ended_jobs()) {
                    thread::sleep(PAUSE);
                    return Ok(false);
                }
                *dropped = usize::from(folder.write().drop_topic(topic)?);
                Ok(true)
            }
        }
    }

    /// Notes that all that was done so far is durable.
    pub fn note_durable(&mut self) {
        self.durable = match &self.work {
            ChangeWork::Insert { inserted, .. } => *inserted,
            ChangeWork::QueryAndInsert { queries, .. } => queries.answers.len(),
            ChangeWork::Delete { deleted, .. } => *deleted,
            ChangeWork::Expire { .. } => 0,
            ChangeWork::Drop { dropped, .. } => *dropped,
        };
    }

    /// Answers the request. What is not durable was not done.
    pub fn reply(self, end: TaskEnd) {
        if let (ChangeWork::Drop { files: Some(files), .. }, false) =
            (&self.work, matches!(end, TaskEnd::Done))
        {
            files.allow_jobs();
        }
        let mut answers = match self.work {
            ChangeWork::QueryAndInsert { queries, .. } => queries.answers,
            _ => Vec::new(),
        };
        answers.truncate(self.durable);
        let done = WriteReply { answers, count: self.durable };
        let result = match end {
            TaskEnd::Done => Ok(done),
            TaskEnd::TooSlow => Err(Refused::TooSlow(done)),
            TaskEnd::Failed(error) => Err(Refused::Failed(error, done)),
        };
        // The client may have gone.
        let _ = self.reply.send(result);
    }
}
