//! Chooses files of a snapshot by the names that a user gives.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use super::store::SnapshotManifest;
use runtime::cli::exit::WrongUse;

/// Filter for files by their names: each name chooses the file of that name and all files below a folder of that name.
/// Without names every file is chosen.
pub(super) struct NameFilter<'a> {
    names: &'a [String],
    /// Places of the names that have chosen a file.
    found: BTreeSet<usize>,
}

impl<'a> NameFilter<'a> {
    pub fn new(names: &'a [String]) -> Self {
        NameFilter { names, found: BTreeSet::new() }
    }

    /// Whether a file is chosen. Cost: compares it with each of the names.
    pub fn takes(&mut self, file: &str) -> bool {
        let mut takes = self.names.is_empty();
        for (at, _) in (0..).zip(self.names).filter(|(_, name)| is_at_or_below(file, name)) {
            self.found.insert(at);
            takes = true;
        }
        takes
    }

    /// Returns an error if a name has chosen no file.
    ///
    /// # Errors
    /// [`WrongUse`], which names the snapshots.
    pub fn finish(self, snapshots: &[SnapshotManifest]) -> Result<()> {
        let Some((_, name)) = (0..).zip(self.names).find(|(at, _)| !self.found.contains(at)) else {
            return Ok(());
        };
        match snapshots {
            [snapshot] => bail!(WrongUse(format!("snapshot {} has no file \"{name}\"", snapshot.name))),
            _ => bail!(WrongUse(format!("no snapshot has a file \"{name}\""))),
        }
    }
}

fn is_at_or_below(name: &str, above: &str) -> bool {
    let above = above.trim_end_matches('/');
    name.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
