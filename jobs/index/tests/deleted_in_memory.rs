//! Documents that are deleted before they are in a segment.

use operators::DocBatch;
use tempfile::TempDir;

use crate::index_folder::IndexFolder;
use crate::prepare::Preparer;
use crate::query::QueryLimits;
use crate::topics::IndexTable;

/// Deleted documents of a text take no place among the matches, and a text goes with the last of them.
#[test]
fn deleted_copies_are_no_matches_and_leave_no_text() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("index").display().to_string();
    let mut index = IndexFolder::create(&path, &"exact".parse().unwrap(), true).unwrap();
    let mut batch = DocBatch::new(0, 0);
    (0..5).for_each(|id| batch.push(&id.to_string(), "花落知多少，夜来风雨声。"));
    batch.push("other", "春眠不觉晓，处处闻啼鸟。");
    let docs = Preparer::of(&index).prepare(&batch);
    docs.iter().for_each(|doc| index.insert("topic", doc, 1).unwrap());
    index.delete("topic", &["1", "2", "3"].map(str::to_owned).into()).unwrap();
    let limits = QueryLimits { matches: 2, within: None };
    let answer = index.query("topic", &docs[0], limits, 1).unwrap();
    assert_eq!(answer.matches.iter().map(|found| &*found.id).collect::<Vec<_>>(), ["0", "4"]);
    index.delete("topic", &["0", "4"].map(str::to_owned).into()).unwrap();
    index.flush(0).unwrap();
    let entry = &index.topics["topic"].segments[0].entry;
    assert_eq!(entry.tables[&IndexTable::Identities].rows, 1);
    assert!(!entry.tables.contains_key(&IndexTable::Copies));
}
