//! Finding the documents near a fingerprint.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use hbase::{TableCell, TableRow};

use super::layout::{DocState, HBaseDoc, id_row, rows_near};
use super::settings_row::HBaseIndex;

/// Number of fingerprints whose rows are asked for by one request.
const FINGERPRINTS_OF_A_REQUEST: usize = 16;
/// Number of candidates whose id rows are asked for by one request.
const CANDIDATES_OF_A_REQUEST: usize = 1000;
/// Number of cells of a row that are asked for at once.
const PAGE: usize = 10_000;
/// Largest number of cells of one row that are looked at.
const MOST_CELLS: usize = 131_072;
/// Largest number of candidates of one fingerprint.
const MOST_CANDIDATES: usize = 10_000;

/// Documents near one fingerprint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NearDocs {
    /// Documents that are there or on their way: the nearest first, and of equally near ones the earliest.
    pub docs: Vec<NearDoc>,
    /// Whether there may be more that were not looked at.
    pub cut: bool,
}

/// A document near a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NearDoc {
    pub distance: u32,
    pub doc: HBaseDoc,
    pub state: DocState,
}

/// Candidates of one fingerprint, with their distances.
#[derive(Default)]
struct HBaseCandidates {
    docs: BTreeSet<(u32, HBaseDoc)>,
    cut: bool,
}

impl HBaseIndex {
    /// Finds the documents within `within` bits of each of some fingerprints, as their id rows say.
    ///
    /// Cost: a request for the rows of 16 fingerprints, which are up to 66 for each; if there are candidates, a request
    /// for the id rows of 1,000 of them. A row of more than 10,000 cells takes further requests.
    ///
    /// # Errors
    /// Those of the table.
    pub fn near(&self, topic: &str, fingerprints: &[u64], within: u32) -> Result<Vec<NearDocs>> {
        let mut found = Vec::with_capacity(fingerprints.len());
        for fingerprints in fingerprints.chunks(FINGERPRINTS_OF_A_REQUEST) {
            let candidates = self.candidates(topic, fingerprints, within)?;
            let docs: BTreeSet<&HBaseDoc> =
                candidates.iter().flat_map(|of| &of.docs).map(|(_, doc)| doc).collect();
            let docs: Vec<HBaseDoc> = docs.into_iter().cloned().collect();
            let mut states = BTreeMap::new();
            for docs in docs.chunks(CANDIDATES_OF_A_REQUEST) {
                states.extend(docs.iter().zip(self.states(topic, docs)?));
            }
            for HBaseCandidates { docs, cut } in candidates {
                let near = |(distance, doc): (u32, HBaseDoc)| {
                    let state = states.get(&doc).copied().flatten()?;
                    Some(NearDoc { distance, doc, state })
                };
                found.push(NearDocs { docs: docs.into_iter().filter_map(near).collect(), cut });
            }
        }
        Ok(found)
    }

    fn candidates(&self, topic: &str, fingerprints: &[u64], within: u32) -> Result<Vec<HBaseCandidates>> {
        let rows = fingerprints.iter().map(|&fingerprint| rows_near(topic, fingerprint, within));
        let rows: Vec<Vec<Vec<u8>>> = rows.collect();
        let asked: Vec<TableRow> =
            rows.iter().flatten().map(|row| TableRow::First(row.clone(), PAGE)).collect();
        let mut cells = self.table.rows(&asked)?.into_iter();
        let mut found = Vec::with_capacity(fingerprints.len());
        for (&fingerprint, rows) in fingerprints.iter().zip(&rows) {
            let mut candidates = HBaseCandidates::default();
            for cells in cells.by_ref().take(rows.len()) {
                self.meet(cells, |cell| {
                    let doc = HBaseDoc::of_key_cell(cell)?;
                    let distance = (doc.fingerprint ^ fingerprint).count_ones();
                    if distance <= within {
                        candidates.docs.insert((distance, doc));
                        if candidates.docs.len() > MOST_CANDIDATES {
                            candidates.docs.pop_last();
                            candidates.cut = true;
                        }
                    }
                    Ok(())
                })
                .map(|is_cut| candidates.cut |= is_cut)?;
            }
            found.push(candidates);
        }
        Ok(found)
    }

    /// Calls `each` with the cells of a row, of which the first page has been read. Returns whether there are more than
    /// are looked at.
    fn meet(&self, first: Vec<TableCell>, mut each: impl FnMut(TableCell) -> Result<()>) -> Result<bool> {
        let mut page = first;
        let mut met = 0;
        loop {
            met += page.len();
            let next = page.last().filter(|_| page.len() == PAGE);
            let next = next.map(|cell| TableRow::Behind(cell.row.clone(), cell.qualifier.clone(), PAGE));
            page.into_iter().try_for_each(&mut each)?;
            let Some(next) = next else { return Ok(false) };
            if met >= MOST_CELLS {
                return Ok(true);
            }
            page = self.table.rows(&[next])?.concat();
        }
    }

    /// Returns the states of documents; `None` for one whose id row does not have it.
    ///
    /// # Errors
    /// Those of the table.
    pub fn states(&self, topic: &str, docs: &[HBaseDoc]) -> Result<Vec<Option<DocState>>> {
        let states = [DocState::Kept, DocState::Pending];
        let row = |doc: &HBaseDoc| {
            let qualifiers = states.map(|state| doc.id_cell(topic, state).qualifier);
            TableRow::Columns(id_row(topic, &doc.id), qualifiers.into())
        };
        let rows: Vec<TableRow> = docs.iter().map(row).collect();
        let state = |(doc, cells): (&HBaseDoc, Vec<TableCell>)| {
            states.into_iter().find(|&state| cells.contains(&doc.id_cell(topic, state)))
        };
        Ok(docs.iter().zip(self.table.rows(&rows)?).map(state).collect())
    }
}
