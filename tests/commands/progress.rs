//! Tests of what the commands that only read a corpus show of their readings, on a terminal and in the events.

use std::fs;

use serde_json::Value;

use crate::corpus::json_line;
use crate::support::{Folder, Random, run};

/// Makes the input `in.jsonl` of `documents` different texts of `chars` characters, and a copy of the last.
fn texts(documents: usize, chars: usize) -> Folder {
    let here = Folder::new();
    let mut random = Random(5);
    let mut texts: Vec<String> = (0..documents).map(|_| random.text(chars)).collect();
    texts.extend(texts.last().cloned());
    let lines = texts.iter().enumerate().map(|(number, text)| json_line(format!("n{number}"), text));
    here.write("in.jsonl", lines.collect::<String>());
    here
}

/// Returns the stages that the events of a command say are finished, with the records that each has read, and
/// checks the name of the job.
fn stages(here: &Folder, command: &str, exit_code: i32) -> Vec<(String, u64)> {
    here.run(&format!("{command} --quiet --events events.jsonl")).ends(exit_code);
    let events = fs::read_to_string(here.path("events.jsonl")).unwrap();
    fs::remove_file(here.path("events.jsonl")).unwrap();
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events[0]["job"], command.split(' ').next().unwrap());
    let finished = events.iter().filter(|event| event["event"] == "stage_finished");
    let stage = |event: &Value| event["stage"].as_str().unwrap().to_owned();
    finished.map(|event| (stage(event), event["records"].as_u64().unwrap())).collect()
}

/// Returns what a command shows of itself on a terminal.
fn on_a_terminal(here: &Folder, command: &str) -> String {
    let shown = run(&mut here.shell(&format!("script -qec 'dedup-job {command} > answer' /dev/null")));
    assert!(!fs::read(here.path("answer")).unwrap().is_empty(), "{shown:?}");
    shown.ends(0).stdout
}

#[test]
fn each_reading_of_a_tool_is_a_stage_that_is_watched() {
    let here = texts(40, 60);
    here.write("labels.tsv", "n39\tn40\t1\nn3\tn4\t0\n");
    let expected = |stages: &[(&str, u64)]| -> Vec<(String, u64)> {
        stages.iter().map(|(stage, records)| ((*stage).to_owned(), *records)).collect()
    };
    let tfidf = "--method simhash:weights=tfidf";
    assert_eq!(
        stages(&here, &format!("explain in.jsonl {tfidf}"), 0)[..3],
        expected(&[("census", 41), ("count", 41), ("map", 41)])
    );
    for how in ["--sample 10", "--labels labels.tsv"] {
        assert_eq!(
            stages(&here, &format!("tune in.jsonl {tfidf} {how}"), 0),
            expected(&[("census", 41), ("count", 41), ("read", 41), ("compare", 0)])
        );
    }
    here.run("dedup in.jsonl out --quiet --method exact").ends(0);
    assert_eq!(stages(&here, "why out n1", 0), expected(&[("read", 41)]));
    assert_eq!(stages(&here, "why out n1 n2", 0), expected(&[("read", 41)]));
    assert_eq!(stages(&here, "show out --id n40", 0), expected(&[("read", 41)]));
}

#[test]
fn the_reading_of_a_guard_is_part_of_the_stage_resolve() {
    let here = Folder::new();
    let line = |number: u32| {
        format!("{{\"id\":\"n{number}\",\"source\":\"s{}\",\"text\":\"文章{number}\"}}\n", number % 3)
    };
    here.write("in.jsonl", (0..9).map(line).collect::<String>());
    here.run("dedup in.jsonl out --quiet --pairs firsts --max-removed-per-source source:50%").ends(0);
    here.run("rethreshold out higher --quiet --threshold 0.95 --max-removed-per-source source:50%").ends(0);
    for output in ["out", "higher"] {
        let stages = here.success(output)["stages"].as_array().unwrap().clone();
        let resolve = stages.iter().find(|row| row["stage"] == "resolve").unwrap();
        assert_eq!(resolve["records"], 9, "{output}: {resolve}");
    }
}

#[test]
fn a_terminal_shows_how_far_a_tool_has_read() {
    let explain = "explain in.jsonl --method exact --workers 1";
    // There are five versions of the line a second. A fast machine needs more texts for one of them.
    let is_shown = |documents: usize| {
        let shown = on_a_terminal(&texts(documents, 2_000), explain);
        shown.contains("census: ") && shown.contains(" s left")
    };
    assert!([4_000, 40_000, 160_000].into_iter().any(is_shown));
    let here = texts(4_000, 2_000);
    for silent in ["--progress none", "--quiet"] {
        assert_eq!(on_a_terminal(&here, &format!("{explain} {silent}")), "");
    }
}

#[test]
fn verification_opens_the_files_of_candidates_alone() {
    let here = Folder::new();
    let mut random = Random(7);
    for number in 0..60 {
        here.write(&format!("in/{number:02}.txt"), random.text(200));
    }
    // A reject is a record too. Two splits lie between the similar files.
    here.write("in/20.txt", [0; 200]);
    let text = random.text(200);
    here.write("in/30.txt", format!("{text}。甲"));
    here.write("in/58.txt", format!("{text}。乙"));
    for verify in ["", "--verify none"] {
        let command = "dedup in out --quiet --overwrite --split-size 20K --method simhash:features=char:5";
        here.run(&format!("{command} {verify}")).ends(3);
        assert_eq!(here.success("out")["counters"]["splits"], 2);
        let stages = here.success("out")["stages"].as_array().unwrap().clone();
        let read: u64 = stages[2..4].iter().filter_map(|stage| stage["records"].as_u64()).sum();
        assert_eq!(read, 2, "{stages:?}");
        assert!(here.path("out/removed/58.txt").exists());
    }
}
