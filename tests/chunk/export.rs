//! The texts of a store become a corpus.

use std::collections::BTreeMap;
use std::fs;

use super::store::{docx, snapshots};
use crate::support::{Folder, Random, run, sorted};

/// Writes files of several kinds into `in`, and returns the texts that they have.
fn write_files(here: &Folder) -> BTreeMap<String, String> {
    let mut random = Random(11);
    let gbk = "新华社北京电，国家统计局发布数据";
    here.write("in/gbk.txt", encoding_rs::GBK.encode(gbk).0);
    here.write("in/empty", "");
    here.write("in/none.bin", random.bytes(5000));
    here.write("in/broken.docx", b"PK\x03\x04 no archive");
    let mut texts = BTreeMap::from([("in/gbk.txt".to_owned(), gbk.to_owned())]);
    texts.insert("in/empty".to_owned(), String::new());
    for number in 0..6 {
        let paragraphs: Vec<String> = (0..20).map(|_| random.text(40)).collect();
        here.write(&format!("in/文/{number}.docx"), docx(&paragraphs));
        texts.insert(format!("in/文/{number}.docx"), paragraphs.join("\n"));
        let text = random.text(3000);
        here.write(&format!("in/{number}.md"), &text);
        texts.insert(format!("in/{number}.md"), text);
    }
    texts
}

/// Returns the texts of an output of JSON lines by their ids, of which none comes twice.
fn exported(here: &Folder, output: &str) -> BTreeMap<String, String> {
    let lines = here.objects(&format!("{output}/exported"), ".jsonl");
    let text = |value: &serde_json::Value| value.as_str().unwrap().trim_end().to_owned();
    let all: BTreeMap<_, _> = lines.iter().map(|line| (text(&line["id"]), text(&line["text"]))).collect();
    assert_eq!(all.len(), lines.len());
    all
}

#[test]
fn an_export_has_the_text_of_each_file_in_every_format_however_many_work() {
    let here = Folder::new();
    let texts = write_files(&here);
    here.run("chunk put store in").ends(0);
    let ended = here.run("chunk export store out --workers 1").ends(3);
    assert!(ended.stderr.contains("Files exported=14") && ended.stderr.contains("Rejected=2"), "{ended:?}");
    assert_eq!(exported(&here, "out"), texts);
    let rejects = here.objects("out/rejects", ".jsonl");
    let names: Vec<_> = rejects.iter().map(|reject| reject["uri"].as_str().unwrap()).collect();
    assert_eq!(names, ["in/broken.docx", "in/none.bin"]);
    assert_eq!(here.success("out")["snapshots"], serde_json::json!(snapshots(&here)));
    // Of parts that hold a few files, the records are the same, for any number of workers.
    here.run("chunk export store small --part-size 8K --workers 3").ends(3);
    here.run("chunk export store again --part-size 8K --workers 1").ends(3);
    assert!(here.files("small/exported").len() > 3);
    assert!(here.contents("small/exported") == here.contents("again/exported"));
    assert!(here.bytes("small/exported", "") == here.bytes("out/exported", ""));
    let small = here.objects("small/rejects", ".jsonl");
    assert!(small.iter().map(|reject| reject["uri"].as_str().unwrap()).eq(names));
    for to in ["parquet", "sequencefile", "sequencefile --codec zstd"] {
        here.run(&format!("chunk export store packed --to {to} --overwrite")).ends(3);
        here.run("unpack packed/exported files --overwrite").ends(0);
        let unpacked: BTreeMap<String, String> = here
            .contents("files/unpacked")
            .into_iter()
            .map(|(name, bytes)| (name, String::from_utf8(bytes).unwrap().trim_end().to_owned()))
            .collect();
        assert_eq!(unpacked, texts, "{to}");
    }
    here.run("chunk export store out --to parquet --codec zstd").fails(2, &["SequenceFiles"]);
}

#[test]
fn an_export_of_all_snapshots_lets_dedup_find_the_versions_of_a_text() {
    let here = Folder::new();
    let mut random = Random(12);
    let mut paragraphs: Vec<String> = (0..40).map(|_| random.text(60)).collect();
    for version in 0..3 {
        paragraphs[version * 10] = random.text(60);
        here.write("in/thesis.docx", docx(&paragraphs));
        here.write("in/notes/a.txt", random.text(2000));
        here.run("chunk put store in").ends(0);
    }
    let names = snapshots(&here);
    here.run("chunk export store all --all").ends(0);
    let expected: Vec<String> = names
        .iter()
        .flat_map(|name| [format!("{name}/in/notes/a.txt"), format!("{name}/in/thesis.docx")])
        .collect();
    assert!(exported(&here, "all").into_keys().eq(sorted(expected)));
    here.run("dedup all/exported clean").ends(0);
    assert_eq!((here.counter("clean", "kept"), here.counter("clean", "removed")), (4, 2));
    // One snapshot, and one folder of it.
    here.run(&format!("chunk export store first --snapshot {}", names[0])).ends(0);
    here.run("chunk export store notes --name in/notes").ends(0);
    let all = exported(&here, "all");
    for (output, name) in [("first", &names[0]), ("notes", &names[2])] {
        for (id, text) in exported(&here, output) {
            assert_eq!(text, all[&format!("{name}/{id}")], "{output}");
        }
    }
    assert!(exported(&here, "notes").into_keys().eq(["in/notes/a.txt"]));
    here.run("chunk export store none --name in/other").fails(2, &["no file \"in/other\""]);
    here.run("chunk export store none --snapshot 1999").fails(2, &["no snapshot \"1999\""]);
    here.run("chunk export store store/none").fails(2, &["lies in the store"]);
    here.run("chunk export store .").fails(2, &["lies in the output"]);
    here.run("chunk export store all").fails(2, &["--overwrite"]);
    assert!(!here.path("none").exists());
}

#[test]
fn damage_costs_an_export_the_files_that_it_hits_and_a_limit_ends_it_unseen() {
    let here = Folder::new();
    let texts = write_files(&here);
    here.run("chunk put store in").ends(0);
    let frame = 8;
    // The pack of undone files is the one that has fewer bytes.
    let pack = here.files("store/packs").into_iter().min_by_key(|pack| fs::metadata(pack).unwrap().len());
    let (pack, mut bytes) = pack.map(|pack| (pack.clone(), fs::read(pack).unwrap())).unwrap();
    bytes[frame + 100] ^= 1;
    fs::write(pack, bytes).unwrap();
    here.run("chunk export store out").ends(3);
    let left = exported(&here, "out");
    assert!(!left.is_empty() && left.len() < texts.len());
    assert!(left.iter().all(|(name, text)| texts[name] == *text));
    let rejects = here.objects("out/rejects", ".jsonl");
    assert_eq!(left.len() + rejects.len(), texts.len() + 2);
    let reason =
        |text: &str| rejects.iter().filter(|one| one["reason"].as_str().unwrap().contains(text)).count();
    assert_eq!(reason("it cannot be restored"), texts.len() - left.len());
    here.run("chunk export store limited --max-rejects 1").fails(4, &["--max-rejects 1", "in/"]);
    here.run("chunk export store long --max-record-bytes 1K").ends(3);
    assert!(exported(&here, "long").values().all(|text| text.len() <= 1 << 10));
    assert!(!here.path("limited/exported").exists());
}

#[test]
fn a_killed_export_shows_nothing_and_the_next_one_is_whole() {
    let here = Folder::new();
    let texts = write_files(&here);
    here.run("chunk put store in").ends(0);
    for step in ["create 2", "finish 1", "write 2"] {
        let line = "chunk export store out --part-size 8K --overwrite";
        let killed = run(here.command(line).env("DEDUP_FAULT", format!("0 {step} kill")));
        assert_eq!(killed.code, None, "{step}: {killed:?}");
        assert!(!here.path("out/_SUCCESS").exists() && !here.path("out/exported").exists(), "{step}");
        here.run(line).ends(3);
        assert_eq!(exported(&here, "out"), texts);
        fs::remove_dir_all(here.path("out")).unwrap();
    }
}
