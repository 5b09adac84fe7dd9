//! Loss of power at every step of the files of an index: nothing that was acknowledged is lost, and nothing that was
//! deleted comes back.
//!
//! The log is on a real disk, where each commit is durable once it returns and a file is gone once it is removed. All
//! other files are in a store that loses what was not settled.

#[path = "../../../tests/power_store/mod.rs"]
mod power_store;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cluster::Store;
use operators::hash::spread;

use self::power_store::PowerStore;
use super::*;

/// Documents of an index: topic, id and number of them.
type Docs = BTreeMap<(String, String), usize>;

/// An index that was asked to change until the power went.
struct PoweredIndex {
    folder: TempDir,
    store: PowerStore,
    /// Documents whose changes were acknowledged.
    docs: Docs,
}

impl PoweredIndex {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let store = PowerStore::new();
        let index = PoweredIndex { folder, store, docs: Docs::new() };
        std::fs::create_dir(index.path()).unwrap();
        let settings =
            settings::new(&"auto".parse().unwrap(), None, false, &Lexicon::default(), Secret::random());
        let built = IndexFolder::build_on(
            Arc::new(index.store.clone()),
            &index.path(),
            &settings.unwrap(),
            &Lexicon::default(),
        );
        built.unwrap().finish_build().unwrap();
        index.store.restart(|_| false);
        index
    }

    fn path(&self) -> String {
        self.folder.path().join("index").to_string_lossy().into_owned()
    }

    fn open(&self) -> anyhow::Result<IndexFolder> {
        let store: Arc<dyn Store> = Arc::new(self.store.clone());
        IndexFolder::open_on(store, &self.path(), &Lexicon::default(), Duration::ZERO)
    }

    /// Inserts, deletes, expires, flushes, merges and drops, and notes what is acknowledged.
    fn change(&mut self) -> anyhow::Result<()> {
        let mut index = self.open()?;
        for round in 0..4u64 {
            for topic in ["a", "b"] {
                let mut batch = DocBatch::new(0, 0);
                for doc in 0..3 {
                    batch
                        .push(&format!("{round}-{doc}"), &format!("花落知多少，夜来风雨声。{}", round * doc));
                }
                let docs = Preparer::of(&index).prepare(&batch);
                docs.iter().try_for_each(|doc| index.insert(topic, doc, 1000 + round))?;
                index.log()?.lock().commit()?;
                docs.iter().for_each(|doc| {
                    *self.docs.entry((topic.to_owned(), doc.id.clone())).or_default() += 1;
                });
            }
            let gone = format!("{}-1", round / 2);
            index.delete("a", &BTreeSet::from([gone.clone()]))?;
            index.log()?.lock().commit()?;
            self.docs.remove(&("a".to_owned(), gone));
            // Topic b stays in the log sometimes.
            index.flush(if round % 2 == 0 { 0 } else { 1 << 20 })?;
        }
        index.drop_topic("b")?;
        self.docs.retain(|(topic, _), _| topic != "b");
        index.compact()
    }

    /// Returns the documents that are there.
    fn read(&self) -> Docs {
        let index = self.open().unwrap();
        let mut docs = Docs::new();
        for (name, topic) in &index.topics {
            topic.segments.iter().for_each(|segment| segment.check().unwrap());
            let each = |doc: IndexedDoc| {
                *docs.entry((name.clone(), doc.id)).or_default() += 1;
                Ok(())
            };
            TopicReader::new(topic).unwrap().each_doc(each).unwrap();
        }
        docs
    }

    /// Turns the power on again. `seed` chooses which steps have survived.
    fn restart(&self, seed: u64) {
        let mut step = 0;
        self.store.restart(|_| match seed % 4 {
            0 => true,
            1 => false,
            _ => {
                step += 1;
                spread(seed << 32 | step).is_multiple_of(2)
            }
        });
    }
}

#[test]
fn nothing_is_lost_when_the_power_goes_at_any_step() {
    let mut whole = PoweredIndex::new();
    let before = whole.store.changes();
    whole.change().unwrap();
    let changes = whole.store.changes() - before;
    assert!(changes > 120 && !whole.docs.is_empty(), "{changes}");
    assert_eq!(whole.read(), whole.docs);
    let mut lost_power = 0;
    for left in (0..changes).step_by(2) {
        let mut index = PoweredIndex::new();
        index.store.fail_after(left);
        lost_power += usize::from(index.change().is_err());
        index.restart(left);
        let read = index.read();
        if read != index.docs {
            // The end of a topic is in the log before its files go, and is made again.
            let left_of_b = index.docs.keys().filter(|(topic, _)| topic == "b").count();
            index.docs.retain(|(topic, _), _| topic != "b");
            assert!(left_of_b > 0 && read == index.docs, "power lost after {left} changes");
        }
        // It goes on, and what is then written lasts.
        index.change().unwrap();
        index.restart(1);
        assert_eq!(index.read(), index.docs, "power lost after {left} changes");
    }
    assert!(lost_power > 60, "{lost_power}");
}
