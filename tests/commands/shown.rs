//! Tests of what a run prints: answers, counters, and the summary.

use std::fs;

use serde_json::Value;

use crate::corpus::small;
use crate::support::Folder;

const GROUPS: [&str; 3] = ["Input\n", "Search\n", "Output\n"];

#[test]
fn help_and_version_are_answers() {
    let here = Folder::new();
    for (line, words) in [
        ("--help", ["dedup", "demo"]),
        ("help", ["dedup", "demo"]),
        ("dedup --help", ["--method", "simhash:hamming=6,features=char:5"]),
        ("dedup -h", ["--method", "<INPUT>"]),
        ("demo --help", ["truth.tsv", "--documents"]),
        ("--version", ["dedup-job", env!("CARGO_PKG_VERSION")]),
    ] {
        let run = here.run(line).ends(0);
        assert!(words.iter().all(|word| run.stdout.contains(word)) && run.stderr.is_empty(), "{run:?}");
    }
}

#[test]
fn cluster_options_stand_before_the_job_or_after_it() {
    let here = small();
    here.run("--workers 3 --quiet dedup a.jsonl before").ends(0);
    here.run("dedup a.jsonl after --workers 3 --quiet").ends(0);
    here.run("dedup --quiet a.jsonl --workers 3 between").ends(0);
    here.run("dedup a.jsonl --keep first a.jsonl --workers 3 --quiet both").ends(0);
    for output in ["before", "after", "between", "both"] {
        assert_eq!(here.success(output)["configuration"]["workers"], "3");
        assert_eq!(here.bytes(&format!("{output}/kept"), ""), here.bytes("before/kept", ""));
    }
}

#[test]
fn what_is_printed_is_what_was_asked_for() {
    let here = small();
    let quiet = here.run("dedup a.jsonl quiet --quiet").ends(0);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    here.write("bad.jsonl", "bad\n");
    let rejected = here.run("dedup a.jsonl bad.jsonl rejected -q").ends(3);
    let said =
        "kept 2 of 4 documents, 33.3 % removed (1 rejected: see rejected/rejects), so the exit code is 3\n";
    assert_eq!((rejected.stdout.as_str(), rejected.stderr.as_str()), ("", said));
    here.run("dedup none.jsonl missing --quiet").fails(2, &["none.jsonl"]);

    for option in ["", "--progress none", "--progress auto", "--progress plain"] {
        let output = format!("out{}", option.replace(' ', ""));
        let run = here.run(&format!("dedup a.jsonl {output} {option}")).ends(0);
        assert_eq!(run.stdout, "");
        assert!(
            run.stderr.starts_with("Counters\n    Input\n        Files=1\n        Bytes=81\n"),
            "{run:?}"
        );
        assert!(GROUPS.iter().all(|group| run.stderr.contains(group)), "{run:?}");
        assert!(
            run.stderr.contains("        Kept=2\n        Removed=1\n          identical to a kept one=1\n"),
            "{run:?}"
        );
    }
}

#[test]
fn the_summary_is_what_success_says_and_what_happened() {
    let here = small();
    here.write("b.jsonl", "{bad\n");
    here.run("dedup a.jsonl b.jsonl out --summary-json s.json --workers 2 --method exact").ends(3);
    let summary: Value = serde_json::from_slice(&fs::read(here.path("s.json")).unwrap()).unwrap();
    assert_eq!(summary, here.success("out"));
    assert_eq!(summary["version"], env!("CARGO_PKG_VERSION"));
    for (name, expected) in [
        ("method", "exact:clean=fold"),
        ("verify", "none"),
        ("resolve", "greedy"),
        ("keep", "first"),
        ("pairs", "deciding"),
        ("workers", "2"),
    ] {
        assert_eq!(summary["configuration"][name], expected, "{name}");
    }
    let configuration = &summary["configuration"];
    assert_eq!(configuration["inputs"], serde_json::json!(["a.jsonl", "b.jsonl"]));
    assert_eq!(configuration["directory"], here.path("").to_str().unwrap().trim_end_matches('/'));
    assert_eq!(configuration["id-field"], Value::Null);
    for (name, expected) in [
        ("input_files", 2),
        ("input_bytes", 86),
        ("records_read", 4),
        ("text_bytes", 18),
        ("distinct", 2),
        ("pairs", 1),
        ("clusters", 1),
        ("largest_cluster", 2),
        ("kept", 2),
        ("removed", 1),
        ("removed_identical", 1),
        ("removed_similar", 0),
        ("removed_chain", 0),
        ("rejected", 1),
    ] {
        assert_eq!(summary["counters"][name], expected, "{name}");
    }
    assert_eq!(summary["cluster_sizes"], serde_json::json!({"2": 1}));
    assert_eq!(summary["input"][1]["uri"], here.path("b.jsonl").to_str().unwrap());
    assert_eq!(summary["input"][1]["bytes"], 5);
}
