//! Names and contents of a file system, and the steps that change them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Id of a file or directory.
pub type Id = u64;

/// Names and contents of a file system: the names in each directory that was ever made, each with the id of
/// its directory or file, and the contents by id. The root has the id 0.
#[derive(Clone, Default)]
pub struct Names {
    pub entries: BTreeMap<Id, BTreeMap<String, Id>>,
    pub contents: BTreeMap<Id, Arc<[u8]>>,
}

/// Change that is not yet durable.
#[derive(Clone)]
pub enum Step {
    /// The name now leads to the id `to`, and no other name does. If `to` is `None`, the name no longer leads
    /// to `from`.
    Entry {
        directory: Id,
        name: String,
        to: Option<Id>,
        from: Option<Id>,
    },
    /// The file has this length; its bytes are not yet there and read as zeros.
    Length {
        file: Id,
        bytes: usize,
    },
    Content {
        file: Id,
        bytes: Arc<[u8]>,
    },
}

impl Names {
    pub fn find(&self, path: &str) -> Option<Id> {
        let mut names = path.split('/').filter(|name| !name.is_empty());
        names.try_fold(0, |at, name| self.entries.get(&at)?.get(name).copied())
    }

    pub fn apply(&mut self, step: &Step) {
        match step {
            Step::Entry { directory, name, to, from } => {
                if let Some(id) = to {
                    // A rename is one step, so the earlier name of the file goes with it.
                    self.entries.values_mut().for_each(|names| names.retain(|_, other| other != id));
                }
                let names = self.entries.entry(*directory).or_default();
                match to {
                    Some(id) => drop(names.insert(name.clone(), *id)),
                    None if names.get(name) == from.as_ref() => drop(names.remove(name)),
                    None => {}
                }
            }
            Step::Length { file, bytes } => drop(self.contents.insert(*file, vec![0; *bytes].into())),
            Step::Content { file, bytes } => drop(self.contents.insert(*file, Arc::clone(bytes))),
        }
    }

    /// Adds to `found` an id and all ids below it.
    pub fn below(&self, id: Id, found: &mut BTreeSet<Id>) {
        if found.insert(id) {
            self.entries.get(&id).into_iter().flatten().for_each(|(_, child)| self.below(*child, found));
        }
    }
}
