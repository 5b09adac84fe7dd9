//! Makes the changes of many requests durable together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use parking_lot::{Mutex, RwLock};

use super::change_task::{ChangeTask, Refused, TaskEnd, WriteReply, WriteRequest};
use super::task_queues::TaskQueues;
use crate::changes::GroupSize;
use crate::index_folder::{IndexFolder, MEMORY_BYTES};
use crate::serve::deadline::Deadline;

/// Number of requests that wait for the thread.
const WAITING: usize = 1024;
/// Time between two looks at how much is in memory, while it is too much.
const PAUSE: Duration = Duration::from_millis(10);
/// Time of the turn of a topic, and of one that is alone, whose batches are so in one group unless they take long.
const TURN: Duration = Duration::from_millis(20);
const LONE_TURN: Duration = Duration::from_millis(200);
/// Time from which on a group takes no more turns.
const GROUP_TIME: Duration = Duration::from_millis(50);

/// The thread that changes an index. Whatever waits when it begins with a group is one group, with one sync:
///
/// ```text
/// insert a    applied  .-- sync --. answered
/// insert b    applied  |          | answered
/// insert c             | waits    | applied  .-- sync --. answered
/// ```
///
/// Readers see the changes of a group once they are durable, and never those of a group that failed. A task that takes long
/// is in several groups ([`TaskQueues`]).
///
/// Memory: the waiting requests, and up to twice what an index keeps in memory before it writes segments.
pub(in crate::serve) struct GroupCommit {
    waiting: Mutex<Option<SyncSender<ChangeTask>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    failed: Arc<AtomicBool>,
}

impl GroupCommit {
    /// Starts the thread. `groups` is held while a group is made.
    pub fn start(folder: Arc<RwLock<IndexFolder>>, groups: Arc<Mutex<()>>) -> Result<Self> {
        folder.write().hide_changes();
        let (sender, waiting) = sync_channel(WAITING);
        let failed = Arc::new(AtomicBool::new(false));
        let changes = Changes { folder, groups, failed: Arc::clone(&failed) };
        let thread =
            thread::Builder::new().name("changes".to_owned()).spawn(move || changes.run(&waiting))?;
        Ok(GroupCommit { waiting: Mutex::new(Some(sender)), thread: Mutex::new(Some(thread)), failed })
    }

    /// Makes a change of a topic, and returns once it is durable.
    ///
    /// # Errors
    /// [`Refused`], with what was done.
    pub async fn write(
        &self,
        topic: String,
        request: WriteRequest,
        deadline: Deadline,
    ) -> Result<WriteReply, Refused> {
        let (task, result) = ChangeTask::new(topic, request, deadline);
        let Some(waiting) = self.waiting.lock().clone() else { return Err(Refused::Busy) };
        match waiting.try_send(task) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => return Err(Refused::Busy),
        }
        drop(waiting);
        result.await.unwrap_or(Err(Refused::Busy))
    }

    /// Whether the log could not be written.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Takes no more changes, and returns the thread, which ends once those that wait are durable or their time is over.
    pub fn close(&self) -> Option<JoinHandle<()>> {
        drop(self.waiting.lock().take());
        self.thread.lock().take()
    }
}

struct Changes {
    folder: Arc<RwLock<IndexFolder>>,
    groups: Arc<Mutex<()>>,
    failed: Arc<AtomicBool>,
}

impl Changes {
    fn run(&self, waiting: &Receiver<ChangeTask>) {
        let mut queues = TaskQueues::default();
        loop {
            if queues.len() == 0 {
                let Ok(first) = waiting.recv() else { return };
                queues.push(first);
            }
            let room = WAITING.saturating_sub(queues.len());
            waiting.try_iter().take(room).for_each(|task| queues.push(task));
            if self.has_room() {
                self.make_group(&mut queues);
            } else {
                queues.note_durable();
                thread::sleep(PAUSE);
            }
        }
    }

    /// Whether memory takes more documents. A log that has failed takes none, which the requests are told.
    fn has_room(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.folder.read().memory_bytes() <= 2 * MEMORY_BYTES
    }

    /// Gives topics a turn, and makes durable what they have done.
    fn make_group(&self, queues: &mut TaskQueues) {
        // No flush begins in the middle of a group, which would make a part of it durable.
        let _group = self.groups.lock();
        let mut size = GroupSize::default();
        let mut ended = Vec::new();
        let end = Instant::now() + GROUP_TIME;
        let turn_time = if queues.topics() > 1 { TURN } else { LONE_TURN };
        for turn in 0..queues.topics() {
            let Some(mut tasks) = queues.take_turn() else { break };
            let pause = Instant::now() + turn_time;
            let (mut is_next, mut goes_on) = (false, true);
            while let Some(mut task) = tasks.pop_front() {
                let is_alone = task.is_alone();
                if is_alone && (turn > 0 || !ended.is_empty()) {
                    (is_next, goes_on) = (true, false);
                    tasks.push_front(task);
                    break;
                }
                let Some(task_end) = task.work(&self.folder, pause, &mut size) else {
                    tasks.push_front(task);
                    break;
                };
                goes_on &= !is_alone;
                let lets_next_share = task.lets_next_share();
                ended.push((task, task_end));
                if !lets_next_share || size.is_full() || Instant::now() >= pause {
                    break;
                }
            }
            queues.give_back(tasks, is_next);
            if !goes_on || size.is_full() || Instant::now() >= end {
                break;
            }
        }
        let committed = self.commit();
        if committed.is_ok() {
            ended.iter_mut().for_each(|(task, _)| task.note_durable());
            queues.note_durable();
        }
        for (task, task_end) in ended {
            let failed = committed.as_ref().err().map(|error| TaskEnd::Failed(anyhow!("{error:#}")));
            task.reply(failed.unwrap_or(task_end));
        }
    }

    /// Makes the changes of the group durable, and then shows them. Queries go on meanwhile.
    fn commit(&self) -> Result<()> {
        let log = self.folder.read().log()?;
        let committed = log.lock().commit();
        self.failed.store(committed.is_err(), Ordering::Relaxed);
        committed?;
        if self.folder.read().has_hidden() {
            let next_change = log.lock().next();
            self.folder.write().show(next_change);
        }
        Ok(())
    }
}
