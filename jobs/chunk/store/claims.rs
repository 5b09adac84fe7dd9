//! Keeps those who add chunks and those who remove them apart, without anyone waiting.
//!
//! A put first writes a claim, and then reads which packs are frozen; it uses no chunk of these. A prune first freezes the
//! packs that it wants to change, and then reads the claims. So either the prune sees the claim, or the put sees that the
//! packs are frozen. The prune changes a pack only when every put whose claim it has seen has ended, and only as the
//! snapshots that are there then allow. Otherwise the packs stay frozen for the next prune.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::pack_layout::PackNumber;
use super::store_folder::ChunkStore;
use crate::cli::terminal::say;
use crate::output::{LockOwner, read_sealed, write_sealed};

/// Milliseconds after which the claim of a process on another machine counts for nothing: a week.
const CLAIM_MILLISECONDS: u64 = 7 * 24 * 3600 * 1000;
const CLAIMS: &str = "claims";
const FROZEN: &str = "frozen";

/// The claim of a put, which ends with this value.
pub(in crate::chunk) struct PutClaim {
    store: ChunkStore,
    path: String,
}

#[derive(Deserialize, Serialize)]
struct ClaimFile {
    owner: LockOwner,
    /// Milliseconds since 1970.
    time: u64,
}

/// Packs that a prune wants to change, and the claims that it has seen since.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(in crate::chunk) struct FrozenPacks {
    pub packs: BTreeSet<PackNumber>,
    /// `None` if the prune died before it had read them.
    pub claims: Option<BTreeSet<String>>,
}

/// Returns the milliseconds since 1970.
pub(in crate::chunk) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

impl PutClaim {
    /// Writes a claim.
    pub fn new(store: &ChunkStore) -> Result<Self> {
        let folder = store.path_of(CLAIMS);
        let path = format!("{folder}/{:016x}.json", ChunkStore::unique());
        store.store.create_dir(&folder)?;
        let file = ClaimFile { owner: LockOwner::of_this_process(), time: now() };
        write_sealed(store.store.as_ref(), &path, &folder, &file)?;
        Ok(PutClaim { store: store.clone(), path })
    }
}

impl Drop for PutClaim {
    fn drop(&mut self) {
        // A claim that stays costs the next prune a look at its process.
        if let Err(error) = self.store.store.remove(&self.path) {
            say(format_args!("warning: {error}"));
        }
    }
}

/// Returns the claims of puts that may still be running. Those of dead ones are removed.
pub(in crate::chunk) fn living_claims(store: &ChunkStore) -> Result<BTreeSet<String>> {
    let me = LockOwner::of_this_process();
    let mut living = BTreeSet::new();
    for entry in store.store.children_if_any(&store.path_of(CLAIMS))? {
        let claim = read_sealed::<ClaimFile>(store.store.as_ref(), &entry.path).unwrap_or(None);
        let lives = claim.is_none_or(|claim| {
            claim.owner.lives(&me).unwrap_or(now().saturating_sub(claim.time) < CLAIM_MILLISECONDS)
        });
        if lives {
            living.insert(entry.path);
        } else {
            store.store.remove(&entry.path)?;
        }
    }
    Ok(living)
}

/// Returns the packs whose chunks a put must not use.
pub(in crate::chunk) fn frozen_packs(store: &ChunkStore) -> Result<BTreeSet<PackNumber>> {
    Ok(frozen(store)?.into_iter().flat_map(|(_, frozen)| frozen.packs).collect())
}

/// Returns what prunes have frozen, by the paths of their files.
pub(in crate::chunk) fn frozen(store: &ChunkStore) -> Result<Vec<(String, FrozenPacks)>> {
    let mut all = Vec::new();
    for entry in store.store.children_if_any(&store.path_of(FROZEN))? {
        let frozen = read_sealed::<FrozenPacks>(store.store.as_ref(), &entry.path)?;
        all.extend(frozen.map(|frozen| (entry.path, frozen)));
    }
    Ok(all)
}

/// Freezes packs, and returns the claims that are there afterwards.
pub(in crate::chunk) fn freeze(store: &ChunkStore, packs: BTreeSet<PackNumber>) -> Result<BTreeSet<String>> {
    let folder = store.path_of(FROZEN);
    let path = format!("{folder}/{:016x}.json", ChunkStore::unique());
    store.store.create_dir(&folder)?;
    let frozen = FrozenPacks { packs, claims: None };
    write_sealed(store.store.as_ref(), &path, &folder, &frozen)?;
    let claims = living_claims(store)?;
    let frozen = FrozenPacks { claims: Some(claims.clone()), ..frozen };
    write_sealed(store.store.as_ref(), &path, &folder, &frozen)?;
    Ok(claims)
}
