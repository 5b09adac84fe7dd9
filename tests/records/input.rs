//! Tests that the program reads what it has planned, however files change meanwhile, and that only identical
//! texts are called identical.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use flate2::write::GzEncoder;

use crate::faults::Whole;
use crate::support::{Folder, Run, run, signal};

const DEDUP: &str = "dedup in out --workers 1 -q --format jsonl --split-size 8K";

/// Writes two files of equal length, whatever the letter. Each text is there twice.
fn corpus(here: &Folder, letter: char) {
    for file in 0..2 {
        here.write(&format!("in/{file}.jsonl"), lines(file, letter));
    }
}

fn lines(file: usize, letter: char) -> String {
    let line = |i: usize| {
        let text = format!("{letter}{:03} a line about nothing, and {:05}", i / 2, i / 2 * 7919);
        format!("{{\"id\": \"{letter}{file}-{i:03}\", \"text\": \"{text}\"}}\n")
    };
    (0..300).map(|i| line(i + 600 * file)).collect()
}

/// Way in which the content of a file changes.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Another file gets its name and its time.
    Replaced,
    /// Its bytes are overwritten, and its time is set back.
    WrittenOver,
}

fn change(here: &Folder, how: Change) {
    let path = here.path("in/1.jsonl");
    let before = fs::metadata(&path).unwrap();
    let new = lines(1, 'n');
    assert_eq!(before.len(), new.len() as u64);
    match how {
        Change::Replaced => {
            here.write("new", &new);
            File::options()
                .append(true)
                .open(here.path("new"))
                .unwrap()
                .set_modified(before.modified().unwrap())
                .unwrap();
            fs::rename(here.path("new"), &path).unwrap();
        }
        Change::WrittenOver => {
            fs::write(&path, &new).unwrap();
            File::options()
                .append(true)
                .open(&path)
                .unwrap()
                .set_modified(before.modified().unwrap())
                .unwrap();
            assert_eq!(fs::metadata(&path).unwrap().ino(), before.ino());
        }
    }
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before.modified().unwrap());
}

/// Waits until the job has stopped itself; false if it has ended instead.
fn stops(job: &mut Child) -> bool {
    loop {
        if job.try_wait().unwrap().is_some() {
            return false;
        }
        let stat = fs::read_to_string(format!("/proc/{}/stat", job.id())).unwrap_or_default();
        if stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T')) {
            return true;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the ids of the second file that were kept.
fn kept(here: &Folder) -> Vec<String> {
    let ids =
        here.objects("out/kept", ".jsonl").into_iter().map(|row| row["id"].as_str().unwrap().to_owned());
    ids.filter(|id| id[1..].starts_with('1')).collect()
}

/// Returns the warnings of a run.
fn warnings(run: &Run) -> Vec<&str> {
    run.stderr.lines().filter(|line| line.starts_with("warning: ")).collect()
}

/// Returns the id of the first document of each text.
fn expected(letter: char) -> Vec<String> {
    (600..900).step_by(2).map(|i| format!("{letter}1-{i:03}")).collect()
}

/// Runs a job that is disturbed at its `count`th file. Returns its result; `None` if it ended before that
/// file.
fn disturbed(here: &Folder, method: &str, count: usize, how: Change) -> Option<Run> {
    let mut command = here.command(&format!("{DEDUP} --method {method}"));
    command
        .env("DEDUP_FAULT", format!("0 create {count} stop"))
        .stderr(Stdio::piped())
        .stdout(Stdio::piped());
    let mut job = command.spawn().unwrap();
    if !stops(&mut job) {
        return None;
    }
    change(here, how);
    signal(job.id(), "CONT");
    let output = job.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Some(Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) })
}

#[test]
fn a_file_that_changes_while_the_job_runs_is_never_written_unseen() {
    // The jobs wait most of the time, so they run beside each other.
    thread::scope(|scope| {
        for (method, how) in [
            ("exact", Change::Replaced),
            ("exact", Change::WrittenOver),
            ("auto", Change::WrittenOver),
            ("simhash:features=char:3", Change::Replaced),
        ] {
            scope.spawn(move || a_changed_file_is_seen(method, how));
        }
    });
}

/// Changes a file at each moment at which the job makes a file.
fn a_changed_file_is_seen(method: &str, how: Change) {
    let (mut count, mut refused) = (1, 0);
    loop {
        let here = Folder::new();
        corpus(&here, 'o');
        let Some(run) = disturbed(&here, method, count, how) else { break };
        if run.code == Some(0) {
            // The file was read wholly before the change, or wholly after it.
            let kept = kept(&here);
            assert!(kept == expected('o') || kept == expected('n'), "{method} {how:?} {count}: {kept:?}");
        } else {
            run.fails(1, &["in/1.jsonl", "changed while the job ran"]);
            assert!(!here.path("out/_SUCCESS").exists());
            refused += 1;
        }
        count += 1;
    }
    assert!(refused >= 3, "{method} {how:?}: {refused} of {count}");
}

#[test]
fn what_a_killed_run_has_read_is_compared_with_what_the_next_one_reads() {
    const THREADS: usize = 4;
    let refused = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 1..=THREADS {
            let refused = &refused;
            scope.spawn(move || {
                let mut counts = (thread..).step_by(THREADS);
                while counts.next().is_some_and(|count| killed_at(count, refused)) {}
            });
        }
    });
    let refused = refused.into_inner();
    assert!(refused >= 3, "{refused}");
}

/// Kills a run when it makes a file for the `count`th time, changes an input, and runs the job again. Returns whether the run
/// came so far. `refused`: counts the runs that have refused the changed file.
fn killed_at(count: usize, refused: &AtomicUsize) -> bool {
    let here = Folder::new();
    corpus(&here, 'o');
    // A run that finds a lock without its owner looks at it for a while.
    let job = || {
        let mut command = here.command(&format!("{DEDUP} --method exact"));
        command.env("DEDUP_FAULT_LOOK_MS", "1");
        command
    };
    let mut killed = job();
    killed.env("DEDUP_FAULT", format!("0 create {count} kill")).stderr(Stdio::null());
    if killed.status().unwrap().success() {
        return false;
    }
    change(&here, Change::WrittenOver);
    let next = run(&mut job());
    if next.code == Some(0) {
        assert_eq!(kept(&here), expected('n'), "{count}");
        return true;
    }
    next.fails(1, &["in/1.jsonl", "changed while the job ran"]);
    assert!(!here.path("out/_SUCCESS").exists());
    refused.fetch_add(1, Ordering::Relaxed);
    // What was left of the old contents is not used.
    run(&mut job()).ends(0);
    assert_eq!(kept(&here), expected('n'), "{count}");
    true
}

#[test]
fn a_parent_folder_behind_a_pattern_is_refused() {
    let here = Folder::new();
    here.write("d/sub/a.txt", "one");
    here.write("escape/f.txt", "two");
    here.run("dedup d/*/../../esc*/f.txt out").fails(2, &["behind a pattern"]);
    here.run("dedup {d,x/../escape}/f.txt out").fails(2, &["\"..\""]);
    assert!(!here.path("out").exists());
    here.run("dedup d/../esc*/f.txt out -q").ends(0);
    assert_eq!(here.files("out/kept"), [here.path("out/kept/escape/f.txt")]);
}

/// Returns two texts with the same XXH3 hash, as in `operators/src/record/hash.rs`.
fn of_one_xxh3() -> [String; 2] {
    let text = |first: u8, second: u8| {
        let mut bytes = vec![b'a'; 300];
        bytes[16..25].copy_from_slice(b"ab\0\xf1\x83\x90\x97\xdb\x80");
        bytes[80..88].copy_from_slice(b"ab\0\xe5\xb7\xb3\x67\x1f");
        (bytes[18], bytes[82]) = (first, second);
        String::from_utf8(bytes).unwrap()
    };
    [text(b'b', b'c'), text(b'c', b'b')]
}

#[test]
fn texts_that_were_made_to_have_one_hash_are_both_kept() {
    let here = Folder::new();
    let line = |text: &String| serde_json::json!({ "text": text }).to_string() + "\n";
    let [one, other] = of_one_xxh3();
    here.write("in.jsonl", [&one, &other, &one].map(line).concat());
    for method in ["exact:clean=none", "jaccard:1,features=char:5,clean=none", "minhash:jaccard=1,clean=none"]
    {
        here.run(&format!("dedup in.jsonl out -q --overwrite --method {method}")).ends(0);
        let kept = here.objects("out/kept", ".jsonl");
        let texts: Vec<_> = kept.iter().map(|row| row["text"].as_str().unwrap()).collect();
        assert_eq!(texts, [&one, &other], "{method}");
    }
}

#[test]
fn an_output_inside_of_the_input_is_no_corpus() {
    let here = Folder::new();
    corpus(&here, 'o');
    let first = "dedup in in/old/out --workers 1 -q --method exact";
    here.run(first).ends(0);
    let before = here.files("in/old/out").len();
    let run = here.run("dedup in out --workers 1 --method exact").ends(0);
    assert!(run.stderr.contains("/in/old/out/\" is an output of this program"), "{run:?}");
    let rows = |folder: &str| here.objects(folder, ".jsonl").len();
    assert_eq!((rows("out/kept"), rows("out/removed")), (300, 300));
    assert_eq!(here.files("in/old/out").len(), before);
    // An output that is named itself is read, and so is one of Spark or any other program.
    here.run("dedup in/old/out/kept again --workers 1 -q --method exact").ends(0);
    here.run("dedup in/old/*/kept once-more --workers 1 -q --method exact").ends(0);
    here.write("spark/out/kept/part.jsonl", lines(0, 'o'));
    here.write("spark/out/_SUCCESS", "");
    let run = here.run("dedup spark other --workers 1 --method exact").ends(0);
    assert_eq!(warnings(&run), [""; 0]);
}

/// A run that is killed during its commit shows a part of its output, here in the folder that it reads.
#[test]
fn a_killed_run_goes_on_where_its_output_lies_in_its_input() {
    let here = Folder::new();
    let dedup = "dedup in in/sub/out --workers 1 -q --method exact --split-size 8K";
    corpus(&here, 'o');
    here.run(dedup).ends(0);
    let whole = Whole::read(&here.path("in/sub/out")).unwrap();
    fs::remove_dir_all(here.path("in/sub")).unwrap();
    let mut seen_in_part = 0;
    let points = [("create", 1), ("create", 9), ("write", 5), ("settle", 2), ("settle", 4)];
    for (point, count) in points.into_iter().chain((1..=8).map(|count| ("rename", count))) {
        let mut command = here.command(dedup);
        command.env("DEDUP_FAULT", format!("0 {point} {count} kill"));
        assert_eq!(run(&mut command).code, None, "not killed at {point} {count}");
        let parts = here
            .files("in/sub/out")
            .into_iter()
            .filter(|file| !file.to_str().unwrap().contains("/_temporary"));
        seen_in_part += u32::from(parts.count() > 0 && !here.path("in/sub/out/_SUCCESS").exists());
        // Another job does not take the visible part for a part of the corpus.
        here.run("dedup in other --workers 1 -q --method exact --overwrite").ends(0);
        assert_eq!(here.counter("other", "records_read"), 600, "{point} {count}");
        let again = here.run(dedup);
        let done = again.code == Some(2) && again.stderr.contains("exists");
        assert!(again.code == Some(0) || done, "{point} {count}: {again:?}");
        assert!(Whole::read(&here.path("in/sub/out")).unwrap() == whole, "{point} {count}: another output");
        fs::remove_dir_all(here.path("in/sub")).unwrap();
    }
    assert!(seen_in_part >= 2, "{seen_in_part}");
}

#[test]
fn an_output_of_very_many_files_is_no_corpus_either() {
    let here = Folder::new();
    corpus(&here, 'o');
    here.run("dedup in in/old/out --workers 1 -q --method exact").ends(0);
    let success = fs::read_to_string(here.path("in/old/out/_SUCCESS")).unwrap();
    let (head, list) = success.split_once("\"files\": {").unwrap();
    let file = format!("\"kept/{}\": {{\"bytes\": 1}},\n", "x".repeat(1 << 16));
    here.write("in/old/out/_SUCCESS", format!("{head}\"files\": {{\n{}{list}", file.repeat(1100)));
    let run = here.run("dedup in out --workers 1 --method exact").ends(0);
    assert!(run.stderr.contains("/in/old/out/\" is an output of this program"), "{run:?}");
    // A `_SUCCESS` that cannot be read is an error.
    fs::remove_file(here.path("in/old/out/_SUCCESS")).unwrap();
    fs::create_dir(here.path("in/old/out/_SUCCESS")).unwrap();
    here.run("dedup in other --workers 1 -q --method exact").fails(1, &["in/old/out/_SUCCESS"]);
}

#[test]
fn what_is_no_file_is_refused_where_it_is_named_and_passed_over_with_a_word_in_a_folder() {
    let here = Folder::new();
    corpus(&here, 'o');
    let _socket = UnixListener::bind(here.path("in/socket")).unwrap();
    assert!(Command::new("mkfifo").arg(here.path("in/pipe")).status().unwrap().success());
    here.write("in/empty.jsonl", "");
    for input in ["in", "in/*"] {
        let run = here.run(&format!("dedup {input} out --workers 1 --method exact --overwrite")).ends(0);
        let words = warnings(&run);
        assert!(words.len() == 2 && words[0].contains("in/pipe\" is a FIFO"), "{words:?}");
        assert!(words[1].contains("in/socket\" is a socket"), "{words:?}");
        assert_eq!(here.counter("out", "records_read"), 600);
    }
    // Files that no pattern matches cause no warning.
    assert_eq!(warnings(&here.run("dedup in/*.jsonl other --method exact").ends(0)), [""; 0]);
    // Who wants only errors sees none of them.
    assert_eq!(here.run("dedup in silent -q --method exact").ends(0).stderr, "");
    here.run("dedup in/0.jsonl,in/pipe new -q").fails(2, &["\"in/pipe\"", "a FIFO"]);
    assert_eq!(warnings(&here.run("dedup /dev/null of-nothing").ends(0)), [""; 0]);
    fs::remove_file(here.path("in/socket")).unwrap();
    here.write("only/x", "");
    fs::rename(here.path("in/pipe"), here.path("only/x")).unwrap();
    here.run("dedup only new -q").fails(2, &["no files in it but", "only/x\", which is a FIFO"]);
}

#[test]
fn what_is_no_input_costs_nothing_and_is_said_once_for_each_kind() {
    let here = Folder::new();
    let line = |id: &str| format!("{{\"id\":\"{id}\",\"text\":\"第{id}篇\"}}\n");
    for name in ["day=1/a.jsonl", "_day=2/b.jsonl", "c.jsonl._COPYING_", "d.jsonl._COPYING_", ".e.jsonl"] {
        here.write(&format!("in/{name}"), line(name));
    }
    // A reducer that had nothing to write leaves an empty part, and some tools fill a block with zeros behind a gzip file.
    here.write("in/part-00001", "");
    let mut gzip = GzEncoder::new(Vec::new(), Default::default());
    gzip.write_all(line("f").as_bytes()).unwrap();
    let mut gzip = gzip.finish().unwrap();
    gzip.resize(4096, 0);
    fs::write(here.path("in/f.jsonl.gz"), gzip).unwrap();
    let run = here.run("dedup in out --method exact --events events").ends(0);
    assert_eq!((here.counter("out", "kept"), here.counter("out", "rejected")), (3, 0));
    let words = warnings(&run);
    assert!(words.len() == 2, "{words:?}");
    assert!(words[0].contains("c.jsonl._COPYING_\" is a file that is still being copied"), "{words:?}");
    assert!(words[0].ends_with("with 1 more of its kind"), "{words:?}");
    assert!(words[1].contains(".e.jsonl\" is hidden"), "{words:?}");
    // They were said while the input was planned, and are the first events of the job all the same.
    let events = fs::read_to_string(here.path("events")).unwrap();
    let kinds =
        events.lines().map(|line| line.split("\"event\":\"").nth(1).unwrap().split('"').next().unwrap());
    assert_eq!(kinds.take(3).collect::<Vec<_>>(), ["job_started", "warning", "warning"], "{events}");
}

#[test]
fn an_output_that_is_not_finished_is_no_input() {
    let here = Folder::new();
    here.write("in/a.jsonl", "{\"text\":\"文章\"}\n");
    here.run("dedup in out --quiet").ends(0);
    // A run that was killed in its commit leaves this.
    here.write("out/_temporary/lock-00000001", "{}");
    here.run("dedup out/kept again --quiet").ends(0);
    fs::remove_file(here.path("out/_SUCCESS")).unwrap();
    for input in ["out", "out/kept", "out/kept/part-00000.jsonl", "out/k*"] {
        here.run(&format!("dedup {input} other --quiet")).fails(2, &["not finished", "run that job again"]);
    }
    assert!(!here.path("other").exists());
}
