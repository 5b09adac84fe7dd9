//! `chunk ls`: the snapshots of a store, or the files of one.

use anyhow::Result;
use chrono::DateTime;
use cluster::{Stores, one_line};
use serde_json::json;

use super::store::{ChunkStore, SnapshotReader};
use runtime::cli::terminal::print;

/// Prints a line for each snapshot, or for each file of one. Returns 0.
///
/// # Errors
/// Those of the store.
pub(super) fn list(uri: &str, snapshot: Option<&str>, json: bool) -> Result<u8> {
    let store = ChunkStore::open(&Stores::new(), uri)?;
    match snapshot {
        Some(name) => list_files(&store, name, json)?,
        None => list_snapshots(&store, json)?,
    }
    Ok(0)
}

fn list_snapshots(store: &ChunkStore, json: bool) -> Result<()> {
    for snapshot in store.snapshots(|_, damage| log::warn!("{damage}"))? {
        if json {
            print(format_args!("{}\n", serde_json::to_string(&snapshot.facts())?))?;
        } else {
            let counts = snapshot.counts;
            print(format_args!(
                "{}  {:>9} files  {:>14} bytes  {}\n",
                snapshot.name,
                counts.files,
                counts.bytes,
                one_line(&snapshot.inputs.join(" "))
            ))?;
        }
    }
    Ok(())
}

fn list_files(store: &ChunkStore, name: &str, json: bool) -> Result<()> {
    let manifest = store.snapshot(name)?;
    let mut files = SnapshotReader::open(store, &manifest)?;
    while let Some(file) = files.next()? {
        let second = file.modified.and_then(|time| i64::try_from(time.div_euclid(1_000_000_000)).ok());
        let time = second.and_then(|second| DateTime::from_timestamp(second, 0));
        let modified = time.map(|time| time.format("%Y-%m-%dT%H:%M:%SZ").to_string());
        if json {
            let hash = blake3::Hash::from_bytes(file.hash).to_hex().to_string();
            let line = json!({
                "name": file.name, "bytes": file.bytes, "modified": modified, "mode": file.mode, "blake3": hash,
                "streams": file.parts.len().saturating_sub(1),
            });
            print(format_args!("{line}\n"))?;
        } else {
            let modified = modified.unwrap_or_default();
            print(format_args!("{:>14}  {modified:<20}  {}\n", file.bytes, one_line(&file.name)))?;
        }
    }
    Ok(())
}
