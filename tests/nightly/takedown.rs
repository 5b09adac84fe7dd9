//! Tests of what users are told of documents that are withdrawn, and that come back.

use std::fs;

use super::ledger::{export, is_sound};
use crate::corpus::json_lines;
use crate::support::Folder;

const NIGHT: &str = "nightly --progress none --workers 1 --state state";

/// Makes a state of two nights, of which the second withdraws `a` and gives back `b`.
fn after_a_takedown() -> Folder {
    let here = Folder::new();
    here.write("first.jsonl", json_lines([("a", "同一个句子"), ("b", "同一个句子"), ("c", "另一个")]));
    here.write("ids.txt", "a\r\n\r\n   \n");
    here.run(&format!("{NIGHT} --output first first.jsonl")).ends(0);
    let run = here.run(&format!("{NIGHT} --output takedown --retract ids.txt")).ends(0);
    assert!(
        run.stderr.contains("Documents withdrawn=1") && run.stderr.contains("Decisions corrected=1"),
        "{run:?}"
    );
    assert_eq!(here.success("takedown")["counters"]["night"]["corrections"], 1);
    here
}

#[test]
fn a_rollback_names_the_nights_and_withdrawals_that_it_undoes() {
    let here = after_a_takedown();
    let run = here.run("nightly rollback --state state --to first").ends(0);
    assert!(run.stderr.contains("without \"takedown\", whose 1 withdrawn documents are back"), "{run:?}");
    let history = fs::read_to_string(here.path("state/history.jsonl")).unwrap();
    let made_by = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["made_by"].clone();
    assert_eq!(history.lines().map(made_by).collect::<Vec<_>>(), ["first", "takedown", "rollback to first"]);
}

/// A takedown is urgent, and whoever makes it need not know how the state was made.
#[test]
fn the_state_answers_for_options_that_are_not_given() {
    let here = Folder::new();
    here.write("first.jsonl", json_lines([("a", "同一个句子"), ("b", "同一个句子")]));
    here.write("ids.txt", "b");
    let options = "--method simhash:features=char:2 --verify jaccard:0.9 --policy newest";
    here.run(&format!("{NIGHT} --output first {options} first.jsonl")).ends(0);
    here.run(&format!("{NIGHT} --output takedown --retract ids.txt")).ends(0);
    let configuration = &here.success("takedown")["configuration"];
    assert_eq!(
        (&configuration["policy"], &configuration["verify"]),
        (&"newest".into(), &"jaccard:0.9".into())
    );
    let policy = format!("{NIGHT} --output other --policy longest --retract ids.txt");
    here.run(&policy).fails(2, &["--policy", "newest", "longest"]);
}

#[test]
fn an_id_that_comes_back_after_its_takedown_is_named() {
    let here = after_a_takedown();
    let again = format!("{NIGHT} --output takedown --retract ids.txt");
    let run = here.run(&again).ends(0);
    assert!(run.stderr.contains("nothing was done"), "{run:?}");
    here.write("again.jsonl", json_lines([("a", "同一个句子")]));
    here.run(&format!("{NIGHT} --output again again.jsonl")).ends(0);
    here.run(&again).fails(2, &["\"takedown\"", "1 of its ids", "--night"]);
    here.run(&format!("{NIGHT} --output takedown-2 --retract ids.txt")).ends(0);
    let run = here.run("nightly stats --state state").ends(0);
    assert!(run.stdout.contains("4 documents of 4 nights, 2 of them withdrawn"), "{run:?}");
    let run = here.run("nightly check --state state --erased ids.txt").ends(1);
    assert!(run.stdout.contains("still has the id \"a\"") && run.stdout.contains("compact"), "{run:?}");
    here.run("nightly compact --state state").ends(0);
    here.run("nightly check --state state --erased ids.txt").ends(0);
}

/// Returns whether a file of the state has these words in it, as texts and ids are stored.
fn holds(here: &Folder, words: &str) -> bool {
    let files = here.contents("state");
    files.values().any(|bytes| bytes.windows(words.len()).any(|window| window == words.as_bytes()))
}

#[test]
fn the_documents_of_a_night_that_is_rolled_back_are_gone() {
    let here = Folder::new();
    here.write("first.jsonl", json_lines([("stays", "第一个句子")]));
    here.write("second.jsonl", json_lines([("leaves", "独一无二的秘密")]));
    here.write("ids.txt", "leaves");
    here.run(&format!("{NIGHT} --output first first.jsonl")).ends(0);
    here.run(&format!("{NIGHT} --output second second.jsonl")).ends(0);
    assert!(holds(&here, "leaves"));
    here.run("nightly rollback --state state --to first").ends(0);
    here.run("nightly check --state state --erased ids.txt").ends(0);
    assert!(!holds(&here, "leaves") && holds(&here, "stays"));
    here.run(&format!("{NIGHT} --output third second.jsonl")).ends(0);
    here.run("nightly rollback --state state --to first").ends(0);
    is_sound(&here, "state");
}

/// The version after a compaction that erases is the one after the last night before it.
#[test]
fn a_rollback_leads_to_the_version_that_a_compaction_has_made() {
    let here = after_a_takedown();
    here.run("nightly compact --state state").ends(0);
    here.write("third.jsonl", json_lines([("d", "还有一个")]));
    let compacted = export(&here, "state");
    here.run(&format!("{NIGHT} --output third third.jsonl")).ends(0);
    here.run("nightly rollback --state state --to first").fails(2, &["no longer kept", ": takedown, third"]);
    here.run("nightly rollback --state state --to takedown").ends(0);
    assert_eq!(export(&here, "state"), compacted);
    is_sound(&here, "state");
}

#[test]
fn ids_of_white_space_or_with_a_carriage_return_are_withdrawn_byte_for_byte() {
    let here = Folder::new();
    let ids = ["  ", "x\r", "x", "y"];
    let docs = ids.iter().zip(["甲乙丙丁", "戊己庚辛", "子丑寅卯", "辰巳午未"]).map(|(id, text)| (*id, text));
    here.write("first.jsonl", json_lines(docs).replace('\r', "\\r"));
    here.run(&format!("{NIGHT} --output first first.jsonl")).ends(0);
    let mut left = vec!["  ", "x\r", "x", "y"];
    // A CR belongs to the id if there is such an id, and else to the line break.
    for (night, list, gone) in
        [("a", "  \n\r\n\n", "  "), ("b", "x\r\n", "x\r"), ("c", "x\r\n", "x"), ("d", "y\r\n", "y")]
    {
        here.write("ids.txt", list);
        here.run(&format!("{NIGHT} --output {night} --retract ids.txt")).ends(0);
        left.retain(|id| *id != gone);
        let kept: Vec<_> = export(&here, "state").into_iter().map(|doc| doc.id).collect();
        assert_eq!(kept, left, "{night}");
    }
    here.run("nightly compact --state state").ends(0);
    here.write("ids.txt", ids.join("\n"));
    here.run("nightly check --state state --erased ids.txt").ends(0);
}
