//! Kills at any time of runs whose input and output are on a real HDFS. Needs `scripts/hadoop/build`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::process::Stdio;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cluster::{BlobReader, Store, Stores};

use super::kills::{Reader, family, kill_any, wait};
use super::{command, corpus, processes};
use crate::hadoop::MiniDfs;
use crate::support::{Random, run};

const KILLS: usize = 5;
/// Each file takes a name node and three data nodes longer than a disk.
const SPLITS: &str = "--split-size 512K --quiet";

/// The files of an output by their names, as a reader sees it; none without `_SUCCESS`, or where one of them goes while it
/// is read.
type Files = BTreeMap<String, Vec<u8>>;

fn read(store: &dyn Store, path: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let blob = store.open(path).ok()?;
    BlobReader::new(blob, 0, u64::MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn output(store: &dyn Store) -> Option<Files> {
    let success = read(store, "/out/_SUCCESS")?;
    let listed = store.list("/out").ok()?.into_iter();
    let files: Files =
        listed.map(|entry| Some((entry.path.clone(), read(store, &entry.path)?))).collect::<Option<_>>()?;
    (read(store, "/out/_SUCCESS")? == success).then_some(files)
}

#[test]
#[ignore = "needs scripts/hadoop/build"]
fn a_run_killed_on_hdfs_goes_on() {
    let here = corpus();
    let dfs = MiniDfs::start(3);
    let (store, _) = Stores::new().locate(&dfs.uri).unwrap();
    let mut input = store.create("/in.jsonl").unwrap();
    input.write_all(&fs::read(here.path("in.jsonl")).unwrap()).unwrap();
    input.finish().unwrap();
    let line = |count: usize| {
        let options = processes(&here, count);
        format!("{options} --workers 2 dedup {0}/in.jsonl {0}/out {SPLITS}", dfs.uri)
    };
    let start = Instant::now();
    run(&mut command(&here, &line(1))).ends(3);
    let mut took = start.elapsed();
    let usual = Arc::new(output(store.as_ref()).unwrap());
    assert!(usual.len() > 8, "{:?}", usual.keys());
    store.remove("/out").unwrap();

    let (mut random, mut died) = (Random(1), 0);
    for tried in 0.. {
        assert!(tried < 20 * KILLS, "only {died} of {tried} died");
        if died >= KILLS {
            break;
        }
        let line = line(1 + tried % 2);
        let (there, whole) = (Arc::clone(&store), Arc::clone(&usual));
        let reader = Reader::start(move || {
            // The cluster has other work to do too.
            thread::sleep(Duration::from_millis(20));
            let seen = output(there.as_ref());
            assert!(seen.is_none() || seen.as_ref() == Some(&*whole), "a part of an output was seen");
            seen.is_some()
        });
        let start = Instant::now();
        let job = command(&here, &line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(random.below(took.as_millis() as usize) as u64));
        let family = family(job.id());
        kill_any(family[random.below(family.len())]);
        if wait(job) {
            took = took.min(start.elapsed());
        } else {
            died += 1;
        }
        let run = run(&mut command(&here, &line));
        // One that was not killed, or after all was committed, leaves nothing to do.
        let done = run.code == Some(2) && run.stderr.contains("exists");
        assert!(run.code == Some(3) || done, "kill {died}, try {tried}: {run:?}");
        let [looked, seen] = reader.end();
        println!("try {tried}: {died} deaths, resumed {}, {looked} looks, {seen} at an output", !done);
        assert!(output(store.as_ref()).unwrap() == *usual, "kill {died}, try {tried}");
        store.remove("/out").unwrap();
    }
}
