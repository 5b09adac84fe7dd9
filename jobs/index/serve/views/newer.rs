//! An index that is only read, and that is read again when another process has changed it.

use std::collections::VecDeque;

use anyhow::Result;
use parking_lot::{RwLock, RwLockUpgradableReadGuard};

use crate::hidden_changes::{ShownChange, follower_of};
use crate::index_folder::IndexFolder;
use crate::topics::{IndexedDoc, Topic, TopicReader};

/// Puts an index that was read again in the place of the one that was read before, and tells the follower what has changed.
///
/// Cost: for each topic that is followed, a row for each document before and after. Queries are answered meanwhile.
pub(in crate::serve) fn take_newer(folder: &RwLock<IndexFolder>, mut newer: IndexFolder) {
    // While the changes are looked for, nobody begins to follow a topic as it was before.
    let older = folder.upgradable_read();
    let followed = older.follower.iter().flat_map(|follower| follower.topics());
    let changes = followed.map(|name| {
        let changes = match (older.topic(name), newer.topic(name)) {
            (Some(before), Some(after))
                if before.begun == after.begun && older.settings == newer.settings =>
            {
                changes(before, after)
            }
            _ => Ok(None),
        };
        // One that could not be told of the changes is told so.
        (name.to_owned(), changes.unwrap_or_default())
    });
    let changes: Vec<_> = changes.collect();
    let mut older = RwLockUpgradableReadGuard::upgrade(older);
    newer.follower = older.follower.take();
    *older = newer;
    let next_change = older.next_change();
    if let Some(follower) = &mut older.follower {
        follower.note_shown(next_change);
    }
    for (name, changes) in changes {
        if changes.as_ref().is_none_or(|changes| !changes.is_empty())
            && let Some(follower) = follower_of(&mut older.follower, &name)
        {
            follower.tell(&name, changes);
        }
    }
}

/// Returns the documents that have come and gone; `None` if the topic was dropped and begun anew.
fn changes(before: &Topic, after: &Topic) -> Result<Option<VecDeque<ShownChange>>> {
    let (mut old_docs, mut new_docs) = (TopicReader::new(before)?, TopicReader::new(after)?);
    let mut changes = VecDeque::new();
    let mut next = 0;
    loop {
        let (old, new) = (old_docs.living_doc_from(next)?, new_docs.living_doc_from(next)?);
        let number = |doc: &Option<IndexedDoc>| doc.as_ref().map_or(u64::MAX, |doc| doc.number);
        next = number(&old).min(number(&new)).saturating_add(1);
        match (old, new) {
            (None, None) => return Ok(Some(changes)),
            (Some(old), Some(new)) if old.number == new.number => {
                if (old.time, old.id) != (new.time, new.id) {
                    return Ok(None);
                }
            }
            (Some(old), new) if old.number < number(&new) => {
                changes.push_back(ShownChange::Went { number: old.number, id: old.id });
            }
            (_, Some(new)) if new.number >= before.end_of_shown() => {
                changes.push_back(ShownChange::Came(new.number));
            }
            _ => return Ok(None),
        }
    }
}
