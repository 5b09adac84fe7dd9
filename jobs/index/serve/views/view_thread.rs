//! The thread that keeps the views of a served index.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use operators::flow::LiveView;
use parking_lot::{Mutex, RwLock};
use timely::worker::Worker;
use tokio::sync::oneshot;

use super::build::{ViewBuilder, ViewPlan};
use super::followed_topic::{DocKeys, FollowedTopic, TOO_MANY, ViewBeginning, no_room};
use super::topic_state::TopicState;
use super::topic_view::TopicView;
use super::what_ifs::{MOST_WHAT_IFS, WhatIfRule};
use crate::hidden_changes::{Follower, ShownGroup};
use crate::index_folder::IndexFolder;
use crate::topics::TextIdentities;
use crate::view::{TopicMatches, key_rule};
use nightly::Policy;

/// Time for which the index is read at once, while changes wait.
const SLICE: Duration = Duration::from_millis(5);
/// Time between two looks for what-ifs that nobody wants any more.
const LOOK: Duration = Duration::from_secs(10);
/// Time for which a view that cannot be made or took too much memory is not begun anew.
const REFUSED: Duration = Duration::from_secs(60);

/// The views of an index, each made when it is first asked for.
pub(in crate::serve) struct Views {
    /// Which of two matching documents stays.
    pub(super) policy: Policy,
    states: Mutex<BTreeMap<String, Arc<TopicState>>>,
    messages: Sender<ViewMessage>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// A message to the thread.
enum ViewMessage {
    /// The view of a topic is asked for.
    Asked(String, Arc<TopicState>),
    /// The matches of the documents are found with which a view begins.
    Built(ViewPlan, Result<TopicMatches>),
    /// A what-if of a topic is asked for. The answer is its number, or why there is none.
    WhatIf(String, WhatIfRule, oneshot::Sender<Result<u64, String>>),
    /// Some what-ifs are not wanted any more.
    Unwanted,
    /// Readers see changes.
    Shown(ShownGroup),
    /// The server ends.
    End,
}

impl Views {
    /// Starts the thread. `policy`: which of two matching documents stays. `memory`: the number of bytes that all views may take.
    /// `threads`: number of threads that look for the matches of a new view.
    pub fn start(
        folder: Arc<RwLock<IndexFolder>>,
        policy: Policy,
        memory: u64,
        threads: usize,
    ) -> Result<Self> {
        let (messages, received) = channel();
        let (shown, built) = (messages.clone(), messages.clone());
        let builder =
            ViewBuilder::start(Arc::clone(&folder), policy.clone(), threads, move |plan, found| {
                _ = built.send(ViewMessage::Built(plan, found));
            })?;
        {
            let mut folder = folder.write();
            // Without the thread nobody follows.
            let tell = move |group| _ = shown.send(ViewMessage::Shown(group));
            folder.follower = Some(Follower::new(folder.next_change(), tell));
        }
        // The engine asks for what threads may share.
        let received = Mutex::new(received);
        let of_thread = policy.clone();
        let work = move || {
            timely::execute_directly(move |worker| {
                let messages = received.into_inner();
                let views = ViewThread {
                    folder,
                    policy: of_thread,
                    memory,
                    messages,
                    builder,
                    topics: HashMap::new(),
                    asked: Vec::new(),
                    last_what_if: 0,
                    ends: false,
                };
                views.run(worker);
            });
        };
        let thread = thread::Builder::new().name("views".to_owned()).spawn(work)?;
        Ok(Views { policy, states: Mutex::default(), messages, thread: Mutex::new(Some(thread)) })
    }

    /// Returns the view of a topic, which is begun if nobody has asked for it before.
    pub(super) fn of(&self, topic: &str) -> Arc<TopicState> {
        let mut states = self.states.lock();
        if let Some(state) = states.get(topic).filter(|state| !state.has_ended()) {
            return Arc::clone(state);
        }
        // Those that have ended are forgotten, and this one is begun anew.
        states.retain(|_, state| !state.has_ended());
        let state = Arc::new(TopicState::new());
        states.insert(topic.to_owned(), Arc::clone(&state));
        let _ = self.messages.send(ViewMessage::Asked(topic.to_owned(), Arc::clone(&state)));
        state
    }

    /// Begins a what-if of a topic that has a view. Returns its number.
    ///
    /// # Errors
    /// The reason why there is none.
    pub(super) async fn what_if(&self, topic: &str, rule: WhatIfRule) -> Result<u64, String> {
        let (reply, answer) = oneshot::channel();
        let _ = self.messages.send(ViewMessage::WhatIf(topic.to_owned(), rule, reply));
        answer.await.unwrap_or_else(|_| Err("the view has ended".to_owned()))
    }

    /// Says that some what-ifs are not wanted any more.
    pub(super) fn end_unwanted(&self) {
        let _ = self.messages.send(ViewMessage::Unwanted);
    }

    /// Ends the thread, which is returned and ends soon.
    pub fn close(&self) -> Option<JoinHandle<()>> {
        let _ = self.messages.send(ViewMessage::End);
        self.thread.lock().take()
    }
}

struct ViewThread {
    folder: Arc<RwLock<IndexFolder>>,
    policy: Policy,
    /// Number of bytes that all views may take.
    memory: u64,
    messages: Receiver<ViewMessage>,
    builder: ViewBuilder,
    topics: HashMap<String, FollowedTopic>,
    /// Messages that have come, and for which the engine must begin or end something.
    asked: Vec<ViewMessage>,
    /// Number of the last what-if.
    last_what_if: u64,
    /// Whether the server ends.
    ends: bool,
}

impl ViewThread {
    fn run(mut self, worker: &mut Worker) {
        let mut looked = Instant::now();
        while !self.ends {
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                self.asked.push(ViewMessage::Unwanted);
            }
            if self.asked.is_empty() && !self.topics.values().any(FollowedTopic::has_work) {
                match self.messages.recv_timeout(LOOK) {
                    Ok(message) => self.take(message),
                    Err(RecvTimeoutError::Timeout) => continue,
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
            self.take_all();
            for asked in std::mem::take(&mut self.asked) {
                match asked {
                    ViewMessage::Asked(topic, state) => self.begin(worker, topic, state),
                    ViewMessage::Built(plan, found) => self.load(worker, &plan, found),
                    // A what-if begins with the version that is seen.
                    ViewMessage::WhatIf(ref topic, ..)
                        if self.topics.get(topic).is_some_and(FollowedTopic::has_unseen_changes) =>
                    {
                        self.asked.push(asked);
                    }
                    ViewMessage::WhatIf(topic, rule, reply) => {
                        // A client that has gone wants no answer.
                        if !reply.is_closed() {
                            let _ = reply.send(self.begin_what_if(&topic, rule));
                        }
                    }
                    ViewMessage::Unwanted => {
                        self.topics.values_mut().for_each(|topic| _ = topic.end_unwanted());
                    }
                    // Those were taken as they came.
                    ViewMessage::Shown(_) | ViewMessage::End => {}
                }
            }
            let busy = self.topics.iter().filter(|(_, topic)| topic.has_work());
            for name in busy.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
                if let Err(error) = self.go_on(worker, &name) {
                    self.end(worker, &name, cluster::one_line(&format!("{error:#}")).into_owned(), REFUSED);
                }
            }
        }
    }

    /// Takes all messages that have come.
    fn take_all(&mut self) {
        while let Ok(message) = self.messages.try_recv() {
            self.take(message);
        }
    }

    fn take(&mut self, message: ViewMessage) {
        match message {
            ViewMessage::Shown(group) => {
                if let Some(topic) = self.topics.get_mut(&group.topic) {
                    topic.wait_for(group);
                }
            }
            ViewMessage::End => self.ends = true,
            asked => self.asked.push(asked),
        }
    }

    /// Begins the view of a topic.
    fn begin(&mut self, worker: &mut Worker, topic: String, state: Arc<TopicState>) {
        let (followed, rule, keys) = {
            let folder = &mut *self.folder.write();
            let latest = folder.topics.get(&topic).map(|topic| (topic.end_of_shown(), topic.latest()));
            let followed = latest.and_then(|latest| Some((latest, folder.follower.as_mut()?.follow(&topic))));
            (followed, key_rule(folder, &self.policy), folder.keys.clone())
        };
        let (refusal, time) = match (followed, rule) {
            (None, _) => ("there is no such topic".to_owned(), Duration::ZERO),
            (Some(_), Err(why)) => (why, REFUSED),
            (Some(((end, _), _)), _) if end > LiveView::MOST_DOCS => (TOO_MANY.to_owned(), REFUSED),
            (Some(((end, (version, latest)), shown)), Ok(rule)) => {
                let keys = match rule.is_some() {
                    true => DocKeys::Kept(TextIdentities::new(keys)),
                    false => DocKeys::OfTexts(keys),
                };
                let view = TopicView::new(worker, self.policy.clone(), rule);
                let end = latest.first().map_or(end, |(first, _)| *first);
                let from = ViewBeginning { end, version, latest, shown };
                let followed = FollowedTopic::new(Arc::clone(&state), &topic, view, keys, from);
                self.topics.insert(topic.clone(), followed);
                self.builder.build(ViewPlan { topic, state, end });
                return;
            }
        };
        state.end(refusal, time);
    }

    /// Takes over the documents with which a view begins.
    fn load(&mut self, worker: &mut Worker, plan: &ViewPlan, found: Result<TopicMatches>) {
        let room = self.room_beside(Some(&plan.topic));
        let topic = self.topics.get_mut(&plan.topic);
        let Some(topic) = topic.filter(|topic| Arc::ptr_eq(&topic.state, &plan.state)) else { return };
        match found {
            Ok(found) => {
                let bytes = found.view_bytes();
                match bytes > room {
                    true => {
                        let why = no_room(room, found.chars.len() as u64, bytes);
                        self.end(worker, &plan.topic, why, REFUSED);
                    }
                    false => topic.load(worker, found),
                }
            }
            Err(error) => {
                let why = cluster::one_line(&format!("{error:#}")).into_owned();
                // A topic that was dropped meanwhile may have begun anew.
                let time = if topic.is_lost() { Duration::ZERO } else { REFUSED };
                self.end(worker, &plan.topic, why, time);
            }
        }
    }

    /// Begins a what-if. Returns its number, or why there is none.
    fn begin_what_if(&mut self, name: &str, rule: WhatIfRule) -> Result<u64, String> {
        let count: usize = self.topics.values_mut().map(|topic| topic.end_unwanted()).sum();
        if count >= MOST_WHAT_IFS {
            return Err(format!(
                "the server keeps {MOST_WHAT_IFS} what-ifs at a time: delete one, or wait until one is idle for ten minutes"
            ));
        }
        let room = self.room_beside(None);
        let topic = self.topics.get_mut(name).ok_or("the view has ended")?;
        let bytes = topic.what_if_bytes();
        if bytes > room {
            let (bytes, room) = (bytes as f64 / 1e6, room as f64 / 1e6);
            return Err(format!("it takes some {bytes:.1} MB, and --view-memory leaves {room:.1} MB"));
        }
        self.last_what_if += 1;
        topic.begin_what_if(self.last_what_if, rule);
        Ok(self.last_what_if)
    }

    /// Returns the number of bytes that the views of all topics leave, or those of all but one.
    fn room_beside(&self, beside: Option<&str>) -> u64 {
        let others = self.topics.iter().filter(|(name, _)| Some(name.as_str()) != beside);
        self.memory.saturating_sub(others.map(|(_, topic)| topic.bytes()).sum())
    }

    /// Goes on with a topic for a while.
    fn go_on(&mut self, worker: &mut Worker, name: &str) -> Result<()> {
        let room = self.room_beside(Some(name));
        let folder = Arc::clone(&self.folder);
        let index = folder.read();
        // While the index is read nothing changes, so the groups that have come are all that readers see.
        self.take_all();
        let Some(topic) = self.topics.get_mut(name) else { return Ok(()) };
        if topic.is_lost() {
            drop(index);
            let why = "the topic was dropped, or could not be read".to_owned();
            self.end(worker, name, why, Duration::ZERO);
            return Ok(());
        }
        let of_index = index.topic(name).context("a topic that is followed")?;
        let has_all = topic.work(&index, of_index, Instant::now() + SLICE)?;
        if let Some(refusal) = topic.refusal(room) {
            drop(index);
            self.end(worker, name, refusal, REFUSED);
            return Ok(());
        }
        topic.note_behind();
        match has_all {
            false => {}
            true if topic.decides_long() => {
                drop(index);
                topic.decide(worker);
            }
            true => {
                topic.decide(worker);
                topic.publish(of_index)?;
            }
        }
        Ok(())
    }

    /// Ends the view of a topic. Nobody begins it anew before some time is over.
    fn end(&mut self, worker: &mut Worker, name: &str, why: String, time: Duration) {
        if let Some(topic) = self.topics.remove(name) {
            if let Some(follower) = &mut self.folder.write().follower {
                follower.leave(name);
            }
            topic.state.end(why, time);
            topic.end(worker);
        }
    }
}
