//! Tests of what a run shows of itself: the stage table, metrics and events.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::corpus::{json_line, json_lines, of_formats};
use crate::support::{Folder, signal, wait_until};

/// Returns the events of the job, in order.
fn events(here: &Folder, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(here.path(file)).unwrap();
    assert!(text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn named<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["event"] == name).collect()
}

/// Returns what Prometheus' own Python library reads in a file: values by name and sorted labels. Checks that
/// all have a type.
fn metrics(here: &Folder, file: &str) -> BTreeMap<String, f64> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("target/peers/bin/python");
    let script = root.join("scripts/peers/metrics.py");
    let output = Command::new(python).arg(script).arg(here.path(file)).output();
    let output = output.expect("scripts/peers/build installs it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn stages(here: &Folder, output: &str) -> BTreeMap<String, Value> {
    let rows = here.success(output)["stages"].as_array().unwrap().clone();
    rows.into_iter().map(|row| (row["stage"].as_str().unwrap().to_owned(), row)).collect()
}

#[test]
fn the_stages_add_up_to_the_counters() {
    let here = of_formats();
    for method in ["auto", "simhash", "minhash", "exact", "zhou2017", "simhash:weights=tfidf"] {
        let run = here.run(&format!(
            "dedup in out --overwrite --verbose --progress none --workers 2 --split-size 64K --method {method}"
        ));
        let run = run.ends(3);
        let stages = stages(&here, "out");
        let counter = |name| here.counter("out", name);
        for stage in ["map", "write"] {
            assert_eq!(stages[stage]["records"], counter("records_read"), "{method}, {stage}");
            assert_eq!(stages[stage]["splits"], counter("splits"), "{method}, {stage}");
        }
        assert_eq!(stages["map"]["bytes"], counter("text_bytes"), "{method}");
        assert_eq!(stages["write"]["bytes"], counter("input_bytes"), "{method}");
        assert_eq!(stages.contains_key("count"), method.contains("tfidf"));
        assert_eq!((&stages["map"]["workers"], &stages["resolve"]["workers"]), (&2.into(), &2.into()));

        let table = run.stderr.split_once("\nStages\n    stage ").unwrap().1;
        let (table, ending) = table.rsplit_once("\nkept ").unwrap();
        assert!(ending.ends_with(" → out/kept · look: dedup-job show out\n"), "{ending}");
        assert!(table.lines().all(|line| line.len() <= 80), "{table}");
        let rows = table.lines().skip(1).take_while(|line| line.starts_with(' '));
        let shown: Vec<&str> = rows.map(|line| line.split_whitespace().next().unwrap()).collect();
        let mut expected = vec!["map", "compare", "verify", "resolve", "write", "report", "commit"];
        expected.retain(|stage| stages.contains_key(*stage) || *stage == "commit");
        let before = usize::from(method.contains("tfidf"));
        assert_eq!(shown[before..], expected, "{method}");
        let map = table.lines().find(|line| line.trim_start().starts_with("map ")).unwrap();
        let cells: Vec<&str> = map.split_whitespace().collect();
        assert_eq!(cells[3], counter("records_read").to_string(), "{map}");
    }
}

#[test]
fn workers_that_had_nothing_to_do_are_counted() {
    let here = Folder::new();
    here.write("a.jsonl", "{\"text\": \"一\"}\n");
    here.run("dedup a.jsonl out --quiet --workers 3").ends(0);
    let stages = stages(&here, "out");
    for stage in ["map", "write"] {
        assert_eq!((&stages[stage]["workers"], &stages[stage]["splits"]), (&3.into(), &1.into()), "{stage}");
    }
}

#[test]
fn the_documents_that_meet_under_one_feature_are_counted() {
    let here = Folder::new();
    let letters = |from: u32, count: u32| (from..from + count).filter_map(char::from_u32).collect::<String>();
    let same = letters(0x4e00, 100);
    let texts = (0..200).map(|i| same.clone() + &letters(0x6000 + i, 1));
    here.write("in.jsonl", json_lines(texts.enumerate()));
    for workers in [1, 3] {
        here.run(&format!(
            "dedup in.jsonl out --overwrite --quiet --method jaccard:0.8,features=char:2,clean=none --workers {workers}"
        ))
        .ends(0);
        assert_eq!(here.success("out")["blocks"][0]["largest_bucket"], 200);
    }
}

#[test]
fn the_events_of_a_run_close() {
    let here = of_formats();
    let dedup =
        "dedup in out --overwrite --quiet --split-size 64K --events events.jsonl --workers 2 --method";
    for (number, method) in ["auto", "simhash", "minhash", "zhou2017"].iter().enumerate() {
        here.run(&format!("{dedup} {method}")).ends(3);
        let events = events(&here, "events.jsonl");
        // Events are appended to those of earlier runs.
        let starts = events.iter().enumerate().filter(|(_, event)| event["event"] == "job_started");
        let starts: Vec<usize> = starts.map(|(at, _)| at).collect();
        assert_eq!(starts.len(), number + 1);
        let events = &events[starts[number]..];

        let start = &events[0];
        assert_eq!((&start["job"], &start["output"]), (&"dedup".into(), &"out".into()));
        assert_eq!(start["configuration"], here.success("out")["configuration"]);
        assert_eq!(
            (&start["input_files"], &start["splits"]),
            (&6.into(), &here.counter("out", "splits").into())
        );
        assert_eq!(events.last().unwrap()["event"], "job_finished");
        let times: Vec<&str> = events.iter().map(|event| event["time"].as_str().unwrap()).collect();
        assert!(times.is_sorted() && times[0].ends_with('Z'), "{times:?}");

        let names = |name| named(events, name).iter().map(|e| e["stage"].clone()).collect::<Vec<_>>();
        let (started, finished) = (names("stage_started"), names("stage_finished"));
        assert_eq!(started, finished, "{method}");
        assert_eq!(started.last().unwrap(), "commit");
        let at = |name: &str, stage: &Value| {
            events.iter().position(|event| event["event"] == name && event["stage"] == *stage).unwrap()
        };
        assert!(started.iter().all(|stage| at("stage_started", stage) < at("stage_finished", stage)));

        let stages = stages(&here, "out");
        for finished in named(events, "stage_finished") {
            let splits = named(events, "split_finished");
            let splits: Vec<_> = splits.iter().filter(|split| split["stage"] == finished["stage"]).collect();
            assert_eq!(finished["splits"], splits.len(), "{method}");
            let stage = finished["stage"].as_str().unwrap();
            if stage != "commit" {
                assert_eq!(finished["records"], stages[stage]["records"]);
            }
            let in_splits = |of: &str| splits.iter().map(|split| split[of].as_u64().unwrap()).sum::<u64>();
            assert_eq!(finished["records"], in_splits("records"), "{method}, {stage}");
            assert_eq!(finished["bytes"], in_splits("bytes"), "{method}, {stage}");
            let last = splits.iter().map(|split| split["split"].as_u64().unwrap()).max();
            assert!(stage != "map" || last == Some(here.counter("out", "splits") - 1));
        }
    }
}

#[test]
fn other_jobs_are_seen_too() {
    let here = Folder::new();
    for number in 0..4 {
        here.write(
            &format!("in/c{}/{number}.txt", number % 2),
            format!("这是第{number}篇文章，内容各不相同"),
        );
    }
    let run = |line: &str| here.run(&format!("{line} --progress none --events events.jsonl")).ends(0);
    assert!(run("--verbose pack in packed").stderr.contains("\nStages\n    stage "));
    run("unpack packed/packed unpacked");
    run("compare in compared --test-share 0.5");
    run("dedup in/c0 out --pairs firsts");
    run("rethreshold out higher --threshold 0.95");
    let events = events(&here, "events.jsonl");
    let jobs: Vec<_> = named(&events, "job_started").iter().map(|event| event["job"].clone()).collect();
    assert_eq!(jobs, ["pack", "unpack", "compare", "dedup", "rethreshold"]);
    assert_eq!(named(&events, "job_finished").len(), 5);
    assert_eq!(named(&events, "stage_started").len(), named(&events, "stage_finished").len());
    assert_eq!(stages(&here, "packed")["pack"]["records"], 4);
    assert_eq!(stages(&here, "unpacked")["unpack"]["records"], 4);
    assert_eq!(stages(&here, "compared")["map"]["records"], 4);
}

#[test]
fn a_job_that_fails_says_so_everywhere() {
    let here = Folder::new();
    here.write("a.jsonl", [json_line("a", "text"), "bad\n".to_owned()].concat());
    let seen = "--quiet --events events.jsonl --metrics-file job.prom";
    here.run(&format!("dedup a.jsonl out --max-rejects 0 {seen}")).fails(4, &["--max-rejects 0"]);
    let of_first = events(&here, "events.jsonl");
    let last = of_first.last().unwrap();
    assert_eq!((&last["event"], &last["exit_code"]), (&"job_failed".into(), &4.into()));
    assert!(last["error"].as_str().unwrap().contains("--max-rejects 0"), "{last}");
    assert!(named(&of_first, "job_finished").is_empty());
    let text = fs::read_to_string(here.path("job.prom")).unwrap();
    assert!(
        text.contains("\ndedup_job_failures_total 1\n") && text.contains("\ndedup_job_running 0\n"),
        "{text}"
    );
    assert!(text.contains("\ndedup_job_records_total{stage=\"map\"} 2\n"), "{text}");

    here.write("out/other", "");
    here.run(&format!("dedup a.jsonl out {seen}")).fails(2, &["--overwrite"]);
    assert_eq!(events(&here, "events.jsonl").last().unwrap()["exit_code"], 2);
    fs::remove_file(here.path("out/other")).unwrap();
    here.run(&format!("dedup a.jsonl out --overwrite {seen}")).ends(3);
    let text = fs::read_to_string(here.path("job.prom")).unwrap();
    assert!(
        text.contains("\ndedup_job_failures_total 0\n") && text.contains("\ndedup_job_running 0\n"),
        "{text}"
    );
}

/// Returns the time of the last success that a file of metrics tells.
fn last_success(text: &str) -> f64 {
    let mut values =
        text.lines().filter_map(|line| line.strip_prefix("dedup_job_last_success_time_seconds "));
    values.next().unwrap().parse().unwrap()
}

#[test]
fn metrics_tell_of_sigterm_and_of_the_last_success_before() {
    let here = Folder::new();
    here.write("a.jsonl", json_line("a", "text"));
    let seen = "--overwrite --quiet --events events.jsonl --metrics-file job.prom";
    let metrics = || fs::read_to_string(here.path("job.prom")).unwrap();
    here.run(&format!("dedup a.jsonl out --max-rejects 0 {seen}")).ends(0);
    let success = last_success(&metrics());
    assert!(success > 1.6e9, "{success}");

    let mut job = here.command(&format!("dedup a.jsonl out {seen}"));
    let mut job = job.env("DEDUP_FAULT", "0 create 1 wait").spawn().unwrap();
    let runs = || metrics().contains("\ndedup_job_running 1\n");
    wait_until("the job runs", Duration::from_secs(60), runs);
    signal(job.id(), "TERM");
    assert_eq!(job.wait().unwrap().signal(), Some(15));
    let text = metrics();
    assert!(
        text.contains("\ndedup_job_running 0\n") && text.contains("\ndedup_job_failures_total 1\n"),
        "{text}"
    );
    assert_eq!(last_success(&text), success);
    assert_eq!(events(&here, "events.jsonl").last().unwrap()["exit_code"], 143);
    here.run(&format!("dedup a.jsonl out {seen}")).ends(0);
    assert!(last_success(&metrics()) > success);
}

#[test]
fn files_that_cannot_be_written_are_named_before_the_job_begins() {
    let here = Folder::new();
    here.write("a.jsonl", json_line("a", "text"));
    for option in ["--events", "--metrics-file"] {
        here.run(&format!("dedup a.jsonl out {option} no/file")).fails(1, &["\"no/file\""]);
        here.run(&format!("dedup a.jsonl out {option} a.jsonl")).fails(2, &["input", "\"a.jsonl\"", option]);
        assert!(!here.path("out").exists());
    }
    assert_eq!(fs::read_to_string(here.path("a.jsonl")).unwrap(), json_line("a", "text"));
}

#[test]
#[ignore = "run scripts/peers/build first"]
fn prometheus_reads_the_metrics() {
    let here = of_formats();
    let output = "o\"u\\t";
    here.run(&format!("dedup in {output} --quiet --workers 2 --metrics-file job.prom")).ends(3);
    let metrics = metrics(&here, "job.prom");
    let value = |name: &str| *metrics.get(name).unwrap_or_else(|| panic!("no {name} in {metrics:?}"));
    let read = here.counter(output, "records_read") as f64;
    assert_eq!(value("dedup_job_records_total stage=map"), read);
    assert_eq!(value("dedup_job_bytes_total stage=map"), here.counter(output, "text_bytes") as f64);
    let of_workers = [0, 1].map(|w| value(&format!("dedup_job_worker_records_total stage=map worker={w}")));
    assert_eq!(of_workers.iter().sum::<f64>(), read);
    let info =
        format!("dedup_job_info job=dedup output={output} process=0 version={}", env!("CARGO_PKG_VERSION"));
    assert_eq!(value(&info), 1.0);
    assert_eq!((value("dedup_job_stage stage=commit"), value("dedup_job_stage stage=map")), (1.0, 0.0));
    assert_eq!((value("dedup_job_failures_total"), value("dedup_job_spilled_bytes_total")), (0.0, 0.0));
    for (name, least) in [
        ("process_cpu_seconds_total", 0.01),
        ("process_resident_memory_bytes", 1e6),
        ("dedup_job_start_time_seconds", 1.7e9),
        ("dedup_job_cpu_seconds_total stage=map", 0.001),
    ] {
        assert!(value(name) >= least, "{name}: {}", value(name));
    }
}
