//! Looks up what a state remembers of earlier documents.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use cluster::runs::{MergedRuns, RunCursor, RunReader};
use operators::hash::Identity;
use operators::{DocId, Matches, NearPair, Pair, Similarity, unpack_apart};

use super::manifest::StateManifest;
use super::state_folder::StateFolder;
use super::table::{
    GOES, NO_MEMBER, NO_PARENT, OF_TEXT, StateTable, doc_of, key_of_id, number_of, splits_below,
};

/// The documents of earlier nights as a state remembers them, opened for lookups.
///
/// Lookups by one cursor must be made in the order of keys. Each reads the blocks that hold the keys it is
/// asked for, and nothing else. Memory: the root block of each run, and 8 bytes for each document that was
/// ever withdrawn.
pub struct EarlierDocs {
    tables: BTreeMap<StateTable, Vec<RunReader>>,
    first_split: u32,
    /// Documents that were withdrawn, in order.
    withdrawn: Vec<DocId>,
    /// Those of them whose text no other document has.
    dead: Vec<DocId>,
    /// Documents that the night withdraws, in order.
    going: Vec<DocId>,
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

    /// Returns the text above a document, and whether the document has it or goes for it ([`OF_TEXT`], `GOES`).
    pub fn parent(parents: &mut MergedRuns, doc: DocId) -> Result<Option<(DocId, u64)>> {
        let parent = found(parents, &[number_of(doc)])?.map(|row| (row.words[1], row.words[2]));
        Ok(parent.filter(|parent| parent.0 != NO_PARENT).map(|(parent, sort)| (doc_of(parent), sort)))
    }

    /// Returns the text of a document.
    pub fn text_of_doc(parents: &mut MergedRuns, doc: DocId) -> Result<DocId> {
        let parent = EarlierDocs::parent(parents, doc)?.filter(|parent| parent.1 == OF_TEXT);
        Ok(parent.map_or(doc, |parent| parent.0))
    }

    /// Returns the text for which a text goes.
    pub fn goes_for(parents: &mut MergedRuns, text: DocId) -> Result<Option<DocId>> {
        let parent = EarlierDocs::parent(parents, text)?.filter(|parent| parent.1 == GOES);
        Ok(parent.map(|parent| parent.0))
    }

    /// Returns the further documents that have a text, in order.
    pub fn copies(members: &mut MergedRuns, text: DocId) -> Result<Vec<DocId>> {
        let mut copies = Vec::new();
        each_member(members, (text, OF_TEXT), |doc, _| copies.push(doc))?;
        Ok(copies)
    }

    /// Returns the texts that go for a text, in order.
    pub fn followers(members: &mut MergedRuns, text: DocId) -> Result<Vec<DocId>> {
        let mut followers = Vec::new();
        each_member(members, (text, GOES), |doc, _| followers.push(doc))?;
        Ok(followers)
    }

    /// Returns the match of a text with one that goes for it.
    pub fn tie(members: &mut MergedRuns, text: DocId, goes: DocId) -> Result<NearPair> {
        let row = found(members, &[number_of(text), GOES, number_of(goes)])?;
        let row = row.filter(|row| row.words[3] != NO_MEMBER);
        let (distance, similarity) =
            unpack_apart(row.context("the state lacks a match that it has a parent of")?.words[3]);
        Ok((Pair::new(text, goes, distance), similarity))
    }

    /// Calls `each` with every further document that has a text, and that text, in the order of texts.
    pub fn each_copy(&self, mut each: impl FnMut(DocId, DocId)) -> Result<()> {
        let mut members = self.cursor(StateTable::Members);
        while let Some(row) = members.next_row()? {
            if row.words[1] == OF_TEXT && row.words[3] != NO_MEMBER {
                each(doc_of(row.words[2]), doc_of(row.words[0]));
            }
        }
        Ok(())
    }

    /// Calls `each` with the texts that stay and that others go for or that have further documents: all that is stored of the
    /// text and of those that go for it. Memory: 16 bytes for each further document of a text.
    pub fn each_star(&self, mut each: impl FnMut(Matches) -> Result<()>) -> Result<()> {
        let mut copies = Vec::new();
        self.each_copy(|doc, text| copies.push((doc, text)))?;
        let copies_of = |of: DocId| {
            let start = copies.partition_point(|&(_, text)| text < of);
            copies[start..].iter().copied().take_while(move |&(_, text)| text == of)
        };
        let (mut members, mut parents) = (self.cursor(StateTable::Members), self.cursor(StateTable::Parents));
        while let Some(text) = members.peek_row()?.map(|row| doc_of(row.words[0])) {
            let mut star = Matches { copies: copies_of(text).collect(), pairs: Vec::new() };
            each_member(&mut members, (text, OF_TEXT), |_, _| ())?;
            each_member(&mut members, (text, GOES), |goes, (distance, similarity)| {
                star.copies.extend(copies_of(goes));
                star.pairs.push((Pair::new(text, goes, distance), similarity));
            })?;
            // The further documents of a text that goes go with it.
            if EarlierDocs::goes_for(&mut parents, text)?.is_none() {
                each(star)?;
            }
        }
        Ok(())
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
pub fn found<'a>(
    cursor: &'a mut MergedRuns,
    key: &[u64],
) -> Result<Option<cluster::runs::RunRow<'a>>, cluster::Error> {
    cursor.seek(key)?;
    Ok(cursor.peek_row()?.filter(|row| row.words.starts_with(key)))
}

/// Calls `each` with the members of a text that have it, or that go for it, and how far they are apart, in order. Leaves the cursor
/// behind them.
fn each_member(
    members: &mut MergedRuns,
    (text, sort): (DocId, u64),
    mut each: impl FnMut(DocId, (u32, Option<Similarity>)),
) -> Result<()> {
    let key = [number_of(text), sort];
    members.seek(&key)?;
    while let Some(row) = members.peek_row()?.filter(|row| row.words.starts_with(&key)) {
        if row.words[3] != NO_MEMBER {
            each(doc_of(row.words[2]), unpack_apart(row.words[3]));
        }
        members.next_row()?;
    }
    Ok(())
}
