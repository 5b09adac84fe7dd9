//! Tests that kill runs with input and output on a real HDFS or S3, and resume them. They need
//! `scripts/hadoop/build` and `scripts/s3/build`.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cluster::Store;

use super::kills::{Reader, family, kill_any, kills_and_seed, wait};
use super::{command, processes};
use crate::corpus::with_bad_line;
use crate::stores::{Both, read};
use crate::support::{Random, Tree, run};

/// Number of kills, if the environment does not say it.
const KILLS: usize = 5;
/// Options of the runs. A file takes a name node and three data nodes longer than a disk, so there are few
/// splits.
const SPLITS: &str = "--split-size 512K --quiet";
const DOCUMENTS: usize = 3000;

/// Returns a run. `processes`: options that come before the name of the job; `options`: after it.
fn job(both: &Both, processes: &str, options: &str) -> Command {
    let line = format!("{processes} --workers 2 dedup {0}/in.jsonl {0}/out {SPLITS} {options}", both.uri);
    let mut command = command(&both.here, &line);
    command.envs(both.settings.clone());
    command
}

/// Returns the files that a reader who sees `_SUCCESS` sees beside it; `None` if there is no `_SUCCESS`. A
/// file that vanishes while it is read is missing, unless `_SUCCESS` vanishes with it.
fn output(store: &dyn Store, path: &str) -> Option<Tree> {
    let mark = format!("{path}/_SUCCESS");
    let success = read(store, &mark)?;
    let listed = store.list(path).unwrap_or_default().into_iter();
    // The page names the times of the run, so only that it is there is compared.
    let contents = |path: &str| {
        read(store, path).map(|bytes| if path.ends_with("/report.html") { Vec::new() } else { bytes })
    };
    let files = listed.filter_map(|entry| Some((entry.path.clone(), contents(&entry.path)?))).collect();
    (read(store, &mark)? == success).then_some(files)
}

/// Returns the output of an undisturbed run, in which every document is once, and the time that the run took.
fn undisturbed(both: &Both, options: &str) -> (Arc<Tree>, Duration) {
    let start = Instant::now();
    run(&mut job(both, "", options)).ends(3);
    let took = start.elapsed();
    let files = output(both.store.as_ref(), &both.path("out")).unwrap();
    let documents = files.iter().filter(|(name, _)| name.contains("/kept/") || name.contains("/removed/"));
    let lines = documents.map(|(_, bytes)| bytes.iter().filter(|&&byte| byte == b'\n').count());
    assert_eq!(lines.sum::<usize>(), DOCUMENTS, "{:?}", files.keys());
    (Arc::new(files), took)
}

/// Looks at an output until it is told to end. Whatever it sees must be one of the `allowed` outputs, whole, or none.
fn watch(both: &Both, out: &str, allowed: Vec<Arc<Tree>>) -> Reader {
    let store = Arc::clone(&both.store);
    let out = out.to_owned();
    Reader::start(move || {
        // The server needs time for other work too.
        thread::sleep(Duration::from_millis(20));
        let seen = output(store.as_ref(), &out);
        let is_whole = seen.as_ref().is_none_or(|seen| allowed.iter().any(|whole| **whole == *seen));
        assert!(is_whole, "a part of an output was seen: {:?}", seen.unwrap_or_default().keys());
        seen.is_some()
    })
}

/// Kills runs at any time, or when they send a request to the store or a message to each other.
fn kill_and_go_on(both: &Both) {
    both.write("in.jsonl", &fs::read(both.here.path("in.jsonl")).unwrap());
    let out = both.path("out");
    let (usual, mut took) = undisturbed(both, "");
    let (other, _) = undisturbed(both, "--method exact --overwrite");
    assert!(usual.len() > 8 && usual != other, "{:?}", usual.keys());
    both.store.remove(&out).unwrap();

    let (kills, seed) = kills_and_seed(KILLS);
    let mut random = Random(seed);
    let mut died = 0;
    let mut tried = 0;
    let mut resumed = 0;
    let mut looks = [0; 2];
    let mut points = BTreeMap::new();
    while died < kills {
        tried += 1;
        assert!(tried < 20 * kills, "only {died} of {tried} died");
        let overwrite = random.below(4) == 0;
        let count = 1 + random.below(2);
        let point = ["any time", "request", "request", "exchange", "meet"][random.below(5)];
        let number = 1 + random.below(if point == "request" { 300 } else { 8 });
        let what =
            format!("kill {died}, seed {seed}: {count} processes, overwrite {overwrite}, {point} {number}");
        let mut allowed = vec![Arc::clone(&usual)];
        if overwrite {
            run(&mut job(both, "", "--method exact")).ends(3);
            allowed.push(Arc::clone(&other));
        }
        let reader = watch(both, &out, allowed);
        let several = processes(&both.here, count);
        let options = if overwrite { "--overwrite" } else { "" };
        let mut killed = job(both, &several, options);
        if point != "any time" {
            killed.env("DEDUP_FAULT", format!("{} {point} {number} kill", random.below(count)));
        }
        let begin = Instant::now();
        let started = killed.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        if point == "any time" {
            thread::sleep(Duration::from_millis(random.below(took.as_millis() as usize) as u64));
            let family = family(started.id());
            kill_any(family[random.below(family.len())]);
        }
        let killed = !wait(started);
        let dead = begin.elapsed();
        if killed {
            died += 1;
            *points.entry(point).or_insert(0) += 1;
        } else {
            took = took.min(dead);
        }
        let run = run(&mut job(both, &several, if killed { options } else { "" }));
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
        assert!(output(both.store.as_ref(), &out).unwrap() == *usual, "{what}: another output");
        both.store.remove(&out).unwrap();
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
    kill_and_go_on(&Both::hdfs("/kills", with_bad_line()));
}

#[test]
#[ignore = "needs scripts/s3/build"]
fn a_run_killed_on_s3_goes_on() {
    kill_and_go_on(&Both::s3("kills", with_bad_line()));
}
