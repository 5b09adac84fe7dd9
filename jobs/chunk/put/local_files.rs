//! The files below a folder of this machine.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::Path;

use anyhow::{Result, bail};
use cluster::{Error, leads_back, one_line, path_of_text, text_of_path};

use runtime::cli::exit::WrongUse;
use runtime::cli::terminal::say;

/// Calls `each` with the path and the metadata of every file at or below a path. Links are followed, but not to a folder that
/// the link lies in. What is neither a file nor a folder is told of and left out, and so are the folder `left_out`, which has no
/// links in its path, and folders below it.
///
/// Returns the number of files and folders below the path that cannot be looked at, each of which is told of. Listings of a
/// store end at the first of these.
///
/// # Errors
/// When the path itself cannot be looked at, and [`WrongUse`] when it is neither a file nor a folder.
pub(super) fn each_local_file(
    path: &str,
    left_out: Option<&Path>,
    mut each: impl FnMut(&str, &Metadata),
) -> Result<u64> {
    let is_left_out = |path: &Path| {
        left_out.is_some_and(|left_out| path.canonicalize().is_ok_and(|real| real.starts_with(left_out)))
    };
    let metadata = fs::metadata(path_of_text(path)).map_err(|error| Error::io(path, "look at", error))?;
    if is_left_out(&path_of_text(path)) {
        bail!(WrongUse(lies_in_the_store(path)));
    }
    if metadata.is_file() {
        each(path, &metadata);
        return Ok(0);
    }
    if !metadata.is_dir() {
        bail!(WrongUse(format!("\"{path}\" is neither a file nor a folder")));
    }
    fs::read_dir(path_of_text(path)).map_err(|error| Error::io(path, "list", error))?;
    let mut unread = 0;
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut failed = |path: &str, error: io::Error| {
            unread += 1;
            say(one_line(&format!("error: \"{path}\" is not put: {error}")));
        };
        let children = match fs::read_dir(path_of_text(&folder)) {
            Ok(children) => children,
            Err(error) => {
                failed(&folder, error);
                continue;
            }
        };
        for child in children {
            let found = match child {
                Ok(child) => child.path(),
                Err(error) => {
                    failed(&folder, error);
                    break;
                }
            };
            let child = text_of_path(found.as_os_str());
            match look(&found) {
                Ok(FoundEntry::File(metadata)) => each(&child, &metadata),
                Ok(FoundEntry::Folder) if is_left_out(&found) => {
                    log::warn!("{}, and is left out", lies_in_the_store(&child));
                }
                Ok(FoundEntry::Folder) => folders.push(child),
                Ok(FoundEntry::Nothing) => {}
                Ok(FoundEntry::Other) => {
                    log::warn!("\"{child}\" is no regular file, and is left out");
                }
                Err(error) => failed(&child, error),
            }
        }
    }
    Ok(unread)
}

/// Says that what is to be put is the store, or lies in it.
pub(super) fn lies_in_the_store(path: &str) -> String {
    format!("\"{path}\" is or lies in the store that it would be put into")
}

/// Kind of the thing that lies at a path.
enum FoundEntry {
    File(Metadata),
    Folder,
    /// Neither a file nor a folder.
    Other,
    /// It has been removed since it was listed, or is a link to a folder that it lies in.
    Nothing,
}

fn look(path: &Path) -> io::Result<FoundEntry> {
    let link = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(FoundEntry::Nothing),
        link => link?.is_symlink(),
    };
    let metadata = fs::metadata(path)?;
    if metadata.is_file() {
        return Ok(FoundEntry::File(metadata));
    }
    if !metadata.is_dir() {
        return Ok(FoundEntry::Other);
    }
    Ok(if link && leads_back(path)? { FoundEntry::Nothing } else { FoundEntry::Folder })
}
