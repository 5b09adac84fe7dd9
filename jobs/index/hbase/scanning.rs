//! The tools that read the documents of an index one after the other.

use std::collections::BTreeMap;

use anyhow::Result;
use hbase::TableRow;

use super::layout::{DocState, HBaseDoc, PARTITIONS, id_row, id_rows, topic_of_row};
use super::settings_row::HBaseIndex;

/// Number of rows that are read by one request.
const ROWS_OF_A_REQUEST: usize = 2000;
/// Number of ids whose rows are read by one request.
const IDS_OF_A_REQUEST: usize = 500;
/// Largest number of documents with one id that are read by one request.
const DOCS_OF_AN_ID: usize = 10_000;

impl HBaseIndex {
    /// Calls `each` with the documents of a topic, in the order of the rows, some thousand at a time. `before`: leaves
    /// out those that were added then or later, in milliseconds since 1970.
    ///
    /// Documents that come or go meanwhile may be there or not.
    ///
    /// # Errors
    /// Those of the table and of `each`.
    pub fn each_docs(
        &self,
        topic: &str,
        before: Option<u64>,
        mut each: impl FnMut(Vec<(HBaseDoc, DocState)>) -> Result<()>,
    ) -> Result<()> {
        for partition in 0..PARTITIONS {
            let (mut start, end) = id_rows(partition, topic);
            loop {
                let times = before.map(|before| 0..before);
                let rows = self.table.scan(&start..&end, times, ROWS_OF_A_REQUEST)?;
                let Some(last) = rows.last().and_then(|row| row.first()) else { break };
                // The first key behind a row.
                start = [&last.row[..], &[0]].concat();
                each(rows.iter().flatten().map(HBaseDoc::of_id_cell).collect::<Result<_>>()?)?;
                if rows.len() < ROWS_OF_A_REQUEST {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Whether any document has ever come to a topic and is not removed. Cost: up to a request for each partition.
    ///
    /// # Errors
    /// Those of the table.
    pub fn has_topic(&self, topic: &str) -> Result<bool> {
        for partition in 0..PARTITIONS {
            let (start, end) = id_rows(partition, topic);
            if !self.table.scan(&start..&end, None, 1)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the topics and the documents in each of them: those that are there, and those that are on their way.
    ///
    /// # Errors
    /// Those of the table.
    pub fn topics(&self) -> Result<BTreeMap<String, [u64; 2]>> {
        let mut found = BTreeMap::new();
        for partition in 0..PARTITIONS {
            let mut start = vec![partition];
            let end = vec![partition + 1];
            while let Some(row) = self.table.scan(&start..&end, None, 1)?.first().and_then(|row| row.first())
            {
                let topic = topic_of_row(&row.row)?;
                start = id_rows(partition, &topic).1;
                found.insert(topic, [0; 2]);
            }
        }
        for (topic, counts) in &mut found {
            self.each_docs(topic, None, |docs| {
                for (_, state) in docs {
                    counts[usize::from(state == DocState::Pending)] += 1;
                }
                Ok(())
            })?;
        }
        found.retain(|_, counts| *counts != [0; 2]);
        Ok(found)
    }

    /// Deletes the documents of a topic with some ids. Returns how many there were.
    ///
    /// # Errors
    /// Those of the table.
    pub fn delete(&self, topic: &str, ids: &[String]) -> Result<usize> {
        let mut count = 0;
        for ids in ids.chunks(IDS_OF_A_REQUEST) {
            let row = |id: &String| TableRow::First(id_row(topic, id), DOCS_OF_AN_ID);
            let rows: Vec<TableRow> = ids.iter().map(row).collect();
            loop {
                let mut docs = Vec::new();
                for (id, cells) in ids.iter().zip(self.table.rows(&rows)?) {
                    for cell in &cells {
                        let (doc, state) = HBaseDoc::of_id_cell(cell)?;
                        if state == DocState::Kept && doc.id == *id {
                            docs.push(doc);
                        }
                    }
                }
                count += docs.len();
                self.remove(topic, &docs)?;
                // Behind the cells that are gone now, there may be more of an id that has very many documents.
                if docs.len() < DOCS_OF_AN_ID {
                    break;
                }
            }
        }
        Ok(count)
    }

    /// Removes the documents of a topic that were added before a time, in milliseconds since 1970, or all of them.
    /// Returns how many there were.
    ///
    /// # Errors
    /// Those of the table.
    pub fn remove_before(&self, topic: &str, before: Option<u64>) -> Result<usize> {
        let mut count = 0;
        self.each_docs(topic, before, |docs| {
            count += docs.iter().filter(|(_, state)| *state == DocState::Kept).count();
            let docs: Vec<HBaseDoc> = docs.into_iter().map(|(doc, _)| doc).collect();
            self.remove(topic, &docs)
        })?;
        Ok(count)
    }
}
