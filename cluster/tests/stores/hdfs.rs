//! The HDFS store against a real HDFS.

use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cluster::{Error, Hdfs, HdfsLimits, Rename, Showing, Store, Stores};
use hdfs_native::WriteOptions;
use hdfs_native::sync::{Client, ClientBuilder};

use crate::random::Random;
use crate::servers::hdfs::{MiniDfs, hadoop_lines};
use crate::{listed, ranges_are_read_right, read, read_blob, write};

const QUICK: HdfsLimits = HdfsLimits {
    call: Duration::from_secs(2),
    data_node: Duration::from_secs(1),
    item: Duration::from_secs(1),
    range: Duration::from_secs(3),
    whole: Duration::from_secs(6),
    attempts: 2,
};

/// Returns a client that may do all. Each test has paths of its own on the cluster that they share.
fn superuser(cluster: &MiniDfs) -> Client {
    ClientBuilder::new().with_url(&cluster.uri).with_user("hdfs").build().unwrap()
}

#[test]
#[ignore = "needs scripts/hadoop/build"]
fn files_are_written_found_renamed_and_removed() {
    let cluster = MiniDfs::shared();
    let stores = Stores::new();
    let (store, root) = stores.locate(&format!("{}/数据", cluster.uri)).unwrap();
    assert_eq!(format!("{}{root}", store.prefix()), format!("{}/数据", cluster.uri));
    let path = |name: &str| format!("{root}/{name}");

    for name in ["b/x", "b-x", "a.txt", "_temporary/0/part", "b/.hidden", "2024/01/甲.txt", "2024/02/乙.txt"]
    {
        write(store.as_ref(), &path(name), name.as_bytes());
    }
    write(store.as_ref(), &path("empty"), b"");
    assert_eq!(
        listed(store.as_ref(), &root),
        ["2024/01/甲.txt", "2024/02/乙.txt", "a.txt", "b-x", "b/x", "empty"].map(&path)
    );
    assert_eq!(listed(store.as_ref(), &path("_temporary")), [path("_temporary/0/part")]);
    assert_eq!(listed(store.as_ref(), &path("a.txt")), [path("a.txt")]);

    let found = stores.expand(&[format!("{0}{root}/2024/*/?.txt,{0}{root}/{{a.txt,none}}", cluster.uri)]);
    let found: Vec<_> = found.unwrap().into_iter().map(|file| (file.name.to_string(), file.bytes)).collect();
    assert_eq!(found, [("01/甲.txt".into(), 15), ("02/乙.txt".into(), 15), ("a.txt".into(), 5)]);
    let found =
        stores.expand(&[format!("{0}{root}/b/x,{0}{root}/b,{0}{root}/202?/01", cluster.uri)]).unwrap();
    let found: Vec<_> = found.into_iter().map(|file| file.path).collect();
    assert_eq!(found, [path("2024/01/甲.txt"), path("b/x")]);
    assert!(matches!(stores.expand(&[format!("{}/*.gz", cluster.uri)]), Err(Error::NotFound { .. })));

    assert_eq!(read(store.as_ref(), &path("a.txt")), b"a.txt");
    assert_eq!(store.open(&path("empty")).unwrap().read_at(0, &mut [0; 9]).unwrap(), 0);

    let Showing::Rename(renamer) = store.showing() else { panic!("HDFS renames") };
    assert!(matches!(renamer.rename(&path("b"), &path("a.txt")), Err(Error::Io { .. })));
    assert!(matches!(renamer.rename(&path("b"), &path("no/b")), Err(Error::Io { .. })));
    renamer.rename(&path("b"), &path("c")).unwrap();
    assert!(store.exists(&path("c/x")).unwrap() && !store.exists(&path("b")).unwrap());
    store.remove(&path("c")).unwrap();
    store.remove(&path("c")).unwrap();
    assert!(!store.exists(&path("c")).unwrap());
    store.create_dir(&path("d/e")).unwrap();
    store.create_dir(&path("d/e")).unwrap();
    assert!(store.exists(&path("d/e")).unwrap());
    renamer.remove_empty(&path("d")).unwrap();
    assert!(store.exists(&path("d/e")).unwrap());
    for name in ["d/e", "d", "none"] {
        renamer.remove_empty(&path(name)).unwrap();
    }
    assert!(!store.exists(&path("d")).unwrap());

    let mut half = store.create(&path("half")).unwrap();
    half.write_all(&Random(1).bytes(3 << 20)).unwrap();
    drop(half);
    assert!(!store.exists(&path("half")).unwrap());

    let file = format!("{}{}", cluster.uri, path("x.seq"));
    let hadoop = |command: String| hadoop_lines(&[command.split(' ').map(str::to_owned).collect()]);
    hadoop(format!("write-seq {file} 100 Text Text block gzip"));
    let mut magic = [0; 4];
    store.open(&path("x.seq")).unwrap().read_at(0, &mut magic).unwrap();
    assert_eq!(&magic, b"SEQ\x06");
    assert_eq!(hadoop(format!("read-seq {file}")).len(), 100);
}

#[test]
#[ignore = "needs scripts/hadoop/build"]
fn what_is_missing_what_is_forbidden_and_what_is_no_file_are_told_apart() {
    let cluster = MiniDfs::shared();
    let store = Hdfs::new(&cluster.uri, HdfsLimits::default()).unwrap();
    let path = "/none/x";
    assert!(matches!(store.open(path), Err(Error::NotFound { .. })));
    assert!(matches!(store.list(path), Err(Error::NotFound { .. })));
    assert!(matches!(store.rename(path, "/y"), Err(Error::NotFound { .. })));
    assert!(!store.exists(path).unwrap());

    let superuser = superuser(cluster);
    superuser.create("/private/x", WriteOptions::default()).unwrap().close().unwrap();
    superuser.set_permission("/private", 0o700).unwrap();
    let path = "/private/x";
    assert!(matches!(store.open(path), Err(Error::Denied { .. })));
    assert!(matches!(store.list("/private"), Err(Error::Denied { .. })));
    assert!(matches!(store.create(path), Err(Error::Denied { .. })));
    assert!(matches!(store.create_dir(path), Err(Error::Denied { .. })));
    assert!(matches!(store.remove("/private"), Err(Error::Denied { .. })));
    assert!(matches!(store.exists(path), Err(Error::Denied { .. })));

    let Err(Error::Io { source, .. }) = store.open("/") else { panic!("opened a directory") };
    assert_eq!(source.kind(), std::io::ErrorKind::IsADirectory);
    assert_eq!(source.to_string(), "FileNotFoundException: Path is not a file: /");
}

#[test]
#[ignore = "needs scripts/hadoop/build"]
fn ranges_of_a_file_of_several_blocks_are_read_right() {
    let cluster = MiniDfs::shared();
    let bytes = Random(1).bytes((20 << 20) + 123);
    let small = WriteOptions::default().block_size(1 << 20);
    let mut writer = superuser(cluster).create("/blocks", small).unwrap();
    writer.write_bytes(Bytes::from(bytes.clone())).unwrap();
    writer.close().unwrap();

    let store = Hdfs::new(&cluster.uri, HdfsLimits::default()).unwrap();
    let blob = store.open("/blocks").unwrap();
    ranges_are_read_right(&blob, &bytes, 1 << 20);
    a_file_that_changes_between_two_readings_is_an_error(cluster);
}

fn a_file_that_changes_between_two_readings_is_an_error(cluster: &MiniDfs) {
    let stores = Stores::new();
    let uri = format!("{}/changing", cluster.uri);
    let (store, path) = stores.locate(&uri).unwrap();
    let mut bytes = Random(1).bytes(1_000_000);
    write(store.as_ref(), &path, &bytes);
    let found = stores.expand(&[uri]).unwrap().remove(0);
    let mut buffer = vec![0; bytes.len()];
    let mut read = |range: std::ops::Range<usize>| {
        let blob = found.clone().open(None)?;
        blob.read_full_at(range.start as u64, &mut buffer[range]).map(|_| ())
    };
    read(0..1_000_000).unwrap();
    read(0..1_000_000).unwrap();
    bytes[700_000] ^= 1;
    write(store.as_ref(), &path, &bytes);
    let Err(Error::Changed { path: changed, .. }) = read(0..1) else { panic!("nobody noticed") };
    assert!(changed.ends_with("/changing"), "{changed}");
    write(store.as_ref(), &path, &bytes[1..]);
    assert!(matches!(read(0..1), Err(Error::Changed { .. })));
}

#[test]
#[ignore = "needs scripts/hadoop/build"]
fn a_frozen_cluster_is_an_error_within_the_deadline_and_well_again_when_it_thaws() {
    let cluster = MiniDfs::start(1, &[]);
    // The default limits leave enough time for what is done before the cluster freezes and after it has
    // thawed.
    let store = Hdfs::new(&cluster.uri, HdfsLimits::default()).unwrap();
    let bytes = Random(1).bytes(12 << 20);
    write(&store, "/x", &bytes);
    let blob = store.open("/x").unwrap();
    let mut buffer = vec![0; 8 << 20];
    let hasty = Hdfs::new(&cluster.uri, QUICK).unwrap();
    let hasty_blob = hasty.open("/x").unwrap();
    let mut output = hasty.create("/y").unwrap();
    output.write_all(b"half").unwrap();

    cluster.signal("STOP");
    let start = Instant::now();
    assert!(matches!(hasty_blob.read_at(0, &mut buffer), Err(Error::Io { .. })));
    println!("a read ended after {:?}", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(20));
    let start = Instant::now();
    assert!(matches!(hasty.open("/x"), Err(Error::Io { .. })));
    assert!(matches!(hasty.list("/"), Err(Error::Io { .. })));
    assert!(matches!(hasty.create("/z"), Err(Error::Io { .. })));
    // No call names a file that is needed later, because HDFS may still execute it after the thaw.
    assert!(matches!(hasty.rename("/none", "/z"), Err(Error::Io { .. })));
    assert!(matches!(output.finish(), Err(Error::Io { .. })));
    println!("five calls ended after {:?}", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(90));

    let limits = HdfsLimits { call: QUICK.call, attempts: 10, ..HdfsLimits::default() };
    let patient = Hdfs::new(&cluster.uri, limits).unwrap();
    thread::scope(|scope| {
        let reader = scope.spawn(|| patient.open("/x").and_then(|blob| blob.read_at(0, &mut buffer)));
        thread::sleep(Duration::from_secs(5));
        cluster.signal("CONT");
        assert_eq!(reader.join().unwrap().unwrap(), 8 << 20);
    });
    assert!(buffer == bytes[..8 << 20]);
    assert_eq!(blob.read_at(8 << 20, &mut buffer).unwrap(), 4 << 20);
    assert!(buffer[..4 << 20] == bytes[8 << 20..]);
    assert!(blob.read_at(0, &mut buffer).is_ok());

    let start = Instant::now();
    drop(cluster);
    let stopped = start.elapsed();
    let error = hasty.open("/x").err().unwrap();
    println!("stopped in {stopped:?}, refused after {:?}: {error:?}", start.elapsed() - stopped);
}

#[test]
#[ignore = "needs scripts/hadoop/build"]
fn a_file_that_we_write_is_whole() {
    let cluster = MiniDfs::shared();
    let store = Hdfs::new(&cluster.uri, HdfsLimits::default()).unwrap();
    let bytes = Random(1).bytes((40 << 20) + 7);
    write(&store, "/large", &bytes);
    let found = Stores::new().expand(&[format!("{}/large", cluster.uri)]).unwrap().remove(0);
    for blob in [store.open("/large").unwrap(), found.open(None).unwrap()] {
        assert!(read_blob(blob) == bytes);
    }
}
