//! Adds the chunks to a store that are not there yet.

use std::collections::{BTreeSet, HashMap};
use std::mem;

use anyhow::Result;
use cluster::Error;

use crate::store::{
    ChunkId, ChunkIndex, ChunkPackWriter, ChunkPlace, ChunkRun, ChunkStore, OpenPacks, PackNumber,
    frozen_packs,
};

/// Level of zstd for what was stored with deflate, which is small and compressible.
const UNDONE_LEVEL: i32 = 12;
/// Level of zstd for everything else.
const LEVEL: i32 = 3;
/// Number of new chunks whose places are held in memory, at 40 bytes each, until they are written to the index.
const MOST_NEW: usize = 1 << 20;

/// Chunks that a put has added.
pub(super) struct AddedChunks {
    /// The packs that runs refer to.
    pub packs: Vec<PackNumber>,
    pub stored_bytes: u64,
    pub new_chunks: u64,
    pub new_chunk_bytes: u64,
}

/// Adds chunks to a store.
pub(super) struct ChunkAdder {
    store: ChunkStore,
    index: ChunkIndex,
    open: OpenPacks,
    /// Packs of the store that may be used.
    usable: BTreeSet<PackNumber>,
    /// Places of the chunks that this put has added, and that are not in the index.
    new: HashMap<ChunkId, ChunkPlace>,
    /// The packs that are being written, of undone streams and of everything else.
    writers: [Option<ChunkPackWriter>; 2],
    /// Places in `added.packs`.
    numbers: HashMap<PackNumber, u32>,
    last: Option<ChunkPlace>,
    added: AddedChunks,
}

impl ChunkAdder {
    /// Begins to add. The caller has a claim.
    ///
    /// # Errors
    /// Those of the store.
    pub fn new(store: &ChunkStore) -> Result<Self> {
        let frozen = frozen_packs(store)?;
        let packs = store.packs()?.into_iter().map(|(number, _)| number);
        Ok(ChunkAdder {
            usable: packs.filter(|number| !frozen.contains(number)).collect(),
            index: ChunkIndex::open(store)?,
            open: OpenPacks::new(&store.store, store.path_of("packs")),
            new: HashMap::new(),
            writers: [None, None],
            numbers: HashMap::new(),
            last: None,
            added: AddedChunks { packs: Vec::new(), stored_bytes: 0, new_chunks: 0, new_chunk_bytes: 0 },
            store: store.clone(),
        })
    }

    /// Finds a chunk or adds it, and appends its place to `runs`. `is_undone`: whether it was compressed by deflate.
    ///
    /// # Errors
    /// Those of the store.
    pub fn add(
        &mut self,
        id: ChunkId,
        bytes: &[u8],
        is_undone: bool,
        runs: &mut Vec<ChunkRun>,
    ) -> Result<()> {
        let place = match self.find(id)? {
            Some(place) => place,
            None => self.write(id, bytes, is_undone)?,
        };
        self.last = Some(place);
        let pack = self.number_of(place.pack);
        match runs.last_mut() {
            Some(run) if run.pack == pack && run.first + run.count == place.number => run.count += 1,
            _ => runs.push(ChunkRun { pack, first: place.number, count: 1 }),
        }
        Ok(())
    }

    /// Whether the chunks of a file of a snapshot, whose packs are `packs`, are there and may be used.
    pub fn can_reuse(&mut self, packs: &[PackNumber], chunks: &[ChunkRun]) -> bool {
        chunks.iter().all(|run| {
            let number = packs.get(run.pack as usize).filter(|number| self.usable.contains(number));
            let (first, count) = (run.first as usize, run.count as usize);
            // A damaged pack is reported when its chunks are looked up.
            number.and_then(|number| self.open.pack(*number).ok()).is_some_and(|pack| {
                let chunks = pack.directory.chunks.get(first..first + count);
                chunks.is_some_and(|chunks| chunks.iter().all(|chunk| chunk.bytes > 0))
            })
        })
    }

    /// Returns the chunks of a file of a snapshot, for which [`ChunkAdder::can_reuse`] was true, as runs of this put.
    pub fn reuse(&mut self, packs: &[PackNumber], chunks: &[ChunkRun]) -> Vec<ChunkRun> {
        let renumber = |run: &ChunkRun| ChunkRun { pack: self.number_of(packs[run.pack as usize]), ..*run };
        chunks.iter().map(renumber).collect()
    }

    /// Returns the place of a pack in the list of the snapshot, to which it is added.
    fn number_of(&mut self, pack: PackNumber) -> u32 {
        let packs = &mut self.added.packs;
        *self.numbers.entry(pack).or_insert_with(|| {
            packs.push(pack);
            packs.len() as u32 - 1
        })
    }

    fn find(&mut self, id: ChunkId) -> Result<Option<ChunkPlace>> {
        if let Some(place) = self.new.get(&id) {
            return Ok(Some(*place));
        }
        let (usable, open) = (&self.usable, &mut self.open);
        let mut is_there = |place: ChunkPlace| {
            if !usable.contains(&place.pack) {
                return Ok(false);
            }
            let pack = match open.pack(place.pack) {
                // A pack that is damaged has no chunk that could be used.
                Err(Error::Damaged { .. } | Error::NotFound { .. }) => return Ok(false),
                pack => pack?,
            };
            let chunk = pack.directory.chunks.get(place.number as usize);
            Ok(chunk.is_some_and(|chunk| chunk.id == id && chunk.bytes > 0))
        };
        // Chunks that follow each other in a file mostly did so before.
        if let Some(last) = self.last {
            let next = ChunkPlace { number: last.number + 1, ..last };
            if is_there(next)? {
                return Ok(Some(next));
            }
        }
        self.index.find(id, is_there)
    }

    fn write(&mut self, id: ChunkId, bytes: &[u8], is_undone: bool) -> Result<ChunkPlace> {
        let slot = usize::from(is_undone);
        if self.writers[slot].as_ref().is_some_and(ChunkPackWriter::is_full) {
            self.finish_pack(slot)?;
            if self.new.len() >= MOST_NEW {
                self.finish_pack(1 - slot)?;
                self.write_index()?;
            }
        }
        let writer = match &mut self.writers[slot] {
            Some(writer) => writer,
            empty => {
                let number = PackNumber(ChunkStore::unique());
                let level = if is_undone { UNDONE_LEVEL } else { LEVEL };
                let path = self.store.pack_path(number);
                empty.insert(ChunkPackWriter::new(&self.store.store, &path, number, level)?)
            }
        };
        let place = writer.push(id, bytes)?;
        self.new.insert(id, place);
        self.added.new_chunks += 1;
        self.added.new_chunk_bytes += bytes.len() as u64;
        Ok(place)
    }

    fn finish_pack(&mut self, slot: usize) -> Result<()> {
        if let Some(writer) = self.writers[slot].take() {
            self.usable.insert(writer.number);
            self.added.stored_bytes += writer.finish()?;
        }
        Ok(())
    }

    fn write_index(&mut self) -> Result<()> {
        self.index.add(&self.store, mem::take(&mut self.new).into_iter().collect())
    }

    /// Finishes the packs, and writes the new chunks to the index.
    ///
    /// # Errors
    /// Those of the store.
    pub fn finish(mut self) -> Result<AddedChunks> {
        self.finish_pack(0)?;
        self.finish_pack(1)?;
        self.write_index()?;
        Ok(self.added)
    }
}
