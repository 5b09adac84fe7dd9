//! Checks a state: every checksum, and what its tables say about each other.

use std::collections::BTreeMap;

use anyhow::Result;
use cluster::runs::RunReader;
use operators::DocId;

use super::manifest::{NightEntry, RunEntry, StateManifest};
use super::reader::EarlierDocs;
use super::state_folder::{CommittedVersion, StateFolder};
use super::table::{NO_LABEL, StateTable, doc_of};

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

/// Returns where labels and clusters of a version do not name each other.
pub(crate) fn faults_of_tables(state: &StateFolder, manifest: &StateManifest) -> Result<Vec<String>> {
    let (docs, mut faults) = (EarlierDocs::open(state, manifest)?, Vec::new());
    let (mut labels, mut clusters) = (docs.cursor(StateTable::Labels), docs.cursor(StateTable::Clusters));
    let mut labelled: Vec<(DocId, DocId)> = Vec::new();
    while let Some(row) = labels.next_row()? {
        if row.words[1] != NO_LABEL {
            labelled.push((doc_of(row.words[1]), doc_of(row.words[0])));
        }
    }
    labelled.sort_unstable();
    let mut expected = labelled.into_iter().peekable();
    while let Some((label, stored)) =
        clusters.peek_row()?.map(|row| (doc_of(row.words[0]), !row.bytes.is_empty()))
    {
        if stored {
            let cluster = EarlierDocs::cluster(&mut clusters, label)?;
            let copies = cluster.copies.iter().flat_map(|&(doc, text)| [doc, text]);
            let pairs = cluster.pairs.iter().flat_map(|(pair, _)| [pair.low, pair.high]);
            let mut members: Vec<DocId> = copies.chain(pairs).collect();
            members.sort_unstable();
            members.dedup();
            let mut labelled = Vec::new();
            while let Some((_, doc)) = expected.next_if(|&(of, _)| of == label) {
                labelled.push(doc);
            }
            if members != labelled {
                faults.push(format!(
                    "the cluster {} has {} documents and texts, and {} have its label",
                    label.0,
                    members.len(),
                    labelled.len()
                ));
            }
        }
        clusters.next_row()?;
    }
    for (label, doc) in expected {
        faults.push(format!("the document {} has the label {} of no cluster", doc.0, label.0));
    }
    Ok(faults)
}
