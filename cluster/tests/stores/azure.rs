//! The object store against Azurite, Microsoft's emulator of Azure Blob Storage. Needs
//! `scripts/azurite/build`.

use std::io::Write;

use cluster::{Bucket, Error, ObjectLimits, Store, Uploads};

use crate::random::Random;
use crate::servers::azurite::{Azurite, KEY};
use crate::{listed, read, write, writes};

fn bucket(server: &Azurite, prefix: &str, key: &str) -> Bucket {
    let limits = ObjectLimits { part_bytes: 1 << 20, ..ObjectLimits::default() };
    Bucket::new(prefix, &server.settings(key), limits).unwrap()
}

#[test]
#[ignore = "needs scripts/azurite/build"]
fn a_container_of_azure_is_as_a_bucket_of_s3() {
    let server = Azurite::start();
    let store = bucket(&server, "az://bucket", KEY);
    assert!(store.list("/").unwrap().is_empty());
    let names = ["a b%20+中文.txt", "b/.hidden", "b/x", "c", "d/1/y", "_temporary/0/part"];
    for name in names {
        write(&store, &format!("/数据/{name}"), name.as_bytes());
    }
    let seen = ["a b%20+中文.txt", "b/x", "c", "d/1/y"].map(|name| format!("/数据/{name}"));
    assert_eq!(listed(&store, "/"), seen);
    assert_eq!(listed(&store, "/数据/c"), ["/数据/c"]);
    assert!(store.exists("/数据/d").unwrap() && !store.exists("/数据/e").unwrap());
    assert!(matches!(store.open("/数据/e"), Err(Error::NotFound { path }) if path == "az://bucket/数据/e"));
    assert!(matches!(store.list("/e"), Err(Error::NotFound { .. })));
    assert_eq!(store.everything("/数据").unwrap().len(), names.len());
    store.remove("/数据").unwrap();
    assert!(!store.exists("/数据").unwrap());

    writes::a_small_file_replaces_only_what_it_is_to_replace(&store);

    // Two uploads to one name keep their parts apart.
    write(&store, "/neu/twice", b"before");
    let [one, other, empty] =
        [("/neu/twice", "one"), ("/neu/twice", "two"), ("/neu/empty", "")].map(|(path, text)| {
            let mut output = store.begin(path).unwrap();
            output.write_all(text.as_bytes()).unwrap();
            output.finish().unwrap()
        });
    assert_eq!(read(&store, "/neu/twice"), b"before");
    assert!(store.complete(&one).unwrap());
    assert!(!store.complete(&one).unwrap());
    assert!(store.complete(&empty).unwrap());
    assert_eq!((read(&store, "/neu/twice"), read(&store, "/neu/empty")), (b"one".to_vec(), Vec::new()));
    // The service has forgotten the parts of the other upload, which must not pass for completed.
    assert!(!store.complete(&other).unwrap());
    store.abort(&other).unwrap();

    let bytes = Random(1).bytes(3_500_000);
    let mut output = store.create("/neu/large").unwrap();
    output.write_all(&bytes).unwrap();
    assert!(!store.exists("/neu/large").unwrap());
    output.finish().unwrap();
    let blob = store.open("/neu/large").unwrap();
    assert!(read(&store, "/neu/large") == bytes);
    write(&store, "/neu/large", &bytes[1..]);
    let Err(Error::Io { source, .. }) = blob.read_at(0, &mut [0; 9]) else { panic!("read another object") };
    assert_eq!(source.to_string(), "it changed while it was read");
    store.remove("/neu").unwrap();
    store.remove("/neu").unwrap();
    assert!(store.list("/").unwrap().is_empty());

    let missing = bucket(&server, "az://missing", KEY);
    assert!(matches!(missing.exists("/x"), Err(Error::NotFound { path }) if path == "az://missing"));
    let stranger = bucket(&server, "az://bucket", "AAAA");
    let error = stranger.list("/").err().unwrap();
    assert!(matches!(error, Error::Io { .. } | Error::Denied { .. }), "{error:?}");
    println!("a wrong key: {error:?}");
}
