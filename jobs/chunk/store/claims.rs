//! Keeps those who add chunks and those who remove them apart, without anyone waiting.
//!
//! A put first writes a claim, and then reads which packs are frozen; it uses no chunk of these. A prune first freezes the
//! packs that it wants to change, and then reads the claims. So either the prune sees the claim, or the put sees that the
//! packs are frozen. The prune changes a pack only when every put whose claim it has seen has ended, and only as the
//! snapshots that are there then allow. Otherwise the packs stay frozen for the next prune.
//!
//! A put on another machine counts as dead when it has not renewed its claim for a week, by the clock of the store, which alone
//! gives both times. Whoever finds that removes the claim before it reads the snapshots, and a put looks for its claim once
//! its snapshot is written. So the prune sees the snapshot, or the put sees that its claim is gone:
//!
//! ```text
//! put      writes the snapshot    finds its claim     ends
//! prune                                               removes the claim, reads the snapshots: it keeps what this one wants
//!
//! put                             writes the snapshot    finds no claim, removes the snapshot, and ends with an error
//! prune    removes the claim, reads the snapshots
//! ```

use std::collections::BTreeSet;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::pack_layout::PackNumber;
use super::store_folder::ChunkStore;
use runtime::clock::milliseconds_now;
use runtime::output::{LockOwner, put, read_sealed, write_sealed};

/// Milliseconds after which a claim that is not renewed by its process on another machine counts for nothing: a week.
const CLAIM_MILLISECONDS: u64 = 7 * 24 * 3600 * 1000;
/// Time between two renewals of a claim.
const RENEWAL: Duration = if cfg!(test) { Duration::from_millis(2) } else { Duration::from_secs(600) };
const CLAIMS: &str = "claims";
const FROZEN: &str = "frozen";

/// The claim of a put, which ends with this value.
pub(crate) struct PutClaim {
    store: ChunkStore,
    path: String,
    renewal: Option<(Sender<()>, JoinHandle<()>)>,
}

#[derive(Deserialize, Serialize)]
struct ClaimFile {
    owner: LockOwner,
    /// Milliseconds since 1970, for people.
    time: u64,
}

/// Packs that a prune wants to change, and the claims that it has seen since.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct FrozenPacks {
    pub packs: BTreeSet<PackNumber>,
    /// `None` if the prune died before it had read them.
    pub claims: Option<BTreeSet<String>>,
}

impl PutClaim {
    /// Writes a claim, and renews it from time to time.
    pub fn new(store: &ChunkStore) -> Result<Self> {
        let folder = store.path_of(CLAIMS);
        let path = format!("{folder}/{:016x}.json", ChunkStore::unique());
        store.store.create_dir(&folder)?;
        let file = ClaimFile { owner: LockOwner::of_this_process(), time: milliseconds_now() };
        write_sealed(store.store.as_ref(), &path, &folder, &file)?;
        let (sender, ended) = mpsc::channel();
        let renewed = store.store.clone();
        let path_of_renewal = renewal_of(&path);
        let renew = move || {
            while ended.recv_timeout(RENEWAL) == Err(RecvTimeoutError::Timeout) {
                if let Err(error) = put(renewed.as_ref(), &path_of_renewal, b"") {
                    log::warn!("the claim of this put is not renewed: {error}");
                }
            }
        };
        let thread = thread::Builder::new().name("claim".to_owned()).spawn(renew)?;
        Ok(PutClaim { store: store.clone(), path, renewal: Some((sender, thread)) })
    }

    /// Returns an error if the claim is gone, so that chunks which this put uses may be too.
    pub fn check(&self) -> Result<()> {
        if !self.store.store.exists(&self.path)? {
            bail!(
                "a prune has taken this put for dead, since nothing was heard of it for a week, and may have removed what it \
                 uses: there is no snapshot, put again"
            );
        }
        Ok(())
    }
}

impl Drop for PutClaim {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.renewal.take() {
            drop(sender);
            drop(thread.join());
        }
        // A claim that stays costs the next prune a look at its process.
        if let Err(error) = remove_claim(&self.store, &self.path) {
            log::warn!("{error}");
        }
    }
}

/// Returns the path of the file that is written anew while the claim of a put counts.
fn renewal_of(claim: &str) -> String {
    format!("{claim}.renewed")
}

fn remove_claim(store: &ChunkStore, path: &str) -> Result<(), cluster::Error> {
    store.store.remove(path)?;
    store.store.remove(&renewal_of(path))
}

/// Returns the claims of puts that may still be running. Those of dead ones are removed.
pub(crate) fn living_claims(store: &ChunkStore) -> Result<BTreeSet<String>> {
    let me = LockOwner::of_this_process();
    let mut living = BTreeSet::new();
    let mut time = None;
    let files = store.store.children_if_any(&store.path_of(CLAIMS))?;
    for entry in files.iter().filter(|entry| entry.path.ends_with(".json")) {
        let claim = read_sealed::<ClaimFile>(store.store.as_ref(), &entry.path).unwrap_or(None);
        let lives = match claim.map(|claim| claim.owner.lives(&me)) {
            Some(Some(lives)) => lives,
            // A claim that cannot be read may be one that is removed at this moment.
            None => true,
            Some(None) => {
                let of_claim = [entry.path.clone(), renewal_of(&entry.path)];
                let renewed = files.iter().filter(|file| of_claim.contains(&file.path));
                let renewed = renewed.filter_map(|file| file.version.modified).max();
                let now = match time {
                    Some(now) => now,
                    None => *time.insert(time_of_store(store)?),
                };
                now.zip(renewed).is_none_or(|(now, at)| now.saturating_sub(at) < CLAIM_MILLISECONDS)
            }
        };
        if lives {
            living.insert(entry.path.clone());
        } else {
            remove_claim(store, &entry.path)?;
        }
    }
    Ok(living)
}

/// Returns the milliseconds since 1970 by the clock of the store, if it has one. Writes a file and removes it.
pub(crate) fn time_of_store(store: &ChunkStore) -> Result<Option<u64>> {
    let folder = store.path_of(CLAIMS);
    let path = format!("{folder}/.now-{:016x}", ChunkStore::unique());
    put(store.store.as_ref(), &path, b"")?;
    let files = store.store.everything(&folder)?;
    store.store.remove(&path)?;
    Ok(files.into_iter().find(|file| file.path == path).and_then(|file| file.version.modified))
}

/// Returns the packs whose chunks a put must not use.
pub(crate) fn frozen_packs(store: &ChunkStore) -> Result<BTreeSet<PackNumber>> {
    Ok(frozen(store)?.into_iter().flat_map(|(_, frozen)| frozen.packs).collect())
}

/// Returns what prunes have frozen, by the paths of their files.
pub(crate) fn frozen(store: &ChunkStore) -> Result<Vec<(String, FrozenPacks)>> {
    let mut all = Vec::new();
    for entry in store.store.children_if_any(&store.path_of(FROZEN))? {
        let frozen = read_sealed::<FrozenPacks>(store.store.as_ref(), &entry.path)?;
        all.extend(frozen.map(|frozen| (entry.path, frozen)));
    }
    Ok(all)
}

/// Freezes packs, and notes the claims that are there afterwards.
pub(crate) fn freeze(store: &ChunkStore, packs: BTreeSet<PackNumber>) -> Result<()> {
    let folder = store.path_of(FROZEN);
    let path = format!("{folder}/{:016x}.json", ChunkStore::unique());
    store.store.create_dir(&folder)?;
    let frozen = FrozenPacks { packs, claims: None };
    write_sealed(store.store.as_ref(), &path, &folder, &frozen)?;
    let frozen = FrozenPacks { claims: Some(living_claims(store)?), ..frozen };
    write_sealed(store.store.as_ref(), &path, &folder, &frozen)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::SystemTime;

    use cluster::Stores;

    use super::*;

    /// Makes a claim that of a process on another machine, which was last heard of at `time`.
    fn age(claim: &PutClaim, time: SystemTime) {
        let owner = LockOwner { boot: "another".to_owned(), ..LockOwner::of_this_process() };
        let file = ClaimFile { owner, time: 0 };
        write_sealed(claim.store.store.as_ref(), &claim.path, &claim.store.path_of(CLAIMS), &file).unwrap();
        File::options().write(true).open(&claim.path).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn a_claim_of_another_machine_counts_for_a_week_after_its_last_renewal() {
        let folder = tempfile::tempdir().unwrap();
        let store = ChunkStore::open_or_create(&Stores::new(), folder.path().join("store").to_str().unwrap())
            .unwrap();
        let mut claim = PutClaim::new(&store).unwrap();
        let day = Duration::from_secs(24 * 3600);
        age(&claim, SystemTime::now() - 8 * day);
        while !store.store.exists(&renewal_of(&claim.path)).unwrap() {
            thread::sleep(RENEWAL);
        }
        assert_eq!(living_claims(&store).unwrap().len(), 1, "it was renewed just now");
        claim.renewal = claim.renewal.take().and_then(|(sender, thread)| {
            drop(sender);
            thread.join().unwrap();
            None
        });
        store.store.remove(&renewal_of(&claim.path)).unwrap();
        age(&claim, SystemTime::now() - 6 * day);
        assert_eq!(living_claims(&store).unwrap().len(), 1);
        claim.check().unwrap();
        age(&claim, SystemTime::now() - 8 * day);
        assert!(living_claims(&store).unwrap().is_empty());
        assert!(claim.check().unwrap_err().to_string().contains("put again"));
    }
}
