//! The files of an earlier put of the same inputs, most of which have not changed.

use std::iter::Peekable;

use anyhow::{Error, Result};

use crate::store::{ChunkStore, PackNumber, SnapshotFile, SnapshotManifest, SnapshotReader};

/// The files of the newest snapshot of the same inputs, in the order of their names; none if there is no such snapshot, or
/// it is damaged or of another version of what undoes deflate.
pub(super) struct EarlierFiles {
    /// The packs that the files refer to, by their places in this list.
    pub packs: Vec<PackNumber>,
    files: Peekable<Box<dyn Iterator<Item = SnapshotFile>>>,
}

impl EarlierFiles {
    /// Opens the list of files. The caller has a claim, so that chunks of a pack that is not frozen stay. `snapshots`: those
    /// of the store, in the order of their puts.
    pub fn open(
        store: &ChunkStore,
        snapshots: Vec<SnapshotManifest>,
        inputs: &[String],
        undone_by: &str,
    ) -> Self {
        let newest = snapshots
            .into_iter()
            .rfind(|snapshot| snapshot.inputs == inputs && snapshot.undone_by == undone_by);
        let opened = newest.map(|newest| Ok((SnapshotReader::open(store, &newest)?, newest.packs)));
        let opened =
            opened.and_then(|opened: Result<_>| opened.inspect_err(warn).ok()).map(|(mut reader, packs)| {
                let files = std::iter::from_fn(move || reader.next().inspect_err(warn).ok().flatten());
                (packs, Box::new(files) as Box<dyn Iterator<Item = SnapshotFile>>)
            });
        let (packs, files) = opened.unwrap_or_else(|| (Vec::new(), Box::new(std::iter::empty())));
        EarlierFiles { packs, files: files.peekable() }
    }

    /// Returns the file of a name. Names are asked for in their order.
    pub fn find(&mut self, name: &str) -> Option<SnapshotFile> {
        while self.files.next_if(|file| file.name.as_str() < name).is_some() {}
        self.files.next_if(|file| file.name == name)
    }
}

/// Tells why files cannot be compared with what they were.
fn warn(error: &Error) {
    log::warn!("unchanged files are put as if they had changed: {error:#}");
}
