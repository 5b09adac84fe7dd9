//! The list of an output's files, which decides what belongs to the output.
//!
//! Process 0 compares the list with a listing of the store before a job is decided, and again before
//! `_SUCCESS` is written. `dedup-job check` does the same at any later time.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::Arc;

use anyhow::{Result, bail};
use cluster::{Store, Upload, has_hidden_part};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::requests::AT_ONCE;
use crate::corpus::at_once::each;
use crate::corpus::output_layout::{FILES, FOLDERS};

/// Number of names in a range of a listing: a page of most services.
const LISTED_AT_ONCE: usize = if cfg!(test) { 2 } else { 1_000 };
/// Number of differences that an error names.
const NAMED: usize = 3;

/// Place of the contents of a small file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct BundlePlace {
    /// Name of the bundle.
    pub bundle: String,
    /// Offset of the contents in the bundle, in bytes.
    pub offset: u64,
}

/// File of an output, as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct OutputFile {
    /// Length of the file.
    pub bytes: u64,
    /// Number of records in the file.
    pub records: u64,
    /// BLAKE3 hash of its bytes, in hexadecimal.
    pub blake3: String,
    /// Upload that the commit completes; only in a store of uploads. `_SUCCESS` does not name it.
    #[serde(default)]
    pub upload: Option<Upload>,
    /// Place of the contents until the commit; only for a small file in a store of uploads. `_SUCCESS` does
    /// not name it.
    #[serde(default)]
    pub place: Option<BundlePlace>,
}

/// Files of an output, by their paths below it, such as `kept/part-00000.jsonl`. Some 200 bytes of memory for
/// each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct FileList(pub BTreeMap<String, OutputFile>);

/// List in which the writers of a process note the files that they have finished.
pub(super) type SharedFiles = Arc<Mutex<FileList>>;

/// Difference between a file and the list: the name of the file, and what is wrong with it.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    /// Path of the file below the output.
    pub name: String,
    /// End of a sentence that begins with the name, such as `is missing`.
    pub what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" {}", self.name, self.what)
    }
}

impl FileList {
    /// Adds other files.
    ///
    /// # Errors
    /// When two files have the same name, since one of them would be lost.
    pub fn add(&mut self, more: FileList) -> Result<()> {
        for (name, file) in more.0 {
            match self.0.entry(name) {
                Entry::Vacant(entry) => drop(entry.insert(file)),
                Entry::Occupied(entry) => {
                    bail!("two files of the output would be called \"{}\"", entry.key())
                }
            }
        }
        Ok(())
    }

    /// Compares the list with the files that were found, which are given as lengths by name.
    ///
    /// A file whose path has a hidden name (`_x`, `.x`) may exist without being listed: no reader takes it
    /// for part of the output.
    pub fn differences(&self, found: &BTreeMap<String, u64>) -> Vec<Difference> {
        let differs = |name: &String, what| Difference { name: name.clone(), what };
        let listed = self.0.iter().filter_map(|(name, file)| match found.get(name) {
            None => Some(differs(name, "is missing".to_owned())),
            Some(found) if *found != file.bytes => {
                Some(differs(name, format!("has {found} bytes and not {}", file.bytes)))
            }
            Some(_) => None,
        });
        let unlisted = found.keys().filter(|name| !self.0.contains_key(*name) && !has_hidden_part(name));
        listed.chain(unlisted.map(|name| differs(name, "is there and not listed".to_owned()))).collect()
    }

    /// Returns an error unless the files that were found are those of the list. `why` says what a difference
    /// means.
    pub fn compare(&self, found: &BTreeMap<String, u64>, why: &str) -> Result<()> {
        let differences = self.differences(found);
        if differences.is_empty() {
            return Ok(());
        }
        let mut named: Vec<_> = differences.iter().take(NAMED).map(Difference::to_string).collect();
        match differences.len() {
            count if count > NAMED => named.push(format!("and {} more differ", count - NAMED)),
            _ => {}
        }
        bail!("{why}: {}", named.join(", "))
    }
}

/// Returns the lengths of all files of an output, by their paths below its folder `base`.
pub fn found_below(store: &dyn Store, base: &str) -> Result<BTreeMap<String, u64>, cluster::Error> {
    let mut entries = found_beside(store, base)?;
    for folder in FOLDERS {
        entries.append(&mut store.everything(&format!("{base}/{folder}"))?);
    }
    Ok(by_name(entries, base))
}

/// Returns the files of an output that are in none of its folders.
fn found_beside(store: &dyn Store, base: &str) -> Result<Vec<cluster::Entry>, cluster::Error> {
    let mut entries = Vec::new();
    for file in FILES {
        entries.append(&mut store.children_if_any(&format!("{base}/{file}"))?);
    }
    Ok(entries)
}

fn by_name(entries: Vec<cluster::Entry>, base: &str) -> BTreeMap<String, u64> {
    entries.into_iter().map(|entry| (entry.path[base.len() + 1..].to_owned(), entry.bytes)).collect()
}

/// Returns the files below all folders of an output as [`found_below`] does, but makes several listings at
/// once.
///
/// The names in `listed` are the bounds of these listings. The result is right only for a store that lists in
/// the order of the names.
pub(super) fn found_in_ranges(
    store: &dyn Store,
    base: &str,
    listed: &FileList,
) -> Result<BTreeMap<String, u64>> {
    let mut ranges = Vec::new();
    for folder in FOLDERS {
        let prefix = format!("{folder}/");
        let names = listed.0.range(prefix.clone()..).map(|(name, _)| name);
        let names: Vec<_> = names.take_while(|name| name.starts_with(&prefix)).collect();
        let mut after = None;
        for names in names.chunks(LISTED_AT_ONCE).rev().skip(1).rev() {
            let until = names.last().map(|name| format!("{base}/{name}"));
            ranges.push((folder, after, until.clone()));
            after = until;
        }
        ranges.push((folder, after, None));
    }
    let found = each(AT_ONCE, &ranges, |(folder, after, until)| {
        Ok(store.everything_between(&format!("{base}/{folder}"), after.as_deref(), until.as_deref())?)
    })?;
    let beside = found_beside(store, base)?;
    Ok(by_name(found.into_iter().flatten().chain(beside).collect(), base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_in_ranges_finds_the_files_of_a_whole_listing() {
        let store = cluster::Local;
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().to_str().unwrap();
        let files = list(&["kept/b", "kept/d", "kept/f", "kept/h", "removed/b"].map(|name| (name, 0)));
        for found in ["abcdefghi", "bdfh", "acegi", "i", "a", "e", ""] {
            for folder in ["kept", "removed", "pairs"] {
                store.remove(&format!("{base}/{folder}")).unwrap();
                store.create_dir(&format!("{base}/{folder}")).unwrap();
                for name in found.chars() {
                    store.create_new(&format!("{base}/{folder}/{name}"), &[b'x'; 3]).unwrap();
                }
            }
            store.remove(&format!("{base}/report.html")).unwrap();
            if found.len() > 4 {
                store.create_new(&format!("{base}/report.html"), b"<html>").unwrap();
            }
            let all = found_below(&store, base).unwrap();
            assert_eq!(all.len(), 3 * found.len() + usize::from(found.len() > 4));
            assert_eq!(found_in_ranges(&store, base, &files).unwrap(), all, "{found}");
        }
    }

    fn list(files: &[(&str, u64)]) -> FileList {
        let file = |bytes| OutputFile { bytes, ..OutputFile::default() };
        FileList(files.iter().map(|(name, bytes)| ((*name).to_owned(), file(*bytes))).collect())
    }

    #[test]
    fn every_difference_is_named() {
        let list = list(&[("kept/a", 1), ("kept/b", 2), ("kept/c", 3)]);
        let found = [("kept/a", 1), ("kept/b", 9), ("kept/d", 4), ("kept/.nfs01", 5), ("removed/_x/e", 6)];
        let found = found.map(|(name, bytes)| (name.to_owned(), bytes)).into();
        let differences: Vec<_> = list.differences(&found).iter().map(Difference::to_string).collect();
        assert_eq!(
            differences,
            [
                "\"kept/b\" has 9 bytes and not 2",
                "\"kept/c\" is missing",
                "\"kept/d\" is there and not listed"
            ]
        );
        assert!(list.compare(&found, "why").unwrap_err().to_string().starts_with("why: \"kept/b\""));
    }

    #[test]
    fn two_files_of_one_name_are_an_error() {
        let mut all = list(&[("kept/a", 1)]);
        all.add(list(&[("kept/A", 1)])).unwrap();
        assert!(all.add(list(&[("kept/a", 1)])).unwrap_err().to_string().contains("kept/a"));
    }
}
