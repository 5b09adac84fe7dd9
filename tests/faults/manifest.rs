//! Tests of the list of files that decides what an output is: what is written is what is seen, and what is
//! checked later.

use std::fs;
use std::os::unix::fs::symlink;

use crate::corpus::{demo, json_lines};
use crate::faults::lock;
use crate::support::{Folder, Random, Run, run, signal, unshare};

/// Writes documents, of which the last `copies` are equal to those before them.
fn corpus(documents: usize, copies: usize) -> Folder {
    let here = Folder::new();
    let mut random = Random(17);
    let texts: Vec<String> = (0..documents - copies).map(|_| random.text(60)).collect();
    let texts = texts.iter().chain(texts.iter().rev().take(copies));
    here.write("in.jsonl", json_lines(texts.enumerate().map(|(id, text)| (format!("d{id}"), text))));
    here
}

/// Runs until the process kills itself before the `count`th line that the program logs as `point`.
fn killed(here: &Folder, line: &str, point: &str, count: usize) {
    let mut command = here.command(line);
    command.env("DEDUP_FAULT", format!("0 {point} {count} kill"));
    assert_eq!(run(&mut command).code, None, "it was not killed at {point} {count}");
}

fn says(run: &Run, code: i32, lines: &[&str]) {
    assert_eq!((run.code, run.stdout.lines().collect::<Vec<_>>()), (Some(code), lines.to_vec()), "{run:?}");
}

#[test]
fn a_finished_output_is_held_against_its_list() {
    let here = corpus(200, 50);
    here.write("in2.jsonl", "{\"id\":\"x\",\"text\":\"另一个文本\"}\n{bad\n");
    here.run("dedup in.jsonl in2.jsonl out --split-size 4K --workers 2 -q").ends(3);
    let success = here.success("out");
    let files = success["files"].as_object().unwrap();
    let sum = |folder: &str| -> u64 {
        let of_folder = files.iter().filter(|(name, _)| name.starts_with(folder));
        of_folder.map(|(_, file)| file["records"].as_u64().unwrap()).sum()
    };
    assert_eq!((sum("kept/"), sum("removed/"), sum("pairs/")), (151, 50, 50));
    assert_eq!((sum("rejects/"), sum("clusters/")), (1, 100));
    says(&here.run("check out"), 0, &[]);
    says(&here.run("check --full out out --workers 3"), 0, &[]);
    assert!(here.run("check out").stderr.contains("as they were written"));

    // The file is changed without changing its length: only reading all files shows that.
    let part = here.files("out/kept").pop().unwrap();
    let name = part.strip_prefix(here.path("out")).unwrap().to_str().unwrap().to_owned();
    let good = fs::read(&part).unwrap();
    let mut bad = good.clone();
    bad[good.len() / 2] ^= 1;
    fs::write(&part, &bad).unwrap();
    says(&here.run("check out"), 0, &[]);
    says(
        &here.run("check --full out"),
        1,
        &[&format!("out: \"{name}\" has other contents than were written")],
    );

    fs::write(&part, &good[1..]).unwrap();
    here.write("out/kept/part-99999.jsonl", "{}\n");
    here.write("out/kept/.hidden", "not listed, and seen by nobody");
    let pairs = here.files("out/pairs").pop().unwrap();
    fs::remove_file(&pairs).unwrap();
    let pairs = pairs.strip_prefix(here.path("out")).unwrap().to_str().unwrap();
    let lines = [
        format!("out: \"{name}\" has {} bytes and not {}", good.len() - 1, good.len()),
        format!("out: \"{pairs}\" is missing"),
        "out: \"kept/part-99999.jsonl\" is there and not listed".to_owned(),
    ];
    says(&here.run("check out"), 1, &lines.each_ref().map(String::as_str));

    here.run("check none").fails(2, &["\"none\" does not exist"]);
    here.run("check .").fails(2, &["_SUCCESS", "no finished output"]);
    here.run("check out/kept").fails(2, &["name the folder above it"]);
    here.write("out/_SUCCESS", "{}");
    here.run("check out").fails(2, &["lists no files"]);
    here.write("out/_SUCCESS", "{\"files\":");
    here.run("check out").fails(1, &["damaged"]);
}

#[test]
fn generated_and_inherited_names_of_parts_do_not_meet() {
    let here = Folder::new();
    let mut random = Random(3);
    let text = random.text(80);
    for name in ["one", "two", "three"] {
        here.write(&format!("files/{name}"), random.text(80));
    }
    here.run("pack files packed --to sequencefile -q").ends(0);
    let packed = here.files("packed/packed").pop().unwrap();
    here.write("in/a.txt", fs::read(packed).unwrap());
    here.write("in/part-00000.txt", &text);
    here.run("dedup in out -q").ends(0);
    assert_eq!(here.counter("out", "kept"), 4);
    assert_eq!(fs::read(here.path("out/kept/part-00000.txt")).unwrap(), text.as_bytes());
    assert!(here.path("out/kept/parts-00000.txt").exists(), "{:?}", here.files("out"));
    says(&here.run("check --full out"), 0, &[]);
}

#[test]
fn a_run_that_goes_on_passes_its_own_guards_first() {
    let here = corpus(600, 300);
    let dedup = "dedup in.jsonl out -q --method exact --workers 1";
    here.run(&format!("{dedup} --summary-json usual.json")).ends(0);
    let usual = here.bytes("out/kept", "");
    fs::remove_dir_all(here.path("out")).unwrap();
    // The first rename decides; the later ones make visible what was decided.
    for count in [2, 3] {
        killed(&here, dedup, "rename", count);
        for guard in ["--max-removed 1%", "--max-cluster 1", "--max-removed-per-source id:0"] {
            here.run(&format!("{dedup} {guard}")).fails(4, &[&guard[..guard.find(' ').unwrap()]]);
            assert!(!here.path("out/_SUCCESS").exists());
        }
        here.run(&format!("{dedup} --max-removed 300")).ends(0);
        assert_eq!(here.bytes("out/kept", ""), usual);
        says(&here.run("check --full out"), 0, &[]);
        fs::remove_dir_all(here.path("out")).unwrap();
    }
    // The run has already passed these guards.
    killed(&here, &format!("{dedup} --max-cluster 2"), "rename", 2);
    let again = here.run("dedup in.jsonl out --method exact --workers 1 --max-cluster 2").ends(0);
    assert!(again.stderr.contains("what an earlier run had decided"), "{again:?}");
    assert_eq!(here.bytes("out/kept", ""), usual);
}

#[test]
fn a_commit_that_was_cut_is_finished_by_whoever_comes_next() {
    let here = corpus(300, 100);
    here.run("dedup in.jsonl out -q --method exact").ends(0);
    let old = here.bytes("out/kept", "");
    // The kill is after the old _SUCCESS was put aside, and before the new one is there.
    killed(&here, "dedup in.jsonl out -q --method exact --keep longest --overwrite --workers 1", "rename", 4);
    assert!(!here.path("out/_SUCCESS").exists());
    // This is another job, which was not asked to replace anything.
    here.run("dedup in.jsonl out -q").fails(2, &["\"out\" exists", "--overwrite"]);
    assert_eq!(here.success("out")["configuration"]["keep"], "longest");
    says(&here.run("check --full out"), 0, &[]);
    assert!(!here.bytes("out/kept", "").is_empty() && !old.is_empty());
    // Nothing has changed before the job is decided.
    killed(&here, "dedup in.jsonl out -q --method exact --overwrite --workers 1", "rename", 1);
    here.run("dedup in.jsonl out -q --method exact").fails(2, &["\"out\" exists", "--overwrite"]);
    assert_eq!(here.success("out")["configuration"]["keep"], "longest");
}

#[test]
fn a_commit_that_cannot_be_finished_is_given_up_where_the_output_may_be_replaced() {
    let here = corpus(300, 100);
    let dedup = "dedup in.jsonl out --method exact --workers 1 --split-size 4K";
    here.run(&format!("{dedup} -q")).ends(0);
    let usual = here.bytes("out/kept", "");
    // The kill is before anything is shown, and in the middle.
    for count in [2, 4] {
        fs::remove_dir_all(here.path("out")).unwrap();
        killed(&here, &format!("{dedup} -q"), "rename", count);
        let lost = here
            .files("out/_temporary")
            .into_iter()
            .find(|file| file.to_str().unwrap().contains("/parts/kept/"));
        fs::remove_file(lost.unwrap()).unwrap();
        for _ in 0..2 {
            here.run(&format!("{dedup} -q")).fails(1, &["/out/_temporary\"", "--overwrite", "is missing"]);
        }
        let run = here.run(&format!("{dedup} --overwrite")).ends(0);
        assert!(run.stderr.contains("is given up"), "{run:?}");
        assert_eq!(here.bytes("out/kept", ""), usual);
        assert!(!here.path("out/_temporary").exists());
        says(&here.run("check --full out"), 0, &[]);
    }
}

#[test]
fn an_owner_that_lost_its_lock_ends_and_leaves_nothing() {
    let here = demo(6000, 1);
    let mut asleep = lock::stopped(&here);
    lock::move_elsewhere(&here);
    here.run(lock::DEDUP).ends(0);
    signal(asleep.id(), "CONT");
    assert_eq!(asleep.wait().unwrap().code(), Some(1));
    let left = here.files("out").into_iter().filter(|file| file.to_str().unwrap().contains("/_temporary/"));
    assert_eq!(left.collect::<Vec<_>>(), [""; 0].map(std::path::PathBuf::from));
    says(&here.run("check --full out"), 0, &[]);
}

/// Files on another file system cannot be moved into the output at the end of the job, so this is found
/// before the work.
#[test]
fn an_output_on_two_file_systems_is_refused_before_the_work() {
    let here = corpus(200, 50);
    let dedup = "dedup in.jsonl out -q --method exact --overwrite";
    here.run(dedup).ends(0);
    let before = here.bytes("out", "");
    here.write("elsewhere/x", "");
    symlink(here.path("elsewhere"), here.path("out/_temporary")).unwrap();
    here.run(dedup).fails(2, &["out/_temporary\"", "is a link", "remove"]);
    fs::remove_file(here.path("out/_temporary")).unwrap();
    for folder in ["_temporary", "kept"] {
        fs::create_dir_all(here.path("out").join(folder)).unwrap();
        let mut command = unshare(&["--mount", "--map-root-user"]);
        let program = here.command("").get_program().to_owned();
        let script = format!("mount -t tmpfs none out/{folder} && exec \"$0\" {dedup}");
        command.args(["sh", "-c", &script]).arg(program).current_dir(here.path(""));
        run(&mut command).fails(2, &[&format!("out/{folder}\""), "another file system", "unmount"]);
    }
    fs::remove_dir(here.path("out/_temporary")).unwrap();
    assert!(here.bytes("out", "") == before, "{:?}", here.files("out"));
    // The output may itself be a link, and so may a folder of an old output.
    fs::rename(here.path("out"), here.path("elsewhere/out")).unwrap();
    symlink(here.path("elsewhere/out"), here.path("out")).unwrap();
    here.run(dedup).ends(0);
    says(&here.run("check --full out"), 0, &[]);
}

#[test]
fn the_root_of_a_file_system_is_no_output_and_folders_above_one_are_made() {
    let here = corpus(200, 50);
    // These are refused whatever the root holds: the input lies below it.
    for root in ["/", "//.", "/tmp/..", "file:///"] {
        here.run(&format!("dedup in.jsonl {root} -q --overwrite"))
            .fails(2, &[&format!("\"{root}\""), "is the root"]);
    }
    here.run("dedup in.jsonl a/b/c -q").ends(0);
    let mut inside = here.command("dedup ../../in.jsonl . -q");
    fs::create_dir_all(here.path("d/e")).unwrap();
    assert_eq!(run(inside.current_dir(here.path("d/e"))).code, Some(0));
    assert_eq!(here.bytes("d/e/kept", ""), here.bytes("a/b/c/kept", ""));
    run(inside.current_dir(here.path("d/e"))).fails(2, &["\".\" exists", "--overwrite"]);
    here.run("dedup in.jsonl in.jsonl/x -q").fails(1, &["in.jsonl/x", "Not a directory"]);
    here.run("dedup in.jsonl . -q --overwrite").fails(2, &["in.jsonl\" lies in the output \".\""]);
}
