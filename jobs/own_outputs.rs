//! Finished outputs of this program inside of an input folder, which are no corpus.

use std::collections::BTreeSet;
use std::io::Read;

use anyhow::Result;
use cluster::{BlobReader, Found, Store, shown};
use serde_json::Value;

use crate::say;

/// Folders that an output has; a folder without one of these is not looked at.
const FOLDERS: [&str; 4] = ["kept", "removed", "packed", "unpacked"];
/// How much of a `_SUCCESS` is read; one of ours begins with what it is known by.
const SUCCESS_BYTES: u64 = 64 << 20;

/// Leaves out what lies in a finished output below the folder that an input names, and says so. An output that is named
/// itself is read, and so is one of which such a folder is written out.
///
/// Cost: one small file is read for each folder that has one of [`FOLDERS`].
pub(crate) fn leave_out(inputs: &[String], files: &mut Vec<Found>) -> Result<()> {
    let names = |input: &String| input.split(['/', '{', ',', '}']).any(|name| FOLDERS.contains(&name));
    if inputs.iter().any(names) {
        return Ok(());
    }
    let candidates: BTreeSet<(String, String)> = files
        .iter()
        .flat_map(|file| {
            let named = file.path.len() - file.name.len();
            let parts = file.name.match_indices('/').map(|(at, _)| at);
            let starts = parts.clone().map(|at| at + 1).zip(parts.skip(1));
            let outputs = starts.filter(|&(start, end)| FOLDERS.contains(&&file.name[start..end]));
            outputs.map(move |(start, _)| key(file, named + start))
        })
        .collect();
    for (prefix, folder) in candidates {
        let Some(store) =
            files.iter().find(|file| file.store.prefix() == prefix).map(|file| file.store.clone())
        else {
            continue; // all of it lies in an output that is left out already
        };
        if !is_output(store.as_ref(), &folder)? {
            continue;
        }
        let before = files.len();
        files.retain(|file| !(file.store.prefix() == prefix && file.path.starts_with(&folder)));
        if files.len() < before {
            say(shown(&format!(
                "warning: \"{prefix}{folder}\" is an output of this program inside of the input: its {} files are left out; \
                 to read it, name it as an input",
                before - files.len()
            )));
        }
    }
    Ok(())
}

/// The store's prefix, and the folder that ends at this byte of the path, with a slash behind it.
fn key(file: &Found, end: usize) -> (String, String) {
    (file.store.prefix().to_owned(), file.path[..end].to_owned())
}

fn is_output(store: &dyn Store, folder: &str) -> Result<bool> {
    let blob = match store.open(&format!("{folder}_SUCCESS")) {
        Err(cluster::Error::NotFound { .. }) => return Ok(false),
        blob => blob?,
    };
    let mut text = Vec::new();
    BlobReader::new(blob, 0, SUCCESS_BYTES).read_to_end(&mut text)?;
    // That of Spark is empty, or says nothing of a configuration.
    let success: Value = serde_json::from_slice(&text).unwrap_or_default();
    Ok(success["counters"].is_object() && success["configuration"].is_object())
}
