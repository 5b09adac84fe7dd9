//! Checks a state: every checksum, and what its tables say about each other.

use std::collections::BTreeMap;

use anyhow::Result;
use cluster::runs::RunReader;

use super::manifest::{NightEntry, RunEntry, StateManifest};
use super::reader::EarlierDocs;
use super::state_folder::{CommittedVersion, StateFolder};
use super::table::{NO_MEMBER, NO_PARENT, StateTable};

/// Greatest number of faults that are listed.
const MOST_FAULTS: usize = 20;

/// Result of a check of a state.
pub(crate) struct StateCheck {
    /// Faults in words: the first 20, and the number of the others.
    pub faults: Vec<String>,
    /// Versions of which every file is as it was written, in order.
    pub whole: Vec<StateManifest>,
}

/// Reads every byte of all versions, compares it with its checksums, and checks that the tables of the newest one
/// agree and that it has all nights.
///
/// # Errors
/// Those of the store, if it is not that a file is damaged or absent.
pub(crate) fn check_state(state: &StateFolder) -> Result<StateCheck> {
    let (mut faults, mut whole, mut checked) = (Vec::new(), Vec::new(), BTreeMap::new());
    let versions = state.versions()?;
    for &version in &versions {
        match state.version(version) {
            Ok(manifest) => {
                let mut is_whole = true;
                for run in &manifest.runs {
                    is_whole &= is_whole_file(&mut checked, &run.file, &mut faults, || fault_of(state, run))?;
                }
                if let Some(of) = &manifest.statistics {
                    let fault = || Ok(state.check_statistics(of).err().map(|error| format!("{error:#}")));
                    is_whole &= is_whole_file(&mut checked, &of.file, &mut faults, fault)?;
                }
                whole.extend(is_whole.then_some(manifest));
            }
            Err(error) if error.is::<cluster::Error>() => return Err(error),
            Err(error) => faults.push(format!("{error:#}")),
        }
    }
    if let Some(newest) = whole.last().filter(|manifest| versions.last() == Some(&manifest.version)) {
        let of_tables = faults_of_tables(state, newest)?;
        let lacks = |night: &NightEntry| {
            format!("the night \"{}\" was lost to damage and is not back yet", night.name)
        };
        faults.extend(newest.lost.iter().map(lacks));
        if !of_tables.is_empty() {
            faults.extend(of_tables);
            whole.pop();
        }
    }
    let newest = versions.last().copied().unwrap_or(0);
    let missing = state.history()?.into_iter().filter(|committed| committed.version > newest);
    faults.extend(missing.map(|CommittedVersion { version, made_by, .. }| {
        format!("the version {version} is missing, which was made by {made_by}")
    }));
    if faults.len() > MOST_FAULTS {
        let more = faults.len() - MOST_FAULTS;
        faults.truncate(MOST_FAULTS);
        faults.push(format!("and {more} more"));
    }
    Ok(StateCheck { faults, whole })
}

/// Whether a file that several versions may name is as it was written. Its fault is listed once.
fn is_whole_file(
    checked: &mut BTreeMap<String, bool>,
    file: &str,
    faults: &mut Vec<String>,
    fault: impl FnOnce() -> Result<Option<String>>,
) -> Result<bool> {
    if let Some(&is_whole) = checked.get(file) {
        return Ok(is_whole);
    }
    let fault = fault()?;
    checked.insert(file.to_owned(), fault.is_none());
    let is_whole = fault.is_none();
    faults.extend(fault);
    Ok(is_whole)
}

/// Reads a file, and returns what is wrong with it.
fn fault_of(state: &StateFolder, run: &RunEntry) -> Result<Option<String>> {
    let checked = state
        .store
        .open(&state.at(&run.file))
        .and_then(|blob| RunReader::open(blob, &run.summary).and_then(|reader| reader.check()));
    match checked {
        Err(error @ (cluster::Error::Damaged { .. } | cluster::Error::NotFound { .. })) => {
            Ok(Some(error.to_string()))
        }
        checked => Ok(checked.map(|()| None)?),
    }
}

/// Returns where the parents and the members of a version do not name each other.
pub(crate) fn faults_of_tables(state: &StateFolder, manifest: &StateManifest) -> Result<Vec<String>> {
    let docs = EarlierDocs::open(state, manifest)?;
    let mut parents: Vec<(u64, u64)> = Vec::new();
    let mut rows = docs.cursor(StateTable::Parents);
    while let Some(row) = rows.next_row()? {
        if row.words[1] != NO_PARENT {
            parents.push((row.words[1], row.words[0]));
        }
    }
    parents.sort_unstable();
    let mut members: Vec<(u64, u64)> = Vec::new();
    let mut rows = docs.cursor(StateTable::Members);
    while let Some(row) = rows.next_row()? {
        if row.words[3] != NO_MEMBER {
            members.push((row.words[0], row.words[2]));
        }
    }
    members.sort_unstable();
    let lacks = |of: &[(u64, u64)], (text, doc): &(u64, u64), lacks: &str| {
        let has = of.binary_search(&(*text, *doc)).is_ok();
        (!has).then(|| format!("the document {doc} of the text {text} {lacks}"))
    };
    let no_member = parents.iter().filter_map(|row| lacks(&members, row, "is no member of it"));
    let no_parent = members.iter().filter_map(|row| lacks(&parents, row, "does not have it as its parent"));
    Ok(no_member.chain(no_parent).collect())
}
