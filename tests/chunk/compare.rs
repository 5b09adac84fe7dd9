//! Tests of `chunk compare`: what each block method saves of known texts, and the figures of Peng 2017.

use std::fs;
use std::io::{Cursor, Write};

use serde_json::Value;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::support::{Folder, test_data};

/// Returns the file of a Word document with these paragraphs.
fn docx(paragraphs: &[&str]) -> Vec<u8> {
    let namespace = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
    let body: String =
        paragraphs.iter().map(|text| format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>")).collect();
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    archive.start_file("word/document.xml", SimpleFileOptions::default()).unwrap();
    write!(archive, "<w:document xmlns:w=\"{namespace}\"><w:body>{body}</w:body></w:document>").unwrap();
    archive.finish().unwrap().into_inner()
}

/// Returns the JSON that a run has written to `report.json`.
fn report(here: &Folder) -> Value {
    serde_json::from_slice(&fs::read(here.path("report.json")).unwrap()).unwrap()
}

/// Returns the row of a method.
#[track_caller]
fn row<'r>(rows: &'r Value, method: &str) -> &'r Value {
    rows.as_array().unwrap().iter().find(|row| row["method"] == method).unwrap()
}

#[track_caller]
fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("no {name} in {row}"))
}

/// Removes the speeds, which differ from run to run.
fn without_speeds(mut report: Value) -> Value {
    let mut rows: Vec<_> = report["sizes"].as_array_mut().unwrap().iter_mut().collect();
    for row in rows.iter_mut().flat_map(|size| size["methods"].as_array_mut().unwrap()) {
        row.as_object_mut().unwrap().remove("mb_per_second");
    }
    report
}

#[test]
fn texts_of_all_kinds_of_files_are_measured_in_the_order_of_their_names() {
    let here = Folder::new();
    here.write("in/a.txt", "甲一。甲二。\n乙。\n");
    here.write("in/b.txt", encoding_rs::GBK.encode("乙。\n丙。\n").0);
    here.write("in/c.docx", docx(&["甲一。甲二。", "丁。"]));
    let run = here.run("chunk compare in --json report.json --level 1").ends(0);
    let rows = &report(&here)["input"];
    let bytes = |method: &str| {
        ["bytes_in", "bytes_out", "blocks", "references"].map(|name| number(row(rows, method), name))
    };
    // Texts of 26, 14 and 26 bytes. Paragraphs that repeat: 乙。 and 甲一。甲二。 with their newlines.
    assert_eq!(bytes("file"), [66.0, 66.0, 3.0, 3.0]);
    assert_eq!(bytes("paragraph"), [66.0, 40.0, 4.0, 6.0]);
    // The newline behind a sentence is a sentence of its own.
    assert_eq!(bytes("sentence"), [66.0, 37.0, 6.0, 14.0]);
    let peng = bytes("peng2017:bits=128");
    assert_eq!(peng[..2], [66.0, 37.0]);
    let share = number(row(rows, "paragraph"), "percent_saved");
    assert!((share - 100.0 * 26.0 / 66.0).abs() < 1e-9, "{share}");
    assert!(
        run.stdout.lines().any(|line| line.starts_with("paragraph ") && line.contains(" 39.39 ")),
        "{}",
        run.stdout
    );
    let of_input = |stdout: &str| stdout.lines().take_while(|line| !line.is_empty()).count();
    assert_eq!(of_input(&run.stdout), 13, "{}", run.stdout);

    let only = here.run("chunk compare in --methods sentence,fsp:2 --level 1").ends(0);
    assert_eq!(of_input(&only.stdout), 3, "{}", only.stdout);
}

#[test]
fn the_figures_of_the_paper_come_out_on_an_input() {
    let here = Folder::new();
    here.run("demo demo --documents 400 --seed 3").ends(0);
    let figures =
        "chunk compare demo/corpus.jsonl --sizes 16K,64K,1G --trials 2 --level 1 --json report.json";
    let methods = "fsp:4K,gear:1K,paragraph,sentence,peng2017:bits=128,paragraph+delta";
    let run = here.run(&format!("{figures} --methods {methods}")).ends(0);
    assert!(run.stdout.contains("Figure 4") && run.stdout.contains("Figures 5 and 6"), "{}", run.stdout);
    let report = report(&here);
    let all = number(row(&report["input"], "sentence"), "bytes_in");
    let sizes = report["sizes"].as_array().unwrap();
    let bytes: Vec<_> = sizes.iter().map(|size| number(size, "text_bytes")).collect();
    // No text is longer than those of the input together.
    assert_eq!(bytes, [16384.0, 65536.0, all]);
    assert_eq!(
        (report["distances"].as_array().unwrap().len(), &report["insertions"]),
        (14, &Value::from(10))
    );
    assert_eq!(report["changed_strings"].as_array().unwrap().len(), 9);
    for size in sizes {
        let saved = |method: &str| number(row(&size["methods"], method), "percent_saved");
        let order = ["fsp:4K", "gear:1K", "paragraph", "sentence", "paragraph+delta"].map(saved);
        assert!(order.is_sorted() && order[3] > 45.0, "{order:?}");
        for method in ["paragraph", "sentence"] {
            let exact = row(&size["methods"], method);
            assert!(number(exact, "precision") == 100.0 && number(exact, "recall") > 50.0, "{exact}");
        }
        let peng = row(&size["methods"], "peng2017:bits=128");
        assert!(number(peng, "precision") < 90.0 && number(peng, "recall") > 90.0, "{peng}");
    }
}

#[test]
fn a_file_without_text_is_a_reject_and_costs_itself() {
    let here = Folder::new();
    here.write("in/a.txt", "一。");
    here.write("in/b.pdf", "no PDF");
    let run = here.run("chunk compare in --methods file --json report.json").ends(3);
    assert!(run.stderr.contains("1 rejected") && run.stderr.contains("b.pdf"), "{}", run.stderr);
    assert_eq!(number(row(&report(&here)["input"], "file"), "bytes_in"), 6.0);
}

#[test]
fn the_figures_of_the_paper_come_out_on_generated_texts() {
    let here = Folder::new();
    let figures = "chunk compare --sizes 16K,128K --trials 2 --level 1 --json report.json";
    let run = here.run(figures).ends(0);
    assert!(run.stdout.contains("Figure 4") && run.stdout.contains("Figures 5 and 6"), "{}", run.stdout);
    let figures_of_seed_1 = report(&here);
    for size in figures_of_seed_1["sizes"].as_array().unwrap() {
        let saved = |method: &str| number(row(&size["methods"], method), "percent_saved");
        // Of a text and its copy at most half can be saved, and what the text itself repeats.
        let order = ["fsp:4K", "gear:4K", "gear:1K", "paragraph", "sentence", "paragraph+delta"];
        let order: Vec<_> = order.map(saved).to_vec();
        assert!(order.is_sorted(), "{order:?}");
        assert!(saved("file") == 0.0 && saved("fsp:4K") < 10.0 && saved("rabin:4K") < 45.0, "{size}");
        assert!((45.0..60.0).contains(&saved("sentence")), "{size}");
        for (bits, most) in [(128, 55.0), (160, 70.0)] {
            let peng = row(&size["methods"], &format!("peng2017:bits={bits}"));
            // Sentences decide what is saved, and what the fingerprints call similar is unrelated text in half of the cases.
            assert!((number(peng, "percent_saved") - saved("sentence")).abs() < 0.2, "{peng}");
            assert!((45.0..most).contains(&number(peng, "precision")), "{peng}");
            assert!(number(peng, "recall") > 90.0, "{peng}");
        }
        for method in ["rabin:4K", "gear:1K", "paragraph", "sentence"] {
            let exact = row(&size["methods"], method);
            assert!(exact["precision"].is_null() || number(exact, "precision") == 100.0, "{exact}");
        }
        let delta = row(&size["methods"], "paragraph+delta");
        assert!(number(delta, "recall") > 99.0 && number(delta, "precision") > 80.0, "{delta}");
    }
    here.run(figures).ends(0);
    assert_eq!(without_speeds(report(&here)), without_speeds(figures_of_seed_1.clone()));
    here.run(&format!("{figures} --seed 2")).ends(0);
    assert_ne!(without_speeds(report(&here)), without_speeds(figures_of_seed_1));
}

#[test]
fn wrong_use_is_one_line() {
    let here = Folder::new();
    for (arguments, words) in [
        ("--methods fps:4K", vec!["fsp:SIZE", "peng2017[:bits=128|160]"]),
        ("--methods peng2017:bits=64", vec!["[:bits=128|160]"]),
        ("--methods rabin:5000", vec!["power of two"]),
        ("--sizes none", vec!["expected a size"]),
        ("--level 23", vec!["1..=22"]),
        ("--trials 0", vec!["--trials"]),
        ("nothing-there", vec!["nothing-there"]),
        ("--json none/report.json", vec!["none/report.json"]),
    ] {
        let run = here.run(&format!("chunk compare {arguments}"));
        run.fails(2, &words);
    }
}

/// docs/papers/peng2017.md has these figures.
#[test]
fn the_shared_revisions_give_the_figures_that_were_measured() {
    let Some(revisions) = test_data("revisions") else { return };
    let here = Folder::new();
    let methods =
        "file,fsp:4K,rabin:4K,gear:8K,gear:4K,gear:2K,gear:1K,paragraph,sentence,peng2017,paragraph+delta";
    let run = format!(
        "chunk compare {} --methods {methods} --level 1 --sizes 16K --trials 1 --json report.json",
        revisions.display()
    );
    // Two PDF files without text, and the table of the files, are rejects.
    here.run(&run).ends(3);
    let rows = &report(&here)["input"];
    assert_eq!(number(row(rows, "file"), "bytes_in"), 874_071.0);
    for (method, saved, index) in [
        ("file", 8.60, Some(8.26)),
        ("fsp:4K", 17.98, Some(16.79)),
        ("paragraph", 77.85, Some(34.28)),
        ("sentence", 78.03, Some(32.13)),
        ("gear:8K", 22.50, None),
        ("gear:4K", 39.50, None),
        ("gear:2K", 46.62, None),
        ("gear:1K", 54.76, None),
        ("rabin:4K", 40.86, None),
        ("peng2017", 78.03, Some(10.16)),
        ("paragraph+delta", 84.76, Some(39.04)),
    ] {
        let row = row(rows, method);
        assert!((number(row, "percent_saved") - saved).abs() < 0.01, "{row}");
        let with_index = number(row, "percent_saved_with_index");
        assert!(index.is_none_or(|index: f64| (with_index - index).abs() < 0.01), "{row}");
    }
}
