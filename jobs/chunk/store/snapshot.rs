//! Snapshots: what a user has put into a store at one time.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use cluster::runs::{RunCursor, RunReader, RunShape, RunSummary, RunWriter};
use cluster::{Error, Store, one_line};
use datasets::DeflatePart;
use serde::{Deserialize, Serialize};

use super::claims::PutClaim;
use super::pack_layout::PackNumber;
use super::store_folder::ChunkStore;
use runtime::cli::exit::WrongUse;
use runtime::output::{read_sealed, write_sealed};

/// Rows of the files of a snapshot: the number of a file, and a [`SnapshotFile`] in postcard's encoding.
const FILES: RunShape = RunShape::new(1, 0, true);

/// Description of a snapshot. It is written last: without it there is no snapshot.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct SnapshotManifest {
    /// Its name, which begins with its time.
    pub name: String,
    /// Number that is greater than those of the snapshots that were there when its put began. Those of earlier programs
    /// have none.
    #[serde(default)]
    pub number: u64,
    /// Time at which it was made, in milliseconds since 1970.
    pub time: u64,
    /// Host on which it was made.
    pub host: String,
    /// Inputs as the user has named them.
    pub inputs: Vec<String>,
    pub counts: SnapshotCounts,
    /// The packs that its files refer to, by their places in this list.
    pub packs: Vec<PackNumber>,
    /// The run of its files, in the order of their names.
    pub files: RunSummary,
    /// Version of the program.
    pub made_by: String,
    /// Version of what has undone deflate, which must be able to make the streams again.
    pub undone_by: String,
}

/// Facts about a snapshot, as `chunk ls --json` prints them.
#[derive(Serialize)]
pub(crate) struct SnapshotFacts<'a> {
    name: &'a str,
    time: u64,
    host: &'a str,
    inputs: &'a [String],
    #[serde(flatten)]
    counts: SnapshotCounts,
    made_by: &'a str,
    undone_by: &'a str,
}

impl SnapshotManifest {
    /// Returns what is of interest to a user.
    pub fn facts(&self) -> SnapshotFacts<'_> {
        let SnapshotManifest { name, time, host, inputs, counts, made_by, undone_by, .. } = self;
        SnapshotFacts { name, time: *time, host, inputs, counts: *counts, made_by, undone_by }
    }
}

/// Counts of a put.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct SnapshotCounts {
    pub files: u64,
    /// Number of files that are what they were in the snapshot of the same inputs before.
    #[serde(default)]
    pub unchanged_files: u64,
    /// Number of bytes of the files.
    pub bytes: u64,
    /// Number of files whose deflate streams were undone.
    pub undone_files: u64,
    /// Number of bytes of the chunks of all files.
    pub chunk_bytes: u64,
    /// Number of chunks that were not there before, and their bytes.
    pub new_chunks: u64,
    pub new_chunk_bytes: u64,
    /// Number of bytes of the new packs.
    pub stored_bytes: u64,
    /// Number of files and folders that could not be read, and so are not in the snapshot.
    #[serde(default)]
    pub unread: u64,
}

/// A file of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct SnapshotFile {
    /// Name below the folder that it is restored to, as the text of a path.
    pub name: String,
    pub bytes: u64,
    /// BLAKE3 hash of its bytes.
    pub hash: [u8; 32],
    /// Permissions, if the store that it came from has them.
    pub mode: Option<u32>,
    /// Time of its last change, in nanoseconds since 1970.
    pub modified: Option<i128>,
    /// How it is made of its chunks. Without parts the chunks are its bytes; else they are what streams hold, corrections,
    /// and other bytes, and `UndoneFile` makes the file of them.
    pub parts: Vec<DeflatePart>,
    pub chunks: Vec<ChunkRun>,
}

impl SnapshotFile {
    /// Returns the number of bytes that its chunks have.
    pub fn chunk_bytes(&self) -> u64 {
        if self.parts.is_empty() { self.bytes } else { self.parts.iter().map(DeflatePart::bytes).sum() }
    }
}

/// Chunks that follow each other in a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct ChunkRun {
    /// Place of the pack in the list of the snapshot.
    pub pack: u32,
    pub first: u32,
    pub count: u32,
}

impl ChunkStore {
    /// Returns the snapshots in the order of their puts, whatever the clocks of these said. One that is damaged is left out; `each_damage` gets its name, and what is wrong.
    pub fn snapshots(&self, mut each_damage: impl FnMut(&str, String)) -> Result<Vec<SnapshotManifest>> {
        let mut snapshots = Vec::new();
        for entry in self.store.children_if_any(&self.path_of("snapshots"))? {
            let Some(name) = entry.name().strip_suffix(".json") else { continue };
            // A name that leads elsewhere would have other files read, and forgotten.
            let is_own =
                |manifest: &SnapshotManifest| entry.path.ends_with(&format!("/{}.json", manifest.name));
            match read_sealed::<SnapshotManifest>(self.store.as_ref(), &entry.path) {
                Ok(Some(manifest)) if !is_own(&manifest) || manifest.name.contains('/') => {
                    each_damage(
                        name,
                        one_line(&format!("\"{}\" is the manifest of another snapshot", entry.path))
                            .to_string(),
                    );
                }
                Ok(manifest) => snapshots.extend(manifest),
                Err(error) => each_damage(name, one_line(&format!("{error:#}")).to_string()),
            }
        }
        snapshots.sort_by(|a, b| (a.number, a.time, &a.name).cmp(&(b.number, b.time, &b.name)));
        Ok(snapshots)
    }

    /// Returns all snapshots in the order of their puts. `advice`: for a user whose store has one that is damaged.
    ///
    /// # Errors
    /// Those of the store, and when a snapshot is damaged.
    pub fn all_snapshots(&self, advice: &str) -> Result<Vec<SnapshotManifest>> {
        let mut damage = None;
        let snapshots = self.snapshots(|_, found| damage = Some(found))?;
        match damage {
            Some(damage) => bail!("{damage}; {advice}"),
            None => Ok(snapshots),
        }
    }

    /// Returns the snapshot that a user has named: `latest`, or the beginning of a name that only one has.
    ///
    /// # Errors
    /// [`WrongUse`] when there is none, or several; when the latest is wanted and a snapshot is damaged.
    pub fn snapshot(&self, name: &str) -> Result<SnapshotManifest> {
        let mut newest_damaged = String::new();
        let mut all = self.snapshots(|name, damage| {
            newest_damaged = newest_damaged.clone().max(name.to_owned());
            log::warn!("{damage}");
        })?;
        if name == "latest" {
            // Names begin with the time.
            if all.last().is_none_or(|last| last.name < newest_damaged) && !newest_damaged.is_empty() {
                bail!("the latest snapshot may be one that is damaged: name the snapshot");
            }
            return all.pop().ok_or_else(|| WrongUse(format!("\"{}\" has no snapshot", self.uri)).into());
        }
        all.retain(|snapshot| !name.is_empty() && snapshot.name.starts_with(name));
        match all.len() {
            1 => Ok(all.remove(0)),
            0 => bail!(WrongUse(format!("\"{}\" has no snapshot \"{name}\"", self.uri))),
            _ => {
                bail!(WrongUse(format!("\"{}\" has several snapshots that begin with \"{name}\"", self.uri)))
            }
        }
    }
}

impl ChunkStore {
    /// Returns the path of the manifest of a snapshot.
    pub fn manifest_path(&self, name: &str) -> String {
        self.path_of(&format!("snapshots/{name}.json"))
    }

    /// Whether a snapshot has been forgotten since its manifest was read.
    ///
    /// # Errors
    /// Those of the store.
    pub fn is_forgotten(&self, manifest: &SnapshotManifest) -> Result<bool, Error> {
        Ok(!self.store.exists(&self.manifest_path(&manifest.name))?)
    }
}

/// A snapshot that is being written.
pub(crate) struct SnapshotWriter {
    store: Arc<dyn Store>,
    name: String,
    run: RunWriter,
    files: u64,
}

impl SnapshotWriter {
    /// Begins a snapshot of a name.
    pub fn new(store: &ChunkStore, name: &str) -> Result<Self> {
        let path = store.path_of(&format!("snapshots/{name}.files"));
        let run = RunWriter::new(store.store.replace(&path)?, &path, FILES)?;
        Ok(SnapshotWriter { store: Arc::clone(&store.store), name: name.to_owned(), run, files: 0 })
    }

    /// Adds a file. Files come in the order of their names.
    pub fn push(&mut self, file: &SnapshotFile) -> Result<()> {
        self.run.push(&[self.files], &postcard::to_stdvec(file)?)?;
        self.files += 1;
        Ok(())
    }

    /// Finishes the list of files, and makes everything in the store durable. Then `complete` gets the summary of the list
    /// and returns the manifest, which makes the snapshot one.
    ///
    /// # Errors
    /// When the claim of the put is gone; those of the store.
    pub fn finish(
        self,
        store: &ChunkStore,
        claim: &PutClaim,
        complete: impl FnOnce(RunSummary) -> Result<SnapshotManifest>,
    ) -> Result<SnapshotManifest> {
        let summary = self.run.finish()?;
        self.store.settle(&store.path)?;
        claim.check()?;
        let manifest = complete(summary)?;
        let path = store.manifest_path(&self.name);
        write_sealed(self.store.as_ref(), &path, &store.path_of("snapshots"), &manifest)?;
        // If the claim is gone, a prune may have removed chunks that the snapshot wants.
        claim.check().inspect_err(|_| {
            // Only the first error is reported.
            drop(self.store.remove(&path));
        })?;
        Ok(manifest)
    }
}

/// Reader of the files of a snapshot.
pub(crate) struct SnapshotReader {
    run: RunReader,
    cursor: RunCursor,
}

impl SnapshotReader {
    /// Opens the list of files.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Damaged`].
    pub fn open(store: &ChunkStore, manifest: &SnapshotManifest) -> Result<Self, Error> {
        let blob = store.store.open_settled(&store.path_of(&format!("snapshots/{}.files", manifest.name)))?;
        let run = RunReader::open(blob, &manifest.files)?;
        let mut cursor = run.cursor();
        cursor.seek(&[0])?;
        Ok(SnapshotReader { run, cursor })
    }

    /// Goes on with the file of this number, from 0.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Damaged`].
    pub fn seek(&mut self, file: u64) -> Result<(), Error> {
        self.cursor.seek(&[file])
    }

    /// Returns the next file.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Damaged`].
    pub fn next(&mut self) -> Result<Option<SnapshotFile>> {
        let Some(row) = self.cursor.next_row()? else { return Ok(None) };
        Ok(Some(postcard::from_bytes(row.bytes).context("a file of a snapshot is of another form")?))
    }

    /// Reads every byte of the list.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Damaged`].
    pub fn check(&self) -> Result<(), Error> {
        self.run.check()
    }
}
