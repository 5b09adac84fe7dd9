//! Reads the files of snapshots.

use std::io::{self, Write};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use blake3::Hasher;
use datasets::{Extractors, UndoneFile};

use super::pack_layout::ChunkPlace;
use super::pack_reader::OpenPacks;
use super::snapshot::{SnapshotFile, SnapshotManifest};
use super::store_folder::ChunkStore;

/// Largest number of bytes of the chunks of a file whose deflate streams were undone.
const MAX_UNDONE_BYTES: u64 = 128 << 20;

/// Reader of files of a store.
///
/// Memory: some frames of 8 MiB, and a file of up to 96 MiB if its streams were undone.
pub(crate) struct ContentReader {
    packs: OpenPacks,
    extractors: Arc<Extractors>,
}

impl ContentReader {
    pub fn new(store: &ChunkStore, extractors: &Arc<Extractors>) -> Self {
        let packs = OpenPacks::new(&store.store, store.path_of("packs"));
        ContentReader { packs, extractors: Arc::clone(extractors) }
    }

    /// Writes the bytes of a file to `to`.
    ///
    /// # Errors
    /// Those of the store and of `to`, [`cluster::Error::Damaged`], and when the bytes are not those that were put, which is
    /// known at their end.
    pub fn write(
        &mut self,
        manifest: &SnapshotManifest,
        file: &SnapshotFile,
        to: &mut dyn Write,
    ) -> Result<()> {
        let mut hasher = Hasher::new();
        let mut bytes = 0;
        let mut give = |piece: &[u8]| {
            hasher.update(piece);
            bytes += piece.len() as u64;
            to.write_all(piece)
        };
        if file.parts.is_empty() {
            let mut chunk = Vec::new();
            self.each_chunk(manifest, file, |packs, place| {
                chunk.clear();
                packs.read(place, &mut chunk)?;
                Ok(give(&chunk)?)
            })?;
        } else {
            give(&self.recreated(manifest, file)?)?;
        }
        if bytes != file.bytes || hasher.finalize().as_bytes() != &file.hash {
            bail!("\"{}\" is not what was put: its hash is wrong", file.name);
        }
        Ok(())
    }

    /// Makes a file of what its streams hold.
    fn recreated(&mut self, manifest: &SnapshotManifest, file: &SnapshotFile) -> Result<Vec<u8>> {
        let mut chunks = Vec::new();
        self.each_chunk(manifest, file, |packs, place| {
            packs.read(place, &mut chunks)?;
            match chunks.len() as u64 > MAX_UNDONE_BYTES {
                true => bail!("\"{}\" has more chunks than a file can have", file.name),
                false => Ok(()),
            }
        })?;
        let undone = UndoneFile::of_contents(file.parts.clone(), chunks);
        let undone = undone.with_context(|| format!("\"{}\" has other chunks than it should", file.name))?;
        let again = undone.recreate_confined(&self.extractors)?;
        again.map_err(|reason| anyhow::anyhow!("\"{}\" cannot be made again: {reason}", file.name))
    }

    /// Whether an error of [`ContentReader::write`] is damage of the store, and would come again.
    pub fn is_damage(error: &anyhow::Error) -> bool {
        match error.downcast_ref::<cluster::Error>() {
            Some(cluster::Error::Damaged { .. } | cluster::Error::NotFound { .. }) => true,
            Some(_) => false,
            None => error.downcast_ref::<io::Error>().is_none(),
        }
    }

    fn each_chunk(
        &mut self,
        manifest: &SnapshotManifest,
        file: &SnapshotFile,
        mut each: impl FnMut(&mut OpenPacks, ChunkPlace) -> Result<()>,
    ) -> Result<()> {
        for run in &file.chunks {
            let pack =
                *manifest.packs.get(run.pack as usize).context("a pack that the snapshot does not name")?;
            for number in run.first..run.first.saturating_add(run.count) {
                each(&mut self.packs, ChunkPlace { pack, number })?;
            }
        }
        Ok(())
    }
}
