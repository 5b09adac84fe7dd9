//! Files come back from a store as they were put, and take little space.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{Cursor, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::Value;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::support::{Folder, Random, Tree, copy_folder, test_data};

/// Returns a Word document with these paragraphs, and with parts that all have.
pub fn docx(paragraphs: &[String]) -> Vec<u8> {
    let body: String =
        paragraphs.iter().map(|text| format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>")).collect();
    let space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
    let document = format!("<w:document xmlns:w=\"{space}\"><w:body>{body}</w:body></w:document>");
    let styles = (0..200).map(|style| format!("<w:style w:id=\"{style}\"/>")).collect::<String>();
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, part) in [("word/styles.xml", styles), ("word/document.xml", document)] {
        archive.start_file(name, SimpleFileOptions::default()).unwrap();
        archive.write_all(part.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn pdf(text: &str) -> Vec<u8> {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    zlib.write_all(text.as_bytes()).unwrap();
    [b"%PDF-1.4\n1 0 obj\n<<>>\nstream\n", &*zlib.finish().unwrap(), b"\nendstream\n"].concat()
}

fn paragraphs(random: &mut Random, count: usize) -> Vec<String> {
    (0..count).map(|_| random.text(60)).collect()
}

/// Returns the snapshots and what else `chunk stats --json` says.
pub fn stats(here: &Folder, store: &str) -> Value {
    serde_json::from_str(&here.run(&format!("chunk stats {store} --json")).ends(0).stdout).unwrap()
}

/// Returns the names of the snapshots, the oldest first.
pub fn snapshots(here: &Folder) -> Vec<String> {
    let stats = stats(here, "store");
    let names = stats["snapshots"].as_array().unwrap().iter();
    names.map(|snapshot| snapshot["name"].as_str().unwrap().to_owned()).collect()
}

/// Restores a snapshot into a folder of its own, and returns its files.
#[track_caller]
pub fn restored(here: &Folder, store: &str, snapshot: &str) -> Tree {
    let folder = here.path("restored");
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    here.run(&format!("chunk restore {store} restored --snapshot {snapshot}")).ends(0);
    here.contents("restored")
}

#[test]
fn files_of_all_kinds_come_back_with_names_times_and_permissions() {
    let here = Folder::new();
    let mut random = Random(1);
    let long: Vec<u8> = (0..17 << 20).map(|at: u32| ((at / 1000 * 7919) >> 3) as u8).collect();
    here.write("in/a.docx", docx(&paragraphs(&mut random, 300)));
    here.write("in/b/论文 1.pdf", pdf(&random.text(20_000)));
    here.write("in/b/.hidden", "x");
    here.write("in/empty", "");
    here.write("in/random.bin", random.bytes(300_000));
    here.write("in/text.txt", random.text(30_000));
    here.write("in/long", &long);
    fs::create_dir(here.path("odd")).unwrap();
    let odd = here.path("odd").join(OsStr::from_bytes(b"\xFF\nodd"));
    fs::write(&odd, "name").unwrap();
    fs::set_permissions(&odd, Permissions::from_mode(0o751)).unwrap();
    let time = UNIX_EPOCH + Duration::new(10_413_792_000, 123_456_789);
    File::options().write(true).open(&odd).unwrap().set_modified(time).unwrap();
    here.run("chunk put store in odd").ends(0);
    here.run("chunk restore store odd --name odd").ends(0);
    let back = here.path("odd/odd").join(OsStr::from_bytes(b"\xFF\nodd"));
    let metadata = back.metadata().unwrap();
    assert_eq!((metadata.permissions().mode() & 0o7777, metadata.modified().unwrap()), (0o751, time));
    here.run("chunk put store in").ends(0);
    let files = restored(&here, "store", "latest");
    let expected: Tree =
        here.contents("in").into_iter().map(|(name, bytes)| (format!("in/{name}"), bytes)).collect();
    assert!(files == expected, "{:?}", files.keys());
    // A file, and a folder, of it.
    here.run("chunk restore store part --name in/b --name in/empty").ends(0);
    assert_eq!(here.contents("part").len(), 3);
    let printed = here.run("chunk restore store --name in/text.txt").ends(0).stdout;
    assert!(printed.as_bytes() == files["in/text.txt"]);
    let again = here.run("chunk restore store part --name in/empty").ends(1);
    assert!(again.stderr.contains("--overwrite"), "{again:?}");
    here.run("chunk restore store part --name in/empty --overwrite").ends(0);
    here.run("chunk restore store part --name none").fails(2, &["no file \"none\""]);
    here.run("chunk restore store part --snapshot 1999").fails(2, &["no snapshot \"1999\""]);
    here.run("chunk put store in in").fails(2, &["two inputs", "in/"]);
    here.run("chunk put in in").fails(2, &["no store"]);
    here.run("chunk ls none").fails(2, &["no store"]);
    let listed = here.run("chunk ls store latest --json").ends(0).stdout;
    assert_eq!(listed.lines().count(), 7);
    here.run("chunk check store --read-data").ends(0);
}

#[test]
fn revisions_take_little_space() {
    let here = Folder::new();
    let mut random = Random(2);
    let mut text = paragraphs(&mut random, 2000);
    let mut last = 0;
    let mut bytes = 0;
    for revision in 0..12 {
        let at = random.below(text.len());
        text[at] = random.text(60);
        here.write("in/thesis.docx", docx(&text));
        bytes = fs::metadata(here.path("in/thesis.docx")).unwrap().len();
        here.run("chunk put store in").ends(0);
        let all = stats(&here, "store")["bytes"].as_u64().unwrap();
        assert!(revision == 0 || all - last < bytes / 10, "{} bytes of {bytes} for a revision", all - last);
        last = all;
    }
    assert!(last < bytes * 2, "{last} bytes for twelve revisions of {bytes}");
    let before = stats(&here, "store");
    assert_eq!(before["snapshots"].as_array().unwrap().len(), 12);
    // What one snapshot has for itself goes with it.
    let first = &before["snapshots"][0];
    assert!(first["own_chunk_bytes"].as_u64().unwrap() > 0);
    here.run(&format!("chunk forget store {}", first["name"].as_str().unwrap())).ends(0);
    let unused = stats(&here, "store")["unused_chunk_bytes"].as_u64();
    assert_eq!(unused, first["own_chunk_bytes"].as_u64());
    here.run("chunk forget store --keep-last 1 --dry-run").ends(0);
    assert_eq!(stats(&here, "store")["snapshots"].as_array().unwrap().len(), 11);
    here.run("chunk forget store --keep-last 1").ends(0);
    here.run("chunk prune store --dry-run").ends(0);
    here.run("chunk prune store").ends(0);
    let after = stats(&here, "store");
    assert!(after["unused_chunk_bytes"].as_u64().unwrap() * 5 <= after["chunk_bytes"].as_u64().unwrap());
    assert!(restored(&here, "store", "latest")["in/thesis.docx"] == docx(&text));
    here.run("chunk check store --read-data").ends(0);
    here.run("chunk forget store").fails(2, &["--keep-last"]);
}

/// Puts a folder of the test data, and compares what comes back.
#[track_caller]
fn round_trip(folder: &Path) -> (Folder, u64) {
    let here = Folder::new();
    copy_folder(folder, &here.path("in"));
    here.run("chunk put store in").ends(0);
    let files = restored(&here, "store", "latest");
    let expected = here.contents("in");
    assert_eq!(files.len(), expected.len());
    for (name, bytes) in &expected {
        assert!(files[&format!("in/{name}")] == *bytes, "{name} is another file");
    }
    let bytes = stats(&here, "store")["bytes"].as_u64().unwrap();
    (here, bytes)
}

#[test]
fn real_and_hostile_files_come_back() {
    let Some(hostile) = test_data("hostile") else { return };
    round_trip(&hostile);
    let Some(revisions) = test_data("revisions") else { return };
    let (_, bytes) = round_trip(&revisions);
    // Deflate is undone: as they are, these files have 6.5 MB.
    assert!(bytes < 1_950_000, "{bytes} bytes");
}

#[test]
fn files_that_have_not_changed_are_made_of_the_chunks_that_they_had() {
    let here = Folder::new();
    let mut random = Random(11);
    for name in ["b.docx", "d.docx"] {
        here.write(&format!("in/{name}"), docx(&paragraphs(&mut random, 30)));
    }
    here.write("in/c.txt", random.text(3000));
    // It is not held in memory.
    here.write("in/long", random.text(6 << 20));
    let put = |unchanged: &str| {
        let said = here.run("chunk put store in").ends(0).stdout;
        assert!(said.contains(&format!("{unchanged} of them unchanged")), "{said}");
        let files: Tree =
            here.contents("in").into_iter().map(|(name, bytes)| (format!("in/{name}"), bytes)).collect();
        assert!(restored(&here, "store", "latest") == files, "{said}");
    };
    put("0");
    put("4");
    here.run("chunk put store in --events events --metrics-file metrics --quiet").ends(0);
    let read = |name| fs::read_to_string(here.path(name)).unwrap();
    let (events, metrics) = (read("events"), read("metrics"));
    assert!(events.contains("job_finished") && events.contains("\"put\""), "{events}");
    assert!(metrics.contains("dedup_job_records_total{stage=\"put\"} 4"), "{metrics}");
    // What is before, between and behind them does not matter, nor do permissions and times, which are those of now.
    here.write("in/a.txt", random.text(100));
    here.write("in/c.txt", random.text(100));
    here.write("in/e.txt", random.text(100));
    fs::set_permissions(here.path("in/d.docx"), Permissions::from_mode(0o640)).unwrap();
    put("3");
    assert_eq!(fs::metadata(here.path("restored/in/d.docx")).unwrap().permissions().mode() & 0o777, 0o640);
    // The snapshot before the last one may be gone.
    here.run("chunk forget store --keep-last 1").ends(0);
    here.run("chunk prune store").ends(0);
    put("6");
    fs::remove_file(here.path("in/b.docx")).unwrap();
    put("5");
    here.run("chunk check store --read-data").ends(0);
    // Chunks that are lost are stored again.
    for pack in fs::read_dir(here.path("store/packs")).unwrap() {
        fs::remove_file(pack.unwrap().path()).unwrap();
    }
    put("0");
}

/// Each folder of `kept` is a store that an earlier version has made, and has the name of the library that had undone its
/// streams: of compressors of several kinds, with corrections of several kinds.
#[test]
fn stores_of_earlier_versions_come_back() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chunk/kept");
    let mut stores = 0;
    for store in fs::read_dir(kept).unwrap() {
        let here = Folder::new();
        copy_folder(&store.unwrap().path(), &here.path("store"));
        // Each file is compared with the hash that was stored.
        assert_eq!(restored(&here, "store", "latest").len(), 4);
        here.run("chunk check store --read-data").ends(0);
        assert_eq!(stats(&here, "store")["snapshots"][0]["undone_files"], 3);
        stores += 1;
    }
    assert!(stores > 0);
}
