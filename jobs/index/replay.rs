//! Makes the changes of a log again, and drops topics.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use cluster::{Showing, Store};
use operators::method::KeptKeys;

use super::topics::{Change, ChangeKind, Topic};

/// Folder that a topic is moved to before its files are removed, so that none is half there.
pub(super) const DROPPED: &str = "_dropped";

/// Makes the changes of a log again.
pub(super) struct Replay<'a> {
    pub store: &'a Arc<dyn Store>,
    pub path: &'a str,
    pub topics: &'a mut BTreeMap<String, Topic>,
    pub keys: &'a KeptKeys,
}

impl Replay<'_> {
    /// Makes a change again. Returns the name of the topic that it has dropped.
    pub fn change(&mut self, number: u64, record: &[u8]) -> Result<Option<String>> {
        let Change { topic: name, what } =
            postcard::from_bytes(record).context("the log is of another version of this program")?;
        let topic = topic_of(self.topics, self.store, self.path, &name, number)?;
        if number < topic.flushed() {
            return Ok(None);
        }
        if what == ChangeKind::Drop {
            self.topics.remove(&name);
            return Ok(Some(name));
        }
        topic.apply(number, what, self.keys);
        Ok(None)
    }
}

/// Returns a topic, which is begun if there is none. `next_change`: the number of the next change in the log.
pub(super) fn topic_of<'a>(
    topics: &'a mut BTreeMap<String, Topic>,
    store: &Arc<dyn Store>,
    path: &str,
    name: &str,
    next_change: u64,
) -> Result<&'a mut Topic> {
    if !topics.contains_key(name) {
        let topic = Topic::open(store, name, format!("{path}/topics/{name}"), next_change)?;
        topics.insert(name.to_owned(), topic);
    }
    topics.get_mut(name).context("a topic that was opened is open")
}

/// Removes the files of a topic, once the log has its end.
pub(super) fn remove_topic(store: &dyn Store, path: &str, name: &str) -> Result<()> {
    let (folder, dropped) = (format!("{path}/topics/{name}"), format!("{path}/{DROPPED}"));
    if let (true, Showing::Rename(renames)) = (store.exists(&folder)?, store.showing()) {
        store.remove(&dropped)?;
        renames.rename(&folder, &dropped)?;
        // The power may go. Then the topic is whole or has moved, but has lost none of its files alone.
        store.settle(path)?;
        store.remove(&dropped)?;
    }
    Ok(())
}
