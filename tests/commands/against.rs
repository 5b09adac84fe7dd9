//! Tests of what a run with `--against` refuses, counts apart, and leaves for the commands that read outputs.

use crate::corpus::{json_lines, write_parquet};
use crate::support::{Folder, sorted};

/// Makes the reference `ref.jsonl` and the input `in.jsonl`, of which two documents are in the reference and two
/// are equal to each other alone.
fn two_sets() -> Folder {
    let here = Folder::new();
    here.write(
        "ref.jsonl",
        json_lines([("r0", "今天天气很好"), ("r1", "今天天气很好"), ("r2", "北京上海广州")]),
    );
    let input = [
        ("a", "今天天气很好"),
        ("b", "大家都去公园"),
        ("c", "北京上海广州"),
        ("d", "大家都去公园"),
        ("e", "别的"),
    ];
    here.write("in.jsonl", json_lines(input));
    here
}

/// Returns the ids of the records of an output in `folder`.
fn ids(here: &Folder, folder: &str) -> Vec<String> {
    here.objects(folder, ".jsonl").iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_is_in_the_reference_goes_and_nothing_of_the_reference_is_written() {
    let here = two_sets();
    let before = here.contents("ref.jsonl");
    here.run("dedup --against ref.jsonl in.jsonl out --quiet").ends(0);
    assert_eq!(ids(&here, "out/kept"), ["b", "e"]);
    here.run("dedup --against ref.jsonl in.jsonl apart --within=no --quiet").ends(0);
    assert_eq!(ids(&here, "apart/kept"), ["b", "d", "e"]);
    let of: Vec<_> =
        here.objects("apart/removed", ".jsonl").iter().map(|row| row["duplicate_of"].clone()).collect();
    assert_eq!(of, ["r0", "r2"]);
    assert_eq!(here.contents("ref.jsonl"), before);
    assert_eq!(here.counter("apart", "distinct"), 3);
    assert_eq!(here.counter("out", "distinct"), 2);
}

#[test]
fn an_input_that_is_wholly_in_the_reference_leaves_an_empty_part() {
    let here = two_sets();
    here.write("all.jsonl", json_lines([("x", "北京上海广州")]));
    here.run("dedup --against ref.jsonl all.jsonl out --quiet").ends(0);
    let kept: Vec<_> = here.contents("out/kept").into_iter().collect();
    assert_eq!(kept, [("part-00001.jsonl".to_owned(), Vec::new())]);
    here.run("check out --full").ends(0);
}

#[test]
fn a_file_on_both_sides_is_refused() {
    let here = two_sets();
    std::os::unix::fs::symlink("in.jsonl", here.path("link.jsonl")).unwrap();
    for reference in ["in.jsonl", "*.jsonl", "./in.jsonl", "link.jsonl"] {
        let run = here.run(&format!("dedup --against {reference} in.jsonl out"));
        run.fails(2, &["in.jsonl", "in the input and in the reference"]);
    }
    assert!(here.files("out").is_empty());
}

#[test]
fn a_reference_in_the_output_and_a_method_that_deletes_as_it_compares_are_refused() {
    let here = two_sets();
    here.write("out/_hidden/ref.jsonl", json_lines([("x", "y")]));
    let run = here.run("dedup --against out/_hidden/ref.jsonl in.jsonl out");
    run.fails(2, &["the reference", "lies in the output"]);
    let run = here.run("dedup --against ref.jsonl in.jsonl other --method zhou2017");
    run.fails(2, &["zhou2017", "another --method"]);
    here.run("dedup in.jsonl other --within no").ends(2);
}

#[test]
fn an_input_that_looks_like_a_reference_or_a_test_set_is_named() {
    let here = two_sets();
    here.write("more.jsonl", json_lines([("m", "别的")]));
    let warnings = |line: &str| here.run(&format!("dedup {line} --overwrite --progress none")).ends(0).stderr;
    let said = warnings("--against ref.jsonl more.jsonl in.jsonl out");
    assert!(said.contains("--against takes one REF") && said.contains("\"more.jsonl\" is a part"), "{said}");
    let said = warnings("--against ref.jsonl --against more.jsonl in.jsonl out");
    assert!(!said.contains("warning"), "{said}");

    here.write("set/data/train-00000-of-00001.jsonl", json_lines([("t", "今天")]));
    here.write("set/data/test-00000-of-00001.jsonl", json_lines([("u", "今天")]));
    let said = warnings("set out");
    assert!(said.contains("/train-00000-of-00001.jsonl\" and") && said.contains("/test-00000-of"), "{said}");
    let said =
        warnings("--against set/data/test-00000-of-00001.jsonl set/data/train-00000-of-00001.jsonl out");
    assert!(!said.contains("warning"), "{said}");
    here.write("plain/contest.jsonl", json_lines([("t", "今天")]));
    here.write("plain/training.jsonl", json_lines([("t", "明天")]));
    assert!(!warnings("plain out").contains("warning"));
}

#[test]
fn an_output_in_the_reference_is_no_part_of_it() {
    let here = two_sets();
    here.write("ref/a.jsonl", json_lines([("r0", "今天天气很好")]));
    for _ in 0..2 {
        here.run("dedup --against ref in.jsonl ref/out --overwrite --quiet").ends(0);
        assert_eq!(ids(&here, "ref/out/kept"), ["b", "c", "e"]);
        assert_eq!(here.success("ref/out")["counters"]["reference"]["files"], 1);
    }
}

#[test]
fn of_a_finished_output_the_kept_records_are_the_reference() {
    let here = two_sets();
    here.run("dedup --against ref.jsonl in.jsonl first --quiet").ends(0);
    // Those that the first run has removed are not in its kept/, and so they are no reference.
    here.write("more.jsonl", json_lines([("x", "大家都去公园"), ("y", "北京上海广州")]));
    here.run("dedup --against first more.jsonl second --quiet").ends(0);
    assert_eq!(ids(&here, "second/kept"), ["y"]);
    assert_eq!(here.success("second")["counters"]["reference"]["documents"], 2);
}

#[test]
fn rejects_of_the_reference_are_counted_apart() {
    let here = two_sets();
    let lines = here.bytes("ref.jsonl", "");
    here.write("ref.jsonl", [&b"bad\nbad\n"[..], &lines].concat());
    here.write("in.jsonl", [&here.bytes("in.jsonl", "")[..], b"worse\n"].concat());
    here.run("dedup --against ref.jsonl in.jsonl out --quiet --pairs firsts").ends(3);
    let counters = here.success("out")["counters"].clone();
    let counted =
        ["records_read", "kept", "removed", "rejected"].map(|name| counters[name].as_u64().unwrap());
    assert_eq!(counted, [6, 2, 3, 1]);
    assert_eq!(
        (&counters["reference"]["rejected"], &counters["reference"]["documents"]),
        (&2.into(), &3.into())
    );
    assert_eq!(here.lines("out/rejects", ".jsonl").len(), 3);
    here.run("rethreshold out again --threshold 0.9 --quiet").ends(3);
    assert_eq!(here.success("again")["counters"]["reference"], counters["reference"]);
    here.run("dedup --against ref.jsonl in.jsonl limited --max-rejects 2")
        .fails(4, &["3 records were rejected"]);
    // A reference of which nothing can be read would remove nothing, and nobody would see that.
    here.write("other.jsonl", "{\"id\":\"r0\",\"question\":\"今天天气很好\"}\n");
    here.run("dedup --against other.jsonl in.jsonl missing").fails(2, &["other.jsonl", "no field \"text\""]);
}

#[test]
fn shares_of_removed_documents_are_those_of_the_input() {
    let here = two_sets();
    here.run("dedup --against ref.jsonl in.jsonl out --within no --max-removed 39%")
        .fails(4, &["2 of 5 documents would be removed"]);
    here.run("dedup --against ref.jsonl in.jsonl out --within no --max-removed 40% --quiet").ends(0);
    let with_source =
        |file: &str| here.lines(file, "").join("\n").replace("{\"id\"", "{\"source\":\"s\",\"id\"") + "\n";
    ["ref.jsonl", "in.jsonl"].iter().for_each(|file| here.write(file, with_source(file)));
    here.run("dedup --against ref.jsonl in.jsonl by-source --within no --max-removed-per-source source:1")
        .fails(4, &["2 of 5 documents would be removed"]);
}

#[test]
fn the_names_of_the_input_stay_and_those_of_the_reference_differ() {
    let here = Folder::new();
    here.write("old/a/1.txt", "今天天气很好，大家都去公园散步");
    here.write("new/a/1.txt", "今天天气很好，大家都去公园散步");
    here.write("new/a/2.txt", "北京上海广州深圳，别的什么都没有");
    here.run("dedup --against old new out --quiet").ends(0);
    let kept: Vec<_> = here.contents("out/kept").into_keys().collect();
    assert_eq!(kept, ["a/2.txt"]);
    let reasons = here.objects("out/removed/_reasons", ".jsonl");
    assert_eq!((&reasons[0]["id"], &reasons[0]["duplicate_of"]), (&"a/1.txt".into(), &"old/a/1.txt".into()));
}

#[test]
fn reference_and_input_may_have_other_formats() {
    let here = two_sets();
    let lines = here.lines("in.jsonl", "");
    std::fs::create_dir(here.path("in")).unwrap();
    write_parquet(&here, "in/a.parquet", &lines);
    here.run("dedup --against ref.jsonl in out --within no --quiet").ends(0);
    let ids = |folder: &str| sorted(here.rows(folder).into_iter().map(|row| row[2].clone()).collect());
    assert_eq!(
        (ids("out/kept"), ids("out/removed")),
        (vec!["b".into(), "d".into(), "e".into()], vec!["a".into(), "c".to_owned()])
    );
}
