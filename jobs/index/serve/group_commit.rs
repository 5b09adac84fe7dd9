//! Makes the changes of many requests durable together.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Result;
use parking_lot::{Mutex, RwLock};
use tokio::sync::oneshot;

use crate::index::changes::GroupSize;
use crate::index::index_folder::{IndexFolder, MEMORY_BYTES};
use crate::index::prepare::now;
use crate::index::query::{QueryAnswer, QueryLimits};
use crate::index::topics::PreparedDoc;

/// Number of requests that wait for the thread.
const WAITING: usize = 1024;
/// Time between two looks at how much is in memory, while it is too much.
const PAUSE: Duration = Duration::from_millis(10);

/// A change that a request asks for.
pub(super) enum WriteRequest {
    /// Adds documents.
    Insert { topic: String, docs: Vec<PreparedDoc> },
    /// Asks about documents, and adds each that nothing matches.
    QueryAndInsert { topic: String, docs: Vec<PreparedDoc>, limits: QueryLimits },
    /// Deletes the documents with these ids.
    Delete { topic: String, ids: BTreeSet<String> },
    /// Deletes documents that were added before a time, in seconds since 1970.
    Expire { topic: String, before: u64 },
    /// Removes the topic.
    Drop { topic: String },
}

/// The answer once the change is durable.
pub(super) enum WriteReply {
    Answers(Vec<QueryAnswer>),
    /// Number of documents that were added or deleted, or of topics that were dropped.
    Count(usize),
}

/// Reason why a change was not made, or may not have been.
pub(super) enum Refused {
    ReadOnly,
    /// Too many requests wait, or the server is ending.
    Busy,
    /// The change failed. Parts of it may have been made.
    Failed(anyhow::Error),
}

struct WaitingChange {
    request: WriteRequest,
    reply: oneshot::Sender<Result<WriteReply, Refused>>,
}

/// The thread that changes an index. Whatever waits when it begins with a group is one group, with one sync:
///
/// ```text
/// insert a    applied  .-- sync --. answered
/// insert b    applied  |          | answered
/// insert c             | waits    | applied  .-- sync --. answered
/// ```
///
/// Memory: the waiting requests, and up to twice what an index keeps in memory before it writes segments.
pub(super) struct GroupCommit {
    waiting: Mutex<Option<SyncSender<WaitingChange>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    failed: Arc<AtomicBool>,
    ending: Arc<AtomicBool>,
}

impl GroupCommit {
    /// Starts the thread.
    pub fn start(folder: Arc<RwLock<IndexFolder>>) -> Result<Self> {
        let (sender, waiting) = sync_channel(WAITING);
        let (failed, ending) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let changes = Changes { folder, failed: Arc::clone(&failed), ending: Arc::clone(&ending) };
        let thread =
            thread::Builder::new().name("changes".to_owned()).spawn(move || changes.run(&waiting))?;
        Ok(GroupCommit {
            waiting: Mutex::new(Some(sender)),
            thread: Mutex::new(Some(thread)),
            failed,
            ending,
        })
    }

    /// Makes a change, and returns once it is durable.
    pub async fn write(&self, request: WriteRequest) -> Result<WriteReply, Refused> {
        let (reply, answer) = oneshot::channel();
        let Some(waiting) = self.waiting.lock().clone() else { return Err(Refused::Busy) };
        match waiting.try_send(WaitingChange { request, reply }) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => return Err(Refused::Busy),
        }
        drop(waiting);
        answer.await.unwrap_or(Err(Refused::Busy))
    }

    /// Whether the log could not be written.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Takes no more changes, and waits until those that wait are durable.
    pub fn close(&self) {
        self.ending.store(true, Ordering::Relaxed);
        drop(self.waiting.lock().take());
        if let Some(thread) = self.thread.lock().take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

struct Changes {
    folder: Arc<RwLock<IndexFolder>>,
    failed: Arc<AtomicBool>,
    ending: Arc<AtomicBool>,
}

impl Changes {
    fn run(&self, waiting: &Receiver<WaitingChange>) {
        while let Ok(first) = waiting.recv() {
            self.wait_for_room();
            let (mut size, mut done) = (GroupSize::default(), Vec::new());
            let mut next = Some(first);
            while let Some(WaitingChange { request, reply }) = next {
                request.documents().iter().for_each(|doc| size.add(doc));
                done.push((self.apply(request), reply));
                next = if size.is_full() { None } else { waiting.try_recv().ok() };
            }
            let committed = self.commit();
            for (result, reply) in done {
                let result = match &committed {
                    Ok(()) => result.map_err(Refused::Failed),
                    Err(error) => Err(Refused::Failed(anyhow::anyhow!("{error:#}"))),
                };
                // The client may have gone.
                let _ = reply.send(result);
            }
        }
    }

    /// Makes the changes of the group durable. Queries go on meanwhile.
    fn commit(&self) -> Result<()> {
        let log = self.folder.read().log()?;
        let committed = log.lock().commit();
        self.failed.store(committed.is_err(), Ordering::Relaxed);
        Ok(committed?)
    }

    /// Waits while segments are written and memory is full. The end of the server does not wait for a full disk.
    fn wait_for_room(&self) {
        let is_full = || self.folder.read().memory_bytes() > 2 * MEMORY_BYTES;
        while !self.ending.load(Ordering::Relaxed) && is_full() {
            thread::sleep(PAUSE);
        }
    }

    /// Makes a change in memory and in the log. No other thread changes the topics but by flushes and merges, which change
    /// no answer, so a document is still new when it is added.
    fn apply(&self, request: WriteRequest) -> Result<WriteReply> {
        match request {
            WriteRequest::Insert { topic, docs } => {
                let mut folder = self.folder.write();
                docs.iter().try_for_each(|doc| folder.insert(&topic, doc, now()))?;
                Ok(WriteReply::Count(docs.len()))
            }
            WriteRequest::QueryAndInsert { topic, docs, limits } => {
                let answers = docs.iter().map(|doc| {
                    let mut answer = self.folder.read().query(&topic, doc, limits, now())?;
                    if answer.decide_new() {
                        self.folder.write().insert(&topic, doc, now())?;
                    }
                    Ok(answer)
                });
                answers.collect::<Result<_>>().map(WriteReply::Answers)
            }
            WriteRequest::Delete { topic, ids } => {
                self.folder.write().delete(&topic, &ids).map(WriteReply::Count)
            }
            WriteRequest::Expire { topic, before } => {
                self.folder.write().expire(&topic, before)?;
                Ok(WriteReply::Count(0))
            }
            WriteRequest::Drop { topic } => {
                let files = self.folder.read().topic(&topic).map(|topic| Arc::clone(&topic.files));
                // Queries go on while a job that writes files of the topic ends.
                files.iter().for_each(|files| files.end_jobs());
                self.folder.write().drop_topic(&topic).map(usize::from).map(WriteReply::Count)
            }
        }
    }
}

impl WriteRequest {
    /// Returns the documents that may be added.
    fn documents(&self) -> &[PreparedDoc] {
        match self {
            WriteRequest::Insert { docs, .. } | WriteRequest::QueryAndInsert { docs, .. } => docs,
            WriteRequest::Delete { .. } | WriteRequest::Expire { .. } | WriteRequest::Drop { .. } => &[],
        }
    }
}
