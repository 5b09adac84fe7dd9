//! The files that are put.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Arc;

use anyhow::{Result, bail};
use cluster::{Store, Stores, one_line, path_of_text};

use crate::cli::exit::WrongUse;
use crate::cli::terminal::say;

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
    pub modified: Option<i64>,
}

/// Returns all files at and below the inputs, in the order of their names in the snapshot; hidden ones too. Links are
/// followed.
///
/// # Errors
/// Those of the stores, and [`WrongUse`] when two files have one name, or an input has none.
pub(super) fn find_files(stores: &Stores, inputs: &[String]) -> Result<Vec<PutFile>> {
    let mut files = Vec::new();
    for input in inputs {
        let (store, path) = stores.locate(input)?;
        let path = path.trim_end_matches('/');
        let Some((above, last)) = path.rsplit_once('/').filter(|(_, last)| !last.is_empty()) else {
            bail!(WrongUse(format!("\"{input}\" has no name: name a folder in it")));
        };
        // What is listed of a file is the file itself.
        let mut found = store.everything(path)?;
        if found.is_empty() {
            found = store.children(path)?;
        }
        let is_local = store.prefix().is_empty();
        for entry in found.into_iter().filter(|entry| !entry.directory) {
            let name = entry.path.strip_prefix(above).unwrap_or(last).trim_start_matches('/').to_owned();
            let metadata = is_local.then(|| fs::metadata(path_of_text(&entry.path))).transpose();
            let metadata = metadata.map_err(|error| cluster::Error::io(&entry.path, "look at", error))?;
            if metadata.as_ref().is_some_and(|metadata| !metadata.is_file()) {
                if entry.path == path {
                    bail!(WrongUse(format!("\"{input}\" is neither a file nor a folder")));
                }
                say(one_line(&format!("warning: \"{}\" is no regular file, and is left out", entry.path)));
                continue;
            }
            let milliseconds = entry.version.modified.map(|time| time as i64 * 1_000_000);
            let nanoseconds = |file: &fs::Metadata| file.mtime() * 1_000_000_000 + file.mtime_nsec();
            files.push(PutFile {
                store: Arc::clone(&store),
                name,
                bytes: metadata.as_ref().map_or(entry.bytes, fs::Metadata::len),
                mode: metadata.as_ref().map(|metadata| metadata.permissions().mode() & 0o7777),
                modified: metadata.as_ref().map(nanoseconds).or(milliseconds),
                path: entry.path,
            });
        }
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(twice) = files.windows(2).find(|two| two[0].name == two[1].name) {
        bail!(WrongUse(format!("two inputs have a file \"{}\"", twice[0].name)));
    }
    Ok(files)
}
