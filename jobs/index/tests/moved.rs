//! An index whose folder is renamed, removed or replaced while it is open: nothing is acknowledged any more, and no other
//! folder is changed or read.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::*;

/// Makes an index with some documents, a few of which are in the log alone.
fn index_at(path: &Path, name: &str) -> IndexFolder {
    let mut index = IndexFolder::create(&path.to_string_lossy(), &"exact".parse().unwrap(), true).unwrap();
    for round in 0..3 {
        insert(&mut index, &format!("{name}{round}")).unwrap();
        index.commit().unwrap();
        if round < 2 {
            index.flush(0).unwrap();
        }
    }
    index
}

fn insert(index: &mut IndexFolder, id: &str) -> anyhow::Result<()> {
    let mut batch = DocBatch::new(0, 0);
    batch.push(id, id);
    let docs = Preparer::of(index).prepare(&batch);
    index.insert("topic", &docs[0], 1)
}

/// Returns all files below a folder with their bytes.
fn files(folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.insert(path.to_string_lossy().into_owned(), fs::read(&path).unwrap());
        }
    }
}

fn files_of(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    files(folder, &mut found);
    found
}

fn ids(path: &Path) -> Vec<String> {
    let index = IndexFolder::open_to_read(&path.to_string_lossy(), &Lexicon::default()).unwrap();
    let mut ids = Vec::new();
    let each = |doc: IndexedDoc| {
        ids.push(doc.id);
        Ok(())
    };
    TopicReader::new(index.topic("topic").unwrap()).unwrap().each_doc(each).unwrap();
    ids
}

type Step = fn(&mut IndexFolder) -> anyhow::Result<()>;

/// Everything that writes to an index.
const STEPS: [(&str, Step); 6] = [
    ("commit", |index| {
        insert(index, "lost")?;
        index.commit()
    }),
    ("flush", |index| index.flush(0)),
    ("compact", IndexFolder::compact),
    ("drop", |index| index.drop_topic("topic").map(|_| ())),
    ("delete", |index| {
        index.delete("topic", &BTreeSet::from(["old2".to_owned()]))?;
        index.commit()
    }),
    ("fill", |index| index.fill("other", 1, |_| unreachable!("no segment is begun")).map(|_| ())),
];

#[test]
fn an_index_that_was_replaced_changes_nothing_in_its_successor() {
    for (name, step) in STEPS {
        let folder = TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name);
        let mut index = index_at(&path("seen"), "old");
        drop(index_at(&path("next"), "new"));
        fs::rename(path("seen"), path("old")).unwrap();
        fs::rename(path("next"), path("seen")).unwrap();
        let before = files_of(&path("seen"));
        let error = step(&mut index).unwrap_err();
        assert!(format!("{error:#}").contains("moved, removed or replaced"), "{name}: {error:#}");
        assert!(files_of(&path("seen")) == before, "{name}");
        drop(index);
        assert_eq!(ids(&path("seen")), ["new0", "new1", "new2"], "{name}");
        assert_eq!(ids(&path("old")), ["old0", "old1", "old2"], "{name}");
    }
}

#[test]
fn an_index_that_is_gone_takes_nothing() {
    for (name, step) in STEPS {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("seen");
        let mut index = index_at(&path, "old");
        fs::remove_dir_all(&path).unwrap();
        assert!(step(&mut index).is_err(), "{name}");
        assert!(!path.exists(), "{name}");
    }
}

/// Another process may have the lock once somebody has removed its file.
#[test]
fn an_index_whose_lock_was_removed_is_written_by_the_next_owner_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("seen");
    let mut index = index_at(&path, "old");
    fs::remove_file(path.join("lock")).unwrap();
    let next = IndexFolder::open(&path.to_string_lossy(), &Lexicon::default(), Duration::ZERO).unwrap();
    let before = files_of(&path);
    for (name, step) in STEPS {
        assert!(step(&mut index).is_err(), "{name}");
        assert!(files_of(&path) == before, "{name}");
    }
    drop((index, next));
    assert_eq!(ids(&path), ["old0", "old1", "old2"]);
}

#[test]
fn a_query_never_reads_the_successor() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    drop(index_at(&path("seen"), "old"));
    drop(index_at(&path("next"), "new"));
    let seen = path("seen").to_string_lossy().into_owned();
    let index = IndexFolder::open(&seen, &Lexicon::default(), Duration::ZERO).unwrap();
    fs::rename(path("seen"), path("old")).unwrap();
    fs::rename(path("next"), path("seen")).unwrap();
    let mut batch = DocBatch::new(0, 0);
    batch.push("asked", "new0");
    let docs = Preparer::of(&index).prepare(&batch);
    // No file of a segment was opened before.
    assert!(index.query("topic", &docs[0], LIMITS, 1).is_err());
}
