//! Outputs of this program inside of an input folder, finished or not, which are no corpus.

use std::collections::BTreeSet;
use std::io::Read;

use anyhow::Result;
use cluster::{BlobReader, Found, Store, shown};
use serde_json::Value;

use crate::output::{FOLDERS, is_begun};
use crate::say;

/// How much of a `_SUCCESS` is read; one of ours begins with what it is known by.
const SUCCESS_BYTES: u64 = 64 << 20;

/// Leaves out what lies in an output below the folder that an input names, and says so: in a finished one, in one that a
/// killed run has shown in part, and so in that of the run itself which goes on. An output that is named itself is read,
/// and so is one of which such a folder is written out behind a pattern.
///
/// Cost: for each folder that has one of [`FOLDERS`] its `_SUCCESS` is read, in little memory, and its `_temporary` listed.
pub(crate) fn leave_out(inputs: &[String], files: &mut Vec<Found>) -> Result<()> {
    let names = |input: &String| {
        input.contains(['*', '?', '[', '{'])
            && input.split(['/', '{', ',', '}']).any(|name| FOLDERS.contains(&name))
    };
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

/// `folder` ends with a slash.
fn is_output(store: &dyn Store, folder: &str) -> Result<bool> {
    if is_begun(store, folder.trim_end_matches('/'))? {
        return Ok(true);
    }
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
