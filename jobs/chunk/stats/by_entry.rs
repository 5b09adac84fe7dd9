//! `chunk stats --by`: a row for each snapshot, folder, file or kind of file.

use anyhow::Result;
use cluster::one_line;
use serde::Serialize;

use super::entry_tree::{ChunkOwner, EntryRow, EntryTree, ROOT};
use super::kind::kind_of;
use crate::chunk_use::ChunkUses;
use crate::store::{ChunkStore, SnapshotFile, SnapshotManifest, SnapshotReader};
use runtime::cli::terminal::print;

/// Kind of the entries that have a row each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum StatsBy {
    /// A snapshot.
    Snapshot,
    /// A folder with everything below it, in all snapshots.
    Folder,
    /// A file by its name, with all of its versions in all snapshots.
    File,
    /// All files with the same extension, in all snapshots.
    Kind,
}

/// A row as JSON.
#[derive(Serialize)]
struct NamedRow<'a> {
    name: &'a str,
    #[serde(flatten)]
    row: EntryRow,
}

/// Prints a row for each entry, in the order in which the snapshots have them.
///
/// Cost: reads the lists of all files twice, and the directories of all packs. Memory: 8 bytes for each chunk of the store,
/// and about 120 for each entry.
///
/// # Errors
/// Those of the store, and damage of a snapshot.
pub(super) fn print_rows(
    store: &ChunkStore,
    snapshots: &[SnapshotManifest],
    by: StatsBy,
    json: bool,
) -> Result<()> {
    let mut tree = EntryTree::new();
    let mut owners = ChunkUses::<ChunkOwner>::default();
    each_file(store, snapshots, by, &mut tree, |tree, entry, manifest, file| {
        tree.add_file(entry, file.bytes);
        owners.add(manifest, file, |chunk| tree.note(chunk, entry));
    })?;
    for (number, _) in store.packs()? {
        match store.open_pack(number) {
            Ok(pack) => pack.directory.each_stored(|chunk, bytes, stored| {
                tree.add_chunk(owners.of_chunk(number, chunk), bytes, stored);
            }),
            Err(error) => log::warn!("{error}"),
        }
    }
    drop(owners);
    let rows = tree.into_rows();
    if !json {
        print(format_args!(
            "{:>9} {:>14} {:>14} {:>14} {:>14} {:>14}  {}\n",
            "files", "bytes", "new chunks", "stored", "own chunks", "stored", "name"
        ))?;
    }
    if by == StatsBy::Folder {
        print_row(".", rows[ROOT as usize], json)?;
    }
    // Only the second reading prints, since the names of all entries may be more than fit into memory. The numbers of the
    // entries are the same.
    let mut again = EntryTree::new();
    let mut next = 1;
    for manifest in snapshots {
        let mut files = SnapshotReader::open(store, manifest)?;
        let mut names = |again: &mut EntryTree, file: Option<&SnapshotFile>| {
            each_entry(again, by, manifest, file, |entry, name| match rows.get(entry as usize) {
                Some(row) if entry == next => {
                    next += 1;
                    print_row(name, *row, json)
                }
                _ => Ok(()),
            })
        };
        names(&mut again, None)?;
        while let Some(file) = files.next()? {
            names(&mut again, Some(&file))?;
        }
    }
    Ok(())
}

fn print_row(name: &str, row: EntryRow, json: bool) -> Result<()> {
    if json {
        return print(format_args!("{}\n", serde_json::to_string(&NamedRow { name, row })?));
    }
    let EntryRow { files, bytes, new_chunk_bytes, new_stored_bytes, own_chunk_bytes, own_stored_bytes } = row;
    print(format_args!(
        "{files:>9} {bytes:>14} {new_chunk_bytes:>14} {new_stored_bytes:>14} {own_chunk_bytes:>14} {own_stored_bytes:>14}  {}\n",
        one_line(name)
    ))
}

/// Calls `each` with all files of all snapshots, the oldest first, and with their entries.
fn each_file(
    store: &ChunkStore,
    snapshots: &[SnapshotManifest],
    by: StatsBy,
    tree: &mut EntryTree,
    mut each: impl FnMut(&mut EntryTree, u32, &SnapshotManifest, &SnapshotFile),
) -> Result<()> {
    for manifest in snapshots {
        let mut files = SnapshotReader::open(store, manifest)?;
        each_entry(tree, by, manifest, None, |_, _| Ok(()))?;
        while let Some(file) = files.next()? {
            let mut innermost = ROOT;
            each_entry(tree, by, manifest, Some(&file), |entry, _| {
                innermost = entry;
                Ok(())
            })?;
            each(tree, innermost, manifest, &file);
        }
    }
    Ok(())
}

/// Calls `each` with the entries that a file lies in, the outermost first: their numbers and their names. Without a file,
/// these are those of a snapshot itself, which may have no file.
fn each_entry(
    tree: &mut EntryTree,
    by: StatsBy,
    manifest: &SnapshotManifest,
    file: Option<&SnapshotFile>,
    mut each: impl FnMut(u32, &str) -> Result<()>,
) -> Result<()> {
    match (by, file) {
        (StatsBy::Snapshot, _) => each(tree.number(ROOT, &manifest.name), &manifest.name),
        (StatsBy::File, Some(file)) => each(tree.number(ROOT, &file.name), &file.name),
        (StatsBy::Kind, Some(file)) => {
            let kind = kind_of(&file.name);
            each(tree.number(ROOT, &kind), &kind)
        }
        (StatsBy::Folder, Some(file)) => {
            let mut entry = ROOT;
            for (at, _) in file.name.match_indices('/') {
                entry = tree.number(entry, &file.name[..at]);
                each(entry, &file.name[..at])?;
            }
            Ok(())
        }
        (_, None) => Ok(()),
    }
}
