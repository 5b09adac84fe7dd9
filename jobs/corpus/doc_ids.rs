//! The ids and text lengths of the documents that matter after the search.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use anyhow::{Result, bail};
use operators::{DocId, SpillBudget, Spool};
use serde::{Deserialize, Serialize};

/// Ids of documents, and the lengths of their texts.
///
/// Documents may be added in any order and more than once; they are found only after [`DocIds::sort`].
/// Memory: 25 bytes and the id for each document.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct DocIds {
    splits: BTreeMap<u32, SplitDocIds>,
}

/// Names of the documents of one split.
#[derive(Debug, Default, Deserialize, Serialize)]
struct SplitDocIds {
    entries: Vec<DocIdEntry>,
    /// Ids, one after the other, in the order of the entries.
    ids: String,
    /// Directory of the entries, made when one is first looked for: the record numbers are cut into ranges of
    /// equal length, and for each range stands the first entry at or behind its beginning. Most steps of a
    /// binary search among millions of entries would miss the cache.
    #[serde(skip)]
    ranges: OnceLock<Vec<usize>>,
}

/// Number of entries in a range, if they are spread evenly.
const RANGE_ENTRIES: usize = 8;

/// Name of one document.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct DocIdEntry {
    /// Number of the record in its split.
    record: u64,
    /// End of its id in the ids of the split, in bytes.
    end: usize,
    /// Length of its text, in characters.
    chars: u64,
}

impl SplitDocIds {
    fn push(&mut self, record: u64, id: &str, chars: u64) {
        self.ranges.take();
        self.ids.push_str(id);
        self.entries.push(DocIdEntry { record, end: self.ids.len(), chars });
    }

    fn id(&self, at: usize) -> &str {
        let start = at.checked_sub(1).map_or(0, |before| self.entries[before].end);
        &self.ids[start..self.entries[at].end]
    }

    /// Returns the index of the entry of a record, which must be there. The entries must be sorted.
    fn find(&self, record: u64) -> usize {
        let ranges = self.ranges.get_or_init(|| {
            let count = self.entries.len().div_ceil(RANGE_ENTRIES);
            let mut ranges = Vec::with_capacity(count);
            for (at, entry) in self.entries.iter().enumerate() {
                let range = self.range(entry.record, count);
                ranges.resize(ranges.len().max(range + 1), at);
            }
            ranges
        });
        let range = self.range(record, ranges.len());
        let end = ranges.get(range + 1).copied().unwrap_or(self.entries.len());
        let start = ranges[range];
        start + self.entries[start..end].partition_point(|entry| entry.record < record)
    }

    /// Returns the number of the range of a record, of `count` ranges.
    fn range(&self, record: u64, count: usize) -> usize {
        let records = self.entries.last().map_or(1, |last| last.record + 1);
        (u128::from(record) * count as u128 / u128::from(records)) as usize
    }

    /// Keeps the entries at these indexes, in this order.
    fn pick(&mut self, which: &[usize]) {
        let mut picked = SplitDocIds::default();
        for &at in which {
            let DocIdEntry { record, chars, .. } = self.entries[at];
            picked.push(record, self.id(at), chars);
        }
        *self = picked;
    }
}

impl DocIds {
    /// Adds a document with its id and the length of its text in characters.
    pub fn add(&mut self, doc: DocId, id: &str, chars: u64) {
        self.splits.entry(doc.split()).or_default().push(doc.record(), id, chars);
    }

    /// Adds the names of others. Cost: copies only those of splits that both have.
    pub fn append(&mut self, others: DocIds) {
        for (split, others) in others.splits {
            let all = self.splits.entry(split).or_default();
            if all.entries.is_empty() {
                *all = others;
                continue;
            }
            for (at, entry) in others.entries.iter().enumerate() {
                all.push(entry.record, others.id(at), entry.chars);
            }
        }
    }

    /// Sorts the names, and drops repeated ones. Cost: one comparison for each name if they are already
    /// sorted.
    pub fn sort(&mut self) {
        for split in self.splits.values_mut() {
            let record = |at: usize| split.entries[at].record;
            if (1..split.entries.len()).all(|at| record(at - 1) < record(at)) {
                continue;
            }
            let mut order: Vec<usize> = (0..split.entries.len()).collect();
            order.sort_by_key(|&at| record(at));
            order.dedup_by_key(|at| record(*at));
            split.pick(&order);
        }
    }

    /// Drops the names of documents for which `keep` is false.
    pub fn retain(&mut self, keep: impl Fn(DocId) -> bool) {
        for (&number, split) in &mut self.splits {
            let wanted = |at: &usize| keep(DocId::new(number, split.entries[*at].record));
            let which: Vec<usize> = (0..split.entries.len()).filter(wanted).collect();
            if which.len() < split.entries.len() {
                split.pick(&which);
            }
        }
    }

    /// Returns the number of names.
    pub fn len(&self) -> usize {
        self.splits.values().map(|split| split.entries.len()).sum()
    }

    /// Returns the names of `docs`, which are sorted and all in these names.
    pub fn of(&self, docs: &[DocId]) -> DocIds {
        let mut names = DocIds::default();
        docs.iter().for_each(|&doc| names.add(doc, self.id(doc), self.chars(doc)));
        names
    }

    /// Returns the id of a document, which must be in these names.
    pub fn id(&self, doc: DocId) -> &str {
        let (split, at) = self.find(doc);
        split.id(at)
    }

    /// Returns the length of the text of a document, in characters.
    pub fn chars(&self, doc: DocId) -> u64 {
        let (split, at) = self.find(doc);
        split.entries[at].chars
    }

    fn find(&self, doc: DocId) -> (&SplitDocIds, usize) {
        let split = &self.splits[&doc.split()];
        (split, split.find(doc.record()))
    }
}

/// Names that may not all be wanted. Those beyond a budget are spilled to disk.
pub(crate) struct NameSpool {
    /// For each document the length of its text in characters, in 8 bytes, and its id.
    spool: Spool<u8>,
    /// Buffer for one document.
    name: Vec<u8>,
}

impl NameSpool {
    /// Begins without a document.
    pub fn new(budget: &SpillBudget) -> Self {
        NameSpool { spool: Spool::new(budget), name: Vec::new() }
    }

    /// Adds a document with its id and the length of its text in characters.
    pub fn add(&mut self, doc: DocId, id: &str, chars: u64) {
        self.name.clear();
        self.name.extend(chars.to_le_bytes());
        self.name.extend(id.as_bytes());
        self.spool.push(doc, &self.name);
    }

    /// Calls `each` with every name in the order of adding, until it fails.
    pub fn scan(&self, mut each: impl FnMut(DocId, &str, u64) -> Result<()>) -> Result<()> {
        self.spool.scan(|doc, name| {
            let Some((chars, id)) = name.split_first_chunk() else { bail!("names on disk are damaged") };
            each(doc, str::from_utf8(id)?, u64::from_le_bytes(*chars))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(docs: &[(u32, u64)]) -> DocIds {
        let mut names = DocIds::default();
        for &(split, record) in docs {
            names.add(DocId::new(split, record), &format!("文{split}-{record}"), record + 100);
        }
        names
    }

    fn all(names: &DocIds) -> Vec<(DocId, &str, u64)> {
        let docs = names
            .splits
            .iter()
            .flat_map(|(&split, of)| of.entries.iter().map(move |entry| DocId::new(split, entry.record)));
        docs.map(|doc| (doc, names.id(doc), names.chars(doc))).collect()
    }

    #[test]
    fn names_come_out_sorted_and_once_however_they_were_added() {
        let expected = names(&[(0, 5), (3, 1), (3, 2), (3, 9)]);
        let mut several = names(&[(3, 9), (3, 1), (3, 9)]);
        several.append(names(&[(3, 2), (0, 5), (3, 1)]));
        several.sort();
        assert_eq!(all(&several), all(&expected));
        assert_eq!(all(&several)[1], (DocId::new(3, 1), "文3-1", 101));
    }

    #[test]
    fn every_document_is_found_however_they_are_spread() {
        for step in [1, 3, 1000, 1 << 18] {
            for count in [1, 2, 7, 8, 9, 100, 1000] {
                let crowd = (0..count).map(|record| (2, record * record * step));
                let docs: Vec<(u32, u64)> =
                    [(2, 5 << 35)].into_iter().filter(|_| count % 2 == 0).chain(crowd).collect();
                let mut several = names(&docs);
                several.sort();
                for (split, record) in docs {
                    assert_eq!(several.id(DocId::new(split, record)), format!("文{split}-{record}"));
                }
            }
        }
    }

    #[test]
    fn only_names_that_are_wanted_stay() {
        let docs = [DocId::new(0, 5), DocId::new(3, 2)];
        let mut several = names(&[(0, 5), (1, 7), (3, 1), (3, 2), (3, 9)]);
        assert_eq!(all(&several.of(&docs)), all(&names(&[(0, 5), (3, 2)])));
        several.retain(|doc| docs.contains(&doc));
        assert_eq!((all(&several), several.len()), (all(&names(&[(0, 5), (3, 2)])), 2));
    }
}
