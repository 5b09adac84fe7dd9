//! `chunk put`: adds files to a store.
//!
//! `input.rs` finds the files, those of this machine with `local_files.rs`. `earlier_files.rs` knows what they were when they
//! were last put, `cut.rs` makes chunks of one that has changed, and `chunk_adder.rs` adds those that are not there yet. Here
//! they are put together.

mod chunk_adder;
mod cut;
mod earlier_files;
mod input;
mod local_files;

use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use blake3::Hasher;
use chrono::{DateTime, Utc};
use cluster::{Stores, one_line};
use datasets::Extractors;
use serde_json::json;

use self::chunk_adder::{AddedChunks, ChunkAdder};
use self::cut::{CutFile, LONG_FILE_BYTES, LookedAt, cut_file, cut_long_file};
use self::earlier_files::EarlierFiles;
use self::input::{FoundFiles, PutFile, find_files};
use super::store::{
    ChunkIndex, ChunkRun, ChunkStore, PutClaim, SnapshotCounts, SnapshotFile, SnapshotManifest,
    SnapshotWriter,
};
use runtime::Common;
use runtime::cli::terminal::{print, say};
use runtime::clock::milliseconds_now;
use runtime::corpus::at_once::each_with;
use runtime::output::LockOwner;
use runtime::progress::{Progress, Stage, Watch, Watched};

/// Largest number of bytes that a byte of deflate decompresses to.
const MOST_EXPANSION: u64 = 1032;
/// Largest number of files that are cut at the same time.
const BATCH_FILES: usize = 256;
/// The library that undoes deflate, and its version.
const UNDONE_BY: &str = "preflate-rs 0.7.6";

/// Adds files to the store `uri`, as a snapshot. Returns 0, or 3 if there are files that cannot be read: each of them is told
/// of, and all others are put.
///
/// # Errors
/// Those of the stores, and when no file can be read. Then there is no snapshot; chunks that are in the store already are
/// used by the next put.
pub(super) fn put(common: &Common, uri: &str, inputs: &[String]) -> Result<u8> {
    let stores = Stores::new();
    let found = find_files(&stores, inputs, uri)?;
    let store = ChunkStore::open_or_create(&stores, uri)?;
    let claim = PutClaim::new(&store)?;
    let progress = Arc::default();
    let watched = Watched {
        version: env!("CARGO_PKG_VERSION"),
        job: Stage::Put.name(),
        output: uri.to_owned(),
        process: 0,
        configuration: json!({"inputs": inputs}),
        input_files: found.files.len() as u64,
        input_bytes: found.files.iter().map(|file| file.bytes).sum(),
        splits: 0,
        left_if_ended: Some("no snapshot was made".to_owned()),
    };
    let watch = Watch::begin(&common.progress, watched, &progress)?;
    let added = add_snapshot(&store, &claim, inputs, &found, &progress, common.workers());
    let manifest = watch.end(added)?;
    drop(claim);
    // The snapshot is whole by now.
    if let Err(error) = ChunkIndex::remove_replaced(&store) {
        log::warn!("{error:#}");
    }
    let SnapshotCounts { files, unchanged_files, bytes, new_chunk_bytes, stored_bytes, unread, .. } =
        manifest.counts;
    if !common.progress.quiet {
        print(format_args!(
            "snapshot {}: {files} files, {unchanged_files} of them unchanged, {bytes} bytes; {new_chunk_bytes} bytes of new chunks in {stored_bytes} bytes\n",
            manifest.name
        ))?;
    }
    if unread > 0 {
        say(format_args!("{unread} files or folders could not be read, and are not in the snapshot"));
    }
    Ok(if unread > 0 { 3 } else { 0 })
}

fn add_snapshot(
    store: &ChunkStore,
    claim: &PutClaim,
    inputs: &[String],
    found: &FoundFiles,
    progress: &Progress,
    workers: usize,
) -> Result<SnapshotManifest> {
    let extractors = Arc::new(Extractors::of_this_program()?);
    let time = DateTime::<Utc>::from(SystemTime::now()).format("%Y-%m-%dT%H-%M-%S.%3fZ");
    let name = format!("{time}-{:012x}", ChunkStore::unique() >> 16);
    let snapshots = store.snapshots(|_, damage| log::warn!("{damage}"))?;
    warn_of_clock(&snapshots);
    let number = snapshots.iter().map(|snapshot| snapshot.number).max().unwrap_or(0) + 1;
    let mut adder = ChunkAdder::new(store)?;
    let mut earlier = EarlierFiles::open(store, snapshots, inputs, UNDONE_BY);
    let mut snapshot = SnapshotWriter::new(store, &name)?;
    let mut counts = SnapshotCounts { unread: found.unread, ..SnapshotCounts::default() };
    let mut rest = &found.files[..];
    while !rest.is_empty() {
        let (batch, behind) = rest.split_at(batch(rest, workers));
        rest = behind;
        let before = |file: &'_ PutFile| {
            earlier.find(&file.name).filter(|before| adder.can_reuse(&earlier.packs, &before.chunks))
        };
        let before: Vec<_> = batch.iter().map(before).collect();
        let batch: Vec<_> = batch.iter().zip(before).collect();
        let worker = |index| progress.worker_at(index, Stage::Put);
        let looked_at = each_with(workers, &batch, worker, |at, (file, before)| {
            let looked_at = cut_file(file, before.as_ref(), &extractors)?;
            at.read(1, file.bytes);
            at.done(file.bytes);
            Ok(looked_at)
        })?;
        for ((file, before), looked_at) in batch.into_iter().zip(looked_at) {
            let added = match (looked_at, before) {
                (LookedAt::Cut(cut), _) => Ok(add_file(&mut adder, file, cut, &mut counts)?),
                (LookedAt::Unread(error), _) => Err(error),
                (LookedAt::Unchanged, Some(before)) => {
                    let chunks = adder.reuse(&earlier.packs, &before.chunks);
                    Ok(unchanged(file, before, chunks, &mut counts))
                }
                (LookedAt::Unchanged | LookedAt::Long, _) => add_long_file(&mut adder, file, &mut counts)?,
            };
            match added {
                Ok(file) => snapshot.push(&file)?,
                Err(error) => {
                    counts.unread += 1;
                    say(one_line(&format!("error: \"{}\" is not put: {}", file.path, why_unread(error))));
                }
            }
        }
    }
    if counts.files == 0 && counts.unread > 0 {
        bail!("no file could be read, so there is no snapshot");
    }
    let AddedChunks { packs, stored_bytes, new_chunks, new_chunk_bytes } = adder.finish()?;
    snapshot.finish(store, claim, |files| {
        Ok(SnapshotManifest {
            name: name.clone(),
            number,
            time: milliseconds_now(),
            host: LockOwner::of_this_process().host,
            inputs: inputs.to_vec(),
            counts: SnapshotCounts { stored_bytes, new_chunks, new_chunk_bytes, ..counts },
            packs,
            files,
            made_by: env!("CARGO_PKG_VERSION").to_owned(),
            undone_by: UNDONE_BY.to_owned(),
        })
    })
}

/// Warns if the clock of this machine is behind the time of a snapshot that is there already.
fn warn_of_clock(snapshots: &[SnapshotManifest]) {
    let newest = snapshots.iter().max_by_key(|snapshot| snapshot.time);
    if let Some(newest) = newest.filter(|newest| newest.time > milliseconds_now()) {
        log::warn!(
            "the clock of this machine is behind the time of the snapshot \"{}\": one of the two clocks is wrong. \
             Snapshots stay in the order of their puts, but chunk forget --older-than goes by their times",
            newest.name
        );
    }
}

/// Returns how many of the first files are cut at the same time: as many as need no more memory than one long file for each
/// worker, whatever their streams hold.
fn batch(files: &[PutFile], workers: usize) -> usize {
    let mut bytes = 0;
    let fits = |file: &&PutFile| {
        bytes += (file.bytes * MOST_EXPANSION).min(LONG_FILE_BYTES);
        bytes <= LONG_FILE_BYTES * workers as u64
    };
    files.iter().take(BATCH_FILES).take_while(fits).count().max(1)
}

/// Returns a file whose contents are what they were `before`. Its name, permissions and time are those that it has now.
fn unchanged(
    file: &PutFile,
    before: SnapshotFile,
    chunks: Vec<ChunkRun>,
    counts: &mut SnapshotCounts,
) -> SnapshotFile {
    counts.files += 1;
    counts.unchanged_files += 1;
    counts.bytes += before.bytes;
    counts.undone_files += u64::from(!before.parts.is_empty());
    counts.chunk_bytes += before.chunk_bytes();
    let PutFile { name, mode, modified, .. } = file.clone();
    SnapshotFile { name, mode, modified, chunks, ..before }
}

fn add_file(
    adder: &mut ChunkAdder,
    file: &PutFile,
    cut: CutFile,
    counts: &mut SnapshotCounts,
) -> Result<SnapshotFile> {
    let is_undone = !cut.parts.is_empty();
    let mut chunks = Vec::new();
    for chunk in &cut.chunks {
        adder.add(chunk.id, &cut.contents[chunk.range.clone()], is_undone, &mut chunks)?;
    }
    counts.files += 1;
    counts.bytes += cut.bytes;
    counts.undone_files += u64::from(is_undone);
    counts.chunk_bytes += cut.contents.len() as u64;
    let PutFile { name, mode, modified, .. } = file.clone();
    Ok(SnapshotFile { name, bytes: cut.bytes, hash: cut.hash, mode, modified, parts: cut.parts, chunks })
}

/// Adds a file that is not held in memory. If it cannot be read to its end, its chunks stay until the next prune.
fn add_long_file(
    adder: &mut ChunkAdder,
    file: &PutFile,
    counts: &mut SnapshotCounts,
) -> Result<Result<SnapshotFile, cluster::Error>> {
    let mut hasher = Hasher::new();
    let mut bytes = 0;
    let mut chunks = Vec::new();
    let unread = cut_long_file(file, |id, chunk| {
        hasher.update(chunk);
        bytes += chunk.len() as u64;
        adder.add(id, chunk, false, &mut chunks)
    })
    .with_context(|| format!("could not put \"{}\"", file.name))?;
    if let Some(error) = unread {
        return Ok(Err(error));
    }
    counts.files += 1;
    counts.bytes += bytes;
    counts.chunk_bytes += bytes;
    let (PutFile { name, mode, modified, .. }, hash) = (file.clone(), *hasher.finalize().as_bytes());
    Ok(Ok(SnapshotFile { name, bytes, hash, mode, modified, parts: Vec::new(), chunks }))
}

/// Returns why a file could not be read. A file that changes is no input of a job that could be run again.
fn why_unread(error: cluster::Error) -> String {
    match error {
        cluster::Error::Changed { reason, .. } => format!("it changed while it was read: {reason}"),
        error => format!("{:#}", anyhow::Error::from(error)),
    }
}
