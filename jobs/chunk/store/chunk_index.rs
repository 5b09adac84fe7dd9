//! Finds the place of a chunk.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use cluster::runs::{MergedRuns, RunCursor, RunReader, RunShape, RunSummary, RunWriter, newest_tier};
use serde::{Deserialize, Serialize};

use super::claims::living_claims;
use super::pack_layout::{ChunkId, ChunkPlace, PackNumber};
use super::store_folder::ChunkStore;
use runtime::output::{read_sealed, write_sealed};

/// Rows of an index: the first word of a chunk's name, its pack, and its number there.
const PLACES: RunShape = RunShape::new(3, 0, false);
/// Number of rows below which files count as equally large when they are merged.
const FEW_ROWS: u64 = 1 << 16;
const FOLDER: &str = "index";
/// Advice for a user when a file of the index is damaged.
const REMOVE: &str = "the index of the store is damaged: remove its folder \"index\", which is made again";

/// The places of the chunks of a store, in sorted files.
///
/// A row may be of a pack that is gone, or of a chunk that was removed from it: whoever finds a place asks the pack.
///
/// Memory: some KB for each file.
pub(crate) struct ChunkIndex {
    files: Vec<IndexFile>,
    cursors: Vec<RunCursor>,
}

struct IndexFile {
    name: String,
    entry: IndexEntry,
    run: RunReader,
}

/// Description of a file of the index, which is written beside it.
#[derive(Clone, Deserialize, Serialize)]
struct IndexEntry {
    summary: RunSummary,
    /// Packs whose chunks are in it.
    packs: BTreeSet<PackNumber>,
    /// Names of the files whose rows are in it.
    replaces: BTreeSet<String>,
}

impl ChunkIndex {
    /// Opens the index of a store, and adds the packs that are in no file of it. Those that cannot be read are told of.
    ///
    /// # Errors
    /// Those of the store.
    pub fn open(store: &ChunkStore) -> Result<Self> {
        let files = files(store).context(REMOVE)?;
        let mut index = ChunkIndex { files, cursors: Vec::new() };
        let known: BTreeSet<PackNumber> =
            index.files.iter().flat_map(|file| file.entry.packs.iter().copied()).collect();
        let mut rows = Vec::new();
        for (number, _) in store.packs()?.into_iter().filter(|(number, _)| !known.contains(number)) {
            match store.open_pack(number) {
                Ok(pack) => {
                    let chunks = (0..).zip(&pack.directory.chunks);
                    rows.extend(
                        chunks.map(|(at, chunk)| (chunk.id, ChunkPlace { pack: number, number: at })),
                    );
                }
                // Another process may be writing it.
                Err(error) => log::warn!("{error}"),
            }
        }
        index.add(store, rows)?;
        Ok(index)
    }

    /// Returns a place for which `is_good` is true, if there is one. It is asked about each chunk whose name begins as that
    /// of the wanted one does.
    ///
    /// Cost: a read in each file of the index.
    ///
    /// # Errors
    /// Those of the store and of `is_good`.
    pub fn find(
        &mut self,
        id: ChunkId,
        mut is_good: impl FnMut(ChunkPlace) -> Result<bool>,
    ) -> Result<Option<ChunkPlace>> {
        let word = id.first_word();
        for cursor in &mut self.cursors {
            cursor.look_up(&[word, 0, 0]).context(REMOVE)?;
            while let Some(row) = cursor.next_row().context(REMOVE)?.filter(|row| row.words[0] == word) {
                let place = ChunkPlace { pack: PackNumber(row.words[1]), number: row.words[2] as u32 };
                if is_good(place)? {
                    return Ok(Some(place));
                }
            }
        }
        Ok(None)
    }

    /// Writes the places of chunks into a file of their own, and merges files if there are many of about one size.
    ///
    /// # Errors
    /// Those of the store.
    pub fn add(&mut self, store: &ChunkStore, rows: Vec<(ChunkId, ChunkPlace)>) -> Result<()> {
        if !rows.is_empty() {
            self.add_rows(store, rows)?;
        }
        self.cursors = self.files.iter().map(|file| file.run.cursor()).collect();
        Ok(())
    }

    fn add_rows(&mut self, store: &ChunkStore, mut rows: Vec<(ChunkId, ChunkPlace)>) -> Result<()> {
        let packs = rows.iter().map(|(_, place)| place.pack).collect();
        let key = |&(id, place): &(ChunkId, ChunkPlace)| (id.first_word(), place);
        rows.sort_unstable_by_key(key);
        rows.dedup_by_key(|row| key(row));
        self.write(store, packs, BTreeSet::new(), |run| {
            rows.iter().try_for_each(|(id, place)| {
                Ok(run.push(&[id.first_word(), place.pack.0, place.number.into()], b"")?)
            })
        })?;
        self.files.sort_by_key(|file| std::cmp::Reverse(file.entry.summary.rows));
        let sizes: Vec<u64> = self.files.iter().map(|file| file.entry.summary.rows).collect();
        let count = newest_tier(&sizes, FEW_ROWS);
        if count > 0 {
            let merged = self.files.split_off(self.files.len() - count);
            let packs = merged.iter().flat_map(|file| file.entry.packs.iter().copied()).collect();
            let replaces = merged.iter().map(|file| file.name.clone()).collect();
            self.write(store, packs, replaces, |run| {
                let mut rows = MergedRuns::new(merged.iter().map(|file| &file.run));
                rows.seek(&[0, 0, 0])?;
                let mut last = [0; 3];
                while let Some(row) = rows.next_row()? {
                    // A pack that two puts have found is in two files.
                    if row.words != last {
                        last.copy_from_slice(row.words);
                        run.push(row.words, b"")?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn write(
        &mut self,
        store: &ChunkStore,
        packs: BTreeSet<PackNumber>,
        replaces: BTreeSet<String>,
        rows: impl FnOnce(&mut RunWriter) -> Result<()>,
    ) -> Result<()> {
        let name = format!("{:016x}", ChunkStore::unique());
        let path = store.path_of(&format!("{FOLDER}/{name}.run"));
        let mut run = RunWriter::new(store.store.replace(&path)?, &path, PLACES)?;
        rows(&mut run)?;
        let entry = IndexEntry { summary: run.finish()?, packs, replaces };
        let folder = store.path_of(FOLDER);
        write_sealed(store.store.as_ref(), &format!("{folder}/{name}.json"), &folder, &entry)?;
        self.files.push(IndexFile::open(store, name, entry)?);
        Ok(())
    }

    /// Reads every byte of the files, and names the first that is damaged. A put that ends meanwhile may remove files, and then
    /// those that are left are read.
    ///
    /// # Errors
    /// Those of the store, and [`cluster::Error::Damaged`].
    pub fn check(store: &ChunkStore) -> Result<()> {
        let names = || Ok::<_, anyhow::Error>(entries(store)?.into_iter().map(|(name, _)| name).collect());
        let mut before: BTreeSet<String> = names()?;
        loop {
            let checked =
                files(store).and_then(|files| files.iter().try_for_each(|file| Ok(file.run.check()?)));
            let after = names()?;
            if checked.is_ok() || after == before {
                return checked;
            }
            before = after;
        }
    }

    /// Removes files whose rows are in others, unless a put is running that may have opened them.
    ///
    /// # Errors
    /// Those of the store.
    pub fn remove_replaced(store: &ChunkStore) -> Result<()> {
        let entries = entries(store)?;
        // A put whose claim comes after this one has listed the folder after the files that replace others were there.
        if !living_claims(store)?.is_empty() {
            return Ok(());
        }
        let listed: BTreeSet<&String> = entries.iter().map(|(name, _)| name).collect();
        let replaced = entries.iter().flat_map(|(_, entry)| &entry.replaces);
        for name in replaced.filter(|name| listed.contains(name)) {
            for extension in ["json", "run"] {
                store.store.remove(&store.path_of(&format!("{FOLDER}/{name}.{extension}")))?;
            }
        }
        Ok(())
    }
}

impl IndexFile {
    fn open(store: &ChunkStore, name: String, entry: IndexEntry) -> Result<Self> {
        let blob = store.store.open_settled(&store.path_of(&format!("{FOLDER}/{name}.run")))?;
        let run = RunReader::open_for_lookups(blob, &entry.summary)?;
        Ok(IndexFile { name, entry, run })
    }
}

/// Opens the files whose rows are in no other one.
fn files(store: &ChunkStore) -> Result<Vec<IndexFile>> {
    let mut entries = entries(store)?;
    let replaced: BTreeSet<String> =
        entries.iter().flat_map(|(_, entry)| entry.replaces.iter().cloned()).collect();
    entries.retain(|(name, _)| !replaced.contains(name));
    entries.into_iter().map(|(name, entry)| IndexFile::open(store, name, entry)).collect()
}

/// Reads what is written beside each file.
fn entries(store: &ChunkStore) -> Result<Vec<(String, IndexEntry)>> {
    let mut entries = Vec::new();
    for child in store.store.children_if_any(&store.path_of(FOLDER))? {
        let Some(name) = child.name().strip_suffix(".json") else { continue };
        let entry = read_sealed::<IndexEntry>(store.store.as_ref(), &child.path)?;
        entries.extend(entry.map(|entry| (name.to_owned(), entry)));
    }
    Ok(entries)
}
