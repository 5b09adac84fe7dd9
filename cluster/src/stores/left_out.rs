//! Files below a folder that are no input: hidden ones, and others by their names.
//!
//! They are left out where a folder or a pattern leads to them. A user who names such a file, or its ending in a
//! pattern, gets it.

use std::collections::{BTreeMap, HashSet};

use super::error::Error;
use super::pattern::is_pattern;
use super::store::{Entry, Store, last_name, parent};

/// Endings of the names of such files, and what they are.
const ENDINGS: [(&str, &str); 5] = [
    ("._COPYING_", "a file that is still being copied"),
    (".inprogress", "a file that is still being written"),
    (".tmp", "a temporary file"),
    ("~", "an editor's copy of what a file was"),
    ("_$folder$", "the marker of a folder"),
];
/// Names of the files of a MapFile beside its `data`.
const MAP_FILE: [(&str, &str); 2] =
    [("index", "the index of a MapFile"), ("bloom", "the filter of a MapFile")];
/// Begins a SequenceFile, which the `data` of a MapFile is.
const SEQUENCE_FILE: &[u8] = b"SEQ";
/// Hidden names of files and folders that have no records.
const MARKERS: [&str; 5] = ["_SUCCESS", "_metadata", "_common_metadata", "_temporary", ".DS_Store"];

/// Returns whether a listing skips this name, because it begins with `.`, or with `_` and is no `_column=value`, as a partition
/// of a table is called. Spark has the same rule.
pub(crate) fn is_hidden(name: &[u8]) -> bool {
    match name.first() {
        Some(b'.') => true,
        Some(b'_') => !name.contains(&b'='),
        _ => false,
    }
}

/// Returns whether readers of a folder skip the file with this path below it, because a part of the path is a hidden name.
pub fn has_hidden_part(path: &str) -> bool {
    path.split('/').any(|part| is_hidden(part.as_bytes()))
}

/// Removes such files from those that an input leads to, and returns their paths and what they are. `input`: the path of the
/// input, which may have patterns.
///
/// # Errors
/// Those of the store, which opens the files of what looks like a MapFile.
pub(super) fn take(
    store: &dyn Store,
    input: &str,
    files: &mut Vec<Entry>,
) -> Result<BTreeMap<String, &'static str>, Error> {
    let mut taken = BTreeMap::new();
    let data: HashSet<String> =
        files.iter().filter(|file| file.name() == "data").map(|file| file.path.clone()).collect();
    for file in files.iter() {
        let name = file.name();
        let ending = ENDINGS
            .iter()
            .find(|(ending, _)| name.ends_with(ending) && file.path != input && !names(input, ending));
        let mut kind = ending.map(|(_, kind)| *kind);
        if let Some((_, part)) = MAP_FILE.iter().find(|(part, _)| *part == name) {
            let data_beside = format!("{}/data", parent(&file.path).trim_end_matches('/'));
            if data.contains(&data_beside) && begins_as_sequence_file(store, &data_beside)? {
                kind = Some(part);
            }
        }
        if let Some(kind) = kind {
            taken.insert(file.path.clone(), kind);
        }
    }
    files.retain(|file| !taken.contains_key(&file.path));
    Ok(taken)
}

/// Whether a pattern names an ending, as `*.tmp` does and `{a.tmp,b}`.
fn names(input: &str, ending: &str) -> bool {
    let pattern = last_name(input);
    is_pattern(pattern) && pattern.split([',', '}']).any(|choice| choice.ends_with(ending))
}

/// Returns, in words, what kind of path a listing has put aside.
pub(super) fn kind_of_hidden(path: &str) -> &'static str {
    match is_hidden(last_name(path.trim_end_matches('/')).as_bytes()) {
        true => "hidden, since its name begins with _ or .",
        false => "a key of a bucket that no path can name",
    }
}

/// Whether a hidden name may hide records: those of checksums and of finished outputs hide none.
pub(super) fn may_hide_records(path: &str) -> bool {
    let name = last_name(path);
    !MARKERS.contains(&name) && !name.ends_with(".crc")
}

fn begins_as_sequence_file(store: &dyn Store, path: &str) -> Result<bool, Error> {
    let mut head = [0; SEQUENCE_FILE.len()];
    let read = store.open(path)?.read_full_at(0, &mut head)?;
    Ok(&head[..read] == SEQUENCE_FILE)
}
