//! An index against a list of documents that compares each query with all of them.

mod deleted_in_memory;
mod hidden;
mod long_log;
mod moved;
mod power_loss;

use std::collections::BTreeSet;
use std::time::Duration;

use operators::hash::Secret;
use operators::method::{Method, Spec};
use operators::search::MappedText;
use operators::sets::PackedSets;
use operators::text::features::Lexicon;
use operators::{DocBatch, Priority, Similarity};
use proptest::collection::vec;
use proptest::prelude::*;
use tempfile::TempDir;

use super::index_folder::IndexFolder;
use super::maintenance::Flush;
use super::prepare::Preparer;
use super::query::{AnsweredMatch, QueryAnswer, QueryLimits};
use super::settings;
use super::topics::{IndexTable, IndexedDoc, MergeJob, MergedSegment, SegmentEntry, TopicReader};

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

/// Documents in the order in which they came, each compared with every query.
struct NaiveList {
    method: Method,
    docs: Vec<NaiveDoc>,
    /// Whether answers are verified.
    texts: bool,
}

struct NaiveDoc {
    topic: u8,
    id: u8,
    time: u64,
    text: String,
}

impl NaiveList {
    /// Returns the answer to a query: similarity, distance, id and time of each match, in order.
    fn query(&mut self, topic: u8, text: &str) -> Vec<(Option<Similarity>, u32, u8, u64)> {
        let text = self.method.cleaner.clean(text).to_owned();
        if text.trim().is_empty() {
            return Vec::new();
        }
        let mut search = self.method.text_search();
        let mapped = MappedText::new(&mut *search, text.as_str().into());
        let sets = self.method.rule.packed(&text);
        let mut found = Vec::new();
        // The first document of a text tells the order of texts that are equally near.
        for (at, doc) in self.docs.iter().enumerate().filter(|(_, doc)| doc.topic == topic) {
            let other = self.method.clone().cleaner.clean(&doc.text).to_owned();
            if other.trim().is_empty() {
                continue;
            }
            let of_other = MappedText::new(&mut *search, other.as_str().into());
            let distance = search.distance(&mapped, &of_other);
            let is_equal = match (distance, self.method.verified) {
                (Some(distance), false) => distance == 0,
                _ => text == other,
            };
            let similarity = match is_equal {
                true => self.method.verified.then_some(Similarity::ONE),
                false if search.are_candidates(&mapped, &of_other) => {
                    let others = self.method.rule.packed(&other);
                    match self.method.rule.matches(PackedSets(&sets), PackedSets(&others)) {
                        _ if !self.texts => None,
                        None => continue,
                        some => some,
                    }
                }
                false => continue,
            };
            found.push((similarity, distance.unwrap_or(0), doc.id, doc.time, at));
        }
        found.sort_by_key(|&(similarity, distance, _, _, at)| (std::cmp::Reverse(similarity), distance, at));
        found
            .into_iter()
            .map(|(similarity, distance, id, time, _)| (similarity, distance, id, time))
            .collect()
    }
}

/// Compares an answer with what a list says.
fn assert_answer(
    answer: &QueryAnswer,
    expected: Vec<(Option<Similarity>, u32, u8, u64)>,
    now: u64,
    has_distance: bool,
) {
    assert_eq!(answer.matches.len() + answer.more, expected.len(), "{answer:?} {expected:?}");
    let first = expected.iter().take(LIMITS.matches).map(|(similarity, distance, id, time)| AnsweredMatch {
        id: id.to_string(),
        similarity: similarity.map(Similarity::as_f64),
        distance: has_distance.then_some(*distance),
        age: now - time,
    });
    assert_eq!(answer.matches, first.collect::<Vec<_>>());
}

fn run(spec: &str, no_text: bool, steps: &[Step]) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("index").to_string_lossy().into_owned();
    let (spec, lexicon): (Spec, _) = (spec.parse().unwrap(), Lexicon::default());
    let settings = settings::new(&spec, None, no_text, &lexicon, Secret::random()).unwrap();
    IndexFolder::build(&path, &settings, &lexicon).unwrap().finish_build().unwrap();
    let open = || {
        let index = IndexFolder::open(&path, &lexicon, Duration::ZERO).unwrap();
        assert_eq!(index.torn, None);
        index
    };
    let mut index = open();
    let mut list = NaiveList { method: index.method.clone(), docs: Vec::new(), texts: settings.texts };
    let mut preparer = Preparer::of(&index);
    let has_distance = index.keys.distance().is_some();
    // Each second id has no priority.
    let priority = |id: u8| Priority(u64::from(id) * u64::from(id % 2));
    let mut prepare = |id: u8, text: &str| {
        let mut batch = DocBatch::new(0, 0);
        batch.push(&id.to_string(), text);
        batch.set_priority(priority(id));
        preparer.prepare(&batch).remove(0)
    };
    let name = |topic: &u8| format!("topic-{topic}");
    let mut begun = None;
    for (now, step) in (1000..).zip(steps) {
        match step {
            Step::Insert { topic, id, text } => {
                index.insert(&name(topic), &prepare(*id, text), now).unwrap();
                list.docs.push(NaiveDoc { topic: *topic, id: *id, time: now, text: text.clone() });
            }
            Step::QueryAndInsert { topic, id, text } => {
                let expected = list.query(*topic, text);
                let answer = index.query_and_insert(&name(topic), &prepare(*id, text), LIMITS, now).unwrap();
                assert_eq!(answer.new, Some(expected.is_empty()));
                if expected.is_empty() {
                    list.docs.push(NaiveDoc { topic: *topic, id: *id, time: now, text: text.clone() });
                }
                assert_answer(&answer, expected, now, has_distance);
            }
            Step::Query { topic, text } => {
                let answer = index.query(&name(topic), &prepare(9, text), LIMITS, now).unwrap();
                assert_answer(&answer, list.query(*topic, text), now, has_distance);
            }
            Step::Delete { topic, ids } => {
                let names: BTreeSet<String> = ids.iter().map(u8::to_string).collect();
                let before = list.docs.len();
                list.docs.retain(|doc| doc.topic != *topic || !ids.contains(&doc.id));
                assert_eq!(index.delete(&name(topic), &names).unwrap(), before - list.docs.len());
            }
            Step::Expire { topic, steps } => {
                let before = now - steps;
                index.expire(&name(topic), before).unwrap();
                list.docs.retain(|doc| doc.topic != *topic || doc.time >= before);
            }
            Step::Flush => {
                index.commit().unwrap();
                index.flush(0).unwrap();
            }
            Step::Compact => index.compact().unwrap(),
            Step::Begin { merged: None, keep } => {
                let flush = index.begin_flush(*keep).unwrap();
                let entries = flush.jobs.iter().map(|job| job.write(&index.keys).unwrap()).collect();
                begun = Some(WrittenJob::Flush(flush, entries));
            }
            Step::Begin { merged: Some(topic), .. } => {
                let topic = index.topics.get_mut(&name(topic));
                let job = topic.and_then(|topic| topic.merge_job(0..topic.segments.len()));
                begun = job.map(|job| {
                    let merged = job.run(|_| Ok(())).unwrap();
                    WrittenJob::Merge(Box::new((job, merged)))
                });
            }
            Step::End => match begun.take() {
                Some(WrittenJob::Flush(flush, entries)) => {
                    for (job, entry) in flush.jobs.iter().zip(entries) {
                        index.finish_flush_of(job, entry).unwrap();
                    }
                    index.finish_flush(&flush).unwrap();
                }
                Some(WrittenJob::Merge(written)) => index.finish_merge(&written.0, written.1).unwrap(),
                None => {}
            },
            Step::Drop { topic } => {
                index.drop_topic(&name(topic)).unwrap();
                list.docs.retain(|doc| doc.topic != *topic);
            }
            Step::Reopen => {
                index.commit().unwrap();
                begun = None;
                drop(index);
                index = open();
            }
        }
    }
    index.commit().unwrap();
    let read = IndexFolder::open_to_read(&path, &lexicon).unwrap();
    for topic in 0..2 {
        for text in list.docs.iter().map(|doc| doc.text.clone()).collect::<Vec<_>>() {
            let answer = read.query(&name(&topic), &prepare(9, &text), LIMITS, 5000).unwrap();
            assert_answer(&answer, list.query(topic, &text), 5000, has_distance);
        }
        let docs = list.docs.iter().filter(|doc| doc.topic == topic).count();
        let mut exported = 0;
        if let Some(topic) = read.topic(&name(&topic)) {
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
        let (entry, texts) = (&topic.segments[0].entry, 2);
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
