//! The files that are put.

use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Arc;

use anyhow::{Result, bail};
use cluster::{Store, Stores, path_of_text};

use super::local_files::{each_local_file, lies_in_the_store};
use crate::store::ChunkStore;
use runtime::cli::exit::WrongUse;

/// A file that is put.
#[derive(Clone)]
pub(super) struct PutFile {
    pub store: Arc<dyn Store>,
    pub path: String,
    /// Name in the snapshot: the last part of the input, and the path below it.
    pub name: String,
    pub bytes: u64,
    /// Permissions, of a local file.
    pub mode: Option<u32>,
    /// Time of its last change, in nanoseconds since 1970.
    pub modified: Option<i128>,
}

/// The files that are put, in the order of their names, and how many files and folders cannot be.
pub(super) struct FoundFiles {
    pub files: Vec<PutFile>,
    pub unread: u64,
}

/// Finds all files at and below the inputs, hidden ones too. Links are followed. Whatever cannot be looked at below a local
/// input is told of and counted. The folder `own`, which is the store that they are put into, is told of and left out.
///
/// # Errors
/// Those of the stores, and [`WrongUse`] when two files have one name, or an input has none or lies in `own`.
pub(super) fn find_files(stores: &Stores, inputs: &[String], own: &str) -> Result<FoundFiles> {
    let (own_store, own_path) = stores.locate(own)?;
    let own_path = own_path.trim_end_matches('/');
    // A store that does not exist yet has no files.
    let has_own = ChunkStore::exists(stores, own)?;
    let own_folder = match own_store.prefix() {
        "" if has_own => path_of_text(own_path).canonicalize().ok(),
        _ => None,
    };
    let mut found = FoundFiles { files: Vec::new(), unread: 0 };
    for input in inputs {
        let (store, path) = stores.locate(input)?;
        let path = path.trim_end_matches('/');
        let Some((above, last)) = path.rsplit_once('/').filter(|(_, last)| !last.is_empty()) else {
            bail!(WrongUse(format!("\"{input}\" has no name: name a folder in it")));
        };
        let name = |path: &str| path.strip_prefix(above).unwrap_or(last).trim_start_matches('/').to_owned();
        if store.prefix().is_empty() {
            let each = |path: &str, metadata: &Metadata| {
                found.files.push(PutFile {
                    store: Arc::clone(&store),
                    name: name(path),
                    bytes: metadata.len(),
                    mode: Some(metadata.permissions().mode() & 0o7777),
                    modified: Some(
                        i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
                    ),
                    path: path.to_owned(),
                });
            };
            found.unread += each_local_file(path, own_folder.as_deref(), each)?;
            continue;
        }
        // A listing of a file has the file itself.
        let mut entries = store.everything(path)?;
        if entries.is_empty() {
            entries = store.children(path)?;
        }
        let is_own = |path: &str| {
            let below =
                path.strip_prefix(own_path).filter(|_| has_own && store.prefix() == own_store.prefix());
            below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        };
        if is_own(path) {
            bail!(WrongUse(lies_in_the_store(input)));
        }
        let all = entries.len();
        entries.retain(|entry| !is_own(&entry.path));
        if entries.len() < all {
            log::warn!("{}, and is left out", lies_in_the_store(own));
        }
        for entry in entries.into_iter().filter(|entry| !entry.directory) {
            found.files.push(PutFile {
                store: Arc::clone(&store),
                name: name(&entry.path),
                bytes: entry.bytes,
                mode: None,
                modified: entry.version.modified.map(|time| i128::from(time) * 1_000_000),
                path: entry.path,
            });
        }
    }
    found.files.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(twice) = found.files.windows(2).find(|two| two[0].name == two[1].name) {
        bail!(WrongUse(format!("two inputs have a file \"{}\"", twice[0].name)));
    }
    Ok(found)
}
