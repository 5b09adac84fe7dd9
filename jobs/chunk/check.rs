//! `chunk check`: finds what is damaged in a store, and which files it hits.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::Result;
use cluster::{Stores, one_line};

use super::args::CheckArgs;
use super::store::{
    ChunkIndex, ChunkStore, PackNumber, SnapshotFile, SnapshotManifest, SnapshotReader, frozen,
};
use crate::cli::terminal::print;

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

/// Reads the directories of all packs, and all snapshots; with `--read-data` every byte. Prints a line for each damage, and
/// for each file of a snapshot that cannot be restored because of it. Returns 0 if there is none, and otherwise 1.
///
/// Memory: 4 bytes for each chunk.
///
/// # Errors
/// Those of the store other than damage.
pub(super) fn check(args: &CheckArgs) -> Result<u8> {
    let store = ChunkStore::open(&Stores::new(), &args.store)?;
    let mut damages = Damages(0);
    // A put that ends meanwhile has packs that are listed, and no snapshot that is.
    let mut lines = Vec::new();
    let snapshots = store.snapshots(|damage| lines.push(damage))?;
    lines.iter().try_for_each(|line| damages.tell(line))?;
    let mut packs = BTreeMap::new();
    let mut bytes = 0;
    let mut damaged_packs = 0;
    for (number, _) in store.packs()? {
        match store.open_pack(number) {
            Ok(pack) => {
                bytes += pack.bytes();
                let mut damaged = Vec::new();
                if args.read_data {
                    pack.each_damage(|chunks, reason| {
                        damaged.push(chunks);
                        damages.tell(&reason.to_string())
                    })?;
                }
                damaged_packs += u64::from(!damaged.is_empty());
                let lengths = pack.directory.chunks.iter().map(|chunk| chunk.bytes).collect();
                packs.insert(number, CheckedPack { bytes: lengths, damaged });
            }
            Err(error) => {
                damaged_packs += 1;
                damages.tell(&error.to_string())?;
            }
        }
    }
    if let Err(error) = ChunkIndex::check(&store) {
        damages.tell(&format!("{error:#}; the index is made again if its folder is removed"))?;
    }
    if let Err(error) = frozen(&store) {
        damages.tell(&format!("{error:#}"))?;
    }
    let mut files = 0;
    for manifest in &snapshots {
        if let Err(error) = check_snapshot(&store, manifest, &packs, &mut files, &mut damages) {
            damages.tell(&format!("snapshot {}: {error:#}", manifest.name))?;
        }
    }
    if damaged_packs > 0 {
        print(
            "If the file of a damaged pack is removed, a put of the same files stores its chunks again, and new snapshots are whole.\n",
        )?;
    }
    if damages.0 == 0 {
        let read = if args.read_data { ", all read" } else { "" };
        print(format_args!(
            "{}: {} snapshots, {files} files, {} packs, {bytes} bytes{read}: as they were written\n",
            args.store,
            snapshots.len(),
            packs.len()
        ))?;
    }
    Ok(u8::from(damages.0 > 0))
}

fn check_snapshot(
    store: &ChunkStore,
    manifest: &SnapshotManifest,
    packs: &BTreeMap<PackNumber, CheckedPack>,
    files: &mut u64,
    damages: &mut Damages,
) -> Result<()> {
    let mut reader = SnapshotReader::open(store, manifest)?;
    reader.check()?;
    while let Some(file) = reader.next()? {
        *files += 1;
        if let Err(reason) = check_file(manifest, &file, packs) {
            damages.tell(&format!(
                "snapshot {}: \"{}\" cannot be restored: {reason}",
                manifest.name, file.name
            ))?;
        }
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
    let of_parts = file
        .parts
        .iter()
        .map(|part| u64::from(part.raw) + u64::from(part.plain) + u64::from(part.corrections));
    let expected = if file.parts.is_empty() { file.bytes } else { of_parts.sum() };
    if bytes == expected { Ok(()) } else { Err("its chunks have other lengths than it should".to_owned()) }
}
