//! Tests that kill runs with input and output on a real HDFS or S3, and resume them. They need
//! `scripts/hadoop/build` and `scripts/s3/build`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cluster::{BlobReader, Bucket, ObjectLimits, Store, Stores};

use super::kills::{Reader, family, kill_any, kills_and_seed, wait};
use super::{command, corpus, processes};
use crate::hadoop::MiniDfs;
use crate::s3::S3;
use crate::support::{Folder, Random, Run, run};

/// Number of kills, if the environment does not say it.
const KILLS: usize = 5;
/// Options of the runs. A file takes a name node and three data nodes longer than a disk, so there are few
/// splits.
const SPLITS: &str = "--split-size 512K --quiet";
/// Time in which a server is used; it ends by itself after half an hour.
const SERVER_LIFE: Duration = Duration::from_secs(1200);
const DOCUMENTS: usize = 3000;

/// Store on a server of its own, with the input in it.
struct Place {
    uri: String,
    /// Environment variables of a run.
    settings: Vec<(String, String)>,
    store: Arc<dyn Store>,
    started: Instant,
    _server: Server,
}

enum Server {
    Hdfs(#[expect(dead_code, reason = "it ends when it is dropped")] MiniDfs),
    S3(#[expect(dead_code, reason = "it ends when it is dropped")] S3),
}

impl Place {
    fn hdfs(here: &Folder) -> Self {
        let server = MiniDfs::start(3);
        let (store, _) = Stores::new().locate(&server.uri).unwrap();
        Place::new(here, server.uri.clone(), Vec::new(), store, Server::Hdfs(server))
    }

    fn s3(here: &Folder) -> Self {
        let server = S3::start();
        let (uri, settings) = ("s3://bucket".to_owned(), server.settings());
        let store = Bucket::new(&uri, &settings, ObjectLimits::default()).unwrap();
        Place::new(here, uri, settings, Arc::new(store), Server::S3(server))
    }

    fn new(
        here: &Folder,
        uri: String,
        settings: Vec<(String, String)>,
        store: Arc<dyn Store>,
        server: Server,
    ) -> Self {
        let mut input = store.create("/in.jsonl").unwrap();
        input.write_all(&fs::read(here.path("in.jsonl")).unwrap()).unwrap();
        input.finish().unwrap();
        Place { uri, settings, store, started: Instant::now(), _server: server }
    }

    /// Returns a run. `processes`: options that come before the name of the job; `options`: after it.
    fn command(&self, here: &Folder, processes: &str, options: &str) -> Command {
        let line = format!("{processes} --workers 2 dedup {0}/in.jsonl {0}/out {SPLITS} {options}", self.uri);
        let mut command = command(here, &line);
        command.envs(self.settings.clone());
        command
    }

    fn run(&self, here: &Folder, processes: &str, options: &str) -> Run {
        run(&mut self.command(here, processes, options))
    }
}

/// Files of an output by their names, as a reader sees them.
type Files = BTreeMap<String, Vec<u8>>;

fn read(store: &dyn Store, path: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let blob = store.open(path).ok()?;
    BlobReader::new(blob, 0, u64::MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns the files that a reader who sees `_SUCCESS` sees beside it; `None` if there is no `_SUCCESS`. A
/// file that vanishes while it is read is missing, unless `_SUCCESS` vanishes with it.
fn output(store: &dyn Store) -> Option<Files> {
    let success = read(store, "/out/_SUCCESS")?;
    let listed = store.list("/out").unwrap_or_default().into_iter();
    let files = listed.filter_map(|entry| Some((entry.path.clone(), read(store, &entry.path)?))).collect();
    (read(store, "/out/_SUCCESS")? == success).then_some(files)
}

/// Returns the output of an undisturbed run, in which every document is once, and the time that the run took.
fn undisturbed(place: &Place, here: &Folder, options: &str) -> (Arc<Files>, Duration) {
    let start = Instant::now();
    place.run(here, "", options).ends(3);
    let took = start.elapsed();
    let files = output(place.store.as_ref()).unwrap();
    let documents = files.iter().filter(|(name, _)| name.contains("/kept/") || name.contains("/removed/"));
    let lines = documents.map(|(_, bytes)| bytes.iter().filter(|&&byte| byte == b'\n').count());
    assert_eq!(lines.sum::<usize>(), DOCUMENTS, "{:?}", files.keys());
    (Arc::new(files), took)
}

/// Kills runs at any time, or when they send a request to the store or a message to each other.
fn kill_and_go_on(start: fn(&Folder) -> Place) {
    let here = corpus();
    let mut place = start(&here);
    let (usual, mut took) = undisturbed(&place, &here, "");
    let (other, _) = undisturbed(&place, &here, "--method exact --overwrite");
    assert!(usual.len() > 8 && usual != other, "{:?}", usual.keys());
    place.store.remove("/out").unwrap();

    let (kills, seed) = kills_and_seed(KILLS);
    let mut random = Random(seed);
    let (mut died, mut tried, mut resumed, mut looks) = (0, 0, 0, [0; 2]);
    let mut points = BTreeMap::new();
    while died < kills {
        tried += 1;
        assert!(tried < 20 * kills, "only {died} of {tried} died");
        if place.started.elapsed() > SERVER_LIFE {
            place = start(&here);
        }
        let overwrite = random.below(4) == 0;
        let count = 1 + random.below(2);
        let point = ["any time", "request", "request", "exchange", "meet"][random.below(5)];
        let number = 1 + random.below(if point == "request" { 300 } else { 8 });
        let what =
            format!("kill {died}, seed {seed}: {count} processes, overwrite {overwrite}, {point} {number}");
        let mut allowed = vec![Arc::clone(&usual)];
        if overwrite {
            place.run(&here, "", "--method exact").ends(3);
            allowed.push(Arc::clone(&other));
        }
        let (store, all) = (Arc::clone(&place.store), allowed);
        let reader = Reader::start(move || {
            // The server needs time for other work too.
            thread::sleep(Duration::from_millis(20));
            let seen = output(store.as_ref());
            let is_whole = seen.as_ref().is_none_or(|seen| all.iter().any(|whole| **whole == *seen));
            assert!(is_whole, "a part of an output was seen: {:?}", seen.unwrap_or_default().keys());
            seen.is_some()
        });
        let several = processes(&here, count);
        let options = if overwrite { "--overwrite" } else { "" };
        let mut job = place.command(&here, &several, options);
        if point != "any time" {
            job.env("DEDUP_FAULT", format!("{} {point} {number} kill", random.below(count)));
        }
        let begin = Instant::now();
        let job = job.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        if point == "any time" {
            thread::sleep(Duration::from_millis(random.below(took.as_millis() as usize) as u64));
            let family = family(job.id());
            kill_any(family[random.below(family.len())]);
        }
        let killed = !wait(job);
        let dead = begin.elapsed();
        if killed {
            died += 1;
            *points.entry(point).or_insert(0) += 1;
        } else {
            took = took.min(dead);
        }
        let run = place.run(&here, &several, if killed { options } else { "" });
        let resume = begin.elapsed() - dead;
        // A run that was not killed, or was killed after all was committed, leaves nothing to do.
        let done = run.code == Some(2) && run.stderr.contains("exists");
        assert!(run.code == Some(3) || done, "{what}: {run:?}");
        resumed += usize::from(killed && !done);
        let [looked, seen] = reader.end();
        looks = [looks[0] + looked, looks[1] + seen];
        println!(
            "{what}: killed {killed}, dead after {dead:.1?}, resumed {}, done after {resume:.1?}",
            !done
        );
        assert!(output(place.store.as_ref()).unwrap() == *usual, "{what}: another output");
        place.store.remove("/out").unwrap();
    }
    println!("{died} deaths: {points:?}");
    println!(
        "{tried} outputs, each that of an undisturbed run: {resumed} runs went on to the end, 0 documents lost, 0 twice"
    );
    println!("{} looks meanwhile, {} of them at an output, 0 at a part of one", looks[0], looks[1]);
}

#[test]
#[ignore = "needs scripts/hadoop/build"]
fn a_run_killed_on_hdfs_goes_on() {
    kill_and_go_on(Place::hdfs);
}

#[test]
#[ignore = "needs scripts/s3/build"]
fn a_run_killed_on_s3_goes_on() {
    kill_and_go_on(Place::s3);
}
