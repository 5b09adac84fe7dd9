//! An index whose log has more than fits into memory, because its process was killed before it wrote segments.

use std::time::Duration;

use operators::text::features::Lexicon;
use tempfile::TempDir;

use crate::index_folder::{IndexFolder, MEMORY_BYTES};
use crate::query::QueryLimits;
use crate::topics::PreparedDoc;

/// Bytes of the text of a document.
const TEXT_BYTES: usize = 1 << 24;

/// The log may not grow with each process that is killed soon after it has opened the index.
#[test]
fn a_long_log_is_written_as_segments_when_an_index_is_opened() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("index").display().to_string();
    let mut index = IndexFolder::create(&path, &"exact".parse().unwrap(), true).unwrap();
    let docs: Vec<PreparedDoc> = (0..=MEMORY_BYTES / TEXT_BYTES)
        .map(|number| {
            let mut doc =
                PreparedDoc { id: number.to_string(), text: "x".repeat(TEXT_BYTES), ..Default::default() };
            doc.keys.identity = (number as u64, 0);
            doc
        })
        .collect();
    docs.iter().for_each(|doc| index.insert("default", doc, 1).unwrap());
    index.log().unwrap().lock().commit().unwrap();
    drop(index);
    let open = || IndexFolder::open(&path, &Lexicon::default(), Duration::ZERO).unwrap();
    drop(open());
    let index = open();
    assert_eq!((index.memory_bytes(), index.topics["default"].segments.len()), (0, 1));
    assert!(index.floor.from > 0);
    for doc in &docs {
        let answer = index.query("default", doc, QueryLimits { matches: 3, within: None }, 2).unwrap();
        assert_eq!(answer.matches.len(), 1);
    }
}
