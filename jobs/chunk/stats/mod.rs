//! `chunk stats`: what a store holds, in numbers.
//!
//! Here is the overview of a store. `by_entry.rs` makes the tables of `--by` with `entry_tree.rs`, and `kind.rs` says what
//! kind of file a name is. Only `chunk` uses this room.

mod by_entry;
mod entry_tree;
mod kind;

use anyhow::Result;
use cluster::Stores;
use serde::Serialize;

use super::chunk_use::{ChunkUse, ChunkUses};
use super::store::{ChunkStore, SnapshotCounts, SnapshotManifest};
use runtime::cli::terminal::{print, print_json};

pub(super) use self::by_entry::StatsBy;

#[derive(Serialize)]
struct StoreStats {
    snapshots: Vec<SnapshotStats>,
    packs: usize,
    /// Number of bytes of packs, and of everything in the store.
    pack_bytes: u64,
    bytes: u64,
    chunks: u64,
    chunk_bytes: u64,
    /// Number of bytes of chunks that no snapshot wants.
    unused_chunk_bytes: u64,
}

#[derive(Serialize)]
struct SnapshotStats {
    name: String,
    #[serde(flatten)]
    counts: SnapshotCounts,
    /// Number of bytes of chunks that no other snapshot wants.
    own_chunk_bytes: u64,
}

/// Prints what a store holds, or a row for each snapshot, folder, file or kind of file. Returns 0.
///
/// # Errors
/// Those of the store, and damage.
pub(super) fn print_stats(uri: &str, by: Option<StatsBy>, json: bool) -> Result<u8> {
    let store = ChunkStore::open(&Stores::new(), uri)?;
    let snapshots = store.snapshots(|_, damage| log::warn!("{damage}"))?;
    if let Some(by) = by {
        by_entry::print_rows(&store, &snapshots, by, json)?;
        return Ok(0);
    }
    let stats = stats_of(&store, snapshots)?;
    if json {
        print_json(&stats)?;
        return Ok(0);
    }
    print(format_args!(
        "{:<37} {:>9} {:>14} {:>14} {:>14}\n",
        "snapshot", "files", "bytes", "new when put", "own chunks"
    ))?;
    for SnapshotStats { name, counts, own_chunk_bytes } in &stats.snapshots {
        let SnapshotCounts { files, bytes, new_chunk_bytes, .. } = counts;
        print(format_args!(
            "{name:<37} {files:>9} {bytes:>14} {new_chunk_bytes:>14} {own_chunk_bytes:>14}\n"
        ))?;
    }
    let StoreStats { packs, pack_bytes, bytes, chunks, chunk_bytes, unused_chunk_bytes, .. } = stats;
    print(format_args!(
        "{chunks} chunks of {chunk_bytes} bytes, {unused_chunk_bytes} of them unused, in {packs} packs of {pack_bytes} bytes; \
         {bytes} bytes in all\n"
    ))?;
    Ok(0)
}

fn stats_of(store: &ChunkStore, snapshots: Vec<SnapshotManifest>) -> Result<StoreStats> {
    let uses = ChunkUses::of(store, &snapshots)?;
    let mut stats = StoreStats {
        snapshots: snapshots
            .into_iter()
            .map(|snapshot| SnapshotStats {
                name: snapshot.name,
                counts: snapshot.counts,
                own_chunk_bytes: 0,
            })
            .collect(),
        packs: 0,
        pack_bytes: 0,
        bytes: store.store.everything(&store.path_of(""))?.iter().map(|entry| entry.bytes).sum(),
        chunks: 0,
        chunk_bytes: 0,
        unused_chunk_bytes: 0,
    };
    for (number, bytes) in store.packs()? {
        stats.packs += 1;
        stats.pack_bytes += bytes;
        let pack = match store.open_pack(number) {
            Ok(pack) => pack,
            Err(error) => {
                log::warn!("{error}");
                continue;
            }
        };
        for (at, chunk) in pack.directory.chunks.iter().enumerate().filter(|(_, chunk)| chunk.bytes > 0) {
            let bytes = u64::from(chunk.bytes);
            stats.chunks += 1;
            stats.chunk_bytes += bytes;
            match uses.of_chunk(number, at) {
                ChunkUse::None => stats.unused_chunk_bytes += bytes,
                ChunkUse::One(snapshot) => stats.snapshots[snapshot as usize].own_chunk_bytes += bytes,
                ChunkUse::Several => {}
            }
        }
    }
    Ok(stats)
}
