//! Tests of the online index: it answers as the batch job does, keeps what it has acknowledged whatever kills it, and
//! finds what is damaged.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::corpus::{demo, json_lines};
use crate::support::{Folder, Random, Run, Running, copy_folder, run, signal, wait_until};

/// Answers by the id that was asked about, each with the ids that match.
fn answers(run: &Run) -> BTreeMap<String, BTreeSet<String>> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let answer = |line: &str| {
        // A killed process may leave half of a line.
        let answer: Value = serde_json::from_str(line).ok()?;
        let matches = answer["matches"].as_array().unwrap().iter().map(|found| text(&found["id"])).collect();
        Some((text(&answer["id"]), matches))
    };
    run.stdout.lines().filter_map(answer).collect()
}

/// Returns the ids that a run has acknowledged as new.
fn acknowledged(run: &Run) -> Vec<String> {
    let answers = run.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let new = answers.filter(|answer| answer["new"] == true);
    new.map(|answer| answer["id"].as_str().unwrap().to_owned()).collect()
}

/// Returns the ids of the documents of an index, in order.
fn ids(here: &Folder, index: &str) -> Vec<String> {
    let export = here.run(&format!("index export {index}")).ends(0);
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
    export.stdout.lines().map(id).collect()
}

#[test]
fn the_first_rejected_record_is_named_with_its_place() {
    let here = Folder::new();
    here.write(
        "bad.jsonl",
        "{\"id\":\"1\",\"text\":\"今天天气很好\"}\n{\"id\":\"2\"\n{\"id\":\"3\",\"text\":7}\n",
    );
    for command in ["build ix", "query ix", "insert ix --topic other"] {
        let run = here.run(&format!("index {command} bad.jsonl --quiet")).ends(3);
        assert!(run.stderr.contains("warning: 2 records were rejected; the first: "), "{}", run.stderr);
        assert!(run.stderr.contains("bad.jsonl\" at 39: line 2: "), "{}", run.stderr);
    }
    assert_eq!(ids(&here, "ix"), ["1"]);
    here.write("worse.jsonl", "{\"id\":\"2\"\n");
    here.run("index insert ix worse.jsonl")
        .fails(1, &["every record was rejected (1)", "worse.jsonl\" at 0"]);
}

#[test]
fn the_index_answers_as_the_batch_job() {
    let here = demo(500, 3);
    for method in
        ["auto", "simhash:features=char:3", "simhash:features=char:3,hamming=10", "minhash", "exact"]
    {
        here.run(&format!("--quiet dedup --overwrite --pairs all --method {method} demo/corpus.jsonl out"))
            .ends(0);
        here.write("none.jsonl", "");
        here.run(&format!("--quiet index build ix --method {method} none.jsonl")).ends(0);
        here.run("--quiet index insert ix demo/corpus.jsonl").ends(0);
        let mut expected = BTreeMap::<String, BTreeSet<String>>::new();
        for row in here.rows("out/pairs") {
            for (a, b) in [(0, 1), (1, 0)] {
                expected.entry(row[a].clone()).or_default().insert(row[b].clone());
            }
        }
        assert!(expected.len() > 50, "{method}: {}", expected.len());
        for folder in ["log", "a segment"] {
            let found = answers(&here.run("--quiet index query --limit 1000 ix demo/corpus.jsonl").ends(0));
            assert_eq!(found.len(), 500);
            for (id, mut matches) in found {
                assert!(matches.remove(&id), "{method}: {id} does not find itself in {folder}");
                assert_eq!(
                    matches,
                    expected.get(&id).cloned().unwrap_or_default(),
                    "{method}: {id} in {folder}"
                );
            }
            here.run("--quiet index compact ix").ends(0);
        }
        fs::remove_dir_all(here.path("ix")).unwrap();
    }
}

#[test]
fn an_answer_has_a_limit_and_counts_the_rest() {
    let here = Folder::new();
    let docs = (0..30).map(|number| (number, "春眠不觉晓处处闻啼鸟"));
    here.write("a.jsonl", json_lines(docs));
    here.write("ask.jsonl", json_lines([("ask", "春眠不觉晓，处处闻啼鸟！")]));
    here.run("--quiet index build ix a.jsonl").ends(0);
    let run = here.run("--quiet index query --limit 4 ix ask.jsonl").ends(0);
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((answer["matches"].as_array().unwrap().len(), &answer["more"]), (4, &Value::from(26)));
    assert_eq!(answer["matches"][0]["id"], "0");
}

/// Steps at which an index is killed: those of its files, and those of its log.
const STEPS: [&str; 7] = ["create", "write", "finish", "settle", "remove", "sync", "synced"];

#[test]
fn a_killed_index_keeps_what_it_has_acknowledged() {
    let here = Folder::new();
    let mut random = Random(5);
    let texts = [(); 12].map(|()| random.text(40));
    let docs = |from: usize| {
        json_lines(
            (from..from + 8)
                .map(|number| (number, format!("{}{}", texts[number % 12], "改".repeat(number / 12)))),
        )
    };
    here.write("one.jsonl", docs(0));
    here.write("two.jsonl", docs(8));
    let insert = |file: &str| format!("--quiet --workers 1 index query --insert ix {file}");
    let steps = [
        insert("one.jsonl"),
        "--quiet index compact ix".to_owned(),
        insert("two.jsonl"),
        "--quiet index compact ix".to_owned(),
    ];
    here.write("none.jsonl", "");
    here.run("--quiet index build ix none.jsonl").ends(0);
    // The index before each of the steps.
    for (at, step) in steps.iter().enumerate() {
        copy_folder(&here.path("ix"), &here.path(&format!("before-{at}")));
        here.run(step).ends(0);
    }
    let expected = ids(&here, "ix");
    assert_eq!(expected.len(), 12);
    let mut kills = 0;
    for at in 0..steps.len() {
        for point in STEPS {
            for number in 1.. {
                fs::remove_dir_all(here.path("ix")).unwrap();
                copy_folder(&here.path(&format!("before-{at}")), &here.path("ix"));
                let mut command = here.command(&steps[at]);
                let killed = run(command.env("DEDUP_FAULT", format!("0 {point} {number} kill")));
                let done = acknowledged(&killed);
                let after = ids(&here, "ix");
                assert!(
                    done.iter().all(|id| after.contains(id)),
                    "{at} {point} {number}: {done:?} {after:?}"
                );
                if killed.code == Some(0) {
                    break;
                }
                kills += 1;
                // The same commands go on.
                steps[at..].iter().for_each(|step| drop(here.run(step).ends(0)));
                here.run("index check ix").ends(0);
                assert_eq!(ids(&here, "ix"), expected, "{at} {point} {number}");
            }
        }
    }
    assert!(kills > 40, "{kills}");
}

#[test]
fn a_flipped_bit_is_found_by_check() {
    let here = demo(60, 4);
    here.run("--quiet index build ix demo/corpus.jsonl").ends(0);
    here.run("--quiet index compact ix").ends(0);
    let tables = ["identities", "keys", "sketches", "texts", "documents", "copies", "ids"];
    let mut files: Vec<String> = tables.map(|table| format!("topics/default/00000000/{table}.run")).into();
    files.extend(["topics/default/manifest.json", "index.json", "log.json"].map(str::to_owned));
    for file in files {
        let path = here.path(&format!("ix/{file}"));
        let whole = fs::read(&path).unwrap();
        for at in [0, whole.len() / 3, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            fs::write(&path, bytes).unwrap();
            let check = here.run("index check ix").ends(1);
            let name = file.rsplit('/').next().unwrap();
            assert!(check.stdout.contains(name) || check.stderr.contains(name), "{file}: {check:?}");
        }
        fs::write(&path, whole).unwrap();
    }
    here.run("index check ix").ends(0);
}

#[test]
fn one_process_changes_an_index_and_others_read_it_meanwhile() {
    let here = demo(60, 4);
    here.run("--quiet index build ix demo/corpus.jsonl").ends(0);
    here.write("none.txt", "");
    // Whoever asks for the lock may have it for a moment, so the writer waits.
    let mut command = here.command("--quiet index insert --wait 20 ix demo/corpus.jsonl");
    let writer = Running(command.env("DEDUP_FAULT", "0 write 1 wait").spawn().unwrap());
    let mut refused = || here.run("index delete ix none.txt").code == Some(11);
    wait_until("the index is locked", Duration::from_secs(20), &mut refused);
    here.run("index insert ix demo/corpus.jsonl").fails(11, &["ix", "another process"]);
    assert_eq!(ids(&here, "ix").len(), 60);
    signal(writer.0.id(), "KILL");
    drop(writer);
    here.run("--quiet index insert --wait 20 ix demo/corpus.jsonl").ends(0);
    assert_eq!(ids(&here, "ix").len(), 120);
}

#[test]
fn what_an_index_cannot_do_is_refused() {
    let here = demo(20, 4);
    here.run("index query ix demo/corpus.jsonl").fails(2, &["ix", "no index", "index build"]);
    here.run("index build ix demo/corpus.jsonl --method jaccard:0.8").fails(2, &["jaccard", "no keys"]);
    here.run("index build ix demo/corpus.jsonl --method simhash:weights=tfidf,features=char:2")
        .fails(2, &["tfidf", "corpus"]);
    here.run("index build ix demo/corpus.jsonl --verify jaccard:0.8").fails(2, &["--verify"]);
    here.run("--quiet index build ix demo/corpus.jsonl").ends(0);
    here.run("index build ix demo/corpus.jsonl").fails(2, &["ix", "is an index", "index insert"]);
    here.run("index insert ix demo/corpus.jsonl --topic a/b").fails(2, &["--topic", "without /"]);
    here.run("index insert ix missing.jsonl").fails(2, &["missing.jsonl"]);
    assert_eq!(ids(&here, "ix").len(), 20);
}

#[test]
fn a_missing_file_is_an_error_and_loses_nothing_else() {
    let here = demo(60, 4);
    here.run("--quiet index build ix demo/corpus.jsonl").ends(0);
    here.run("--quiet index compact ix").ends(0);
    here.run("--quiet index insert ix demo/corpus.jsonl").ends(0);
    let log = here.files("ix/log").remove(0);
    let log = format!("log/{}", log.file_name().unwrap().to_str().unwrap());
    let segment = "topics/default/00000000";
    for file in [
        &log,
        "log.json",
        "topics/default/manifest.json",
        &format!("{segment}/keys.run"),
        &format!("{segment}/ids.run"),
    ] {
        let (path, aside) = (here.path(&format!("ix/{file}")), here.path("aside"));
        fs::rename(&path, &aside).unwrap();
        for line in
            ["index insert ix demo/corpus.jsonl", "index query ix demo/corpus.jsonl", "index check ix"]
        {
            let run = here.run(line);
            assert!(run.code == Some(1) && run.stderr.contains("ix/"), "{file}: {line}: {run:?}");
        }
        fs::rename(&aside, &path).unwrap();
    }
    assert_eq!(ids(&here, "ix").len(), 120);
    here.run("index check ix").ends(0);
}

#[test]
fn a_build_that_fails_or_is_killed_is_begun_anew() {
    let here = demo(60, 4);
    here.run("index build ix missing.jsonl").fails(2, &["missing.jsonl"]);
    assert!(!here.path("ix").exists());
    for point in ["create 2", "sync 1", "settle 2"] {
        let mut command = here.command("--quiet index build ix demo/corpus.jsonl");
        assert_eq!(run(command.env("DEDUP_FAULT", format!("0 {point} kill"))).code, None, "{point}");
        here.run("index query ix demo/corpus.jsonl").fails(2, &["ix", "no index"]);
    }
    here.run("--quiet index build ix demo/corpus.jsonl").ends(0);
    assert_eq!(ids(&here, "ix").len(), 60);
}

#[test]
fn answers_that_nobody_reads_end_the_insertion() {
    let here = demo(3000, 4);
    here.write("none.jsonl", "");
    here.run("--quiet index build ix none.jsonl").ends(0);
    let line = "{ dedup-job --quiet index query --insert ix demo/corpus.jsonl; echo $? > code; } | head -n 1";
    let run = run(&mut here.shell(line));
    assert!(run.stderr.contains("could not write an answer"), "{run:?}");
    assert_eq!(fs::read_to_string(here.path("code")).unwrap(), "1\n");
    assert!(ids(&here, "ix").len() < 2500);
}

/// A model that is made of a small index is compared with the larger index.
#[test]
fn a_model_tells_the_size_of_a_larger_index() {
    let here = demo(4400, 3);
    let corpus = fs::read_to_string(here.path("demo/corpus.jsonl")).unwrap();
    let lines: Vec<&str> = corpus.lines().collect();
    let part = |name: &str, lines: &[&str]| here.write(name, &(lines.join("\n") + "\n"));
    // Near documents follow each other, so a part takes some of everywhere.
    let (asked, large): (Vec<_>, Vec<_>) = (0..).zip(lines).partition(|(at, _)| at % 11 == 0);
    let lines =
        |numbered: Vec<(i32, _)>| -> Vec<&str> { numbered.into_iter().map(|(_, line)| line).collect() };
    let (asked, large) = (lines(asked), lines(large));
    let small: Vec<&str> = large.iter().step_by(4).copied().collect();
    part("small.jsonl", &small);
    part("large.jsonl", &large);
    part("asked.jsonl", &asked);
    for method in ["auto", "simhash:features=char:2 --no-text"] {
        let model = |name: &str| -> Vec<Value> {
            here.run(&format!("--quiet index build {name}.ix --method {method} {name}.jsonl")).ends(0);
            let line = format!("--quiet index model {name}.ix asked.jsonl --documents 4000 --disk 1M --json");
            let said = here.run(&line).ends(0);
            serde_json::from_str(&said.stdout).unwrap()
        };
        let (small, large) = (model("small"), model("large"));
        assert_eq!((&small[0]["documents"], &small[1]["documents"]), (&1000.into(), &4000.into()));
        for (name, most) in [("bytes", 1.3), ("keys_met", 1.5), ("reads", 1.5)] {
            let (told, is) = (small[1][name].as_f64().unwrap(), large[0][name].as_f64().unwrap());
            assert!(is > 0.0 && told < is * most && is < told * most, "{method}: {name}: {told}, not {is}");
        }
        let machines = large[0]["bytes"].as_u64().unwrap().div_ceil(1 << 20);
        assert_eq!(large[0]["machines"].as_u64(), Some(machines));
        fs::remove_dir_all(here.path("small.ix")).unwrap();
        fs::remove_dir_all(here.path("large.ix")).unwrap();
    }
    here.write("none.jsonl", "");
    here.run("--quiet index build none.ix none.jsonl").ends(0);
    here.run("index model none.ix asked.jsonl --documents 4000").fails(2, &["index compact"]);
}
