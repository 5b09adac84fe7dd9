//! Looks up what a state remembers of earlier documents.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use cluster::runs::{MergedRuns, RunCursor, RunReader};
use operators::hash::Identity;
use operators::incremental::StoredCluster;
use operators::{DocId, Pair, Similarity};
use serde::{Deserialize, Serialize};

use super::manifest::StateManifest;
use super::state_folder::StateFolder;
use super::table::{NO_LABEL, StateTable, doc_of, key_of_id, number_of, splits_below};
use super::writer::Numbering;

/// The documents of earlier nights as a state remembers them, opened for lookups.
///
/// Lookups by one cursor must be made in the order of keys. Each reads the blocks that hold the keys it is
/// asked for, and nothing else. Memory: the root block of each run, and 8 bytes for each document that was
/// withdrawn and not yet erased.
pub(crate) struct EarlierDocs {
    tables: BTreeMap<StateTable, Vec<RunReader>>,
    first_split: u32,
    /// Documents that were withdrawn, in order.
    withdrawn: Vec<DocId>,
    /// Those of them whose text no other document has.
    dead: Vec<DocId>,
    /// Documents that the night withdraws, in order.
    going: Vec<DocId>,
}

/// A cluster as it is stored, by the numbers of documents.
#[derive(Debug, Default, Deserialize, Serialize)]
struct EncodedCluster {
    /// Document and text.
    copies: Vec<(u64, u64)>,
    /// Both texts, the distance, and the similarity in millionths.
    pairs: Vec<(u64, u64, u32, Option<u32>)>,
}

impl EarlierDocs {
    /// Opens all runs of a version of a state.
    pub fn open(state: &StateFolder, manifest: &StateManifest) -> Result<Self> {
        let mut tables = BTreeMap::<StateTable, Vec<RunReader>>::new();
        // The newest run comes first, as the merging cursor wants them.
        for run in manifest.runs.iter().rev() {
            let reader = RunReader::open(state.open_file(&run.file)?, &run.summary)?;
            tables.entry(run.table).or_default().push(reader);
        }
        let first_split = splits_below(manifest.end);
        let mut earlier =
            EarlierDocs { tables, first_split, withdrawn: Vec::new(), dead: Vec::new(), going: Vec::new() };
        let mut rows = earlier.cursor(StateTable::Withdrawn);
        while let Some(row) = rows.next_row()? {
            let doc = doc_of(row.words[0]);
            earlier.withdrawn.push(doc);
            if row.words[1] == 1 {
                earlier.dead.push(doc);
            }
        }
        Ok(earlier)
    }

    /// Returns the number of the first split of a night's input, behind all splits of the state.
    pub fn first_split(&self) -> u32 {
        self.first_split
    }

    /// Returns the documents that were withdrawn before, in order.
    pub fn withdrawn(&self) -> &[DocId] {
        &self.withdrawn
    }

    /// Notes the documents that the night withdraws, in order.
    pub fn withdraw(&mut self, going: Vec<DocId>) {
        self.going = going;
    }

    /// Returns the documents that the night withdraws, in order.
    pub fn going(&self) -> &[DocId] {
        &self.going
    }

    /// Whether every document of a text was withdrawn.
    pub fn is_dead(&self, text: DocId) -> bool {
        self.dead.binary_search(&text).is_ok()
    }

    /// Makes a cursor in front of the first row of a table.
    pub fn cursor(&self, table: StateTable) -> MergedRuns {
        MergedRuns::new(self.tables.get(&table).into_iter().flatten())
    }

    /// Makes a cursor for each run of a table, for tables of which no row replaces another one.
    pub fn cursors(&self, table: StateTable) -> Vec<RunCursor> {
        self.tables.get(&table).into_iter().flatten().map(RunReader::cursor).collect()
    }

    /// Returns the text of an identity that a document has which was not withdrawn.
    pub fn text_of(&self, identities: &mut MergedRuns, identity: Identity) -> Result<Option<DocId>> {
        let key = [identity.0, identity.1];
        let words = found(identities, &key)?.map(|row| row.words[2]);
        Ok(words.map(doc_of).filter(|&text| !self.is_dead(text)))
    }

    /// Returns the label of the cluster of a document, if it is in one.
    pub fn label(labels: &mut MergedRuns, doc: DocId) -> Result<Option<DocId>> {
        let label = found(labels, &[number_of(doc)])?.map(|row| row.words[1]);
        Ok(label.filter(|&label| label != NO_LABEL).map(doc_of))
    }

    /// Calls `each` with the matches of every cluster, in the order of labels.
    pub fn each_cluster(&self, mut each: impl FnMut(StoredCluster) -> Result<()>) -> Result<()> {
        let mut clusters = self.cursor(StateTable::Clusters);
        while let Some(row) = clusters.peek_row()? {
            let (label, is_gone) = (doc_of(row.words[0]), row.bytes.is_empty());
            if !is_gone {
                each(EarlierDocs::cluster(&mut clusters, label)?)?;
            }
            clusters.next_row()?;
        }
        Ok(())
    }

    /// Returns the matches of the cluster with this label.
    pub fn cluster(clusters: &mut MergedRuns, label: DocId) -> Result<StoredCluster> {
        let row = found(clusters, &[number_of(label)])?;
        let row = row
            .filter(|row| !row.bytes.is_empty())
            .context("the state lacks a cluster that it has labels of")?;
        let EncodedCluster { copies, pairs } = postcard::from_bytes(row.bytes)?;
        let pair = |(low, high, distance, similarity): (u64, u64, u32, Option<u32>)| {
            (Pair::new(doc_of(low), doc_of(high), distance), similarity.map(Similarity::millionths))
        };
        Ok(StoredCluster {
            copies: copies.into_iter().map(|(doc, text)| (doc_of(doc), doc_of(text))).collect(),
            pairs: pairs.into_iter().map(pair).collect(),
        })
    }

    /// Returns the documents with an id, withdrawn ones left out.
    pub fn docs_of_id(&self, id: &str) -> Result<Vec<DocId>> {
        let hash = key_of_id(id.as_bytes());
        let (mut ids, mut documents) = (self.cursor(StateTable::Ids), self.cursor(StateTable::Documents));
        let mut docs = Vec::new();
        ids.seek(&[hash])?;
        while let Some(row) = ids.next_row()?.filter(|row| row.words[0] == hash) {
            let number = row.words[1];
            let named = found(&mut documents, &[number])?.is_some_and(|row| row.bytes == id.as_bytes());
            if named && self.withdrawn.binary_search(&doc_of(number)).is_err() {
                docs.push(doc_of(number));
            }
        }
        Ok(docs)
    }
}

/// Moves a cursor to a key and returns its row, if there is one with all words of the key.
pub(crate) fn found<'a>(
    cursor: &'a mut MergedRuns,
    key: &[u64],
) -> Result<Option<cluster::runs::RunRow<'a>>, cluster::Error> {
    cursor.seek(key)?;
    Ok(cursor.peek_row()?.filter(|row| row.words.starts_with(key)))
}

/// Encodes a cluster for the state.
pub(crate) fn encode_cluster(cluster: &StoredCluster, numbering: &Numbering) -> Result<Vec<u8>> {
    if *cluster == StoredCluster::default() {
        return Ok(Vec::new());
    }
    let number = |doc| numbering.number(doc);
    let pairs = cluster.pairs.iter().map(|(pair, similarity)| {
        (number(pair.low), number(pair.high), pair.distance, similarity.map(Similarity::as_millionths))
    });
    let copies = cluster.copies.iter().map(|&(doc, text)| (number(doc), number(text)));
    Ok(postcard::to_stdvec(&EncodedCluster { copies: copies.collect(), pairs: pairs.collect() })?)
}
