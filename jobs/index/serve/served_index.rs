//! An index that many requests share.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Result;
use operators::{DocBatch, Priority};
use parking_lot::{Mutex, RwLock};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use tokio::task::block_in_place;

use super::args::ServeArgs;
use super::background::Background;
use super::changes::{GroupCommit, Refused, WriteReply, WriteRequest};
use super::deadline::{Closing, Deadline};
use super::views::Views;
use crate::index_folder::IndexFolder;
use crate::prepare::Preparer;
use crate::query::{Queries, QueryAnswer, QueryLimits};
use crate::settings::IndexSettings;
use crate::topics::PreparedDoc;
use runtime::Common;
use runtime::clock::seconds_now;

/// Time for which queries keep changes waiting at once.
const SLICE: Duration = Duration::from_millis(5);
/// Time between two looks at whether a thread has ended.
const PAUSE: Duration = Duration::from_millis(5);
/// Time that threads have to end after that of the requests is over.
const TIME_TO_END: Duration = Duration::from_secs(1);

/// A document of a request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestDoc {
    #[serde(default)]
    pub id: String,
    pub text: String,
    /// Priority; the default without one.
    #[serde(default, deserialize_with = "priority")]
    pub priority: Priority,
}

/// Reads a finite number, or a string that is one.
fn priority<'de, D: Deserializer<'de>>(from: D) -> Result<Priority, D::Error> {
    // The number is read from its digits, since serde_json may be off by the last bit.
    let raw = Box::<RawValue>::deserialize(from)?;
    let priority = Priority::of_text(raw.get().trim_matches('"'));
    priority.ok_or_else(|| D::Error::custom("the priority is no finite number"))
}

/// An index, with the threads that change it.
pub(super) struct ServedIndex {
    folder: Arc<RwLock<IndexFolder>>,
    /// Preparers that no request uses just now, with the settings of their index: another one may take the place of an index
    /// that is only read.
    preparers: Mutex<Vec<(IndexSettings, Preparer)>>,
    /// `None` if the index is only read.
    writer: Option<GroupCommit>,
    background: Mutex<Option<Background>>,
    closing: Closing,
    views: Option<Views>,
}

impl ServedIndex {
    /// Opens the index, and starts the threads that change it, or the one that sees what another process has changed.
    /// `closing`: the end of the server.
    ///
    /// # Errors
    /// Those of [`IndexFolder::open`] and [`IndexFolder::open_to_read`]; when words are others than those of the index.
    pub fn open(common: &Common, args: &ServeArgs, closing: Closing) -> Result<Self> {
        let lexicon = args.words.lexicon_below("")?;
        let folder = match args.read_only {
            true => IndexFolder::open_to_read(&args.index, &lexicon)?,
            false => IndexFolder::open(&args.index, &lexicon, Duration::ZERO)?,
        };
        folder.settings.check_words(&args.index, &lexicon)?;
        folder.warn_of_torn(common);
        let folder = Arc::new(RwLock::new(folder));
        let groups = Arc::new(Mutex::new(()));
        let start = || GroupCommit::start(Arc::clone(&folder), Arc::clone(&groups));
        let writer = (!args.read_only).then(start).transpose()?;
        let policy = args.view_policy.clone();
        let memory = args.view_memory;
        let views = || Views::start(Arc::clone(&folder), policy, memory, common.workers());
        let views = args.view.then(views).transpose()?;
        let background = match &writer {
            Some(_) => Background::maintain(Arc::clone(&folder), groups, args.merge_rate, common)?,
            None => Background::follow(Arc::clone(&folder), args.index.clone(), lexicon, common)?,
        };
        Ok(ServedIndex {
            folder,
            preparers: Mutex::default(),
            writer,
            background: Mutex::new(Some(background)),
            closing,
            views,
        })
    }

    /// Prepares documents. Cost: that of mapping their texts.
    pub fn prepare(&self, docs: &[RequestDoc]) -> Vec<PreparedDoc> {
        let idle = self.preparers.lock().pop();
        let (settings, mut preparer) = {
            let folder = self.folder.read();
            let idle = idle.filter(|(settings, _)| *settings == folder.settings);
            idle.unwrap_or_else(|| (folder.settings.clone(), Preparer::of(&folder)))
        };
        let mut batch = DocBatch::new(0, 0);
        for doc in docs {
            batch.push(&doc.id, &doc.text);
            batch.set_priority(doc.priority);
        }
        let prepared = preparer.prepare(&batch);
        self.preparers.lock().push((settings, preparer));
        prepared
    }

    /// Answers queries; `None` if that takes longer than up to `deadline`. Changes are let in every [`SLICE`], and after the
    /// first one other requests of the thread are handed over to another one.
    pub fn query(
        &self,
        topic: &str,
        docs: &[PreparedDoc],
        limits: QueryLimits,
        deadline: &Deadline,
    ) -> Result<Option<Vec<QueryAnswer>>> {
        let mut queries = Queries::new(limits, seconds_now());
        let mut answer = || {
            let pause = Some(Instant::now() + SLICE);
            self.folder.read().answer_until(topic, docs, &mut queries, pause)
        };
        let mut are_answered = answer()?;
        while !are_answered {
            if deadline.is_over() {
                return Ok(None);
            }
            are_answered = block_in_place(&mut answer)?;
        }
        Ok(Some(queries.answers))
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
        match self.writer.as_ref().filter(|_| self.closing.end().is_none()) {
            Some(writer) => writer.write(topic, request, deadline).await,
            None if self.writer.is_none() => Err(Refused::ReadOnly),
            None => Err(Refused::Busy),
        }
    }

    /// Returns the views; `None` if there are none.
    pub fn views(&self) -> Option<&Views> {
        self.views.as_ref()
    }

    /// Returns the end of the server.
    pub fn closing(&self) -> Closing {
        self.closing.clone()
    }

    /// Calls `read` with the index as it is now. Changes wait meanwhile.
    pub fn read<T>(&self, read: impl FnOnce(&IndexFolder) -> T) -> T {
        read(&self.folder.read())
    }

    /// Whether the index takes requests, and changes if it is not read only.
    ///
    /// # Errors
    /// The reason why it does not.
    pub fn check_ready(&self) -> Result<(), String> {
        if self.closing.end().is_some() {
            return Err("the server is ending".to_owned());
        }
        if self.writer.is_some() {
            let in_place = self.folder.read().check_place();
            in_place
                .map_err(|error| cluster::one_line(&format!("nothing is changed: {error:#}")).into_owned())?;
        }
        if self.writer.as_ref().is_some_and(GroupCommit::has_failed) {
            let line =
                "the log could not be written, so nothing is changed before the server is started again";
            return Err(line.to_owned());
        }
        Ok(())
    }

    /// Ends the threads: makes durable what was taken, and gives up merges that are under way. A thread that does not end
    /// soon after the requests, such as one that is writing a segment, is left to the end of the process: whatever was
    /// acknowledged is in the log.
    pub fn close(&self) {
        self.closing.begin(Duration::ZERO);
        let writer = self.writer.as_ref().and_then(GroupCommit::close);
        let background = self.background.lock().take().map(Background::end);
        let views = self.views.as_ref().and_then(Views::close);
        let end = Instant::now() + TIME_TO_END;
        for thread in writer.into_iter().chain(background).chain(views) {
            join_until(thread, end);
        }
    }
}

fn join_until(thread: JoinHandle<()>, end: Instant) {
    while !thread.is_finished() && Instant::now() < end {
        thread::sleep(PAUSE);
    }
    if thread.is_finished() {
        // A panic of the thread has been printed.
        let _ = thread.join();
    }
}
