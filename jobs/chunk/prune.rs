//! `chunk forget` and `chunk prune`: remove snapshots, and the chunks that no snapshot wants.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use cluster::{Stores, one_line};

use super::args::{ForgetArgs, PruneArgs};
use super::chunk_use::{ChunkUse, ChunkUses};
use super::store::{
    ChunkIndex, ChunkPack, ChunkPackWriter, ChunkStore, PackNumber, SnapshotManifest, freeze, frozen,
    frozen_packs, living_claims, time_of_store,
};
use runtime::cli::exit::WrongUse;
use runtime::cli::terminal::{print, say};
use runtime::clock::milliseconds_now;
use runtime::output::{Lock, LockOwner, vanish};

/// A pack is written again if more than one in this many of its bytes is unused, because no snapshot wants
/// it.
const UNUSED_SHARE: u64 = 5;
/// Level of zstd for a pack that is written again.
const LEVEL: i32 = 12;

/// Milliseconds for which a claim that has no name yet may be one that is being written: an hour.
const CLAIM_WRITING_MILLISECONDS: u64 = 3600 * 1000;

/// The change that a pack needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PackChange {
    Keep,
    /// Bytes of its chunks that nobody wants.
    Rewrite(u64),
    Remove,
}

/// Removes snapshots; their chunks stay until the next prune. Returns 0.
///
/// # Errors
/// Those of the store, and [`WrongUse`] when there is no such snapshot, or none is named.
pub(super) fn forget(args: &ForgetArgs, quiet: bool) -> Result<u8> {
    let store = ChunkStore::open(&Stores::new(), &args.store)?;
    let mut gone: BTreeSet<String> = BTreeSet::new();
    for name in &args.snapshots {
        // One that is damaged is known by its whole name alone.
        let is_whole = !name.contains('/') && store.store.exists(&store.manifest_path(name))?;
        gone.insert(if is_whole { name.clone() } else { store.snapshot(name)?.name });
    }
    if args.keep_last.is_none() && args.older_than.is_none() && gone.is_empty() {
        return Err(
            WrongUse("name snapshots, or say which are kept: --keep-last, --older-than".to_owned()).into()
        );
    }
    if args.keep_last.is_some() || args.older_than.is_some() {
        let kept = args.keep_last.unwrap_or(0);
        let oldest = args.older_than.map_or(u64::MAX, |age| {
            milliseconds_now().saturating_sub(age.as_millis().try_into().unwrap_or(u64::MAX))
        });
        let snapshots = all_snapshots(&store)?;
        let old = snapshots.iter().rev().skip(kept).filter(|snapshot| snapshot.time < oldest);
        gone.extend(old.map(|snapshot| snapshot.name.clone()));
    }
    for name in &gone {
        if !args.dry_run {
            store.store.remove(&store.manifest_path(name))?;
            store.store.remove(&store.path_of(&format!("snapshots/{name}.files")))?;
        }
        let would = if args.dry_run { "would be forgotten" } else { "is forgotten" };
        if !quiet {
            print(format_args!("snapshot {name} {would}\n"))?;
        }
    }
    Ok(0)
}

/// Returns the snapshots. If one is damaged nothing may be removed, because it may want any chunk.
fn all_snapshots(store: &ChunkStore) -> Result<Vec<SnapshotManifest>> {
    store.all_snapshots("bring that snapshot back, or remove it: chunk forget takes its name")
}

/// Removes what no snapshot wants. Returns 0.
///
/// # Errors
/// Those of the store, and [`runtime::Locked`] when another prune is at work.
pub(super) fn prune(args: &PruneArgs, quiet: bool) -> Result<u8> {
    let store = ChunkStore::open(&Stores::new(), &args.store)?;
    if args.dry_run {
        return report(&store);
    }
    let name = format!("store \"{}\"", args.store);
    let lock = Lock::take(&store.store, &store.path_of("_temporary"), &name, LockOwner::of_this_process())?;
    let store_of_lock = store.store.clone();
    let own = lock.own();
    lock.beat(move |error| {
        // Only the first error is reported.
        drop(vanish(store_of_lock.as_ref(), &own));
        say(one_line(&format!("error: {error:#}")));
        std::process::exit(1);
    })?;
    let result = lock.fence().and_then(|()| prune_locked(&store, &lock, quiet));
    let result = result.map_err(|error| lock.reason(error));
    lock.release()?;
    result
}

fn prune_locked(store: &ChunkStore, lock: &Lock, quiet: bool) -> Result<u8> {
    let changes = changes(store, &all_snapshots(store)?)?;
    let already = frozen_packs(store)?;
    let wanted: BTreeSet<PackNumber> = changes
        .into_iter()
        .filter(|(number, change)| *change != PackChange::Keep && !already.contains(number))
        .map(|(number, _)| number)
        .collect();
    if !wanted.is_empty() {
        freeze(store, wanted)?;
    }
    let mut ready = Vec::new();
    let mut waiting = None;
    for (path, frozen) in frozen(store)? {
        let living = living_claims(store)?;
        // The prune that has frozen them may have died before it could read the claims.
        let claims = frozen.claims.unwrap_or_else(|| living.clone());
        match claims.into_iter().find(|claim| living.contains(claim)) {
            Some(claim) => waiting = Some(claim),
            None => ready.push((path, frozen.packs)),
        }
    }
    let mut bytes = 0;
    if !ready.is_empty() {
        // Puts that have ended meanwhile have left their snapshots.
        let uses = ChunkUses::of(store, &all_snapshots(store)?)?;
        for (path, packs) in ready {
            for number in packs {
                match change_pack(store, lock, number, &uses) {
                    Ok(freed) => bytes += freed,
                    // It stays as it is, and is free again, unless another prune has taken over.
                    Err(error) => {
                        lock.check()?;
                        log::warn!("{error:#}");
                    }
                }
            }
            lock.discard(&[path])?;
        }
    }
    lock.check()?;
    remove_unfinished(store)?;
    if !quiet {
        print(format_args!("{bytes} bytes freed\n"))?;
    }
    if let Some(claim) = waiting {
        print(format_args!(
            "some packs wait for a put that is running (\"{}\"); prune again when it has ended\n",
            one_line(&claim)
        ))?;
    }
    Ok(0)
}

/// Prints what a prune would do.
fn report(store: &ChunkStore) -> Result<u8> {
    let (mut removed, mut rewritten, mut unused) = (0, 0, 0);
    let bytes: BTreeMap<PackNumber, u64> = store.packs()?.into_iter().collect();
    for (number, change) in changes(store, &all_snapshots(store)?)? {
        match change {
            PackChange::Keep => {}
            PackChange::Rewrite(bytes) => {
                rewritten += 1;
                unused += bytes;
            }
            PackChange::Remove => removed += bytes.get(&number).copied().unwrap_or(0),
        }
    }
    print(format_args!(
        "{removed} bytes of packs would be removed, and {rewritten} packs written again without {unused} bytes of chunks\n"
    ))?;
    Ok(0)
}

/// Returns what each pack needs. A pack that cannot be read stays as it is.
fn changes(store: &ChunkStore, snapshots: &[SnapshotManifest]) -> Result<Vec<(PackNumber, PackChange)>> {
    let uses = ChunkUses::of(store, snapshots)?;
    let mut changes = Vec::new();
    for (number, _) in store.packs()? {
        match store.open_pack(number) {
            Ok(pack) => changes.push((number, change_of(&pack, number, &uses))),
            // Another process may be writing it; if it died, nobody refers to the pack.
            Err(cluster::Error::Damaged { .. }) if !uses.0.contains_key(&number) => {
                changes.push((number, PackChange::Remove));
            }
            Err(error) => log::warn!("{error}"),
        }
    }
    Ok(changes)
}

fn change_of(pack: &ChunkPack, number: PackNumber, uses: &ChunkUses) -> PackChange {
    let (mut used, mut unused) = (0u64, 0u64);
    for (at, chunk) in pack.directory.chunks.iter().enumerate() {
        let is_used = uses.of_chunk(number, at) != ChunkUse::None;
        *(if is_used { &mut used } else { &mut unused }) += u64::from(chunk.bytes);
    }
    match (used, unused) {
        (0, _) => PackChange::Remove,
        _ if unused * UNUSED_SHARE > used + unused => PackChange::Rewrite(unused),
        _ => PackChange::Keep,
    }
}

/// Removes a frozen pack or writes it again without the chunks that nobody wants. Returns the bytes that are freed.
///
/// The chunks keep their numbers, so no snapshot has to change.
fn change_pack(store: &ChunkStore, lock: &Lock, number: PackNumber, uses: &ChunkUses) -> Result<u64> {
    let path = store.pack_path(number);
    let pack = match store.open_pack(number) {
        Err(cluster::Error::NotFound { .. }) => return Ok(0),
        Err(cluster::Error::Damaged { .. }) if !uses.0.contains_key(&number) => {
            lock.discard(&[path])?;
            return Ok(0);
        }
        pack => pack?,
    };
    match change_of(&pack, number, uses) {
        PackChange::Keep => Ok(0),
        PackChange::Remove => {
            lock.discard(&[path])?;
            Ok(pack.bytes())
        }
        PackChange::Rewrite(_) => {
            let aside = lock.aside(&path);
            let mut writer = ChunkPackWriter::new(&store.store, &aside, number, LEVEL)?;
            let mut next = 0;
            pack.each_chunk(|at, id, bytes| {
                for gone in &pack.directory.chunks[next..at as usize] {
                    writer.push(gone.id, b"")?;
                }
                let is_used = uses.of_chunk(number, at as usize) != ChunkUse::None;
                writer.push(id, if is_used { bytes } else { b"" })?;
                next = at as usize + 1;
                Ok(())
            })?;
            for gone in &pack.directory.chunks[next..] {
                writer.push(gone.id, b"")?;
            }
            // In a bucket this shows the file.
            lock.check()?;
            let bytes = writer.finish()?;
            lock.show(&aside, &path)?;
            Ok(pack.bytes().saturating_sub(bytes))
        }
    }
}

/// Removes files of the index that are in others, and what puts have left that died before their snapshots were whole.
fn remove_unfinished(store: &ChunkStore) -> Result<()> {
    ChunkIndex::remove_replaced(store)?;
    let lists = store.store.children_if_any(&store.path_of("snapshots"))?;
    // Files that were being written when their process died have hidden names.
    let all = store.store.everything(&store.path_of(""))?;
    if !living_claims(store)?.is_empty() {
        return Ok(());
    }
    for entry in all {
        let name = entry.name();
        // A put that begins at this moment is writing its claim, which does not count yet.
        let is_claim = entry.path.starts_with(&store.path_of("claims/"));
        let age = || -> Result<u64> {
            let times = time_of_store(store)?.zip(entry.version.modified);
            Ok(times.map_or(0, |(now, modified)| now.saturating_sub(modified)))
        };
        let may_be_written = is_claim && name.starts_with('.') && age()? < CLAIM_WRITING_MILLISECONDS;
        if name.starts_with('.') && !may_be_written && !entry.path.starts_with(&store.path_of("_temporary/"))
        {
            store.store.remove(&entry.path)?;
        }
    }
    for entry in lists {
        if let Some(name) = entry.path.strip_suffix(".files")
            && !store.store.exists(&format!("{name}.json"))?
        {
            store.store.remove(&entry.path)?;
        }
    }
    Ok(())
}
