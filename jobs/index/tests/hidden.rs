//! Tests that readers do not see changes that are not durable, whether these become durable or fail.

use std::fs;
use std::time::Instant;

use super::*;
use crate::PreparedDoc;
use crate::query::Queries;

const TEXT: &str = "花落知多少，夜来风雨声。";
const OTHER: &str = "春眠不觉晓，处处闻啼鸟。";

struct HiddenTest {
    folder: TempDir,
    index: IndexFolder,
}

impl HiddenTest {
    /// Makes an index with a document `first` that is durable.
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("index").to_string_lossy().into_owned();
        let mut index = IndexFolder::create(&path, &"auto".parse().unwrap(), true).unwrap();
        index.hide_changes();
        let mut test = HiddenTest { folder, index };
        test.insert("topic", "first", TEXT);
        test.index.commit().unwrap();
        test
    }

    fn prepare(&self, id: &str, text: &str) -> PreparedDoc {
        let mut batch = DocBatch::new(0, 0);
        batch.push(id, text);
        Preparer::of(&self.index).prepare(&batch).remove(0)
    }

    fn insert(&mut self, topic: &str, id: &str, text: &str) {
        let doc = self.prepare(id, text);
        self.index.insert(topic, &doc, 1).unwrap();
    }

    /// Returns the ids that readers find, and those that the writer finds.
    fn found(&self, text: &str) -> [Vec<String>; 2] {
        let docs = [self.prepare("asked", text)];
        [Queries::new(LIMITS, 1), Queries::of_writer(LIMITS, 1)].map(|mut queries| {
            assert!(self.index.answer_until("topic", &docs, &mut queries, None).unwrap());
            queries.answers.remove(0).matches.into_iter().map(|found| found.id).collect()
        })
    }

    /// Returns the ids of an export.
    fn exported(&self) -> Vec<String> {
        let mut ids = Vec::new();
        let mut reader = TopicReader::new(&self.index.topics["topic"]).unwrap();
        let each = |doc: IndexedDoc| {
            ids.push(doc.id);
            Ok(())
        };
        reader.each_doc(each).unwrap();
        ids
    }
}

fn ids(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|&id| id.to_owned()).collect()
}

#[test]
fn a_change_is_seen_once_it_is_durable() {
    let mut test = HiddenTest::new();
    // A copy of a durable text, and a text of its own.
    test.insert("topic", "copy", TEXT);
    test.insert("topic", "other", OTHER);
    assert_eq!(test.found(TEXT), [ids(&["first"]), ids(&["first", "copy"])]);
    assert_eq!(test.found(OTHER), [ids(&[]), ids(&["other"])]);
    assert_eq!(test.exported(), ids(&["first"]));
    test.index.commit().unwrap();
    assert_eq!(test.found(TEXT)[0], ids(&["first", "copy"]));
    assert_eq!(test.exported(), ids(&["first", "copy", "other"]));
    // What is deleted goes when that is durable.
    assert_eq!(test.index.delete("topic", &BTreeSet::from(["first".to_owned()])).unwrap(), 1);
    assert_eq!(test.exported(), ids(&["first", "copy", "other"]));
    test.index.commit().unwrap();
    assert_eq!(test.found(TEXT), [ids(&["copy"]), ids(&["copy"])]);
    // A flush makes changes durable, too.
    test.insert("topic", "last", OTHER);
    test.index.flush(0).unwrap();
    assert_eq!(test.exported(), ids(&["copy", "other", "last"]));
}

#[test]
fn what_could_not_be_made_durable_is_never_seen() {
    let mut test = HiddenTest::new();
    test.insert("topic", "copy", TEXT);
    test.insert("topic", "other", OTHER);
    test.insert("new", "other", OTHER);
    test.index.delete("topic", &BTreeSet::from(["first".to_owned()])).unwrap();
    test.index.expire("topic", 5).unwrap();
    let path = test.folder.path().join("index");
    fs::rename(&path, test.folder.path().join("moved")).unwrap();
    assert!(test.index.commit().is_err());
    fs::rename(test.folder.path().join("moved"), &path).unwrap();
    assert!(test.index.commit().is_err() && test.index.flush(0).is_err());
    assert_eq!((test.found(TEXT)[0].clone(), test.found(OTHER)[0].clone()), (ids(&["first"]), ids(&[])));
    assert_eq!(test.exported(), ids(&["first"]));
    assert_eq!(test.index.topics["new"].end_of_shown(), 0);
    // Nor does it come back.
    let path = path.to_string_lossy().into_owned();
    drop(test.index);
    let index = IndexFolder::open(&path, &Lexicon::default(), Duration::ZERO).unwrap();
    let test = HiddenTest { folder: test.folder, index };
    assert_eq!(test.exported(), ids(&["first"]));
}

/// A query that is interrupted after each candidate has the answer of one that is not, whatever comes between.
#[test]
fn an_interrupted_query_has_the_same_answer() {
    let mut test = HiddenTest::new();
    for number in 0..40 {
        test.insert("topic", &number.to_string(), &format!("{TEXT}{}", "啼".repeat(number % 3)));
        test.index.commit().unwrap();
        if number % 8 == 7 {
            test.index.flush(0).unwrap();
        }
    }
    let docs = [test.prepare("asked", TEXT), test.prepare("again", OTHER)];
    let limits = QueryLimits { matches: 100, within: None };
    let expected = test.index.query_all("topic", &docs, limits, 1).unwrap();
    assert!(expected[0].matches.len() > 20);
    let mut queries = Queries::new(limits, 1);
    let mut calls = 0;
    while !test.index.answer_until("topic", &docs, &mut queries, Some(Instant::now())).unwrap() {
        calls += 1;
        if calls == 2 {
            // Texts get other numbers.
            test.index.compact().unwrap();
        }
        assert!(calls < 1000);
    }
    assert!(calls > 3, "{calls}");
    assert_eq!(queries.answers, expected);
}
