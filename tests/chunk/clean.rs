//! Tests of `chunk clean`: what is cut is what counting units says, and nothing else of a record changes.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use encoding_rs::GB18030;
use serde_json::{Value, json};

use crate::support::{Folder, Random, Tree};

/// Document of a test: its id and its text.
pub type Text = (String, String);

/// For each unit that counts as another one: that unit, and the similarity of the two.
pub type Kin = HashMap<String, (String, f64)>;

/// Stands for null in a table that is read back.
const NULL: &str = "null";

/// Returns texts of few different units, with empty lines, missing newlines and sentences that end in several ways.
pub fn texts(count: usize, seed: u64) -> Vec<Text> {
    let units = [
        "短。",
        "\n",
        "\n\n",
        " \n",
        "这一句话在语料里重复出现了很多次。",
        "这一句话在语料里重复出现了很多次！\n",
        "返回首页，查看更多内容\n",
        "  返回首页，查看更多内容  \n",
        "版权所有，未经授权不得转载",
        "Copyright 2026? All rights reserved!\n",
    ];
    let mut random = Random(seed);
    let mut text = || -> String {
        (0..random.below(12))
            .map(|_| match random.below(units.len() + 4) {
                unit if unit < units.len() => units[unit].to_owned(),
                _ => random.text(12) + "。",
            })
            .collect()
    };
    (0..count).map(|at| (format!("d{at}"), text())).collect()
}

pub fn write_jsonl(folder: &Folder, name: &str, texts: &[Text]) {
    let lines = texts
        .iter()
        .map(|(id, text)| json!({"id": id, "text": text, "more": [1, {"x": "é"}]}).to_string() + "\n");
    folder.write(name, lines.collect::<String>());
}

/// Cuts a text into units in the simplest way.
pub fn units(unit: &str, text: &str) -> Vec<String> {
    let mut units = vec![String::new()];
    if unit == "paragraph" {
        for line in text.split_inclusive('\n') {
            let last = units.last().unwrap();
            let is_closed =
                last.lines().last().is_some_and(|line| line.trim().is_empty()) && !last.trim().is_empty();
            if is_closed && !line.trim().is_empty() {
                units.push(String::new());
            }
            units.last_mut().unwrap().push_str(line);
        }
    } else {
        let ends = if unit == "line" { "\n" } else { "。？！?!\n" };
        for c in text.chars() {
            units.last_mut().unwrap().push(c);
            if ends.contains(c) {
                units.push(String::new());
            }
        }
    }
    units.retain(|unit| !unit.is_empty());
    units
}

/// Documents and spans that the simplest program leaves.
#[derive(Debug, Default, PartialEq)]
pub struct Cleaned {
    pub kept: Vec<Text>,
    pub removed: Vec<String>,
    /// Rows of the table, without places.
    pub spans: Vec<Vec<String>>,
}

pub fn naive(texts: &[Text], unit: &str, keep: &str, min_chars: usize, min_repeats: usize) -> Cleaned {
    naive_near(texts, &Kin::new(), unit, keep, min_chars, min_repeats)
}

/// The same where some units count as others.
pub fn naive_near(
    texts: &[Text],
    kin: &Kin,
    unit: &str,
    keep: &str,
    min_chars: usize,
    min_repeats: usize,
) -> Cleaned {
    let named = |unit: &str| kin.get(unit.trim()).cloned().unwrap_or((unit.trim().to_owned(), 1.0));
    let mut places = HashMap::<String, Vec<(&str, usize)>>::new();
    let is_long = |unit: &str| !unit.trim().is_empty() && unit.trim().chars().count() >= min_chars;
    let located = |text: &str| {
        let mut offset = 0;
        let place = |unit: String| {
            offset += unit.len();
            (offset - unit.len(), unit)
        };
        units(unit, text).into_iter().map(place).collect::<Vec<_>>()
    };
    for (id, text) in texts {
        for (offset, unit) in located(text).into_iter().filter(|(_, unit)| is_long(unit)) {
            places.entry(named(&unit).0).or_default().push((id, offset));
        }
    }
    let mut cleaned = Cleaned::default();
    for (id, text) in texts {
        let mut rest = String::new();
        let mut is_cut = false;
        for (offset, unit) in located(text) {
            let (name, similarity) = named(&unit);
            let found = places.get(&name).filter(|places| is_long(&unit) && places.len() >= min_repeats);
            let Some(first) =
                found.map(|places| places[0]).filter(|&first| keep == "none" || first != (id, offset))
            else {
                rest.push_str(&unit);
                continue;
            };
            is_cut = true;
            let kept = match keep {
                "none" => [NULL, NULL, NULL].map(str::to_owned),
                _ => [first.0.to_owned(), first.1.to_string(), format!("{similarity:?}")],
            };
            let own = [id.clone(), offset.to_string(), unit.len().to_string()];
            cleaned.spans.push(own.into_iter().chain(kept).collect());
        }
        match is_cut && rest.trim().is_empty() {
            true => cleaned.removed.push(id.clone()),
            false => cleaned.kept.push((id.clone(), rest)),
        }
    }
    cleaned
}

/// Reads an output back.
pub fn cleaned(folder: &Folder, output: &str) -> Cleaned {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let kept = folder.objects(&format!("{output}/kept"), "jsonl");
    let removed = folder.objects(&format!("{output}/removed"), "jsonl");
    assert!(kept.iter().chain(&removed).all(|record| record["more"] == json!([1, {"x": "é"}])));
    Cleaned {
        kept: kept.iter().map(|record| (text(&record["id"]), text(&record["text"]))).collect(),
        removed: removed.iter().map(|record| text(&record["id"])).collect(),
        spans: folder.table(&format!("{output}/spans")),
    }
}

#[test]
fn what_is_cut_is_what_counting_units_says() {
    let folder = Folder::new();
    let texts = texts(60, 5);
    write_jsonl(&folder, "in.jsonl", &texts);
    for unit in ["line", "sentence", "paragraph"] {
        for keep in ["first", "none"] {
            for (min_chars, min_repeats) in [(0, 2), (10, 2), (17, 3), (3, 9)] {
                let options = format!(
                    "--unit {unit} --keep {keep} --min-chars {min_chars} --min-repeats {min_repeats}"
                );
                folder
                    .run(&format!("chunk clean in.jsonl out {options} --split-size 2K --overwrite --quiet"))
                    .ends(0);
                let expected = naive(&texts, unit, keep, min_chars, min_repeats);
                assert_eq!(cleaned(&folder, "out"), expected, "{options}");
                assert!(
                    unit == "paragraph" || min_chars == 3 || expected.spans.len() > 20,
                    "{options}: the test cuts little"
                );
            }
        }
    }
}

#[test]
fn spans_put_back_at_their_offsets_give_the_texts_as_they_were() {
    let folder = Folder::new();
    let texts = texts(200, 11);
    write_jsonl(&folder, "in.jsonl", &texts);
    folder.run("chunk clean in.jsonl out --unit sentence --min-chars 2 --quiet").ends(0);
    let before: HashMap<&str, &str> = texts.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    let Cleaned { kept, removed, spans } = cleaned(&folder, "out");
    assert!(kept.len() + removed.len() == 200 && !removed.is_empty() && spans.len() > 200);
    for (id, mut text) in kept {
        for span in spans.iter().filter(|span| span[0] == id) {
            let [offset, length, kept_offset] = [1, 2, 4].map(|at| span[at].parse::<usize>().unwrap());
            let cut = &before[id.as_str()][offset..offset + length];
            // The span that stays is the same but for white space at its ends.
            assert!(before[span[3].as_str()][kept_offset..].trim_start().starts_with(cut.trim()));
            text.insert_str(offset, cut);
        }
        assert_eq!(text, before[id.as_str()]);
    }
}

#[test]
fn the_output_is_the_same_for_any_workers_and_little_memory() {
    let folder = Folder::new();
    write_jsonl(&folder, "in.jsonl", &texts(3000, 3));
    let output = |options: &str| -> Tree {
        let line =
            "chunk clean in.jsonl out --unit sentence --min-chars 3 --split-size 40K --overwrite --quiet";
        folder.run(&format!("{line} {options}")).ends(0);
        folder.output("out")
    };
    let one = output("--workers 1");
    assert!(one.keys().filter(|name| name.starts_with("kept/")).count() > 5);
    for options in ["--workers 2", "--workers 3", "--workers 2 --memory 40M --local-dir ."] {
        assert!(output(options) == one, "{options}");
    }
}

/// A line that two documents have, and what stays of the second.
const REPEATED: &str = "返回首页，查看更多精彩内容，版权所有，未经授权不得转载";

#[test]
fn every_format_comes_back_with_nothing_but_the_text_changed() {
    let gbk = |text: &str| GB18030.encode(text).0.into_owned();
    let utf16 =
        |text: &str| format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let cut = |before: &str, line: &str| {
        let at = before.rfind(line).unwrap();
        before[..at].to_owned() + &before[at + line.len()..]
    };
    let csv = format!(
        "n,text,id\r\n1,\"{REPEATED}\n甲，\"\"乙\"\"\",a\r\n2, \"丙\" ,x\r\n 3,\"丁\n{REPEATED}\n戊,己\",c\r\n"
    );
    let csv = csv.replace("2, \"丙\" ,x\r\n", "2,丙,b\r\n");
    let jsonl = format!(
        "{{\"id\": 1,\"text\":\"{REPEATED}\\n一\"}}\n {{\"text\" : \"{REPEATED}\\n二\\t\\\"\", \"z\":[ 1.0,\"é\"], \"id\":\"q\"}} \r\n"
    );
    let sogou = format!(
        "<doc>\n<url>u1</url>\n<docno>1</docno>\n<contenttitle>甲</contenttitle>\n<content>{REPEATED}\n乙</content>\n</doc>\n\
         <doc>\n<url>u2</url>\n<docno>2</docno>\n<contenttitle> 丙 </contenttitle>\n<content>丁\n{REPEATED}\n戊</content>\n</doc>\n"
    );
    let line = format!("{REPEATED}\n");
    let escaped = format!("{REPEATED}\\n");
    let cases = [
        ("in/a.csv", "", gbk(&csv), gbk(&cut(&csv, &line)), "kept/part-00000.csv"),
        ("in/a.csv", "", utf16(&csv), utf16(&cut(&csv, &line)), "kept/part-00000.csv"),
        ("in/a.jsonl", "", jsonl.clone().into(), cut(&jsonl, &escaped).into(), "kept/part-00000.jsonl"),
        ("in/a.dat", "--format sogoucs", gbk(&sogou), gbk(&cut(&sogou, &line)), "kept/part-00000.dat"),
    ];
    for (name, options, bytes, expected, kept) in cases {
        let folder = Folder::new();
        folder.write(name, bytes);
        let run = folder.run(&format!("chunk clean in out {options}")).ends(0);
        let found = folder.contents("out").remove(kept).unwrap_or_else(|| panic!("no {kept}: {run:?}"));
        assert_eq!(String::from_utf8_lossy(&found), String::from_utf8_lossy(&expected), "{name}");
        assert!(found == expected, "{name}");
    }
}

#[test]
fn lines_and_files_of_texts_come_back_shorter() {
    let folder = Folder::new();
    let lines = format!("甲。{REPEATED}。\r\n乙。{REPEATED}。丙 \n");
    folder.write("in.txt", &lines);
    folder.run("chunk clean in.txt out --format lines --unit sentence --quiet").ends(0);
    let expected = format!("甲。{REPEATED}。\r\n乙。丙 \n");
    assert_eq!(folder.bytes("out/kept", "txt"), expected.as_bytes());

    let [one, other] = [format!("{REPEATED}\r\n甲"), format!("乙\r\n{REPEATED}\r\n丙")];
    folder.write("tree/A/1.txt", GB18030.encode(&one).0);
    folder.write("tree/B/2.txt", GB18030.encode(&other).0);
    folder.write("tree/B/3.txt", format!("\u{feff}{REPEATED}\n丁"));
    folder.write("tree/C/4.txt", format!("\u{feff}{REPEATED}\n"));
    folder.run("chunk clean tree whole --quiet").ends(0);
    let found = folder.contents("whole/kept");
    assert_eq!(found.keys().collect::<Vec<_>>(), ["A/1.txt", "B/2.txt", "B/3.txt"]);
    assert_eq!(GB18030.decode(&found["A/1.txt"]).0, one);
    assert_eq!(GB18030.decode(&found["B/2.txt"]).0, "乙\r\n丙");
    assert_eq!(found["B/3.txt"], "\u{feff}丁".as_bytes());
    assert_eq!(folder.contents("whole/removed")["C/4.txt"], format!("\u{feff}{REPEATED}\n").as_bytes());
    let reasons = folder.objects("whole/removed/_reasons", "jsonl");
    assert_eq!((&reasons[0]["reason"], &reasons[0]["duplicate_of"]), (&json!("repeated"), &json!("A/1.txt")));
}

#[test]
fn packed_texts_come_back_shorter() {
    let folder = Folder::new();
    let texts = texts(80, 23);
    for (id, text) in &texts {
        folder.write(&format!("in/{id}"), text);
    }
    // The files are read in the order of their names.
    let mut ordered = texts;
    ordered.sort();
    let expected = naive(&ordered, "line", "first", 5, 2);
    let containers =
        ["parquet", "parquet --bytes", "sequencefile", "sequencefile --bytes", "sequencefile --codec snappy"];
    for to in containers {
        folder.run(&format!("pack in packed --to {to} --overwrite --quiet")).ends(0);
        folder.run("chunk clean packed/packed out --min-chars 5 --overwrite --quiet").ends(0);
        folder.run("unpack out/kept back --overwrite --quiet").ends(0);
        let back = folder.contents("back/unpacked");
        let kept = back.into_iter().map(|(id, text)| (id, String::from_utf8(text).unwrap()));
        assert_eq!(kept.collect::<Vec<_>>(), expected.kept, "{to}");
        assert_eq!(folder.table("out/spans"), expected.spans, "{to}");
    }
}

#[test]
fn the_ledger_closes_with_rejects_and_documents_of_which_nothing_is_left() {
    let folder = Folder::new();
    let line = |id: &str, text: &str| json!({"id": id, "text": text}).to_string() + "\n";
    let whole = format!("{REPEATED}\n \n");
    let lines = line("a", &format!("{REPEATED}\n甲"))
        + "no json\n"
        + &line("b", &whole)
        + &line("c", "")
        + &line("d", "丁");
    folder.write("in.jsonl", lines);
    let run = folder.run("chunk clean in.jsonl out --summary-json s.json").ends(3);
    assert!(run.stderr.contains("Removed, as nothing would be left=1"), "{}", run.stderr);
    let counted =
        ["records_read", "kept", "removed", "rejected", "cut"].map(|name| folder.counter("out", name));
    assert_eq!(counted, [5, 3, 1, 1, 0]);
    let removed = folder.objects("out/removed", "jsonl");
    let expected = json!({"id": "b", "text": whole, "duplicate_of": "a", "similarity": null, "cluster": "a", "reason": "repeated"});
    assert_eq!(removed, [expected]);
    assert!(folder.objects("out/rejects", "jsonl")[0]["reason"].as_str().unwrap().starts_with("line 2: "));
    assert_eq!(folder.bytes("s.json", ""), folder.bytes("out/_SUCCESS", ""));
    folder.run("check out --full").ends(0);
    folder.run("chunk clean in.jsonl none --max-rejects 0").fails(4, &["--max-rejects 0", "line 2"]);
    assert!(!folder.path("none/_SUCCESS").exists());

    folder.write("same.jsonl", line("a", REPEATED).repeat(3));
    folder.run("chunk clean same.jsonl all --keep none --quiet").ends(0);
    assert_eq!(["kept", "removed"].map(|name| folder.counter("all", name)), [0, 3]);
    assert_eq!(folder.contents("all/kept")["part-00000.jsonl"], b"");
}

#[test]
fn wrong_use_is_refused_before_anything_is_written() {
    let folder = Folder::new();
    folder.write("in/a.jsonl", "{\"text\":\"a\"}\n");
    folder.write("in/b.docx", b"PK\x03\x04");
    folder.run("chunk clean in out").fails(2, &["b.docx", "office"]);
    folder.run("chunk clean in/a.jsonl out --unit word").code.filter(|&code| code == 2).unwrap();
    folder.run("chunk clean in/a.jsonl out --min-repeats 1").code.filter(|&code| code == 2).unwrap();
    folder.run("chunk clean in/a.jsonl out --text-field body").fails(2, &["body"]);
    folder.run("chunk clean in/a.jsonl in --overwrite").fails(2, &["lies in the output"]);
    assert!(!folder.path("out/_SUCCESS").exists());
}

#[test]
fn an_output_is_replaced_only_if_asked_and_a_killed_run_is_in_nobodys_way() {
    let folder = Folder::new();
    write_jsonl(&folder, "in.jsonl", &texts(4000, 9));
    let line = "chunk clean in.jsonl out --unit sentence --min-chars 3 --quiet";
    folder.run(line).ends(0);
    let whole = folder.output("out");
    folder.run(line).fails(2, &["--overwrite"]);
    for wait_ms in [5, 50, 150, 300] {
        let mut killed = folder.command(&line.replace("out", "killed")).spawn().unwrap();
        thread::sleep(Duration::from_millis(wait_ms));
        // It may have ended.
        let _ = killed.kill();
        killed.wait().unwrap();
        if !folder.path("killed/_SUCCESS").exists() {
            let again = folder.run(&line.replace("out", "killed"));
            // A run that was killed during its commit is finished by the next one, which then finds an output.
            assert!(again.code == Some(0) || again.stderr.contains("--overwrite"), "{again:?}");
        }
        // A run that was killed behind its last step, `_SUCCESS`, has not cleared its own folder, which is hidden and in nobody's way.
        let left = folder.path("killed/_temporary");
        if left.exists() {
            std::fs::remove_dir_all(left).unwrap();
        }
        assert!(folder.output("killed") == whole, "{wait_ms}");
        std::fs::remove_dir_all(folder.path("killed")).unwrap();
    }
    folder.run(&format!("{line} --overwrite")).ends(0);
    assert!(folder.output("out") == whole);
}
