//! Finds the chunks that the snapshots of a store refer to.

use std::collections::BTreeMap;

use anyhow::Result;

use super::store::{ChunkStore, MOST_CHUNKS, PackNumber, SnapshotFile, SnapshotManifest, SnapshotReader};

/// How a chunk is used: by no snapshot, by one, or by several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ChunkUse {
    #[default]
    None,
    /// The place of the snapshot in the list.
    One(u32),
    Several,
}

/// The use of the chunks of each pack, in the order of their numbers. The list of a pack ends with its last chunk that is
/// used.
///
/// Memory: 8 bytes for each chunk of the store.
#[derive(Default)]
pub(super) struct ChunkUses(pub BTreeMap<PackNumber, Vec<ChunkUse>>);

impl ChunkUses {
    /// Reads all snapshots.
    ///
    /// # Errors
    /// Those of the store, and damage of a snapshot.
    pub fn of(store: &ChunkStore, snapshots: &[SnapshotManifest]) -> Result<Self> {
        let mut uses = ChunkUses::default();
        for (at, manifest) in (0..).zip(snapshots) {
            let mut files = SnapshotReader::open(store, manifest)?;
            while let Some(file) = files.next()? {
                uses.add(at, manifest, &file);
            }
        }
        Ok(uses)
    }

    fn add(&mut self, snapshot: u32, manifest: &SnapshotManifest, file: &SnapshotFile) {
        for run in &file.chunks {
            let Some(pack) = manifest.packs.get(run.pack as usize) else { continue };
            let chunks = self.0.entry(*pack).or_default();
            let (first, end) = (run.first as usize, run.first as usize + run.count as usize);
            // A pack never has more chunks than these and those of one frame more.
            if end > 2 * MOST_CHUNKS {
                continue;
            }
            if chunks.len() < end {
                chunks.resize(end, ChunkUse::None);
            }
            for chunk in &mut chunks[first..end] {
                *chunk = match *chunk {
                    ChunkUse::None => ChunkUse::One(snapshot),
                    ChunkUse::One(other) if other == snapshot => *chunk,
                    _ => ChunkUse::Several,
                };
            }
        }
    }

    /// Returns the use of a chunk.
    pub fn of_chunk(&self, pack: PackNumber, number: usize) -> ChunkUse {
        self.0.get(&pack).and_then(|chunks| chunks.get(number)).copied().unwrap_or_default()
    }
}
