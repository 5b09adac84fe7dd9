//! Tests that the partitions of a table, which lie in folders `column=value`, come out as they went in.

use crate::corpus::{json_lines, write_parquet};
use crate::support::Folder;

/// Makes a table of three days in JSON lines. Its first two texts are there on each day.
fn table() -> Folder {
    let here = Folder::new();
    for day in 1..4 {
        let (old, more, new) = (format!("old-{day}"), format!("more-{day}"), format!("new-{day}"));
        let text = format!("只有第{day}天才有的一句话");
        let docs = json_lines([(&*old, "今天天气很好"), (&*more, "大家都去公园"), (&*new, &*text)]);
        here.write(&format!("t/dt=2026-11-0{day}/part-0.jsonl"), docs);
    }
    here
}

/// Returns the names of the files of an output, and the ids in each, in order.
fn parts(here: &Folder, output: &str) -> Vec<(String, Vec<String>)> {
    let ids = |name: &str| {
        let rows = here.objects(&format!("{output}/{name}"), ".jsonl");
        rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    };
    let names = here.contents(output).into_keys();
    let names = names.filter(|name| name.starts_with("kept/") || name.starts_with("removed/"));
    names.map(|name| (name.clone(), ids(&name))).collect()
}

#[test]
fn the_folders_of_partitions_stay() {
    let here = table();
    here.run("dedup t out --workers 2 --quiet").ends(0);
    let found = parts(&here, "out");
    let expected = [
        ("kept/dt=2026-11-01/part-00000.jsonl", &["old-1", "more-1", "new-1"][..]),
        ("kept/dt=2026-11-02/part-00001.jsonl", &["new-2"]),
        ("kept/dt=2026-11-03/part-00002.jsonl", &["new-3"]),
        ("removed/dt=2026-11-02/part-00001.jsonl", &["old-2", "more-2"]),
        ("removed/dt=2026-11-03/part-00002.jsonl", &["old-3", "more-3"]),
    ];
    let found: Vec<_> =
        found.iter().map(|(name, ids)| (&**name, ids.iter().map(|id| &**id).collect::<Vec<_>>())).collect();
    assert_eq!(found, expected.map(|(name, ids)| (name, ids.to_vec())));
    here.run("check --full out").ends(0);

    // Partitions that are named one by one, or by a pattern, are those of the table too.
    for inputs in ["t/dt=*", "t/dt=2026-11-01 t/dt=2026-11-02/part-0.jsonl t/dt=2026-11-03"] {
        here.run(&format!("dedup {inputs} again --overwrite --workers 1 --quiet")).ends(0);
        assert!(here.output("again") == here.output("out"), "{inputs}");
    }
    // So is one partition alone, and a file of it.
    for input in ["t/dt=2026-11-02", "t/dt=2026-11-02/part-0.jsonl"] {
        here.run(&format!("dedup {input} one --overwrite --quiet")).ends(0);
        assert_eq!(parts(&here, "one")[0].0, "kept/dt=2026-11-02/part-00000.jsonl", "{input}");
    }
    // A clean table is read as it was.
    here.run("dedup out/kept twice --quiet").ends(0);
    assert_eq!(here.counter("twice", "removed"), 0);
    assert_eq!(here.contents("twice/kept"), here.contents("out/kept"));
}

#[test]
fn partitions_of_several_columns_and_formats_stay_apart() {
    let here = Folder::new();
    here.run("demo demo --documents 300 --seed 4").ends(0);
    let lines = here.lines("demo", "corpus.jsonl");
    here.write("t/_p=0/lang=zh/a.jsonl", lines[..100].join("\n"));
    here.write("t/_p=0/lang=zh/b.csv", "id,text\nx,今天天气很好\ny,今天天气很好\n");
    std::fs::create_dir_all(here.path("t/_p=1/lang=zh/batch")).unwrap();
    write_parquet(&here, "t/_p=1/lang=zh/batch/c.parquet", &lines[100..]);
    here.run("dedup t out --quiet").ends(0);
    let names: Vec<_> = here.contents("out").into_keys().collect();
    for name in [
        "kept/_p=0/lang=zh/part-00000.jsonl",
        "kept/_p=0/lang=zh/part-00001.csv",
        "removed/_p=0/lang=zh/part-00001.csv",
        "kept/_p=1/lang=zh/part-00002.parquet",
    ] {
        assert!(names.iter().any(|found| found == name), "{name} is not among {names:?}");
    }
    here.run("check --full out").ends(0);
    assert_eq!(here.counter("out", "records_read"), lines.len() as u64 + 2);
    // The units of lines that are cut out leave the partitions as they are.
    here.run("chunk clean t cut --quiet").ends(0);
    assert!(here.contents("cut").contains_key("kept/_p=0/lang=zh/part-00000.jsonl"));
}

#[test]
fn partitions_named_below_their_folders_or_of_two_tables_stay() {
    let here = Folder::new();
    here.write("t/dt=1/h=01/batch/a.jsonl", json_lines([("a", "今天天气很好")]));
    let kept = |inputs: &str| {
        let ran = here.run(&format!("dedup {inputs} out --overwrite"));
        let names = here.contents("out").into_keys().filter(|name| name.starts_with("kept/"));
        (names.collect::<Vec<_>>(), ran.ends(0).stderr)
    };
    for input in ["t", "t/dt=1", "t/dt=1/h=01", "t/dt=1/h=01/batch", "t/dt=1/h=01/batch/a.jsonl"] {
        let (names, said) = kept(input);
        assert_eq!(names, ["kept/dt=1/h=01/part-00000.jsonl"], "{input}");
        assert!(!said.contains("warning"), "{said}");
    }
    here.write("u/dt=1/h=01/a.jsonl", json_lines([("b", "大家都去公园")]));
    let (names, said) = kept("t u");
    assert_eq!(names, ["kept/dt=1/h=01/part-00000.jsonl"]);
    assert!(said.contains("both have a partition \"dt=1/h=01\""), "{said}");
}

#[test]
fn ids_and_priorities_may_be_columns_of_the_partition() {
    let here = table();
    here.run("dedup t out --keep priority:dt --quiet").ends(0);
    let mut kept = parts(&here, "out");
    kept.retain(|(name, _)| name.starts_with("kept/"));
    assert_eq!(kept[0], ("kept/dt=2026-11-01/part-00000.jsonl".to_owned(), vec!["new-1".to_owned()]));
    assert_eq!(kept[2].1, ["old-3", "more-3", "new-3"]);
    here.run("dedup t by-day --id-field dt --quiet").ends(0);
    let removed = here.objects("by-day/removed", ".jsonl");
    assert!(removed.iter().all(|row| row["duplicate_of"] == "2026-11-01"), "{removed:?}");
    // A value that is neither a number nor a date is no priority, as in a field.
    here.write("words/dt=new/a.jsonl", json_lines([("a", "今天")]));
    here.run("dedup words none --keep priority:dt --quiet").fails(2, &["\"dt\""]);
}
