//! An index against a list of documents that compares each query with all of them.

mod deleted_in_memory;
mod hidden;
mod long_log;
mod moved;
mod naive_list;
mod power_loss;

use std::collections::BTreeSet;
use std::time::Duration;

use operators::hash::Secret;
use operators::method::Spec;
use operators::text::features::Lexicon;
use operators::{DocBatch, Priority};
use proptest::collection::vec;
use proptest::prelude::*;
use tempfile::TempDir;

use self::naive_list::{NaiveDoc, NaiveList, assert_answer};
use super::index_folder::IndexFolder;
use super::maintenance::Flush;
use super::prepare::Preparer;
use super::query::QueryLimits;
use super::settings;
use super::topics::{
    IndexTable, IndexedDoc, MergeJob, MergedSegment, PreparedDoc, SegmentEntry, TopicReader,
};

const LIMITS: QueryLimits = QueryLimits { matches: 3, within: None };

/// A step of a law. Numbers choose among the ids and topics that there are.
#[derive(Clone, Debug)]
enum Step {
    Insert {
        topic: u8,
        id: u8,
        text: String,
    },
    QueryAndInsert {
        topic: u8,
        id: u8,
        text: String,
    },
    Query {
        topic: u8,
        text: String,
    },
    Delete {
        topic: u8,
        ids: Vec<u8>,
    },
    /// Lets everything expire that is older than some of the last steps.
    Expire {
        topic: u8,
        steps: u64,
    },
    Flush,
    Compact,
    /// Begins to flush, or to merge all segments of a topic, and leaves what was written until it is taken over. What
    /// has begun before is given up, as after a crash.
    Begin {
        merged: Option<u8>,
        /// Number of bytes that small topics may keep in the log.
        keep: usize,
    },
    End,
    Drop {
        topic: u8,
    },
    /// Closes the index and opens it again.
    Reopen,
}

fn text() -> impl Strategy<Value = String> {
    // Texts that are equal, that share most of their letters, and that share few.
    let letters = vec(prop::sample::select(vec!["春", "眠", "不", "觉", "晓", "处"]), 4..14);
    let edited = (letters, 0..4u8)
        .prop_map(|(letters, edit)| format!("{}{}", letters.concat(), "，夜来风雨声".repeat(edit.into())));
    prop_oneof![
        edited,
        Just("花落知多少，夜来风雨声。".to_owned()),
        Just(String::new()),
        Just("😀".to_owned())
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let (topic, id) = (0..2u8, 0..6u8);
    prop_oneof![
        6 => (topic.clone(), id.clone(), text()).prop_map(|(topic, id, text)| Step::Insert { topic, id, text }),
        3 => (topic.clone(), id.clone(), text()).prop_map(|(topic, id, text)| Step::QueryAndInsert { topic, id, text }),
        5 => (topic.clone(), text()).prop_map(|(topic, text)| Step::Query { topic, text }),
        2 => (topic.clone(), vec(id, 1..3)).prop_map(|(topic, ids)| Step::Delete { topic, ids }),
        1 => (topic.clone(), 0..20u64).prop_map(|(topic, steps)| Step::Expire { topic, steps }),
        3 => Just(Step::Flush),
        1 => Just(Step::Compact),
        3 => (prop::option::of(topic.clone()), 0..2000usize).prop_map(|(merged, keep)| Step::Begin { merged, keep }),
        3 => Just(Step::End),
        1 => topic.prop_map(|topic| Step::Drop { topic }),
        2 => Just(Step::Reopen),
    ]
}

/// A job whose files are written and that the index does not know of yet.
enum WrittenJob {
    Flush(Flush, Vec<Option<SegmentEntry>>),
    Merge(Box<(MergeJob, MergedSegment)>),
}

/// An index, and a list that gets the same documents.
struct ComparedIndex {
    path: String,
    lexicon: Lexicon,
    /// `None` only while it is opened again.
    index: Option<IndexFolder>,
    list: NaiveList,
    preparer: Preparer,
    /// Whether answers have distances.
    has_distance: bool,
    /// The flush or merge that has begun.
    begun: Option<WrittenJob>,
}

impl ComparedIndex {
    fn new(folder: &TempDir, spec: &str, no_text: bool) -> Self {
        let path = folder.path().join("index").to_string_lossy().into_owned();
        let (spec, lexicon): (Spec, _) = (spec.parse().unwrap(), Lexicon::default());
        let settings = settings::new(&spec, None, no_text, &lexicon, Secret::random()).unwrap();
        IndexFolder::build(&path, &settings, &lexicon).unwrap().finish_build().unwrap();
        let index = open(&path, &lexicon);
        ComparedIndex {
            list: NaiveList { method: index.method.clone(), docs: Vec::new(), texts: settings.texts },
            preparer: Preparer::of(&index),
            has_distance: index.keys.distance().is_some(),
            begun: None,
            path,
            lexicon,
            index: Some(index),
        }
    }

    fn index(&mut self) -> &mut IndexFolder {
        self.index.as_mut().unwrap()
    }

    fn prepare(&mut self, id: u8, text: &str) -> PreparedDoc {
        let mut batch = DocBatch::new(0, 0);
        batch.push(&id.to_string(), text);
        batch.set_priority(priority(id));
        self.preparer.prepare(&batch).remove(0)
    }

    fn step(&mut self, now: u64, step: &Step) {
        match step {
            Step::Insert { topic, id, text } => {
                let doc = self.prepare(*id, text);
                self.index().insert(&name(*topic), &doc, now).unwrap();
                self.list.docs.push(NaiveDoc { topic: *topic, id: *id, time: now, text: text.clone() });
            }
            Step::QueryAndInsert { topic, id, text } => {
                let expected = self.list.query(*topic, text);
                let doc = self.prepare(*id, text);
                let answer = self.index().query_and_insert(&name(*topic), &doc, LIMITS, now).unwrap();
                assert_eq!(answer.new, Some(expected.is_empty()));
                if expected.is_empty() {
                    self.list.docs.push(NaiveDoc { topic: *topic, id: *id, time: now, text: text.clone() });
                }
                assert_answer(&answer, expected, now, self.has_distance);
            }
            Step::Query { topic, text } => {
                let doc = self.prepare(9, text);
                let answer = self.index().query(&name(*topic), &doc, LIMITS, now).unwrap();
                assert_answer(&answer, self.list.query(*topic, text), now, self.has_distance);
            }
            Step::Delete { topic, ids } => {
                let names: BTreeSet<String> = ids.iter().map(u8::to_string).collect();
                let before = self.list.docs.len();
                self.list.docs.retain(|doc| doc.topic != *topic || !ids.contains(&doc.id));
                let deleted = self.index().delete(&name(*topic), &names).unwrap();
                assert_eq!(deleted, before - self.list.docs.len());
            }
            Step::Expire { topic, steps } => {
                let before = now - steps;
                self.index().expire(&name(*topic), before).unwrap();
                self.list.docs.retain(|doc| doc.topic != *topic || doc.time >= before);
            }
            Step::Flush => {
                self.index().commit().unwrap();
                self.index().flush(0).unwrap();
            }
            Step::Compact => self.index().compact().unwrap(),
            Step::Begin { merged, keep } => self.begin(*merged, *keep),
            Step::End => self.end(),
            Step::Drop { topic } => {
                self.index().drop_topic(&name(*topic)).unwrap();
                self.list.docs.retain(|doc| doc.topic != *topic);
            }
            Step::Reopen => self.reopen(),
        }
    }

    fn begin(&mut self, merged: Option<u8>, keep: usize) {
        let index = self.index();
        self.begun = match merged {
            None => {
                let flush = index.begin_flush(keep).unwrap();
                let entries = flush.jobs.iter().map(|job| job.write(&index.keys).unwrap()).collect();
                Some(WrittenJob::Flush(flush, entries))
            }
            Some(topic) => {
                let topic = index.topics.get_mut(&name(topic));
                let job = topic.and_then(|topic| topic.merge_job(0..topic.segments.len()));
                job.map(|job| {
                    let merged = job.run(|_| Ok(())).unwrap();
                    WrittenJob::Merge(Box::new((job, merged)))
                })
            }
        };
    }

    fn end(&mut self) {
        match self.begun.take() {
            Some(WrittenJob::Flush(flush, entries)) => {
                for (job, entry) in flush.jobs.iter().zip(entries) {
                    self.index().finish_flush_of(job, entry).unwrap();
                }
                self.index().finish_flush(&flush).unwrap();
            }
            Some(WrittenJob::Merge(written)) => self.index().finish_merge(&written.0, written.1).unwrap(),
            None => {}
        }
    }

    /// Closes the index and opens it again.
    fn reopen(&mut self) {
        self.begun = None;
        let mut index = self.index.take().unwrap();
        index.commit().unwrap();
        drop(index);
        self.index = Some(open(&self.path, &self.lexicon));
    }

    /// Compares all that the index has with the list.
    fn check(mut self) {
        self.index().commit().unwrap();
        let read = IndexFolder::open_to_read(&self.path, &self.lexicon).unwrap();
        for topic in 0..2 {
            for text in self.list.docs.iter().map(|doc| doc.text.clone()).collect::<Vec<_>>() {
                let answer = read.query(&name(topic), &self.prepare(9, &text), LIMITS, 5000).unwrap();
                assert_answer(&answer, self.list.query(topic, &text), 5000, self.has_distance);
            }
            let docs = self.list.docs.iter().filter(|doc| doc.topic == topic).count();
            let mut exported = 0;
            if let Some(topic) = read.topic(&name(topic)) {
                let mut priorities = TopicReader::new(topic).unwrap();
                let each = |doc: IndexedDoc| {
                    exported += 1;
                    assert_eq!(priorities.priority(doc.number)?, priority(doc.id.parse()?));
                    Ok(())
                };
                TopicReader::new(topic).unwrap().each_doc(each).unwrap();
            }
            assert_eq!(exported, docs);
        }
    }
}

fn open(path: &str, lexicon: &Lexicon) -> IndexFolder {
    let index = IndexFolder::open(path, lexicon, Duration::ZERO).unwrap();
    assert_eq!(index.torn, None);
    index
}

fn name(topic: u8) -> String {
    format!("topic-{topic}")
}

/// Each second id has no priority.
fn priority(id: u8) -> Priority {
    Priority(u64::from(id) * u64::from(id % 2))
}

fn run(spec: &str, no_text: bool, steps: &[Step]) {
    let folder = TempDir::new().unwrap();
    let mut compared = ComparedIndex::new(&folder, spec, no_text);
    for (now, step) in (1000..).zip(steps) {
        compared.step(now, step);
    }
    compared.check();
}

#[test]
fn equal_texts_on_both_sides_of_an_unfinished_flush_are_both_found() {
    let insert = |id| Step::Insert { topic: 1, id, text: "花落知多少，夜来风雨声。".to_owned() };
    for spec in ["exact", "auto"] {
        run(
            spec,
            false,
            &[insert(0), Step::Begin { merged: None, keep: 0 }, insert(1), Step::Reopen, insert(2)],
        );
    }
}

/// A template that comes again and again is one text after a merge, whose documents are all found and can be deleted.
#[test]
fn equal_texts_of_several_flushes_become_one() {
    for (spec, no_text) in
        [("auto", false), ("exact", false), ("simhash", false), ("simhash", true), ("simhash:bits=128", true)]
    {
        let lexicon = Lexicon::default();
        let settings =
            settings::new(&spec.parse().unwrap(), None, no_text, &lexicon, Secret::of_words([1, 2])).unwrap();
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("index").display().to_string();
        let mut index = IndexFolder::build(&path, &settings, &lexicon).unwrap();
        index.finish_build().unwrap();
        let mut batch = DocBatch::new(0, 0);
        (0..3).for_each(|id| batch.push(&id.to_string(), "花落知多少，夜来风雨声。"));
        batch.push("other", "春眠不觉晓，处处闻啼鸟。");
        let docs = Preparer::of(&index).prepare(&batch);
        for _ in 0..5 {
            docs.iter().for_each(|doc| index.insert("topic", doc, 1).unwrap());
            index.flush(0).unwrap();
        }
        index.delete("topic", &BTreeSet::from(["1".to_owned()])).unwrap();
        index.compact().unwrap();
        let topic = &index.topics["topic"];
        let entry = &topic.segments[0].entry;
        let texts = 2;
        let rows = |table| entry.tables.get(&table).map(|summary| summary.rows);
        let prints = entry.fingerprints.as_ref().map(|summary| summary.entries);
        assert_eq!(topic.segments.len(), 1);
        assert_eq!(rows(IndexTable::Identities).unwrap_or(texts), texts, "{spec}");
        assert_eq!(rows(IndexTable::Texts).unwrap_or(texts), texts, "{spec}");
        assert_eq!(prints.unwrap_or(texts), texts, "{spec}");
        let mut reader = TopicReader::new(topic).unwrap();
        for number in [0, 4, 8, 10, 16] {
            let text = reader.doc(number).unwrap().unwrap().text;
            assert_eq!((text, reader.text(text).unwrap()), (0, docs[0].text.clone()), "{spec}");
        }
        drop(reader);
        let limits = QueryLimits { matches: 100, within: None };
        for (left, names) in [(10, 0), (5, 1)] {
            // The name of the text is that of a deleted document at last.
            assert_eq!(index.topics["topic"].deleted.len(), names, "{spec}");
            let answer = index.query("topic", &docs[0], limits, 1).unwrap();
            assert_eq!(answer.matches.len(), left, "{spec}");
            index.delete("topic", &BTreeSet::from(["0".to_owned()])).unwrap();
            index.compact().unwrap();
        }
        index.delete("topic", &BTreeSet::from(["2".to_owned()])).unwrap();
        index.compact().unwrap();
        let topic = &index.topics["topic"];
        assert!(topic.deleted.is_empty(), "{spec}");
        assert_eq!(topic.segments[0].entry.documents, 5);
        assert!(index.query("topic", &docs[0], limits, 1).unwrap().matches.is_empty(), "{spec}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn steps_leave_what_a_list_has_by_auto(steps in vec(step(), 1..50)) {
        run("auto", false, &steps);
    }

    #[test]
    fn steps_leave_what_a_list_has_by_minhash(steps in vec(step(), 1..50)) {
        run("minhash:jaccard=0.6,features=char:2", false, &steps);
    }

    #[test]
    fn steps_leave_what_a_list_has_by_simhash(steps in vec(step(), 1..50)) {
        run("simhash:features=char:1,hamming=8", false, &steps);
    }

    #[test]
    fn steps_leave_what_a_list_has_by_fingerprints_alone(steps in vec(step(), 1..50)) {
        run("simhash:features=char:1,hamming=8", true, &steps);
        run("simhash:features=char:1,bits=128,hamming=12", true, &steps);
        run("simhash:features=char:1", true, &steps);
    }

    #[test]
    fn steps_leave_what_a_list_has_by_equal_texts(steps in vec(step(), 1..50)) {
        run("exact", false, &steps);
    }
}
