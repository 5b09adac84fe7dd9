//! Finds the chunks that the snapshots of a store refer to.

use std::collections::BTreeMap;

use anyhow::Result;

use super::store::{ChunkStore, MOST_CHUNKS, PackNumber, SnapshotFile, SnapshotManifest, SnapshotReader};

/// Use of a chunk: by no snapshot, by one, or by several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ChunkUse {
    #[default]
    None,
    /// The place of the snapshot in the list.
    One(u32),
    Several,
}

/// Facts about the chunks of each pack, in the order of their numbers: their uses, or whatever else is gathered of those
/// who refer to them. The list of a pack ends with its last chunk that is used.
///
/// Memory: a value for each chunk of the store, which is 8 bytes for a [`ChunkUse`].
pub(super) struct ChunkUses<U = ChunkUse>(pub BTreeMap<PackNumber, Vec<U>>);

impl<U> Default for ChunkUses<U> {
    fn default() -> Self {
        ChunkUses(BTreeMap::new())
    }
}

impl ChunkUses {
    /// Reads all snapshots. One that is forgotten meanwhile may count or not.
    ///
    /// # Errors
    /// Those of the store, and damage of a snapshot.
    pub fn of(store: &ChunkStore, snapshots: &[SnapshotManifest]) -> Result<Self> {
        let mut uses = ChunkUses::default();
        for (at, manifest) in (0..).zip(snapshots) {
            if let Err(error) = uses.add_snapshot(store, at, manifest)
                && !store.is_forgotten(manifest)?
            {
                return Err(error);
            }
        }
        Ok(uses)
    }

    fn add_snapshot(&mut self, store: &ChunkStore, at: u32, manifest: &SnapshotManifest) -> Result<()> {
        let mut files = SnapshotReader::open(store, manifest)?;
        while let Some(file) = files.next()? {
            self.add(manifest, &file, |chunk| {
                *chunk = match *chunk {
                    ChunkUse::None => ChunkUse::One(at),
                    ChunkUse::One(other) if other == at => *chunk,
                    _ => ChunkUse::Several,
                };
            });
        }
        Ok(())
    }
}

impl<U: Copy + Default> ChunkUses<U> {
    /// Calls `change` with each chunk that a file refers to, as often as it does.
    pub fn add(&mut self, manifest: &SnapshotManifest, file: &SnapshotFile, mut change: impl FnMut(&mut U)) {
        for run in &file.chunks {
            let Some(pack) = manifest.packs.get(run.pack as usize) else { continue };
            let chunks = self.0.entry(*pack).or_default();
            let (first, end) = (run.first as usize, run.first as usize + run.count as usize);
            // A pack never has more chunks than these and those of one frame more.
            if end > 2 * MOST_CHUNKS {
                continue;
            }
            if chunks.len() < end {
                chunks.resize(end, U::default());
            }
            chunks[first..end].iter_mut().for_each(&mut change);
        }
    }

    /// Returns what is known of a chunk.
    pub fn of_chunk(&self, pack: PackNumber, number: usize) -> U {
        self.0.get(&pack).and_then(|chunks| chunks.get(number)).copied().unwrap_or_default()
    }
}
