//! The thread that keeps the views of a served index.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use operators::DocId;
use operators::flow::{LiveView, ViewChange};
use operators::method::KeptKeys;
use parking_lot::{Mutex, RwLock};
use timely::worker::Worker;

use super::topic_state::{FeedChange, TopicState, ViewProgress};
use super::topic_view::TopicView;
use crate::index::hidden_changes::{Follower, ShownChange, ShownGroup};
use crate::index::index_folder::IndexFolder;
use crate::index::topics::{Topic, TopicReader};
use crate::index::view::NO_TEXTS;
use crate::nightly::Policy;

/// Time for which the index is read at once, while changes wait.
const SLICE: Duration = Duration::from_millis(5);
/// Reason why a topic has no view.
const TOO_MANY: &str = "the topic has had too many documents for a view";

/// The views of an index, each made when it is first asked for.
pub(in crate::index::serve) struct Views {
    states: Mutex<BTreeMap<String, Arc<TopicState>>>,
    messages: Sender<ViewMessage>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// A message to the thread.
enum ViewMessage {
    /// The view of a topic is asked for.
    Asked(String, Arc<TopicState>),
    /// Readers see changes.
    Shown(ShownGroup),
    /// The server ends.
    End,
}

impl Views {
    /// Starts the thread. `policy`: which of two matching documents stays.
    pub fn start(folder: Arc<RwLock<IndexFolder>>, policy: Policy) -> Result<Self> {
        let (messages, received) = channel();
        let shown = messages.clone();
        {
            let mut folder = folder.write();
            let next_change = folder.log()?.lock().next();
            // Without the thread nobody follows.
            let tell = move |group| _ = shown.send(ViewMessage::Shown(group));
            folder.follower = Some(Follower::new(next_change, tell));
        }
        // The engine asks for what threads may share.
        let received = Mutex::new(received);
        let work = move || {
            timely::execute_directly(move |worker| {
                let messages = received.into_inner();
                let (topics, asked) = (HashMap::new(), Vec::new());
                ViewThread { folder, policy, messages, topics, asked, ends: false }.run(worker);
            });
        };
        let thread = thread::Builder::new().name("views".to_owned()).spawn(work)?;
        Ok(Views { states: Mutex::default(), messages, thread: Mutex::new(Some(thread)) })
    }

    /// Returns the view of a topic, which is begun if nobody has asked for it before.
    pub(super) fn of(&self, topic: &str) -> Arc<TopicState> {
        let mut states = self.states.lock();
        if let Some(state) = states.get(topic).cloned() {
            if matches!(state.seen.read().progress, ViewProgress::Ended(_)) {
                // Whoever asks is told why, and the next one begins it anew.
                states.remove(topic);
            }
            return state;
        }
        let state = Arc::new(TopicState::new());
        states.insert(topic.to_owned(), Arc::clone(&state));
        let _ = self.messages.send(ViewMessage::Asked(topic.to_owned(), Arc::clone(&state)));
        state
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
    messages: Receiver<ViewMessage>,
    topics: HashMap<String, FollowedTopic>,
    /// Topics whose views are to begin.
    asked: Vec<(String, Arc<TopicState>)>,
    /// Whether the server ends.
    ends: bool,
}

/// A topic with a view.
struct FollowedTopic {
    state: Arc<TopicState>,
    view: TopicView,
    keys: KeptKeys,
    /// Documents from this number on, up to the end, are still to be read. Later ones are in the groups.
    next: u64,
    end: u64,
    /// Changes that readers see and that the view lacks, the oldest first.
    waiting: VecDeque<ShownGroup>,
    /// Documents that are there.
    documents: u64,
    /// Version of the changes that the view has.
    version: u64,
    /// Ids of documents of the next version that have come and gone.
    came: BTreeMap<DocId, String>,
    went: BTreeMap<DocId, String>,
    is_published: bool,
}

impl ViewThread {
    fn run(mut self, worker: &mut Worker) {
        loop {
            if self.asked.is_empty() && !self.topics.values().any(FollowedTopic::has_work) {
                match self.messages.recv() {
                    Ok(message) => self.take(message),
                    Err(_) => return,
                }
            }
            self.take_all();
            if self.ends {
                return;
            }
            for (topic, state) in std::mem::take(&mut self.asked) {
                self.begin(worker, &topic, state);
            }
            let names: Vec<String> = self.topics.keys().cloned().collect();
            for name in names {
                if let Err(error) = self.go_on(worker, &name) {
                    self.end(worker, &name, cluster::one_line(&format!("{error:#}")).into_owned());
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
            ViewMessage::Asked(topic, state) => self.asked.push((topic, state)),
            ViewMessage::Shown(group) => {
                if let Some(topic) = self.topics.get_mut(&group.topic) {
                    topic.waiting.push_back(group);
                }
            }
            ViewMessage::End => self.ends = true,
        }
    }

    /// Begins the view of a topic.
    fn begin(&mut self, worker: &mut Worker, name: &str, state: Arc<TopicState>) {
        let (followed, keys, keeps_texts) = {
            let folder = &mut *self.folder.write();
            let end = folder.topics.get(name).map(Topic::end_of_shown);
            let followed = end.and_then(|end| Some((end, folder.follower.as_mut()?.follow(name))));
            (followed, folder.keys.clone(), folder.settings.texts)
        };
        let refusal = match followed {
            None => "there is no such topic",
            Some(_) if !keeps_texts => NO_TEXTS,
            Some((end, _)) if end > LiveView::MOST_DOCS => TOO_MANY,
            Some((end, version)) => {
                let topic = FollowedTopic {
                    state,
                    view: TopicView::new(worker, self.policy.clone()),
                    keys,
                    next: 0,
                    end,
                    waiting: VecDeque::new(),
                    documents: 0,
                    version,
                    came: BTreeMap::new(),
                    went: BTreeMap::new(),
                    is_published: false,
                };
                self.topics.insert(name.to_owned(), topic);
                return;
            }
        };
        state.note(ViewProgress::Ended(refusal.to_owned()));
    }

    /// Goes on with a topic for a while.
    fn go_on(&mut self, worker: &mut Worker, name: &str) -> Result<()> {
        let folder = Arc::clone(&self.folder);
        let index = folder.read();
        // While the index is read nothing changes, so the groups that have come are all that readers see.
        self.take_all();
        let Some(topic) = self.topics.get_mut(name) else { return Ok(()) };
        if topic.waiting.iter().any(|group| group.changes.is_none()) {
            drop(index);
            self.end(worker, name, "the topic was dropped, or could not be read".to_owned());
            return Ok(());
        }
        if !topic.has_work() {
            return Ok(());
        }
        let of_index = index.topic(name).context("a topic that is followed")?;
        let is_done = topic.work(&index, of_index, Instant::now() + SLICE)?;
        if is_done {
            topic.commit(worker, &index, of_index)?;
        }
        topic.say();
        Ok(())
    }

    /// Ends the view of a topic.
    fn end(&mut self, worker: &mut Worker, name: &str, why: String) {
        if let Some(topic) = self.topics.remove(name) {
            topic.state.note(ViewProgress::Ended(why));
            topic.view.end(worker);
        }
    }
}

impl FollowedTopic {
    fn has_work(&self) -> bool {
        self.next < self.end || !self.waiting.is_empty() || !self.is_published
    }

    /// Takes over documents and changes. Returns whether the view has all that readers see.
    fn work(&mut self, index: &IndexFolder, topic: &Topic, pause: Instant) -> Result<bool> {
        let (mut docs, mut reader) = (TopicReader::new(topic)?, TopicReader::new(topic)?);
        while self.next < self.end {
            if Instant::now() >= pause {
                return Ok(false);
            }
            let Some(doc) = docs.living_doc_from(self.next)?.filter(|doc| doc.number < self.end) else {
                self.next = self.end;
                break;
            };
            self.next = doc.number + 1;
            self.view.add(index, &mut reader, &mut self.keys, &doc)?;
            self.documents += 1;
        }
        while let Some(group) = self.waiting.front_mut() {
            let Some(change) = group.changes.as_mut().and_then(VecDeque::pop_front) else {
                self.version = group.version;
                self.waiting.pop_front();
                continue;
            };
            match change {
                ShownChange::Came(number) if number >= LiveView::MOST_DOCS => bail!(TOO_MANY),
                ShownChange::Came(number) => {
                    // One that is not there has gone already, and a later group says so.
                    if let Some(doc) = docs.doc(number)? {
                        self.view.add(index, &mut reader, &mut self.keys, &doc)?;
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
                    }
                }
            }
            if Instant::now() >= pause {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Decides, and makes a version of it.
    fn commit(&mut self, worker: &mut Worker, index: &IndexFolder, topic: &Topic) -> Result<()> {
        let (keys, mut reader) = (&mut self.keys, TopicReader::new(topic)?);
        let changes = self.view.commit(worker, |view, doc| view.ask_again(index, &mut reader, keys, doc))?;
        let lines = match self.is_published {
            true => Some(self.lines(&mut reader, &changes)?),
            false => None,
        };
        self.state.publish(self.version, &changes, (self.documents, self.view.cut), lines);
        self.is_published = true;
        (self.came, self.went) = Default::default();
        Ok(())
    }

    /// Returns the lines of the feed for a version.
    fn lines(&self, reader: &mut TopicReader, changes: &[ViewChange]) -> Result<Vec<String>> {
        let gone = changes.iter().filter(|change| change.after.is_some());
        let gone: HashSet<DocId> = gone.map(|change| change.doc).collect();
        let mut lines = Vec::new();
        let mut say = |id: &str, change, duplicate_of: Option<&str>| {
            let line = FeedChange { version: self.version, id, change, duplicate_of };
            lines.push(serde_json::to_string(&line)? + "\n");
            anyhow::Ok(())
        };
        let mut id_of = |doc: DocId| anyhow::Ok(reader.doc(doc.0)?.map(|doc| doc.id).unwrap_or_default());
        for id in self.went.values() {
            say(id, "deleted", None)?;
        }
        for (_, id) in self.came.iter().filter(|(doc, _)| !gone.contains(doc)) {
            say(id, "kept", None)?;
        }
        for change in changes.iter().filter(|change| !self.went.contains_key(&change.doc)) {
            match change.after {
                Some(removed) => say(&id_of(change.doc)?, "removed", Some(&id_of(removed.duplicate_of)?))?,
                None if !self.came.contains_key(&change.doc) => say(&id_of(change.doc)?, "restored", None)?,
                None => {}
            }
        }
        Ok(lines)
    }

    /// Says how far the view is.
    fn say(&self) {
        if !self.is_published {
            self.state.note(ViewProgress::Building(self.next, self.end));
        }
        self.state.seen.write().behind = self.waiting.len();
    }
}
