//! A served index that dies, is stopped and has a wrong clock is compared with a list of documents.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::for_a_while;
use crate::faults::trouble::Trouble;
use crate::serve::http::{Answered, HttpServer, JSON, JSON_LINES, empty_index};
use crate::support::{Folder, Random, signal};

/// Number of requests with each seed.
const REQUESTS: usize = 60;
const TOPICS: [&str; 3] = ["default", "news", "forum"];

/// A document of a topic.
#[derive(Clone)]
struct Doc {
    id: String,
    text: String,
    /// Days that the clock was ahead when the document was inserted.
    day: i64,
}

/// The documents of a topic in their order. The day of none is before that of an earlier one.
#[derive(Clone, Default)]
struct Topic {
    docs: Vec<Doc>,
    /// Day of the last document that has come, also if it is deleted.
    latest: Option<i64>,
}

impl Topic {
    fn insert(&mut self, mut doc: Doc) {
        doc.day = self.latest.map_or(doc.day, |latest| latest.max(doc.day));
        self.latest = Some(doc.day);
        self.docs.push(doc);
    }
}

/// An index, and what it must hold.
struct IndexModel {
    here: Folder,
    server: Option<HttpServer>,
    random: Random,
    trouble: Trouble,
    topics: BTreeMap<&'static str, Topic>,
    texts: Vec<String>,
    count: usize,
    /// Number of times that the server died, and that it was stopped.
    counts: [usize; 2],
    /// All that was done, for the message of a failure.
    steps: String,
}

impl IndexModel {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let texts = (0..8).map(|_| text(&mut random)).collect();
        let mut model = IndexModel {
            here: empty_index(["minhash:clean=none", "simhash:clean=none"][seed as usize % 2]),
            server: None,
            random,
            trouble: Trouble::new(seed),
            topics: TOPICS.map(|topic| (topic, Topic::default())).into(),
            texts,
            count: 0,
            counts: [0; 2],
            steps: format!("seed {seed}"),
        };
        model.start();
        model
    }

    fn run(mut self) -> [usize; 2] {
        for _ in 0..REQUESTS {
            let topic = TOPICS[self.random.below(3)];
            match self.random.below(13) {
                0..3 => self.insert(topic),
                3..6 => self.query_and_insert(topic),
                6..8 => self.delete(topic),
                8..10 => self.query(topic),
                10 => self.drop_topic(topic),
                11 => self.expire(topic),
                _ => self.by_command_line(topic),
            }
        }
        self.look();
        self.counts
    }

    /// Starts a server with a clock of its own. A query does not depend on the clock.
    fn start(&mut self) {
        // The one before ends first, since its lock ends with it.
        self.server = None;
        let line = "--quiet --workers 2 index serve ix --address 127.0.0.1:0";
        self.server = Some(HttpServer::of(&mut self.trouble.command(&self.here, line)));
    }

    /// Returns documents of which some have the text of others.
    fn docs(&mut self) -> Vec<Doc> {
        let count = [1, 1, 2, 7, 40, 600][self.random.below(6)];
        let doc = |_| {
            self.count += 1;
            let text = match self.random.below(3) {
                0 => text(&mut self.random),
                _ => self.texts[self.random.below(self.texts.len())].clone(),
            };
            let id = ["a\nb".to_owned(), " 空 ".to_owned(), format!("d{}", self.count)];
            Doc { id: id[self.random.below(12).min(2)].clone(), text, day: self.trouble.days_ahead }
        };
        (0..count).map(doc).collect()
    }

    fn insert(&mut self, topic: &'static str) {
        let docs = self.docs();
        self.steps += &format!("\ninsert {} into {topic}", docs.len());
        let answer = self.change(topic, "insert", &lines(&docs), |known, _| {
            docs.iter().for_each(|doc| known.insert(doc.clone()))
        });
        assert!(answer.is_none_or(|answer| answer.json()["inserted"] == docs.len()), "{}", self.steps);
    }

    fn query_and_insert(&mut self, topic: &'static str) {
        let docs = self.docs();
        let mut new = Vec::new();
        self.steps += &format!("\nquery and insert {} into {topic}", docs.len());
        let answer = self.change(topic, "query-insert", &lines(&docs), |known, _| {
            for doc in &docs {
                new.push(known.docs.iter().all(|of| of.text != doc.text));
                if new.last() == Some(&true) {
                    known.insert(doc.clone());
                }
            }
        });
        let Some(answer) = answer else { return };
        let answers = answer.body.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        assert_eq!(answers.map(|answer| answer["new"] == true).collect::<Vec<_>>(), new, "{}", self.steps);
    }

    fn delete(&mut self, topic: &'static str) {
        let known = &self.topics[topic].docs;
        let count = self.random.below(known.len().min(30) + 1);
        let mut ids: Vec<String> =
            (0..count).map(|_| known[self.random.below(known.len())].id.clone()).collect();
        ids.push("none".to_owned());
        self.steps += &format!("\ndelete {} of {topic}", ids.len());
        let mut deleted = 0;
        let answer = self.change(topic, "delete", &json!({ "ids": ids }).to_string(), |known, _| {
            let before = known.docs.len();
            known.docs.retain(|doc| !ids.contains(&doc.id));
            deleted = before - known.docs.len();
        });
        assert!(answer.is_none_or(|answer| answer.json()["deleted"] == deleted), "{}", self.steps);
    }

    fn query(&mut self, topic: &'static str) {
        let text = self.texts[self.random.below(self.texts.len())].clone();
        let limit = self.random.below(4);
        let query = json!({ "id": "q", "text": text }).to_string();
        let answer = self.server().post(&format!("/topics/{topic}/query?limit={limit}"), &query);
        let equal = self.topics[topic].docs.iter().filter(|of| of.text == text).map(|of| of.id.clone());
        let equal: Vec<String> = equal.collect();
        let shown = limit.min(equal.len());
        assert_eq!(answer.matches(), [&equal[..shown]], "{}", self.steps);
        assert_eq!(answer.json()["more"], equal.len() - shown, "{}", self.steps);
    }

    fn drop_topic(&mut self, topic: &'static str) {
        self.steps += &format!("\ndrop {topic}");
        let answer = self.server().ask("DELETE", &format!("/topics/{topic}"), &[], "").json();
        assert_eq!(answer["dropped"], usize::from(self.topics[topic].latest.is_some()), "{}", self.steps);
        self.topics.insert(topic, Topic::default());
    }

    fn expire(&mut self, topic: &'static str) {
        let days = self.random.below(10) as i64;
        self.steps += &format!("\nexpire {topic} after {days} days at {}", self.trouble.days_ahead);
        let body = json!({ "older_than": days * 86_400 + 43_200 }).to_string();
        let answer =
            self.change(topic, "expire", &body, |known, now| known.docs.retain(|doc| now - doc.day <= days));
        assert!(answer.is_none_or(|answer| answer.status == 204), "{}", self.steps);
    }

    /// Ends the server, lets the command line change the index, and starts another server.
    fn by_command_line(&mut self, topic: &'static str) {
        self.steps += "\ncommand line";
        assert_eq!(self.server.take().unwrap().end(), Some(0), "{}", self.steps);
        match self.random.below(3) {
            0 => drop(self.here.run("--quiet index compact ix").ends(0)),
            1 => {
                self.here.run("--quiet index snapshot ix copy").ends(0);
                std::fs::remove_dir_all(self.here.path("ix")).unwrap();
                std::fs::rename(self.here.path("copy"), self.here.path("ix")).unwrap();
            }
            _ => {
                self.trouble.days_ahead = 0;
                let docs = self.docs();
                self.here.write("docs.jsonl", lines(&docs));
                self.here.run(&format!("--quiet index insert ix docs.jsonl --topic {topic}")).ends(0);
                let known = self.topics.entry(topic).or_default();
                docs.into_iter().for_each(|doc| known.insert(doc));
            }
        }
        self.here.run("--quiet index check ix").ends(0);
        self.start();
        self.look();
    }

    /// Sends a change while the server may die or be stopped. Returns the answer if it was acknowledged. `make`: makes the
    /// change in the model.
    fn change(
        &mut self,
        topic: &'static str,
        what: &str,
        body: &str,
        make: impl FnOnce(&mut Topic, i64),
    ) -> Option<Answered> {
        let before = self.topics[topic].clone();
        self.topics.entry(topic).and_modify(|known| make(known, self.trouble.days_ahead));
        let path = format!("/topics/{topic}/{what}");
        let kind = if what.contains("insert") { JSON_LINES } else { JSON };
        let luck = self.random.below(8);
        let delay = Duration::from_micros(self.random.below(20_000) as u64);
        let server = self.server.as_ref().unwrap();
        let answer = thread::scope(|scope| {
            scope.spawn(|| match luck {
                0 | 1 => {
                    thread::sleep(delay);
                    signal(server.id(), "KILL");
                }
                2 => {
                    thread::sleep(delay);
                    signal(server.id(), "STOP");
                    // The lock is still that of the server.
                    self.here.run("index insert ix none.jsonl").ends(11);
                    signal(server.id(), "CONT");
                }
                _ => {}
            });
            server.try_ask("POST", &path, &[kind], body)
        });
        self.counts[1] += usize::from(luck == 2);
        let answer = answer.filter(|answer| matches!(answer.status, 200 | 204));
        if luck > 1 {
            assert!(answer.is_some(), "{}", self.steps);
            return answer;
        }
        self.counts[0] += 1;
        self.steps += &format!(" and die, acknowledged: {}", answer.is_some());
        self.start();
        if answer.is_none() {
            // A change that was not acknowledged is done up to some document.
            let found = self.found(topic);
            let done = &self.topics[topic];
            if found != shown(&done.docs) {
                let mut part = before;
                let new = done.docs.iter().skip(part.docs.len());
                for doc in new.take(found.len().saturating_sub(part.docs.len())) {
                    part.insert(doc.clone());
                }
                self.topics.insert(topic, part);
            }
        }
        self.look();
        answer
    }

    fn server(&self) -> &HttpServer {
        self.server.as_ref().unwrap()
    }

    /// Returns the ids and texts of the documents that a topic has.
    fn found(&self, topic: &str) -> Vec<[String; 2]> {
        let answer = self.server().ask("GET", &format!("/topics/{topic}/documents"), &[], "");
        if answer.status == 404 {
            return Vec::new();
        }
        let docs = answer.body.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        docs.map(|doc| ["id", "text"].map(|name| doc[name].as_str().unwrap().to_owned())).collect()
    }

    /// Checks that the index holds what it must.
    fn look(&self) {
        for (topic, known) in &self.topics {
            let found = self.found(topic);
            let known = shown(&known.docs);
            let wrong = found.iter().zip(&known).find(|(found, known)| found != known);
            let (count, expected) = (found.len(), known.len());
            assert!(
                found == known,
                "{topic} has {count} documents for {expected}, {wrong:?}: {}",
                self.steps
            );
        }
    }
}

/// Returns a text that the index keeps as it is.
fn text(random: &mut Random) -> String {
    random.text(30).replace('，', "")
}

/// Returns the ids and texts of documents.
fn shown(docs: &[Doc]) -> Vec<[String; 2]> {
    docs.iter().map(|doc| [doc.id.clone(), doc.text.clone()]).collect()
}

/// Returns the body of a request.
fn lines(docs: &[Doc]) -> String {
    docs.iter().map(|doc| json!({ "id": doc.id, "text": doc.text }).to_string() + "\n").collect()
}

#[test]
fn a_served_index_holds_what_it_acknowledged() {
    for_a_while(|seed| IndexModel::new(seed).run());
}
