//! Tests of `--keep priority:FIELD`: what it rejects and refuses, and what it is next to other options.

use crate::corpus::json_lines;
use crate::support::Folder;

/// Makes `in.jsonl` of three equal documents, of which the second has the greatest number `n`.
fn numbered() -> Folder {
    let here = Folder::new();
    here.write(
        "in.jsonl",
        "{\"id\":\"a\",\"text\":\"今天\",\"n\":9}\n{\"id\":\"b\",\"text\":\"今天\",\"n\":\"10\"}\n\
         {\"id\":\"c\",\"text\":\"今天\",\"n\":-11}\n",
    );
    here
}

/// Returns the ids of the records of an output that stay.
fn kept(here: &Folder, output: &str) -> Vec<String> {
    let lines = here.objects(&format!("{output}/kept"), ".jsonl");
    lines.iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn numbers_are_compared_as_numbers() {
    let here = numbered();
    here.run("dedup in.jsonl out --quiet --keep priority:n").ends(0);
    assert_eq!(kept(&here, "out"), ["b"]);
}

#[test]
fn records_without_a_number_are_rejected() {
    let here = numbered();
    here.write("more.jsonl", json_lines([("d", "今天")]) + "{\"id\":\"e\",\"text\":\"今天\",\"n\":null}\n");
    here.write("more.csv", "id,text\nf,今天\n");
    here.run("dedup in.jsonl,more.jsonl,more.csv out --quiet --keep priority:n").ends(3);
    assert_eq!(kept(&here, "out"), ["b"]);
    let reasons: Vec<_> =
        here.objects("out/rejects", ".jsonl").iter().map(|line| line["reason"].clone()).collect();
    let expected = [
        "line 1: no field \"n\"; it has id, text",
        "line 1: no field \"n\"",
        "line 2: no number in the field \"n\"",
    ];
    assert_eq!(reasons, expected);
    // What was read with the field is read with it again.
    let shown = here.run("why out b e --quiet");
    assert!(shown.code != Some(0) && shown.stderr.contains("\"e\""), "{shown:?}");
}

#[test]
fn a_field_that_no_record_has_is_named() {
    let here = numbered();
    here.run("dedup in.jsonl out --quiet --keep priority:m").fails(2, &["no field \"m\"", "id, text, n"]);
    here.run("dedup in.jsonl out --quiet --keep priority:")
        .fails(2, &["--keep", "first, longest or priority:FIELD"]);
}

#[test]
fn formats_without_fields_are_refused_by_name() {
    let here = numbered();
    here.write("in/a.jsonl", std::fs::read(here.path("in.jsonl")).unwrap());
    here.write("in/note", "an unknown file");
    here.run("dedup in out --quiet --keep priority:n").ends(3);
    for (file, format) in [
        ("b.lines", "lines"),
        ("b.seq", "sequencefile"),
        ("b.txt", "tancorp"),
        ("b.docx", "office"),
        ("b.dat", "sogoucs"),
    ] {
        here.write(file, "今天\n");
        let before = here.contents("");
        let run = here.run(&format!("dedup {file} refused --quiet --keep priority:n --format {format}"));
        run.fails(2, &[file, format, "priority:n", "no fields"]);
        assert!(here.contents("") == before);
    }
}

#[test]
fn a_reference_needs_no_number_and_stays() {
    let here = numbered();
    let others = "{\"id\":\"d\",\"text\":\"明天\",\"n\":1}\n{\"id\":\"e\",\"text\":\"明天\",\"n\":2}\n";
    here.write("in.jsonl", std::fs::read_to_string(here.path("in.jsonl")).unwrap() + others);
    here.write("ref/a.jsonl", json_lines([("r", "明天")]));
    here.write("ref/b.csv", "id,text\ns,后天\n");
    for method in ["auto", "jaccard", "simhash", "simhash:weights=tfidf"] {
        let options = format!("--quiet --overwrite --keep priority:n --method {method}");
        here.run(&format!("dedup --against ref in.jsonl out {options}")).ends(0);
        assert_eq!(kept(&here, "out"), ["b"], "{method}");
        assert_eq!(here.success("out")["counters"]["reference"]["documents"], 2);
    }
    here.run("why out r e --quiet").ends(0);
}

#[test]
fn rethreshold_refuses_an_output_whose_numbers_it_does_not_know() {
    let here = numbered();
    here.run("dedup in.jsonl out --quiet --keep priority:n").ends(0);
    here.run("dedup in.jsonl first --quiet --pairs firsts").ends(0);
    for line in ["out new", "out new --keep first", "first new --keep priority:n"] {
        let run = here.run(&format!("rethreshold {line} --threshold 0.9 --quiet"));
        run.fails(2, &["priority:n", "run dedup again"]);
    }
    here.run("rethreshold first new --keep longest --threshold 0.9 --quiet").ends(0);
}
