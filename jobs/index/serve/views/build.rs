//! The thread that finds the matches of a topic whose view is begun, while the index and the other views go on.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use anyhow::{Context, Result, ensure};
use parking_lot::{Mutex, RwLock};
use tempfile::TempDir;

use super::topic_state::{TopicState, ViewProgress};
use crate::index_folder::IndexFolder;
use crate::view::{TopicDocs, TopicMatches};
use nightly::Policy;

/// A view that is to be built.
pub(super) struct ViewPlan {
    pub topic: String,
    pub state: Arc<TopicState>,
    /// Number behind its last document.
    pub end: u64,
}

/// Builds views, one after the other.
pub(super) struct ViewBuilder {
    plans: Sender<ViewPlan>,
    texts: TextsFolder,
}

/// Folder with the texts of the view that is being built.
type TextsFolder = Arc<Mutex<BuildFolder>>;

#[derive(Default)]
struct BuildFolder {
    folder: Option<TempDir>,
    /// Whether no more are made, since the server ends.
    is_closed: bool,
}

impl ViewBuilder {
    /// Starts the thread. `threads`: number of threads that look for matches. `built`: takes the matches of each topic.
    pub fn start(
        folder: Arc<RwLock<IndexFolder>>,
        policy: Policy,
        threads: usize,
        built: impl Fn(ViewPlan, Result<TopicMatches>) + Send + 'static,
    ) -> Result<Self> {
        let (plans, received): (_, Receiver<ViewPlan>) = channel();
        let texts = TextsFolder::default();
        let of_thread = Arc::clone(&texts);
        thread::Builder::new().name("new views".to_owned()).spawn(move || {
            for plan in received {
                let found = matches(&folder, &plan, (&policy, threads), &of_thread);
                let found = found.context("the view could not be made in the folder for temporary files");
                of_thread.lock().folder.take();
                built(plan, found);
            }
        })?;
        Ok(ViewBuilder { plans, texts })
    }

    /// Builds one more view.
    pub fn build(&self, plan: ViewPlan) {
        let _ = self.plans.send(plan);
    }
}

impl Drop for ViewBuilder {
    /// Removes what a thread has written that ends with the process.
    fn drop(&mut self) {
        let mut texts = self.texts.lock();
        texts.is_closed = true;
        texts.folder.take();
    }
}

/// Finds the matches of the first documents of a topic. Changes wait while a thousand documents are read.
fn matches(
    folder: &RwLock<IndexFolder>,
    plan: &ViewPlan,
    (policy, threads): (&Policy, usize),
    texts: &TextsFolder,
) -> Result<TopicMatches> {
    let path: PathBuf = {
        let mut texts = texts.lock();
        ensure!(!texts.is_closed, "the server ends");
        texts.folder.insert(tempfile::tempdir()?).path().to_path_buf()
    };
    let mut docs = TopicDocs::new(&folder.read(), &path)?;
    let mut next = Some(0);
    while let Some(from) = next {
        plan.state.note(ViewProgress::Building(from, plan.end));
        let index = folder.read();
        let topic = index.topic(&plan.topic).context("the topic was dropped")?;
        next = docs.add(topic, from, plan.end)?;
    }
    plan.state.note(ViewProgress::Building(plan.end, plan.end));
    let method = folder.read().method.clone();
    docs.matches(&method, policy, threads)
}
