//! Checks a state: every checksum, and what its tables say about each other.

use std::collections::BTreeSet;

use anyhow::Result;
use cluster::runs::RunReader;
use operators::DocId;

use super::manifest::{RunEntry, StateManifest};
use super::reader::EarlierDocs;
use super::state_folder::StateFolder;
use super::table::{NO_LABEL, StateTable, doc_of};

/// Greatest number of faults that are listed.
const MOST_FAULTS: usize = 20;

/// Reads every byte of all versions, compares it with its checksums, and checks that the tables of the newest one
/// agree. Returns the faults, the first 20 of them in words.
///
/// # Errors
/// Those of the store, if it is not that a file is damaged or absent.
pub(crate) fn check_state(state: &StateFolder, newest: &StateManifest) -> Result<Vec<String>> {
    let (mut faults, mut checked) = (Vec::new(), BTreeSet::new());
    for version in state.versions()? {
        match state.version(version) {
            Ok(manifest) => {
                for run in manifest.runs.iter().filter(|run| checked.insert(run.file.clone())) {
                    faults.extend(fault_of(state, run)?);
                }
                if let Some(of) = manifest.statistics.filter(|of| checked.insert(of.file.clone())) {
                    faults.extend(state.check_statistics(&of).err().map(|error| format!("{error:#}")));
                }
            }
            Err(error) if error.is::<cluster::Error>() => return Err(error),
            Err(error) => faults.push(format!("{error:#}")),
        }
    }
    if faults.is_empty() {
        check_tables(&EarlierDocs::open(state, newest)?, &mut faults)?;
    }
    if faults.len() > MOST_FAULTS {
        let more = faults.len() - MOST_FAULTS;
        faults.truncate(MOST_FAULTS);
        faults.push(format!("and {more} more"));
    }
    Ok(faults)
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

/// Checks that labels and clusters name each other, and that texts that searches can find exist.
fn check_tables(docs: &EarlierDocs, faults: &mut Vec<String>) -> Result<()> {
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
    Ok(())
}
