//! Tests of what has once lost documents, hung or lied: each has a name that says what must not happen.

use std::fs;

use super::ledger::{export, is_sound};
use crate::corpus::json_lines;
use crate::support::{Folder, Random, run};

const NIGHT: &str = "nightly --progress none --workers 2 --state state";

/// Writes a file of documents of one text each, which are not alike.
fn apart(here: &Folder, name: &str, count: usize) {
    let mut random = Random(7);
    let docs: Vec<_> = (0..count).map(|number| (format!("{name}{number}"), random.text(40))).collect();
    here.write(&format!("{name}.jsonl"), json_lines(docs));
}

/// Exchanges wait for those who are behind, so a worker must not wait in one while another one fills.
#[test]
fn workers_do_not_wait_for_each_other_when_pairs_are_many() {
    let here = Folder::new();
    let text = "尊敬的客户您好，您的本月账单已经出来了，请及时登录查看并按时还款，感谢您的支持与信任，编号";
    let docs = |name: &str, count: usize| {
        json_lines((0..count).map(|number| (format!("{name}{number}"), format!("{text}{name}{number}"))))
    };
    here.write("first.jsonl", docs("a", 1000));
    here.write("second.jsonl", docs("b", 3));
    let night = format!("{NIGHT} --method auto:templates=same");
    here.run(&format!("{night} --output first first.jsonl")).ends(0);
    here.run(&format!("{night} --output second second.jsonl")).ends(0);
    assert_eq!((here.counter("first", "kept"), here.counter("second", "removed")), (1, 3));
}

#[test]
fn a_state_that_was_copied_in_part_is_not_taken_for_a_new_one() {
    let here = Folder::new();
    apart(&here, "first", 3);
    apart(&here, "second", 3);
    here.run(&format!("{NIGHT} --output first first.jsonl")).ends(0);
    here.run(&format!("{NIGHT} --output second second.jsonl")).ends(0);
    let before = export(&here, "state");
    let whole = here.contents("state");
    for missing in ["versions/00000002.json", "versions"] {
        fs::remove_dir_all(here.path("state")).unwrap();
        let kept = whole.iter().filter(|(name, _)| !name.starts_with(missing));
        kept.for_each(|(name, bytes)| here.write(&format!("state/{name}"), bytes));
        let cut = here.contents("state");
        here.run(&format!("{NIGHT} --output third first.jsonl"))
            .fails(2, &["incomplete", "version 2", "--repair"]);
        assert!(here.contents("state") == cut, "{missing}");
        here.run("nightly check --state state").ends(if missing == "versions" { 2 } else { 1 });
    }
    here.write("state/versions/00000001.json", &whole["versions/00000001.json"]);
    here.run("nightly check --state state --repair").ends(0);
    assert_eq!(export(&here, "state"), before);
    is_sound(&here, "state");
}

#[test]
fn files_that_come_late_to_a_partition_are_named() {
    let here = Folder::new();
    apart(&here, "crawl/dt=1/first", 3);
    here.write("crawl/dt=1/_SUCCESS", "");
    let since = format!("{NIGHT} --since last --output clean crawl");
    here.run(&since).ends(0);
    let run = here.run(&since).ends(0);
    assert!(!run.stderr.contains("changed"), "{run:?}");
    apart(&here, "crawl/dt=1/late", 3);
    let run = here.run(&since).ends(0);
    assert!(run.stderr.contains("crawl/dt=1\" have changed since its night"), "{run:?}");
}

#[test]
fn a_guard_counts_the_earlier_documents_that_a_night_removes() {
    let here = Folder::new();
    apart(&here, "first", 4);
    let newest = format!("{NIGHT} --policy newest");
    here.run(&format!("{newest} --output first first.jsonl")).ends(0);
    let again = format!("{newest} --output second --max-removed 40% first.jsonl");
    here.run(&again).fails(4, &["0 of 4 documents and 4 of earlier nights"]);
    here.run(&again.replace("40%", "50%")).ends(0);
}

#[test]
fn an_export_replaces_no_file_unasked_and_none_of_the_state() {
    let here = Folder::new();
    apart(&here, "first", 2);
    here.run(&format!("{NIGHT} --output first first.jsonl")).ends(0);
    for target in ["state/versions/00000001.json", "state/new.parquet"] {
        here.run(&format!("nightly export --state state {target} --overwrite"))
            .fails(2, &["lies in the state"]);
    }
    here.write("there", "mine");
    here.run("nightly export --state state there").fails(2, &["exists", "--overwrite"]);
    assert_eq!(fs::read(here.path("there")).unwrap(), b"mine");
    is_sound(&here, "state");
}

#[test]
fn a_compaction_removes_earlier_versions_only_for_what_it_erases() {
    let here = Folder::new();
    apart(&here, "first", 3);
    here.write("ids.txt", "first1");
    here.run(&format!("{NIGHT} --output first first.jsonl")).ends(0);
    here.run(&format!("{NIGHT} --output gone --retract ids.txt")).ends(0);
    let compact = "nightly compact --state state --quiet";
    here.run(compact).ends(0);
    for night in ["second", "third"] {
        apart(&here, night, 2);
        here.run(&format!("{NIGHT} --output {night} {night}.jsonl")).ends(0);
    }
    here.run(compact).ends(0);
    here.run("nightly rollback --state state --to second").ends(0);
    here.run("nightly rollback --state state --to first").fails(2, &["no longer kept", "second"]);
    is_sound(&here, "state");
}

#[test]
fn a_night_whose_output_another_run_has_replaced_is_not_called_done() {
    let here = Folder::new();
    apart(&here, "first", 2);
    let night = format!("{NIGHT} --output first first.jsonl");
    here.run(&night).ends(0);
    here.run("dedup --quiet first.jsonl first --overwrite").ends(0);
    here.run(&night).fails(2, &["is gone or of another run", "roll back"]);
}

#[test]
fn a_reference_without_documents_is_named() {
    let here = Folder::new();
    apart(&here, "first", 2);
    here.write("empty.jsonl", "");
    let run = here.run("dedup --progress none --against empty.jsonl first.jsonl clean").ends(0);
    assert!(run.stderr.contains("the reference has no document"), "{run:?}");
}

/// A night whose commit was decided is finished as it was asked for; any other begins anew.
#[test]
fn a_killed_night_is_not_gone_on_with_under_other_options() {
    let here = Folder::new();
    let line = |number: usize| {
        format!("{{\"id\":\"{number}\",\"text\":\"第{}种\",\"other\":\"文{number}\"}}\n", number % 4)
    };
    here.write("docs.jsonl", (0..40).map(line).collect::<String>());
    let night = "nightly --quiet --workers 1 --method exact --state state --output out docs.jsonl";
    for step in ["write", "rename"] {
        for number in 1.. {
            let other = format!("{night} --text-field other");
            let killed = run(here.command(&other).env("DEDUP_FAULT", format!("0 {step} {number} kill")));
            here.run(night).ends(0);
            let field = here.success("out")["configuration"]["text-field"].clone();
            let kept = here.counter("out", "kept");
            assert_eq!(kept, if field == "other" { 40 } else { 4 }, "{step} {number}");
            ["state", "out"].iter().for_each(|folder| fs::remove_dir_all(here.path(folder)).unwrap());
            if killed.code.is_some() {
                assert!(number > 3, "{killed:?}");
                break;
            }
        }
    }
}
