//! `chunk check`: finds what is damaged in a store, and which files it hits.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::Result;
use cluster::{Error, Stores, one_line};

use super::args::CheckArgs;
use super::store::{
    ChunkIndex, ChunkStore, PackNumber, SnapshotFile, SnapshotManifest, SnapshotReader, frozen,
};
use super::trial_restore::TrialRestore;
use runtime::cli::terminal::print;

/// Number of files that are looked at together.
const BATCH_FILES: usize = 1 << 10;

/// Chunks of a pack that can be read, and those that cannot.
struct CheckedPack {
    /// Number of bytes of each chunk; 0 if it was removed.
    bytes: Vec<u32>,
    damaged: Vec<Range<u32>>,
}

/// Damages, which are printed, a line for each, and counted.
struct Damages(u64);

impl Damages {
    fn tell(&mut self, line: &str) -> Result<()> {
        self.0 += 1;
        print(format_args!("{}\n", one_line(line)))
    }
}

/// Reads the directories of all packs, and all snapshots; with `--read-data` every byte; with `--read-files` it also makes
/// every file. Prints a line for each damage, for each file of a snapshot that cannot be restored because of it, and for each
/// snapshot with such files. Returns 0 if there is none, and otherwise 1.
///
/// Memory: 4 bytes for each chunk; with `--read-files` that of a [`TrialRestore`].
///
/// # Errors
/// Those of the store other than damage.
pub(super) fn check(args: &CheckArgs, workers: usize) -> Result<u8> {
    let store = ChunkStore::open(&Stores::new(), &args.store)?;
    let mut damages = Damages(0);
    // A put that ends meanwhile has packs that are listed, and no snapshot that is.
    let mut lines = Vec::new();
    let snapshots = store.snapshots(|_, damage| lines.push(damage))?;
    lines.iter().try_for_each(|line| damages.tell(line))?;
    let mut packs = BTreeMap::new();
    let mut bytes = 0;
    let mut damaged_packs = 0;
    for (number, _) in store.packs()? {
        match store.open_pack(number) {
            Ok(pack) => {
                bytes += pack.bytes();
                let mut damaged = Vec::new();
                if args.read_data || args.read_files {
                    pack.each_damage(|chunks, reason| {
                        damaged.push(chunks);
                        damages.tell(&reason.to_string())
                    })?;
                }
                damaged_packs += u64::from(!damaged.is_empty());
                let lengths = pack.directory.chunks.iter().map(|chunk| chunk.bytes).collect();
                packs.insert(number, CheckedPack { bytes: lengths, damaged });
            }
            Err(error @ (Error::Damaged { .. } | Error::NotFound { .. })) => {
                damaged_packs += 1;
                damages.tell(&error.to_string())?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    if let Err(error) = ChunkIndex::check(&store) {
        damages.tell(&format!("{error:#}; the index is made again if its folder is removed"))?;
    }
    if let Err(error) = frozen(&store) {
        damages.tell(&format!("{error:#}"))?;
    }
    let mut files = 0;
    let mut trial = args.read_files.then(|| TrialRestore::new(&store, workers)).transpose()?;
    for manifest in &snapshots {
        if let Err(error) = check_snapshot(&store, manifest, &packs, trial.as_mut(), &mut files, &mut damages)
            && !store.is_forgotten(manifest)?
        {
            damages.tell(&format!("snapshot {}: {error:#}", manifest.name))?;
        }
    }
    if damaged_packs > 0 {
        print(
            "If the file of a damaged pack is removed, a put of the same files stores its chunks again, and new snapshots are whole.\n",
        )?;
    }
    if damages.0 == 0 {
        let read = match (args.read_files, args.read_data) {
            (true, _) => ", all read, and all files made",
            (false, true) => ", all read",
            (false, false) => "",
        };
        print(format_args!(
            "{}: {} snapshots, {files} files, {} packs, {bytes} bytes{read}: as they were written\n",
            args.store,
            snapshots.len(),
            packs.len()
        ))?;
    }
    Ok(u8::from(damages.0 > 0))
}

/// Checks the files of a snapshot, and adds their number to `files`.
fn check_snapshot(
    store: &ChunkStore,
    manifest: &SnapshotManifest,
    packs: &BTreeMap<PackNumber, CheckedPack>,
    mut trial: Option<&mut TrialRestore>,
    files: &mut u64,
    damages: &mut Damages,
) -> Result<()> {
    let mut reader = SnapshotReader::open(store, manifest)?;
    reader.check()?;
    let (mut all, mut lost, mut ended) = (0u64, 0u64, false);
    while !ended {
        let mut batch = Vec::new();
        let mut tell = |file: &SnapshotFile, reason: String| {
            lost += 1;
            damages
                .tell(&format!("snapshot {}: \"{}\" cannot be restored: {reason}", manifest.name, file.name))
        };
        while !ended && batch.len() < BATCH_FILES {
            let Some(file) = reader.next()? else {
                ended = true;
                break;
            };
            all += 1;
            match check_file(manifest, &file, packs) {
                Ok(()) if trial.is_some() => batch.push(file),
                Ok(()) => {}
                Err(reason) => tell(&file, reason)?,
            }
        }
        if let Some(trial) = &mut trial {
            trial.check(manifest, &batch, tell)?;
        }
    }
    *files += all;
    if lost > 0 {
        let left = all - lost;
        print(format_args!("snapshot {}: {left} of {all} files can be restored\n", manifest.name))?;
    }
    Ok(())
}

/// Returns why a file cannot be restored, if that is so.
fn check_file(
    manifest: &SnapshotManifest,
    file: &SnapshotFile,
    packs: &BTreeMap<PackNumber, CheckedPack>,
) -> Result<(), String> {
    let mut bytes = 0;
    for run in &file.chunks {
        let number = manifest.packs.get(run.pack as usize).ok_or("it is in a pack that has no name")?;
        let pack = packs.get(number).ok_or_else(|| format!("pack {number} is damaged or missing"))?;
        let (first, end) = (run.first, run.first.saturating_add(run.count));
        if pack.damaged.iter().any(|damaged| damaged.start < end && first < damaged.end) {
            return Err(format!("pack {number} is damaged"));
        }
        let chunks = pack.bytes.get(first as usize..end as usize);
        let chunks = chunks.ok_or_else(|| format!("pack {number} has too few chunks"))?;
        if chunks.contains(&0) {
            return Err(format!("a chunk of it was removed from pack {number}"));
        }
        bytes += chunks.iter().map(|bytes| u64::from(*bytes)).sum::<u64>();
    }
    if bytes == file.chunk_bytes() {
        Ok(())
    } else {
        Err("its chunks have other lengths than it should".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{ChunkId, ChunkPackWriter, ChunkRun, PutClaim, SnapshotCounts, SnapshotWriter};

    /// Makes a store with a snapshot of some files of one chunk each, whose hashes are those of `hashed`. Returns its folder.
    fn store_of(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let store = ChunkStore::open_or_create(&Stores::new(), folder.path().to_str().unwrap()).unwrap();
        let pack = PackNumber(7);
        let mut writer = ChunkPackWriter::new(&store.store, &store.pack_path(pack), pack, 1).unwrap();
        let mut snapshot = SnapshotWriter::new(&store, "one").unwrap();
        for (first, (bytes, hashed)) in (0..).zip(files) {
            writer.push(ChunkId::of(bytes.as_bytes()), bytes.as_bytes()).unwrap();
            let file = SnapshotFile {
                name: format!("file-{first}"),
                bytes: bytes.len() as u64,
                hash: *blake3::hash(hashed.as_bytes()).as_bytes(),
                mode: None,
                modified: None,
                parts: Vec::new(),
                chunks: vec![ChunkRun { pack: 0, first, count: 1 }],
            };
            snapshot.push(&file).unwrap();
        }
        writer.finish().unwrap();
        let manifest = |files| {
            Ok(SnapshotManifest {
                name: "one".to_owned(),
                number: 1,
                time: 1,
                host: String::new(),
                inputs: Vec::new(),
                counts: SnapshotCounts::default(),
                packs: vec![pack],
                files,
                made_by: String::new(),
                undone_by: String::new(),
            })
        };
        snapshot.finish(&store, &PutClaim::new(&store).unwrap(), manifest).unwrap();
        folder
    }

    #[test]
    fn a_file_of_whole_chunks_that_is_another_one_is_found_by_making_it() {
        let check = |files: &[(&str, &str)], read_files| {
            let folder = store_of(files);
            let store = folder.path().to_str().unwrap().to_owned();
            check(&CheckArgs { store, read_data: true, read_files }, 2).unwrap()
        };
        let wrong = [("first", "first"), ("second", "other")];
        assert_eq!(check(&wrong, false), 0);
        assert_eq!(check(&wrong, true), 1);
        assert_eq!(check(&[("first", "first"), ("second", "second")], true), 0);
    }
}
