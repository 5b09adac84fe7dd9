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

use crate::index::changes::{GROUP, MEMORY_BYTES};
use crate::index::index_folder::IndexFolder;
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

/// Why a change was not made, or may not have been.
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
    drops: Arc<Mutex<()>>,
}

impl GroupCommit {
    /// Starts the thread.
    pub fn start(folder: Arc<RwLock<IndexFolder>>) -> Result<Self> {
        let (sender, waiting) = sync_channel(WAITING);
        let (failed, drops) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(())));
        let changes = Changes { folder, failed: Arc::clone(&failed), drops: Arc::clone(&drops) };
        let thread =
            thread::Builder::new().name("changes".to_owned()).spawn(move || changes.run(&waiting))?;
        Ok(GroupCommit { waiting: Mutex::new(Some(sender)), thread: Mutex::new(Some(thread)), failed, drops })
    }

    /// Returns the lock that nobody holds while topics are dropped: jobs that write files of topics hold it.
    pub fn drops(&self) -> Arc<Mutex<()>> {
        Arc::clone(&self.drops)
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
    drops: Arc<Mutex<()>>,
}

impl Changes {
    fn run(&self, waiting: &Receiver<WaitingChange>) {
        while let Ok(first) = waiting.recv() {
            self.wait_for_room();
            let (mut documents, mut done) = (0, Vec::new());
            let mut next = Some(first);
            while let Some(WaitingChange { request, reply }) = next {
                documents += request.documents();
                done.push((self.apply(request), reply));
                next = (documents < GROUP).then(|| waiting.try_recv().ok()).flatten();
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

    /// Waits while segments are written and memory is full.
    fn wait_for_room(&self) {
        while self.folder.read().memory_bytes() > 2 * MEMORY_BYTES {
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
                // Jobs that write files of the topic end soon.
                if let Some(topic) = self.folder.read().topic(&topic) {
                    topic.set_dropped();
                }
                let _no_jobs = self.drops.lock();
                self.folder.write().drop_topic(&topic).map(usize::from).map(WriteReply::Count)
            }
        }
    }
}

impl WriteRequest {
    fn documents(&self) -> usize {
        match self {
            WriteRequest::Insert { docs, .. } | WriteRequest::QueryAndInsert { docs, .. } => docs.len(),
            WriteRequest::Delete { ids, .. } => ids.len(),
            WriteRequest::Expire { .. } | WriteRequest::Drop { .. } => 1,
        }
    }
}
