//! Makes files of a store without writing them, to see that they are what was put.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use anyhow::Result;
use blake3::Hasher;
use datasets::Extractors;

use super::store::{ChunkStore, ContentReader, SnapshotFile, SnapshotManifest};
use runtime::corpus::at_once::each_with;

/// Restorer that throws away what it makes, and compares the hash of every file with that of the file that was put.
///
/// A file that is made of the same chunks in several snapshots is made once. Files whose compression was undone are made in
/// confined processes.
///
/// Memory: 48 bytes for each file that is made; for each worker frames of 48 MiB, and 96 MiB more for a file whose streams were
/// undone.
pub(super) struct TrialRestore<'a> {
    store: &'a ChunkStore,
    extractors: Arc<Extractors>,
    workers: usize,
    /// Hashes of files that were made, with the places of their chunks.
    whole: HashSet<[u8; 16]>,
}

impl<'a> TrialRestore<'a> {
    /// Begins with no file made.
    ///
    /// # Errors
    /// When this program, which the confined processes run, cannot be found.
    pub fn new(store: &'a ChunkStore, workers: usize) -> Result<Self> {
        let extractors = Arc::new(Extractors::of_this_program()?);
        Ok(TrialRestore { store, extractors, workers, whole: HashSet::new() })
    }

    /// Makes files of a snapshot, and calls `each_damage` with each that cannot be made, and with the reason.
    ///
    /// # Errors
    /// Those of the store other than damage, and of `each_damage`.
    pub fn check(
        &mut self,
        manifest: &SnapshotManifest,
        files: &[SnapshotFile],
        mut each_damage: impl FnMut(&SnapshotFile, String) -> Result<()>,
    ) -> Result<()> {
        let named: Vec<_> = files.iter().map(|file| (file, making(manifest, file))).collect();
        let left: Vec<_> = named.into_iter().filter(|(_, making)| !self.whole.contains(making)).collect();
        let reader = |_| ContentReader::new(self.store, &self.extractors);
        let made = each_with(self.workers, &left, reader, |contents, (file, _)| {
            match contents.write(manifest, file, &mut io::sink()) {
                Err(error) if ContentReader::is_damage(&error) => Ok(Some(format!("{error:#}"))),
                made => made.map(|()| None),
            }
        })?;
        for ((file, making), damage) in left.into_iter().zip(made) {
            match damage {
                Some(damage) => each_damage(file, damage)?,
                None => {
                    self.whole.insert(making);
                }
            }
        }
        Ok(())
    }
}

/// Returns a hash of what a file is and of what it is made of.
fn making(manifest: &SnapshotManifest, file: &SnapshotFile) -> [u8; 16] {
    let mut hasher = Hasher::new();
    hasher
        .update(&file.hash)
        .update(&file.bytes.to_le_bytes())
        .update(&(file.parts.len() as u64).to_le_bytes());
    for part in &file.parts {
        for bytes in [part.raw, part.plain, part.corrections] {
            hasher.update(&bytes.to_le_bytes());
        }
    }
    for run in &file.chunks {
        let pack = manifest.packs.get(run.pack as usize).map_or(u64::MAX, |pack| pack.0);
        hasher.update(&pack.to_le_bytes()).update(&run.first.to_le_bytes()).update(&run.count.to_le_bytes());
    }
    let mut making = [0; 16];
    making.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    making
}
