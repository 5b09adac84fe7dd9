//! Tests of the guards, which stop a run that would remove too much.

use crate::support::{Folder, Random};

/// Writes ten documents and one bad line. Three documents have one text, two have another, and five have
/// texts of their own.
///
/// | `source` | documents | removed |
/// |---|---|---|
/// | `web` | 3 | 2 |
/// | `news` | 5 | 1 |
/// | none | 2 | 0 |
fn corpus() -> Folder {
    let here = Folder::new();
    let mut random = Random(44);
    let mut text = || random.text(60);
    let (one, two) = (text(), text());
    let docs = [
        ("a", "news", &one),
        ("b", "web", &one),
        ("c", "web", &one),
        ("d", "news", &two),
        ("e", "news", &two),
        ("f", "news", &text()),
        ("g", "news", &text()),
        ("h", "web", &text()),
        ("i", "", &text()),
        ("j", "", &text()),
    ];
    let line = |&(id, source, text): &(&str, &str, &String)| match source {
        "" => format!("{{\"id\":\"{id}\",\"text\":\"{text}\"}}\n"),
        _ => format!("{{\"id\":\"{id}\",\"source\":\"{source}\",\"text\":\"{text}\"}}\n"),
    };
    let lines: Vec<String> = docs.iter().map(line).collect();
    here.write("a.jsonl", format!("{}{{bad\n{}", lines[..4].concat(), lines[4..].concat()));
    here
}

/// Checks that `fails` stops the run with words that `say` why and leaves nothing, and that `passes` does not
/// stop it.
#[track_caller]
fn guarded(here: &Folder, fails: &str, say: &[&str], passes: &str) {
    for options in ["", "--workers 3 --split-size 100"] {
        here.run(&format!("dedup a.jsonl out {fails} {options}")).fails(4, say);
        assert!(here.files("out").is_empty(), "{:?}", here.files("out"));
        here.run(&format!("dedup a.jsonl out --quiet {passes} {options}")).ends(3);
        assert_eq!((here.counter("out", "kept"), here.counter("out", "removed")), (7, 3));
        // An output that exists stays as it was.
        let before = here.bytes("out", "");
        here.run(&format!("dedup a.jsonl out --overwrite {fails} {options}")).fails(4, say);
        assert_eq!(here.bytes("out", ""), before);
        std::fs::remove_dir_all(here.path("out")).unwrap();
    }
}

#[test]
fn a_cluster_that_is_too_large_is_named() {
    let say = ["the cluster of \"a\" has 3 documents", "--max-cluster 2"];
    guarded(&corpus(), "--max-cluster 2", &say, "--max-cluster 3");
}

#[test]
fn no_more_documents_go_than_may() {
    let here = corpus();
    let say = ["3 of 10 documents", "--max-removed 2", "\"a\" with 3 documents"];
    guarded(&here, "--max-removed 2", &say, "--max-removed 3");
    guarded(
        &here,
        "--max-removed 29.99%",
        &["3 of 10 documents", "--max-removed 29.99%"],
        "--max-removed 30%",
    );
    guarded(&here, "--max-removed 0", &["3 of 10 documents"], "--max-removed 100%");
    here.run("dedup a.jsonl out --max-removed 0 --method exact --text-field id --id-field id -q").ends(3);
}

#[test]
fn no_more_documents_of_a_source_go_than_may() {
    let here = corpus();
    let guard = "--max-removed-per-source source";
    let say = ["\"web\", 2 of 3 documents", "--max-removed-per-source source:1"];
    guarded(&here, &format!("{guard}:1"), &say, &format!("{guard}:2"));
    guarded(&here, &format!("{guard}:66.6%"), &["\"web\", 2 of 3 documents"], &format!("{guard}:66.7%"));
    guarded(
        &here,
        &format!("{guard}:0"),
        &["\"web\", 2 of 3", "so it is with another source"],
        &format!("{guard}:100%"),
    );
    // Documents without a source count as one source.
    here.write("b.jsonl", "{\"id\":\"x\",\"text\":\"同一个\"}\n{\"id\":\"y\",\"text\":\"同一个\"}\n");
    let both = format!("dedup a.jsonl b.jsonl out {guard}");
    here.run(&format!("{both}:24%")).fails(4, &["\"web\", 2 of 3", "so it is with another source"]);
    here.write(
        "c.jsonl",
        "{\"id\":\"z\",\"text\":\"同一个\"}\n{\"id\":\"zz\",\"text\":\"同一个\"}\n".repeat(2),
    );
    here.run(&format!("{both}:2").replace("a.jsonl b", "a.jsonl c.jsonl b"))
        .fails(4, &["no \"source\", 5 of 8 documents", "source:2"]);
}

#[test]
fn a_source_that_no_document_has_is_wrong_use() {
    let here = corpus();
    here.run("dedup a.jsonl out --max-removed-per-source host:10%").fails(2, &["no document", "\"host\""]);
    // Formats without fields have no sources.
    here.write("b.txt", "一\n二\n");
    here.run("dedup b.txt out --format lines --max-removed-per-source id:10%")
        .fails(2, &["no document", "\"id\""]);
    assert!(here.files("out").is_empty());
}

#[test]
fn a_run_in_which_every_record_is_rejected_fails_and_writes_nothing() {
    let here = Folder::new();
    here.write(
        "text.jsonl",
        "{\"id\":1,\"text\":\"a\",\"source\":\"web\"}\n{\"id\":2,\"text\":\"b\",\"source\":\"news\"}\n",
    );
    here.write("array.jsonl", "[{\"text\":\"a\"}]\n[{\"text\":\"b\"}]\nbad\n");
    here.write("chat.jsonl", "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n");
    let all = ["every record was rejected", "nothing was written"];
    let of_numbers = [&all[..], &["no number in the field \"source\"", "text.jsonl", "line 2"]].concat();
    here.run("dedup text.jsonl out --keep priority:source").fails(1, &of_numbers);
    // The commonest reason is shown, with its last record.
    here.write("first.jsonl", "bad\n{\"text\":1}\n{\"text\":2}\n");
    here.run("dedup first.jsonl out").fails(1, &[&all[..], &["line 3", "(2 of them)"]].concat());
    // Records of the reference that are rejected are none of the input.
    here.write("ref.jsonl", "{\"id\":0,\"text\":\"c\"}\nworse\nworse\nworse\nworse\n");
    let of_input = ["every record was rejected (3)", "nothing was written", "array.jsonl"];
    here.run("dedup --against ref.jsonl array.jsonl out").fails(1, &of_input);
    here.run("chunk clean array.jsonl out").fails(1, &all);
    here.run("nightly --state state --output out array.jsonl --metrics-file m.prom").fails(1, &all);
    assert!(here.lines("", "m.prom").contains(&"dedup_job_failures_total 1".to_owned()));
    here.run("index build index array.jsonl").fails(1, &["every record was rejected (3)", "array.jsonl"]);
    // A field that no record has is a mistake in the command.
    here.run("dedup chat.jsonl out").fails(2, &["\"text\"", "messages"]);
    assert!(here.files("out").is_empty() && !here.path("state/versions").exists());
    // A night of that name is taken once it can be read.
    here.write("array.jsonl", "{\"id\":1,\"text\":\"a\"}\n");
    here.run("nightly --state state --output out array.jsonl --metrics-file m.prom --quiet").ends(0);
    // Nothing to read is no failure.
    here.write("empty.jsonl", "");
    here.run("dedup empty.jsonl none --quiet").ends(0);
}
