//! The object store against a real server that speaks S3.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use cluster::{Bucket, Error, ObjectLimits, Store, Upload, Uploads};

use crate::random::Random;
use crate::servers::s3::S3;
use crate::{listed, ranges_are_read_right, read, write, writes};

const QUICK: ObjectLimits = ObjectLimits {
    sign_in: Duration::from_secs(1),
    call: Duration::from_secs(1),
    transfer: Duration::from_secs(1),
    service: Duration::from_secs(1),
    attempts: 2,
    part_bytes: 5 << 20,
};
/// Far more time than the limits below allow a call, even on a busy machine.
const QUICK_ENOUGH: Duration = Duration::from_secs(40);

/// Returns a store of a bucket, which is made if there is none.
fn bucket(server: &S3, name: &str, limits: ObjectLimits) -> Bucket {
    server.bucket(name);
    Bucket::new(&format!("s3://{name}"), &server.settings(), limits).unwrap()
}

/// Returns a bucket for one test on the server that all share, and the folder in which the server keeps
/// it.
fn shared(name: &str) -> (Bucket, PathBuf) {
    (bucket(S3::shared(), name, ObjectLimits::default()), S3::shared().bucket(name))
}

/// Checks that the server keeps nothing in the folder of a bucket.
fn nothing_is_left(folder: &Path) {
    let left: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(left, [""; 0].map(PathBuf::from), "parts were left behind");
}

#[test]
#[ignore = "needs scripts/s3/build"]
fn files_are_written_found_renamed_and_removed() {
    let (store, _) = shared("files");
    assert!(store.exists("/").unwrap() && store.list("/").unwrap().is_empty());
    let path = |name: &str| format!("/数据/{name}");
    for name in ["b/x", "b-x", "a.txt", "_temporary/0/part", "b/.hidden", "2024/01/甲.txt", "2024/02/乙.txt"]
    {
        write(&store, &path(name), name.as_bytes());
    }
    write(&store, &path("empty"), b"");
    let all = ["2024/01/甲.txt", "2024/02/乙.txt", "a.txt", "b-x", "b/x", "empty"].map(path);
    assert_eq!(listed(&store, "/数据"), all);
    assert_eq!(listed(&store, "/"), all);
    assert_eq!(listed(&store, &path("_temporary")), [path("_temporary/0/part")]);
    assert_eq!(listed(&store, &path("a.txt")), [path("a.txt")]);
    assert_eq!(store.list(&path("b")).unwrap()[0].bytes, 3);
    let mut children = store.children("/数据").unwrap();
    children.sort_by(|a, b| a.path.cmp(&b.path));
    let children: Vec<_> = children.into_iter().map(|child| (child.path, child.directory)).collect();
    let expected = [("2024", true), ("a.txt", false), ("b", true), ("b-x", false), ("empty", false)];
    assert_eq!(children, expected.map(|(name, directory)| (path(name), directory)));
    assert!(!store.children(&path("a.txt")).unwrap()[0].directory);
    // A path that is only a prefix of other names does not exist.
    assert!(!store.exists(&path("202")).unwrap() && !store.exists(&path("a")).unwrap());
    assert!(store.exists(&path("2024")).unwrap() && store.exists(&path("a.txt")).unwrap());

    assert_eq!(read(&store, &path("a.txt")), b"a.txt");
    assert_eq!(store.open(&path("empty")).unwrap().read_at(0, &mut [0; 9]).unwrap(), 0);
    write(&store, &path("a.txt"), b"another");
    assert_eq!(read(&store, &path("a.txt")), b"another");

    let mut everything = store.everything(&path("b")).unwrap();
    everything.sort();
    let everything: Vec<_> = everything.into_iter().map(|entry| entry.path).collect();
    assert_eq!(everything, [path("b/.hidden"), path("b/x")]);
    assert_eq!(store.everything(&path("none")).unwrap(), []);
    store.remove(&path("b")).unwrap();
    store.remove(&path("b")).unwrap();
    assert!(!store.exists(&path("b")).unwrap() && store.exists(&path("b-x")).unwrap());
    store.create_dir(&path("d/e")).unwrap();
    assert!(matches!(store.create("/"), Err(Error::BadName { .. })));
}

#[test]
#[ignore = "needs scripts/s3/build"]
fn a_listing_of_several_pages_is_whole_and_so_is_what_is_done_to_it() {
    let (store, folder) = shared("pages");
    // One request lists or removes 1,000 objects.
    let names: Vec<_> = (0..1_100).map(|i| format!("/many/{i:04}")).collect();
    let (first, rest) = names.split_at(20);
    first.iter().for_each(|name| write(&store, name, name.as_bytes()));
    rest.iter().for_each(|name| std::fs::write(folder.join(&name[1..]), name).unwrap());
    assert_eq!(listed(&store, "/many"), names);
    assert_eq!(store.everything("/many").unwrap().len(), names.len());
    for (after, until) in [(None, Some(99)), (Some(99), Some(1_099)), (Some(50), None), (Some(1_099), None)] {
        let entries = store.everything_between(
            "/many",
            after.map(|after: usize| names[after].as_str()),
            until.map(|until: usize| names[until].as_str()),
        );
        let mut found: Vec<_> = entries.unwrap().into_iter().map(|entry| entry.path).collect();
        found.sort();
        let first = after.map_or(0, |after| after + 1);
        let last = until.unwrap_or(1_099);
        assert_eq!(found, names[first..=last], "{after:?} {until:?}");
    }
    let (some, others) = names.split_at(1_050);
    store.remove_files(some).unwrap();
    store.remove_files(some).unwrap();
    assert_eq!(listed(&store, "/many"), others);
    store.remove("/many").unwrap();
    assert!(store.list("/").unwrap().is_empty());
}

#[test]
#[ignore = "needs scripts/s3/build"]
fn odd_names_are_kept_or_refused() {
    let (store, folder) = shared("names");
    let names = [
        "a b",
        "a%20b",
        "100%",
        "a+b",
        "中文 名字",
        "x&y=z",
        "#1",
        "q?a=b",
        "'",
        "\"",
        "[a]*{b}",
        "~",
        "\\",
        "<a>",
        "é",
        "😀",
        " lead",
        "...",
    ];
    for name in names {
        write(&store, &format!("/odd/{name}"), name.as_bytes());
        assert_eq!(read(&store, &format!("/odd/{name}")), name.as_bytes(), "{name}");
    }
    let mut expected: Vec<_> =
        names.iter().filter(|name| !name.starts_with('.')).map(|name| format!("/odd/{name}")).collect();
    expected.sort();
    assert_eq!(listed(&store, "/odd"), expected);
    for name in names {
        let upload = uploaded(&store, &format!("/even %41/{name}"), name.as_bytes());
        assert!(store.complete(&upload).unwrap());
        assert_eq!(read(&store, &format!("/even %41/{name}")), name.as_bytes(), "{name}");
    }
    store.remove("/even %41").unwrap();
    store.remove("/odd").unwrap();
    assert!(store.list("/").unwrap().is_empty());

    for name in ["a\nb", "a\tb", "a/../b", "a//b"] {
        let error = store.create(&format!("/{name}")).err().unwrap();
        assert!(matches!(error, Error::BadName { .. }), "{name:?}: {error}");
        assert!(matches!(store.open(&format!("/{name}")), Err(Error::BadName { .. })), "{name:?}");
    }
    // A key that the library cannot express costs itself and not the folder.
    write(&store, "/a", b"a");
    write(&store, "/z", b"z");
    std::fs::write(folder.join("with\nnewline"), "x").unwrap();
    let mut passed = Vec::new();
    let found = store.children_and_hidden("/", &mut passed).unwrap();
    assert_eq!(found.iter().map(|entry| &*entry.path).collect::<Vec<_>>(), ["/a", "/z"]);
    assert_eq!(passed, ["/with\nnewline"]);
}

#[test]
#[ignore = "needs scripts/s3/build"]
fn what_is_missing_and_what_is_forbidden_are_told_apart() {
    let (store, _) = shared("missing-or-not");
    let path = "/none/x";
    assert!(
        matches!(store.open(path), Err(Error::NotFound { path }) if path == "s3://missing-or-not/none/x")
    );
    assert!(matches!(store.list(path), Err(Error::NotFound { .. })));
    assert!(matches!(store.children(path), Err(Error::NotFound { .. })));
    assert!(!store.exists(path).unwrap());

    let missing = Bucket::new("s3://missing", &S3::shared().settings(), ObjectLimits::default()).unwrap();
    assert!(matches!(missing.list("/x"), Err(Error::NotFound { path }) if path == "s3://missing"));
    assert!(matches!(missing.exists("/x"), Err(Error::NotFound { .. })));
    let mut output = missing.create("/x").unwrap();
    output.write_all(b"x").unwrap();
    assert!(matches!(output.finish(), Err(Error::NotFound { .. })));

    let mut settings = S3::shared().settings();
    settings.push(("AWS_SECRET_ACCESS_KEY".to_owned(), "another".to_owned()));
    let stranger = Bucket::new("s3://missing-or-not", &settings, ObjectLimits::default()).unwrap();
    let calls: [fn(&Bucket) -> Option<Error>; 5] = [
        |store| store.list("/x").err(),
        |store| store.open("/x").err(),
        |store| store.exists("/x").err(),
        |store| store.remove("/x").err(),
        |store| store.create("/x").unwrap().finish().err(),
    ];
    for call in calls {
        let start = Instant::now();
        let error = call(&stranger);
        // A retry would take longer: the five pauses begin at 0.2 seconds and double.
        assert!(start.elapsed() < Duration::from_secs(6), "what will not change was tried again");
        let Some(Error::Io { source, .. }) = error else { panic!("{error:?}") };
        let text = source.to_string();
        assert!(text.contains("SignatureDoesNotMatch") && !text.contains("another"), "{text}");
    }
}

#[test]
#[ignore = "needs scripts/s3/build"]
fn a_large_object_is_written_in_parts_and_read_by_ranges() {
    let folder = S3::shared().bucket("large");
    let store = bucket(S3::shared(), "large", ObjectLimits { part_bytes: 5 << 20, ..Default::default() });
    let bytes = Random(1).bytes((20 << 20) + 123);
    let mut output = store.create("/large").unwrap();
    for piece in bytes.chunks(1_000_003) {
        output.write_all(piece).unwrap();
    }
    output.flush().unwrap();
    assert!(!store.exists("/large").unwrap(), "seen before it was finished");
    output.finish().unwrap();

    let blob = store.open("/large").unwrap();
    ranges_are_read_right(&blob, &bytes, 5 << 20);

    // This length fits exactly into whole parts.
    write(&store, "/whole", &bytes[..10 << 20]);
    assert!(read(&store, "/whole") == bytes[..10 << 20]);

    let mut half = store.create("/half").unwrap();
    half.write_all(&bytes[..12 << 20]).unwrap();
    drop(half);
    assert!(!store.exists("/half").unwrap());
    store.remove("/large").unwrap();
    store.remove("/whole").unwrap();
    nothing_is_left(&folder);
}

#[test]
#[ignore = "needs scripts/s3/build"]
fn an_upload_is_seen_once_it_is_completed_by_whoever_knows_it() {
    let (store, folder) = shared("uploads");
    let bytes = Random(1).bytes(12 << 20);
    write(&store, "/x", b"before");
    assert!(store.tag("/x").unwrap().is_some() && store.tag("/y").unwrap().is_none());
    let uploads = [("/x", &bytes[..]), ("/y", b"short"), ("/empty", b"")]
        .map(|(path, bytes)| (uploaded(&store, path, bytes), bytes));
    assert_eq!(read(&store, "/x"), b"before");
    assert_eq!(listed(&store, "/"), ["/x"]);
    // Another process completes the uploads, and a third one completes them again. The empty one is excepted:
    // the library sends a part before it completes an empty upload, and this server keeps that part for ever.
    for count in [3, 2] {
        let (store, _) = shared("uploads");
        for (upload, bytes) in &uploads[..count] {
            // Some services remember a completed upload for a while.
            assert!(store.complete(upload).unwrap() || count == 2, "{}", upload.path);
            assert!(read(&store, &upload.path) == *bytes, "{}", upload.path);
            store.abort(upload).unwrap();
        }
    }

    assert_eq!(read(&store, "/empty"), b"");
    let upload = uploaded(&store, "/y", b"other");
    assert_eq!(upload.bytes, 5);
    store.abort(&upload).unwrap();
    assert!(!store.complete(&upload).unwrap());
    assert_eq!(read(&store, "/y"), b"short");

    drop(store.begin("/given up").unwrap());
    for path in ["/x", "/y", "/empty"] {
        store.remove(path).unwrap();
    }
    nothing_is_left(&folder);
}

#[test]
#[ignore = "needs scripts/s3/build"]
fn a_small_file_replaces_only_what_it_is_to_replace() {
    let (store, _) = shared("small");
    writes::a_small_file_replaces_only_what_it_is_to_replace(&store);
}

/// Returns an upload that is finished and not completed.
fn uploaded(store: &Bucket, path: &str, bytes: &[u8]) -> Upload {
    let mut output = store.begin(path).unwrap();
    assert_eq!(output.begun().path, path);
    output.write_all(bytes).unwrap();
    output.finish().unwrap()
}

#[test]
#[ignore = "needs scripts/s3/build"]
fn an_object_that_changes_while_it_is_read_is_an_error() {
    let (store, _) = shared("changes");
    write(&store, "/x", b"0123456789");
    let blob = store.open("/x").unwrap();
    let mut buffer = [0; 4];
    blob.read_at(0, &mut buffer).unwrap();
    write(&store, "/x", b"abcdefghij");
    let error = blob.read_at(4, &mut buffer).err().unwrap();
    let Error::Io { path, source, .. } = error else { panic!("{error}") };
    assert_eq!(
        (path.as_str(), source.to_string().as_str()),
        ("s3://changes/x", "it changed while it was read")
    );
    store.remove("/x").unwrap();
    assert!(matches!(blob.read_at(4, &mut buffer), Err(Error::NotFound { .. })));
}

#[test]
#[ignore = "needs scripts/s3/build"]
fn a_frozen_server_is_an_error_within_the_deadline_and_well_again_when_it_thaws() {
    let server = S3::start();
    // The default limits leave enough time for what is done before the server freezes and after it has
    // thawed.
    let store = bucket(&server, "bucket", ObjectLimits::default());
    let bytes = Random(1).bytes(12 << 20);
    write(&store, "/x", &bytes);
    let blob = store.open("/x").unwrap();
    let mut buffer = vec![0; 8 << 20];
    let hasty = bucket(&server, "bucket", QUICK);
    let hasty_blob = hasty.open("/x").unwrap();
    // Writes in parts, two of which are sent before the freeze.
    let writer = bucket(&server, "bucket", ObjectLimits { transfer: Duration::from_secs(5), ..QUICK });
    let mut output = writer.create("/y").unwrap();
    output.write_all(&bytes).unwrap();

    server.signal("STOP");
    let late = |call: &mut dyn FnMut() -> Option<Error>| {
        let start = Instant::now();
        let error = call();
        let Some(Error::Io { source, .. }) = error else { panic!("{error:?}") };
        assert_eq!(source.kind(), std::io::ErrorKind::TimedOut, "{source}");
        assert!(start.elapsed() < QUICK_ENOUGH, "{:?}", start.elapsed());
    };
    late(&mut || hasty_blob.read_at(0, &mut buffer).err());
    late(&mut || hasty.open("/x").err());
    late(&mut || hasty.list("/").err());
    late(&mut || hasty.begin("/z").err());
    let mut output = Some(output);
    late(&mut || output.take()?.finish().err());

    let patient = bucket(&server, "bucket", ObjectLimits { attempts: 12, ..QUICK });
    thread::scope(|scope| {
        let reader = scope.spawn(|| patient.open("/x").and_then(|blob| blob.read_at(0, &mut buffer)));
        thread::sleep(Duration::from_secs(4));
        server.signal("CONT");
        assert_eq!(reader.join().unwrap().unwrap(), 8 << 20);
    });
    assert!(buffer == bytes[..8 << 20]);
    assert_eq!(blob.read_at(8 << 20, &mut buffer).unwrap(), 4 << 20);
    assert!(!store.exists("/y").unwrap(), "half an object is seen");
    drop(server);
    assert!(matches!(store.open("/x"), Err(Error::Io { .. })));
}
