//! An index that many requests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use operators::DocBatch;
use parking_lot::{Mutex, RwLock};
use serde::Deserialize;

use super::args::ServeArgs;
use super::background::Background;
use super::group_commit::{GroupCommit, Refused, WriteReply, WriteRequest};
use crate::Common;
use crate::index::index_folder::IndexFolder;
use crate::index::prepare::{Preparer, now};
use crate::index::query::{QueryAnswer, QueryLimits};
use crate::index::topics::PreparedDoc;

/// Number of documents that are asked about while changes wait.
const QUERIES_AT_ONCE: usize = 100;

/// A document of a request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestDoc {
    #[serde(default)]
    pub id: String,
    pub text: String,
}

/// An index, with the threads that change it.
pub(super) struct ServedIndex {
    folder: Arc<RwLock<IndexFolder>>,
    /// Preparers that no request uses just now.
    preparers: Mutex<Vec<Preparer>>,
    /// `None` if the index is only read.
    writer: Option<GroupCommit>,
    background: Mutex<Option<Background>>,
    ending: AtomicBool,
}

impl ServedIndex {
    /// Opens the index, and starts the threads that change it, or the one that sees what another process has changed.
    ///
    /// # Errors
    /// Those of [`IndexFolder::open`] and [`IndexFolder::open_to_read`]; when words are others than those of the index.
    pub fn open(common: &Common, args: &ServeArgs) -> Result<Self> {
        let lexicon = args.words.lexicon_below("")?;
        let folder = match args.read_only {
            true => IndexFolder::open_to_read(&args.index, &lexicon)?,
            false => IndexFolder::open(&args.index, &lexicon, Duration::ZERO)?,
        };
        folder.settings.check_words(&args.index, &lexicon)?;
        folder.warn_of_torn(common);
        let folder = Arc::new(RwLock::new(folder));
        let writer = (!args.read_only).then(|| GroupCommit::start(Arc::clone(&folder))).transpose()?;
        let background = match &writer {
            Some(_) => Background::maintain(Arc::clone(&folder), args.merge_rate, common)?,
            None => Background::follow(Arc::clone(&folder), args.index.clone(), lexicon, common)?,
        };
        Ok(ServedIndex {
            folder,
            preparers: Mutex::default(),
            writer,
            background: Mutex::new(Some(background)),
            ending: AtomicBool::new(false),
        })
    }

    /// Prepares documents. Cost: that of mapping their texts.
    pub fn prepare(&self, docs: &[RequestDoc]) -> Vec<PreparedDoc> {
        let idle = self.preparers.lock().pop();
        let mut preparer = idle.unwrap_or_else(|| Preparer::of(&self.folder.read()));
        let mut batch = DocBatch::new(0, 0);
        docs.iter().for_each(|doc| batch.push(&doc.id, &doc.text));
        let prepared = preparer.prepare(&batch);
        self.preparers.lock().push(preparer);
        prepared
    }

    /// Answers queries; `None` if that takes longer than up to `end`. A change that is under way may be seen shortly before
    /// it is durable. Changes are let in every [`QUERIES_AT_ONCE`] documents.
    pub fn query(
        &self,
        topic: &str,
        docs: &[PreparedDoc],
        limits: QueryLimits,
        end: Instant,
    ) -> Result<Option<Vec<QueryAnswer>>> {
        let (mut answers, now) = (Vec::with_capacity(docs.len()), now());
        for docs in docs.chunks(QUERIES_AT_ONCE) {
            if Instant::now() >= end {
                return Ok(None);
            }
            answers.extend(self.folder.read().query_all(topic, docs, limits, now)?);
        }
        Ok(Some(answers))
    }

    /// Makes a change, and returns once it is durable.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn write(&self, request: WriteRequest) -> Result<WriteReply, Refused> {
        let writer = self.writer.as_ref().filter(|_| !self.ending.load(Ordering::Relaxed));
        match writer {
            Some(writer) => writer.write(request).await,
            None if self.writer.is_none() => Err(Refused::ReadOnly),
            None => Err(Refused::Busy),
        }
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
        if self.ending.load(Ordering::Relaxed) {
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

    /// Takes no more changes, since the server ends.
    pub fn set_ending(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Ends the threads: makes durable what was taken, and gives up merges that are under way.
    pub fn close(&self) {
        if let Some(writer) = &self.writer {
            writer.close();
        }
        if let Some(background) = self.background.lock().take() {
            background.end();
        }
    }
}
