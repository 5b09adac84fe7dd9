//! Merges the runs of a table, so that a lookup asks few files.

use std::collections::BTreeSet;

use anyhow::Result;
use cluster::runs::{MergedRuns, RunReader, RunRow, newest_tier};
use operators::DocId;

use super::manifest::{RunEntry, StateManifest};
use super::reader::EarlierDocs;
use super::state_folder::StateFolder;
use super::table::{NO_MEMBER, NO_PARENT, StateTable, doc_of};
use super::writer::RunsOfNight;

/// Number of files of a version from which on they are merged by themselves: each worker writes one, and a lookup
/// holds all of them open.
const MANY_FILES: usize = 8;
/// Number of bytes below which runs count as equally large.
const SMALL_BYTES: u64 = 1 << 16;

/// Merges the newest runs of each table where those of four or more versions are about equally large
/// ([`newest_tier`]), and replaces them in the manifest.
pub(crate) fn merge_tiers(state: &StateFolder, manifest: &mut StateManifest) -> Result<()> {
    for table in StateTable::ALL {
        // Version, bytes and number of files.
        let mut versions: Vec<(u64, u64, usize)> = Vec::new();
        for run in manifest.runs_of(table) {
            match versions.last_mut() {
                Some((version, bytes, files)) if *version == run.version => {
                    (*bytes, *files) = (*bytes + run.summary.bytes, *files + 1);
                }
                _ => versions.push((run.version, run.summary.bytes, 1)),
            }
        }
        let many = versions.last().is_some_and(|&(_, _, files)| files >= MANY_FILES);
        let sizes: Vec<u64> = versions.iter().map(|&(_, bytes, _)| bytes).collect();
        let count = newest_tier(&sizes, SMALL_BYTES).max(usize::from(many));
        if count > 0 {
            let first = versions[versions.len() - count].0;
            merge(state, manifest, table, first, |_| true)?;
        }
    }
    Ok(())
}

/// Merges all runs of each table into one, and leaves out what belongs to withdrawn documents: afterwards the
/// version holds nothing of them. If any were withdrawn, earlier versions are removed once this one is committed.
///
/// The number of a withdrawn document may go on naming a text that another document has. The withdrawn text
/// itself and the id are gone.
pub fn compact(state: &StateFolder, manifest: &mut StateManifest) -> Result<()> {
    "compact".clone_into(&mut manifest.made_by);
    let earlier = EarlierDocs::open(state, manifest)?;
    let gone: BTreeSet<DocId> = earlier.withdrawn().iter().copied().collect();
    // Documents that an earlier compaction has erased are in no version that is left.
    let oldest = manifest.oldest;
    if manifest.nights.iter().any(|night| night.withdrawn > 0 && night.version > oldest) {
        manifest.oldest = manifest.version;
    }
    let is_gone = |number: u64| gone.contains(&doc_of(number));
    let is_dead = |number: u64| earlier.is_dead(doc_of(number));
    for table in StateTable::ALL {
        merge(state, manifest, table, 0, |row| match table {
            StateTable::Identities => !is_dead(row.words[2]),
            StateTable::Keys => !is_dead(row.words[3]),
            StateTable::Sketches | StateTable::Texts => !is_dead(row.words[0]),
            StateTable::Documents => !is_gone(row.words[0]),
            StateTable::Ids => !is_gone(row.words[1]),
            StateTable::Parents => row.words[1] != NO_PARENT,
            StateTable::Members => row.words[3] != NO_MEMBER,
            StateTable::Withdrawn => true,
        })?;
    }
    Ok(())
}

/// Merges the runs of a table of versions from `first` on, and replaces them in the manifest by one of the
/// version of the manifest. Rows for which `keep` is false are left out, which is right only if no run of an
/// earlier version is left.
fn merge(
    state: &StateFolder,
    manifest: &mut StateManifest,
    table: StateTable,
    first: u64,
    keep: impl Fn(&RunRow) -> bool,
) -> Result<()> {
    let merged: Vec<RunEntry> = manifest.runs_of(table).filter(|run| run.version >= first).cloned().collect();
    let mut readers = Vec::new();
    for run in merged.iter().rev() {
        readers.push(RunReader::open(state.open_file(&run.file)?, &run.summary)?);
    }
    let mut rows = MergedRuns::new(&readers);
    let mut runs = RunsOfNight::new(state, manifest.version, "merged");
    let mut writer = runs.table(table)?;
    while let Some(row) = rows.next_row()? {
        if keep(&row) {
            writer.push(row.words, row.bytes)?;
        }
    }
    runs.finish(writer)?;
    // The merged run takes the place of the oldest one of them.
    let at = manifest.runs.iter().position(|run| run.table == table && run.version >= first);
    manifest.runs.retain(|run| run.table != table || run.version < first);
    let at = at.unwrap_or(manifest.runs.len()).min(manifest.runs.len());
    manifest.runs.splice(at..at, runs.entries());
    Ok(())
}
