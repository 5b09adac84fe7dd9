//! Tests of labels and samples: `eval`, `tune`, `explain`.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::answers::brute::{Doc, candidates, similarity_of_grams};
use crate::corpus::json_lines;
use crate::support::{Folder, Random};

/// Makes three copies of one text, two of another, and three texts of their own.
fn copies() -> Folder {
    let here = Folder::new();
    let texts = [
        ("a1", "甲"),
        ("b1", "乙"),
        ("c", "丙"),
        ("a2", "甲"),
        ("d", "丁"),
        ("a3", "甲"),
        ("b2", "乙"),
        ("e", "戊"),
    ];
    here.write("in.jsonl", json_lines(texts.map(|(id, text)| (id, text.repeat(9)))));
    here.run("dedup in.jsonl out --method exact --quiet").ends(0);
    here
}

#[track_caller]
fn figures(here: &Folder, options: &str) -> Value {
    here.run(&format!("eval out labels.tsv --json figures.json {options}")).ends(0);
    serde_json::from_slice(&fs::read(here.path("figures.json")).unwrap()).unwrap()
}

/// Returns precision and recall, rounded.
fn rates(of: &Value) -> [f64; 2] {
    ["precision", "recall"].map(|name| (of[name].as_f64().unwrap() * 1e4).round() / 1e4)
}

#[track_caller]
fn counts(of: &Value, names: [&str; 3]) -> [u64; 3] {
    names.map(|name| of[name].as_u64().unwrap_or_else(|| panic!("{name} of {of}")))
}

const PAIRS: [&str; 3] = ["right", "false", "missed"];

#[test]
fn positive_pairs_alone_are_all_that_is_true() {
    let here = copies();
    here.write("labels.tsv", "a1\ta2\t1\na3\ta1\t1\na2\ta3\t1\nc\td\t1\n");
    let got = figures(&here, "");
    assert_eq!(counts(&got["pairs"], PAIRS), [3, 1, 1]);
    assert_eq!(rates(&got["pairs"]), [0.75, 0.75]);
    let documents = &got["documents"];
    assert_eq!(counts(documents, ["removed", "with_partner", "unsound"]), [3, 2, 1]);
    assert_eq!(counts(documents, ["removable", "removed_of_removable", "left"]), [3, 2, 1]);
    assert_eq!(documents["wiped_out"], 1); // b2, which has no partner, and is gone
    assert_eq!(rates(documents), [0.6667, 0.6667]);
    let core = &got["core_2020_older_convention"];
    assert_eq!(counts(&core["with_duplicates"], PAIRS), [3, 2, 2]); // the three a; b1, b2; c, d
    assert_eq!(counts(&core["without"], PAIRS), [1, 2, 2]); // e
    assert_eq!((&core["accuracy"], &got["documents_judged"]), (&Value::from(0.5), &Value::from(8)));

    let listed = here.run("eval out labels.tsv --list false,missed").ends(0);
    assert!(listed.stdout.ends_with("\n\nfalse\tb1\tb2\nmissed\tc\td\n"), "{listed:?}");
    assert!(listed.stdout.contains("right 3, false 1, missed 1"), "{listed:?}");
    here.run("eval out labels.tsv --list missed --list-to list.tsv").ends(0);
    assert_eq!(here.lines("list.tsv", ""), ["missed\tc\td"]);
}

#[test]
fn where_some_pairs_are_negative_only_those_listed_count() {
    let here = copies();
    here.write("labels.tsv", "a1\ta2\tsame\nb1\tb2\tother\nc\td\tnearly\nc\te\tother\n");
    let got = figures(&here, "--positive same,nearly");
    assert_eq!((counts(&got["pairs"], PAIRS), &got["documents"]), ([1, 1, 1], &Value::Null));
    assert_eq!(counts(&figures(&here, "--positive same")["pairs"], PAIRS), [1, 1, 0]);
    here.run("eval out labels.tsv").fails(2, &["labels.tsv", "line 1", "\"same\"", "--positive"]);
}

#[test]
fn of_clusters_only_the_documents_listed_count() {
    let here = copies();
    // a1, the first of its kind, is not listed, nor is e.
    here.write("labels.tsv", "a2\tx\na3\tx\nb1\ty\nb2\tz\nc\tw\nd\tw\n");
    for options in ["", "--by clusters"] {
        let got = figures(&here, options);
        assert_eq!(counts(&got["pairs"], PAIRS), [1, 1, 1]);
        assert_eq!(
            (&got["documents_judged"], &got["documents"]["removed"]),
            (&Value::from(6), &Value::from(3))
        );
    }
    assert_eq!(figures(&here, "--labels-as clusters"), figures(&here, ""));
    let as_pairs = figures(&here, "--labels-as pairs");
    assert_eq!(as_pairs["pairs"]["right"], 0);
}

#[test]
fn a_chain_is_two_pairs_or_a_cluster_of_three() {
    let here = Folder::new();
    let texts = [("a", "一二三四五六七八九十"), ("b", "二三四五六七八九十百"), ("c", "三四五六七八九十百千")];
    here.write("in.jsonl", json_lines(texts));
    let dedup = "dedup in.jsonl out --overwrite --method jaccard:0.8,features=char:1 --quiet";
    here.write("labels.tsv", "a\tb\t1\nb\tc\t1\na\tc\t0\n");
    // By default, b goes for a, and c is in no cluster.
    here.run(dedup).ends(0);
    assert_eq!(counts(&figures(&here, "")["pairs"], PAIRS), [1, 0, 1]);
    here.run("eval out labels.tsv --by pairs").fails(2, &["--pairs firsts"]);
    here.run(&format!("{dedup} --pairs firsts")).ends(0);
    assert_eq!(counts(&figures(&here, "")["pairs"], PAIRS), [2, 0, 0]);
    assert_eq!(counts(&figures(&here, "--by clusters")["pairs"], PAIRS), [2, 1, 0]);
}

#[test]
fn labels_of_another_corpus_are_noticed() {
    let here = copies();
    here.write("labels.tsv", "x\ty\t1\n");
    let run = here.run("eval out labels.tsv").ends(0);
    assert!(run.stderr.contains("warning") && run.stderr.contains("no labelled document"), "{run:?}");
    here.run("eval in.jsonl labels.tsv").fails(2, &["in.jsonl", "is a file"]);
    here.run("eval out nothing.tsv").fails(2, &["nothing.tsv"]);
    here.run("tune in.jsonl --method exact --labels labels.tsv")
        .fails(2, &["2 of 2", "\"x\"", "not in the input"]);
}

/// Makes six texts of ten characters. `b` to `f` share 9, 8, 7, 6 and 5 characters with `a`: their Jaccard
/// similarities are 9/11 and so on.
fn graded() -> Folder {
    let here = Folder::new();
    let (all, others) = ("一二三四五六七八九十", "甲乙丙丁戊");
    let text = |changed: usize| -> String {
        all.chars().skip(changed).chain(others.chars().take(changed)).collect()
    };
    let docs = "abcdef".chars().enumerate().map(|(changed, id)| (id, text(changed)));
    here.write("in.jsonl", json_lines(docs));
    here.write("labels.tsv", "a\tb\t1\na\tc\t1\na\td\t0\na\te\t1\na\tf\t0\n");
    here
}

const CHARACTERS: &str = "jaccard:0.9,features=char:1";

#[test]
fn the_threshold_that_tune_writes_out_finds_what_it_said() {
    let here = graded();
    let said =
        here.run(&format!("tune in.jsonl --method {CHARACTERS} --labels labels.tsv --tsv curve.tsv")).ends(0);
    // The pairs are right at 9/11 and 8/12, wrong at 7/13, and right at 6/14: (1 + 1 + 3/4) / 3.
    assert!(said.stdout.contains("Average precision of its similarity: 0.9167"), "{said:?}");
    assert!(
        said.stdout.contains("precision 0.7500, recall 1.0000, F1 0.8571; right 3, false 1, missed 0"),
        "{said:?}"
    );
    assert!(said.stdout.contains("To use it: --method jaccard:0.4,features=char:1,clean=nfkc\n"), "{said:?}");
    let curve = here.lines("curve.tsv", "");
    assert_eq!(curve[1], "0.818181\t1\t0\t2\t1.000000\t0.333333\t0.500000");
    assert_eq!(curve.len(), 6);

    for (wanted, found) in
        [("--precision 0.9", [2, 0, 1]), ("--recall 0.3", [1, 0, 2]), ("--recall 1", [3, 1, 0])]
    {
        let said =
            here.run(&format!("tune in.jsonl --method {CHARACTERS} --labels labels.tsv {wanted}")).ends(0);
        let (_, use_it) = said.stdout.split_once("To use it: ").unwrap();
        here.run(&format!("dedup in.jsonl out --overwrite --quiet {use_it}")).ends(0);
        assert_eq!(counts(&figures(&here, "")["pairs"], PAIRS), found, "{wanted}");
    }
}

#[test]
fn a_precision_that_no_threshold_has_is_an_error() {
    let here = graded();
    here.write("labels.tsv", "a\tb\t0\na\tc\t1\n");
    here.run(&format!("tune in.jsonl --method {CHARACTERS} --labels labels.tsv --precision 0.9"))
        .fails(1, &["precision of at least 0.9", "0.5000"]);
}

#[test]
fn labels_that_judge_all_pairs_are_tuned_by_all_pairs() {
    let here = graded();
    here.write("pairs.tsv", "a\tb\t1\nb\tc\t1\n");
    here.write("clusters.tsv", "a\tx\nb\tx\nc\ty\n");
    let said =
        here.run(&format!("tune in.jsonl --method {CHARACTERS} --labels pairs.tsv --recall 1")).ends(0);
    // All neighbours have similarity 9/11: five pairs, two of them labelled.
    assert!(said.stdout.contains("right 2, false 3, missed 0"), "{said:?}");
    let said =
        here.run(&format!("tune in.jsonl --method {CHARACTERS} --labels clusters.tsv --recall 1")).ends(0);
    assert!(said.stdout.contains("right 1, false 1, missed 0"), "{said:?}");
}

#[test]
fn tune_says_what_a_method_never_compares() {
    let here = graded();
    let method = "simhash:features=char:1,hamming=0";
    let said = here.run(&format!("tune in.jsonl --method {method} --labels labels.tsv")).ends(0);
    assert!(
        said.stdout.contains("Of the 3 pairs that are the same the method compares 0 and finds 0"),
        "{said:?}"
    );
    assert!(said.stdout.contains("clean=nfkc --verify jaccard:0.4\n"), "{said:?}");
}

/// Makes families of texts: each has a base, and the base with a few characters changed.
fn families() -> (Folder, Vec<Doc>) {
    let here = Folder::new();
    let mut random = Random(5);
    let mut docs = Vec::new();
    for family in 0..12 {
        let base = random.text(60);
        for member in 0..5 {
            let change = |(at, c)| if at % 12 == 5 && at / 12 < member { '改' } else { c };
            let text: String = base.chars().enumerate().map(change).collect();
            docs.push(Doc::new(format!("{family}-{member}"), text));
        }
    }
    here.write("in.jsonl", Doc::json_lines(&docs));
    (here, docs)
}

const GRAMS: &str = "simhash:features=char:5,hamming=6";

#[test]
fn a_sample_of_all_says_what_brute_force_says() {
    let (here, docs) = families();
    here.run(&format!("tune in.jsonl --method {GRAMS} --sample 1000 --tsv bands.tsv")).ends(0);
    let mut expected = vec![[0, 0]; 11];
    for (high, b) in docs.iter().enumerate() {
        for a in &docs[..high] {
            let cleaned = |text: &str| text.replace('，', ",");
            let millionths = similarity_of_grams(&cleaned(&a.text), &cleaned(&b.text));
            expected[(millionths / 100_000) as usize][0] += 1;
        }
    }
    for candidate in candidates(GRAMS, &docs) {
        expected[(candidate.millionths / 100_000) as usize][1] += 1;
    }
    let rows = here.lines("bands.tsv", "");
    let got: Vec<[u64; 2]> = rows[1..]
        .iter()
        .rev()
        .map(|row| row.split('\t').skip(2).take(2).map(|n| n.parse().unwrap()).collect::<Vec<u64>>())
        .map(|row| [row[0], row[1]])
        .collect();
    assert_eq!(got, expected);
    assert!(expected.iter().filter(|band| band[0] > band[1] && band[1] > 0).count() > 1, "{expected:?}");
}

#[test]
fn a_sample_is_the_same_for_any_number_of_workers_and_another_for_another_seed() {
    let (here, _) = families();
    for job in ["tune", "explain"] {
        let said = |workers: u32, seed: u32| {
            let line = format!(
                "{job} in.jsonl --method {GRAMS} --split-size 2K --sample 30 --workers {workers} --seed {seed}"
            );
            let said = here.run(&line).ends(0).stdout;
            said.lines().filter(|line| !line.contains("memory")).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(said(1, 0), said(3, 0));
        assert_ne!(said(1, 0), said(1, 1));
    }
}

#[test]
fn what_a_run_on_all_documents_found_is_what_explain_expects() {
    let (here, _) = families();
    for method in [GRAMS, "jaccard:0.6", "exact"] {
        here.run(&format!("dedup in.jsonl out --pairs firsts --overwrite --quiet --method {method}")).ends(0);
        let said = here.run(&format!("explain in.jsonl --method {method}")).ends(0).stdout;
        assert!(said.contains("1 files, ") && said.contains("60 documents"), "{said}");
        for (line, counter) in
            [("candidates, identical documents counted once: ", "candidates"), ("alike: ", "pairs")]
        {
            let (_, rest) = said.split_once(line).unwrap_or_else(|| panic!("no {line}: {said}"));
            let number: u64 = rest.split([' ', '\n']).next().unwrap().parse().unwrap();
            assert_eq!(number, here.counter("out", counter), "{method}: {said}");
        }
    }
}

#[test]
fn explain_writes_a_method_out_and_draws_its_curve() {
    let here = Folder::new();
    let said = here.run("explain --method minhash:bands=25,rows=4 --svg curve.svg").ends(0).stdout;
    assert!(
        said.contains("Method: minhash:bands=25,rows=4,seed=0,jaccard=0.8,features=char:5,clean=nfkc\n"),
        "{said}"
    );
    let chances = said.lines().find(|line| line.trim_start().starts_with("chance ")).unwrap();
    let expected: Vec<String> = [0.5f64, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99]
        .iter()
        .map(|s| format!("{:.4}", 1.0 - (1.0 - s.powi(4)).powi(25)))
        .collect();
    assert_eq!(chances.split_whitespace().skip(1).collect::<Vec<_>>(), expected);
    let svg = fs::read_to_string(here.path("curve.svg")).unwrap();
    assert!(
        svg.starts_with("<svg ") && svg.contains("<polyline") && svg.contains("minhash:bands=25"),
        "{svg}"
    );
    here.run("explain --method nope").fails(2, &["nope"]);
}

#[test]
fn the_clusters_of_a_demo_are_its_duplicates_with_their_originals() {
    let here = Folder::new();
    here.run("demo demo --documents 300 --mixture").ends(0);
    let read = |name: &str| fs::read_to_string(here.path(name)).unwrap();
    let (truth, clusters) = (read("demo/truth.tsv"), read("demo/clusters.tsv"));
    let expected: BTreeSet<(&str, &str)> = truth
        .lines()
        .flat_map(|line| {
            let [doc, original, _] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
            [(doc, original), (original, original)]
        })
        .collect();
    assert_eq!(clusters.lines().count(), expected.len());
    assert_eq!(
        clusters.lines().map(|line| line.split_once('\t').unwrap()).collect::<BTreeSet<_>>(),
        expected
    );
    here.run("dedup demo/corpus.jsonl exact --method exact --quiet").ends(0);
    here.run("eval exact demo/clusters.tsv").ends(0);
}
