//! Tests of `compare`: each test document gets the label of the nearest class by four measures.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::faults::{command, processes};
use crate::support::{Folder, Random, run, sorted, test_data};

const MEASURES: [&str; 4] = ["euclid", "cosine", "correlation", "simhash"];

/// Returns 300 texts of each of three classes. A class has characters of its own, and some that all classes
/// have.
fn texts() -> Vec<(String, String)> {
    let mut random = Random(1);
    let mut all = Vec::new();
    for n in 0..300 {
        for (class, first) in [("Art", 0x4E00), ("Law", 0x5E00), ("Space", 0x6E00)] {
            let mut char = |first: u32| char::from_u32(first + random.below(200) as u32).unwrap();
            let text: String = (0..60).map(|at| char(if at % 3 == 0 { 0x7E00 } else { first })).collect();
            all.push((format!("{class}/{n:03}.txt"), text));
        }
    }
    all
}

/// Writes the texts as a folder of GBK files, and as lines of JSON with a field that holds the label.
fn corpus() -> Folder {
    let here = Folder::new();
    let mut lines = String::new();
    for (name, text) in texts() {
        here.write(&format!("tree/{name}"), encoding_rs::GBK.encode(&text).0);
        let class = name.split('/').next().unwrap();
        lines += &(json!({"id": name, "text": text, "of": {"class": 1}, "class": class}).to_string() + "\n");
    }
    here.write("corpus.jsonl", lines);
    here
}

/// Returns the rows of `labels/`, without the parts that they are in.
fn labels(here: &Folder, output: &str) -> Vec<Vec<String>> {
    here.rows(&format!("{output}/labels"))
}

#[track_caller]
fn measure<'r>(report: &'r Value, name: &str) -> &'r Value {
    report["measures"].as_array().unwrap().iter().find(|measure| measure["measure"] == name).unwrap()
}

#[test]
fn documents_of_distinct_classes_get_their_own_labels() {
    let here = corpus();
    let run = here.run("compare tree out --features char:1 --seed 5").ends(0);
    let report = here.success("out");
    let counters = &report["counters"];
    let (training, tested) = (counters["training"].as_u64().unwrap(), counters["tested"].as_u64().unwrap());
    assert_eq!(training + tested, 900);
    assert!((60..130).contains(&tested), "{counters}");
    // The sum of a class is far from each of its documents, so the smallest class is nearest to all by
    // Euclidean distance.
    for name in ["cosine", "correlation"] {
        assert_eq!(measure(&report, name)["correct"], tested, "{name}");
        assert_eq!(measure(&report, name)["accuracy"], 1.0);
    }
    let smallest =
        report["classes"].as_array().unwrap().iter().min_by_key(|class| class["training"].as_u64());
    assert_eq!(measure(&report, "euclid")["correct"], smallest.unwrap()["tested"]);

    let rows = labels(&here, "out");
    assert_eq!(rows.len() as u64, tested);
    let mut right = 0;
    for row in &rows {
        let [id, label, euclid, cosine, correlation, simhash] = &row[..] else { panic!("{row:?}") };
        assert!(id.starts_with(&format!("{label}/")), "{row:?}");
        assert_eq!([cosine, correlation], [label; 2]);
        right += u64::from(simhash == label);
        assert_eq!(euclid, smallest.unwrap()["label"].as_str().unwrap());
    }
    // 64 bits lose more than the vectors do; chance would give a third.
    assert!(right > tested / 2 && measure(&report, "simhash")["correct"] == right, "{right} of {tested}");
    let words: Vec<_> = run.stdout.split_whitespace().collect();
    assert!(MEASURES.iter().all(|name| words.contains(name)), "{}", run.stdout);
    assert!(words.contains(&"100.00%") && words.contains(&"Space"), "{}", run.stdout);
    assert!(run.stderr.contains("Training documents="), "{}", run.stderr);
}

/// The result is worked out by hand. Characters are features; the test document is of class `x`, the others
/// are training.
#[test]
fn class_sums_of_all_workers_decide() {
    let here = Folder::new();
    let docs = [("1", "aab", "A"), ("2", "aab", "A"), ("3", "abb", "B"), ("4", "bbb", "B")];
    let docs = docs.iter().chain(&[("5", "aaab", "B"), ("6", "c", "C")]);
    for (id, text, class) in docs {
        here.write(
            &format!("in/{id}.jsonl"),
            json!({"id": id, "text": text, "class": class}).to_string() + "\n",
        );
    }
    // Sums of the classes: A has 4 a and 2 b, B has 1 a and 5 b, C has 1 c. The test document has 3 a and 1
    // b. Its squared distances are 2, 20 and 11, its cosines .99, .50 and 0.
    let seed = (0..10_000).find(|seed| {
        let line =
            format!("compare in out --overwrite --quiet --features char:1 --label-field class --seed {seed}");
        here.run(&line).code == Some(0) && labels(&here, "out").iter().map(|row| row[0].as_str()).eq(["5"])
    });
    let seed = seed.unwrap();
    for workers in [1, 3] {
        here.run(&format!("compare in out --overwrite --features char:1 --label-field class --seed {seed} --split-size 1 --workers {workers}")).ends(0);
        assert_eq!(labels(&here, "out"), [["5", "B", "A", "A", "A", "A"]], "{workers} workers");
        let classes = here.success("out")["classes"].clone();
        assert_eq!(classes[1]["training"], 2);
        assert_eq!(here.counter("out", "features"), 3);
    }
}

#[test]
fn nothing_changes_with_workers_splits_and_the_order_of_inputs() {
    let here = corpus();
    let lines = fs::read_to_string(here.path("corpus.jsonl")).unwrap();
    let (first, second) = lines.split_at(lines[..lines.len() / 3].rfind('\n').unwrap() + 1);
    here.write("b.jsonl", first);
    here.write("a.jsonl", second);
    let mut found = BTreeMap::new();
    for (run, inputs) in ["corpus.jsonl", "a.jsonl b.jsonl", "b.jsonl,a.jsonl"].into_iter().enumerate() {
        for (workers, split_size) in [(1, "32M"), (2, "20K"), (4, "3K"), (4, "32M")] {
            let options = format!(
                "--workers {workers} --split-size {split_size} --label-field class --features char:2 --quiet"
            );
            here.run(&format!("compare {inputs} out {options} --overwrite")).ends(0);
            let report = here.success("out");
            let mut classes = report["classes"].clone();
            classes.as_array_mut().unwrap().iter_mut().for_each(|class| class["cpu"] = Value::Null);
            found.insert(
                (run, workers, split_size),
                (sorted(labels(&here, "out")), classes, report["counters"]["features"].clone()),
            );
        }
    }
    let expected = found.values().next().unwrap();
    assert!(expected.0.len() > 50);
    for (run, result) in &found {
        assert_eq!(result, expected, "{run:?}");
    }
}

#[test]
fn copies_of_a_text_are_all_for_training_or_all_for_testing() {
    let here = Folder::new();
    let mut random = Random(3);
    let texts: Vec<_> = (0..200).map(|_| random.text(20)).collect();
    let line = |n: usize| {
        let class = ["a", "b"][n % 2];
        json!({"id": n.to_string(), "text": texts[n % 200], "class": class}).to_string() + "\n"
    };
    here.write("in.jsonl", (0..600).map(line).collect::<String>());
    here.run("compare in.jsonl out --label-field class --features char:2 --test-share 0.3").ends(0);
    let tested: Vec<usize> = labels(&here, "out").iter().map(|row| row[0].parse().unwrap()).collect();
    let mut copies = BTreeMap::<usize, usize>::new();
    tested.iter().for_each(|n| *copies.entry(n % 200).or_default() += 1);
    assert!((40..80).contains(&copies.len()), "{}", copies.len());
    assert!(copies.values().all(|&count| count == 3), "{copies:?}");
}

#[test]
fn pages_of_sogou_are_labelled_by_the_hosts_of_their_urls() {
    let here = Folder::new();
    let page = |(n, (name, text)): (usize, &(String, String))| {
        let host = ["art.sohu.com", "law.sohu.com", "space.sohu.com"][n % 3];
        format!(
            "<doc>\n<url>http://{host}/{name}</url>\n<docno>{n}</docno>\n<content>{text}</content>\n</doc>\n"
        )
    };
    here.write("a.dat", texts().iter().enumerate().map(page).collect::<String>());
    here.run("compare a.dat out --label-field url --features char:1").ends(0);
    let rows = labels(&here, "out");
    assert!(rows.iter().all(|row| row[1].ends_with(".sohu.com") && row[1] == row[3]), "{rows:?}");
    assert!(rows.iter().all(|row| row[0].parse::<u32>().is_ok()), "ids are docnos");
}

#[test]
fn records_without_a_label_or_an_id_are_counted_and_cost_themselves() {
    let here = corpus();
    here.run("pack tree packed").ends(0);
    here.write("tree/loose.txt", "in no folder");
    here.write("tree/Art/binary.txt", [0u8; 100]);
    here.run("compare tree out --features char:1").ends(3);
    let counter = |name| here.counter("out", name);
    assert_eq!((counter("records_read"), counter("unlabelled"), counter("rejected")), (902, 1, 1));
    assert_eq!(counter("training") + counter("tested"), 900);
    assert_eq!(here.objects("out/rejects", ".jsonl").len(), 1);

    // The packed folder has the same labels.
    here.run("compare packed/packed again --features char:1").ends(0);
    assert_eq!(sorted(labels(&here, "again")), sorted(labels(&here, "out")));

    let mut lines = fs::read_to_string(here.path("corpus.jsonl")).unwrap();
    lines.push_str(
        "{\"id\":\"x\",\"text\":\"no class\"}\n{\"id\":\"y\",\"text\":\"no class\",\"class\":\"\"}\n",
    );
    here.write("some.jsonl", &lines);
    here.run("compare some.jsonl out --features char:1 --label-field class --overwrite").ends(3);
    assert_eq!((counter("records_read"), counter("unlabelled"), counter("rejected")), (902, 1, 1));
    let rejects = here.objects("out/rejects", ".jsonl");
    assert!(rejects[0]["reason"].as_str().unwrap().starts_with("line 901: "), "{rejects:?}");
    assert_eq!(sorted(labels(&here, "again")), sorted(labels(&here, "out")));

    // Every other record has no id of that name. Such test documents are rejected; training documents need no
    // id.
    let lines: String = texts()
        .iter()
        .enumerate()
        .map(|(n, (name, text))| {
            let key = ["key", "other"][n % 2];
            let class = name.split('/').next().unwrap();
            json!({key: name, "text": text, "class": class}).to_string() + "\n"
        })
        .collect();
    here.write("keys.jsonl", lines);
    here.run("compare keys.jsonl out --features char:1 --label-field class --id-field key --overwrite")
        .ends(3);
    assert_eq!(counter("records_read"), 900);
    assert_eq!(counter("training") + counter("tested") + counter("rejected"), 900);
    assert!(counter("rejected") > 20 && counter("tested") > 20);
}

#[test]
fn wrong_use_is_one_line_and_leaves_no_output() {
    let here = corpus();
    for (arguments, words) in [
        ("corpus.jsonl out --label-field clas", vec!["has no field \"clas\"", "class, id, of, text"]),
        (
            "corpus.jsonl out --label-field class --id-field nokey",
            vec!["no test document has an id", "\"nokey\""],
        ),
        ("tree/Art out", vec!["no document has a label", "--label-field"]),
        ("tree out --test-share 0.000001", vec!["0 of 900 documents are for testing"]),
        ("tree out --test-share 1", vec!["between 0 and 1"]),
        ("tree out --features words", vec!["jieba, char:N or word:N"]),
        ("tree", vec!["<INPUT> <OUTPUT>"]),
    ] {
        here.run(&format!("compare {arguments}")).fails(2, &words);
        assert!(here.files("out").is_empty(), "{arguments}");
    }
    here.write("bad.jsonl", "{}\n");
    here.run("compare corpus.jsonl bad.jsonl out --label-field class --max-rejects 0")
        .fails(4, &["bad.jsonl"]);
    assert!(here.files("out").is_empty());
}

#[test]
fn the_shared_category_tree_is_labelled_better_than_by_chance() {
    let Some(tree) = test_data("corpora/category-tree") else { return };
    let here = Folder::new();
    here.run(&format!("compare {} out --on-bad-text replace", tree.display())).ends(0);
    let report = here.success("out");
    assert_eq!(report["counters"]["records_read"], 970);
    assert_eq!(report["classes"].as_array().unwrap().len(), 18);
    for name in ["cosine", "correlation"] {
        assert!(measure(&report, name)["accuracy"].as_f64().unwrap() > 0.5, "{report}");
    }
}

#[test]
fn several_processes_and_some_measures_give_the_same_labels() {
    let here = corpus();
    here.run("compare tree one --features char:1 --seed 5 --quiet").ends(0);
    let several = "--workers 3 compare tree several --features char:1 --seed 5 --quiet";
    run(&mut command(&here, &format!("{} {several}", processes(&here, 3)))).ends(0);
    assert_eq!(labels(&here, "several"), labels(&here, "one"));
    let [one, several] = ["one", "several"].map(|output| here.success(output));
    for name in MEASURES {
        assert_eq!(measure(&one, name)["correct"], measure(&several, name)["correct"]);
    }
    here.run("compare tree some --features char:1 --seed 5 --measures simhash,cosine --quiet").ends(0);
    let rows: Vec<_> =
        labels(&here, "one").into_iter().map(|row| [0, 1, 3, 5].map(|at| row[at].clone())).collect();
    assert_eq!(
        labels(&here, "some").into_iter().map(|row| <[_; 4]>::try_from(row).unwrap()).collect::<Vec<_>>(),
        rows
    );
    here.run("compare tree other --measures manhattan").fails(2, &["euclid, cosine, correlation or simhash"]);
    // By the letter of the pseudo-code, each document gets the label of the last class.
    here.run("compare tree literal --features char:1 --seed 5 --literal --quiet").ends(0);
    assert!(labels(&here, "literal").iter().all(|row| row[2..].iter().all(|label| label == "Space")));
}

#[test]
fn labels_are_mapped_to_classes() {
    let here = corpus();
    here.write("map", "Art\tculture\nLaw\tculture\n");
    let run = here.run("compare tree out --features char:1 --seed 5 --label-map map").ends(0);
    assert!(run.stderr.contains("Documents without a label=300"), "{}", run.stderr);
    let report = here.success("out");
    let classes: Vec<_> = report["classes"].as_array().unwrap().iter().map(|class| &class["label"]).collect();
    assert_eq!(classes, ["culture"]);
    here.write("map", "Art culture\n");
    here.run("compare tree out --overwrite --label-map map").fails(2, &["\"map\", line 1"]);
}
