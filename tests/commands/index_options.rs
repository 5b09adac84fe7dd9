//! Ids and numbers of all kinds that the tools of an index are given.

use serde_json::{Value, json};

use crate::support::Folder;

/// Ids that a line of a file does not have.
const ODD_IDS: [&str; 12] =
    ["", " ", "\t", "\r", "\n", "a\r", "a\nb", " a ", "\u{0}", "a\u{1b}[2Jb", "\u{2028}", "{\"id\":\"x\"}"];

fn lines(ids: &[&str]) -> String {
    ids.iter()
        .enumerate()
        .map(|(n, id)| json!({ "id": id, "text": format!("text {n}") }).to_string() + "\n")
        .collect()
}

fn exported(here: &Folder) -> Vec<String> {
    let lines = here.run("--quiet index export ix").ends(0).stdout;
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
    lines.lines().map(id).collect()
}

#[test]
fn any_id_comes_back_as_it_was_and_can_be_deleted() {
    let here = Folder::new();
    here.write("odd.jsonl", lines(&ODD_IDS));
    here.write("plain.jsonl", lines(&["plain"]));
    here.run("--quiet index build ix odd.jsonl plain.jsonl --method exact").ends(0);
    assert_eq!(exported(&here)[..12], ODD_IDS);
    let answers = here.run("--quiet index query ix odd.jsonl").ends(0).stdout;
    for (line, id) in answers.lines().zip(ODD_IDS) {
        let answer: Value = serde_json::from_str(line).unwrap();
        assert_eq!((&answer["id"], &answer["matches"][0]["id"]), (&json!(id), &json!(id)));
    }
    here.write("wrong", "a\n");
    here.run("index delete ix wrong --json").fails(2, &["line 1", "\"id\""]);
    // Answers and exports have the member "id", too.
    here.write("gone", answers);
    here.run("--quiet index delete ix gone --json").ends(0);
    assert_eq!(exported(&here), ["plain"]);
    here.write("gone", "plain\r\n\n");
    here.run("--quiet index delete ix gone").ends(0);
    assert_eq!(exported(&here), [""; 0]);
}

#[test]
fn a_wrong_number_is_one_error_and_a_large_one_is_none() {
    let here = Folder::new();
    here.write("a.jsonl", lines(&["a", "b"]));
    here.run("--quiet index build ix a.jsonl --method simhash").ends(0);
    for (tool, option) in [
        ("query ix a.jsonl", "--limit"),
        ("query ix a.jsonl", "--within"),
        ("query --insert ix a.jsonl", "--wait"),
        ("model ix a.jsonl", "--documents"),
        ("model ix a.jsonl --documents 9", "--disk"),
        ("expire ix", "--older-than"),
    ] {
        for value in ["-1", "NaN", "", "1e3", "18446744073709551616", "1,", "9999999999999999999999d"] {
            let run = here.run(&format!("index {tool} {option}={value}"));
            assert!(
                run.code == Some(2) && run.stderr.lines().count() == 1,
                "{tool} {option}={value}: {run:?}"
            );
            assert!(run.stderr.contains(option), "{run:?}");
        }
        let large = match option {
            "--within" => "4294967295".to_owned(),
            "--older-than" => format!("{}s", u64::MAX),
            "--disk" => format!("{}", u64::MAX >> 1),
            _ => u64::MAX.to_string(),
        };
        here.run(&format!("--quiet index {tool} {option}={large}")).ends(0);
    }
    assert_eq!(exported(&here).len(), 2);
}
