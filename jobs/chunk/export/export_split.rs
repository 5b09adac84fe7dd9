//! Divides the files of snapshots into splits.

use anyhow::{Result, bail};
use operators::DocId;

use crate::name_filter::NameFilter;
use crate::store::{ChunkStore, SnapshotManifest, SnapshotReader};
use runtime::cli::exit::WrongUse;

/// Number of bytes that every file counts for, in addition to its own, when files are divided: very many empty ones are work
/// too.
const FILE_BYTES: u64 = 1 << 10;

/// Files that follow each other in the list of a snapshot, which one worker exports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ExportSplit {
    /// Place of the snapshot in the list of all that are exported.
    pub snapshot: usize,
    /// Number of its first file in the list of the snapshot.
    pub first: u64,
    /// Number behind that of its last file.
    pub end: u64,
    /// Number of those of its files that are exported, and of their bytes.
    pub files: u64,
    pub bytes: u64,
}

/// Divides the files of snapshots that `names` choose into splits of about `part_bytes`. There is at least one split.
///
/// Cost: reads the lists of all files. Memory: 40 bytes for each split.
///
/// # Errors
/// Those of the store, and [`WrongUse`] when a name chooses no file, or there are too many splits.
pub(super) fn splits(
    store: &ChunkStore,
    snapshots: &[SnapshotManifest],
    names: &[String],
    part_bytes: u64,
) -> Result<Vec<ExportSplit>> {
    let mut splits = Vec::new();
    let mut wanted = NameFilter::new(names);
    for (snapshot, manifest) in snapshots.iter().enumerate() {
        let mut reader = SnapshotReader::open(store, manifest)?;
        let mut split = ExportSplit { snapshot, ..ExportSplit::default() };
        while let Some(file) = reader.next()? {
            split.end += 1;
            if !wanted.takes(&file.name) {
                continue;
            }
            split.files += 1;
            split.bytes += file.bytes;
            if split.bytes + split.files * FILE_BYTES >= part_bytes {
                splits.push(split);
                split = ExportSplit { snapshot, first: split.end, end: split.end, files: 0, bytes: 0 };
            }
        }
        if split.files > 0 {
            splits.push(split);
        }
    }
    wanted.finish(snapshots)?;
    if splits.is_empty() {
        splits.push(ExportSplit::default());
    }
    if splits.len() > DocId::MAX_SPLITS {
        bail!(WrongUse(format!(
            "there are more than {} parts; choose a larger --part-size",
            DocId::MAX_SPLITS
        )));
    }
    Ok(splits)
}
