//! The folder of a store, and what is in it.

use std::sync::Arc;

use anyhow::{Result, bail};
use cluster::{Store, Stores};
use operators::hash::Secret;
use serde::{Deserialize, Serialize};

use super::pack_layout::PackNumber;
use super::pack_reader::ChunkPack;
use runtime::cli::exit::WrongUse;
use runtime::output::{read_sealed, write_sealed};

/// Version of the format.
const FORMAT: u32 = 1;
/// File that makes a folder a store.
const SETTINGS: &str = "chunks.json";

/// A store that is open.
#[derive(Clone)]
pub(crate) struct ChunkStore {
    pub store: Arc<dyn Store>,
    /// Folder as the user has named it.
    pub uri: String,
    pub(super) path: String,
}

#[derive(Deserialize, Serialize)]
struct StoreSettings {
    format: u32,
}

impl ChunkStore {
    /// Opens a store.
    ///
    /// # Errors
    /// [`WrongUse`] when there is none, and when it is of another version.
    pub fn open(stores: &Stores, uri: &str) -> Result<Self> {
        let (store, path) = stores.locate(uri)?;
        let store = ChunkStore { store, uri: uri.to_owned(), path: path.trim_end_matches('/').to_owned() };
        match read_sealed::<StoreSettings>(store.store.as_ref(), &store.path_of(SETTINGS))? {
            Some(StoreSettings { format: FORMAT }) => Ok(store),
            Some(_) => bail!(WrongUse(format!("the store \"{uri}\" is of another version of this program"))),
            None => bail!(WrongUse(format!("\"{uri}\" is no store: chunk put makes one"))),
        }
    }

    /// Whether a folder is a store.
    pub fn exists(stores: &Stores, uri: &str) -> Result<bool> {
        let (store, path) = stores.locate(uri)?;
        Ok(store.exists(&format!("{}/{SETTINGS}", path.trim_end_matches('/')))?)
    }

    /// Opens a store, or makes one in a folder that is missing or empty.
    ///
    /// # Errors
    /// Those of [`ChunkStore::open`].
    pub fn open_or_create(stores: &Stores, uri: &str) -> Result<Self> {
        let (store, path) = stores.locate(uri)?;
        let path = path.trim_end_matches('/').to_owned();
        if !ChunkStore::exists(stores, uri)? && store.children_if_any(&path)?.is_empty() {
            write_sealed(
                store.as_ref(),
                &format!("{path}/{SETTINGS}"),
                &path,
                &StoreSettings { format: FORMAT },
            )?;
        }
        ChunkStore::open(stores, uri)
    }

    /// Returns the path of something in the store.
    pub fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// Opens a pack.
    ///
    /// # Errors
    /// Those of [`ChunkPack::open`].
    pub fn open_pack(&self, number: PackNumber) -> Result<ChunkPack, cluster::Error> {
        ChunkPack::open(self.store.as_ref(), &self.path_of("packs"), number)
    }

    /// Returns the path of the file of a pack.
    pub fn pack_path(&self, number: PackNumber) -> String {
        self.path_of(&format!("packs/{number}.pack"))
    }

    /// Returns a number that no other pack, claim or index has.
    pub fn unique() -> u64 {
        Secret::random().words()[0]
    }

    /// Returns the packs and the bytes of each, in the order of their numbers. Those of other processes may not be whole
    /// yet.
    pub fn packs(&self) -> Result<Vec<(PackNumber, u64)>> {
        let packs = self.store.children_if_any(&self.path_of("packs"))?;
        let number = |name: &str| u64::from_str_radix(name.strip_suffix(".pack")?, 16).ok();
        let mut packs: Vec<_> =
            packs.iter().filter_map(|entry| Some((PackNumber(number(entry.name())?), entry.bytes))).collect();
        packs.sort_unstable();
        Ok(packs)
    }
}
