//! The object store against an endpoint that resets, stalls, lies and refuses. Each read returns the right
//! bytes, or an error in time.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::Write;
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use cluster::{Bucket, Error, ObjectLimits, Store};
use endpoint::{Endpoint, Fault, TOTAL};

#[path = "object_faults/endpoint.rs"]
mod endpoint;
#[path = "../../tests/servers/mod.rs"]
mod servers;

const QUICK: ObjectLimits = ObjectLimits {
    sign_in: Duration::from_secs(2),
    call: Duration::from_secs(2),
    transfer: Duration::from_secs(2),
    service: Duration::from_secs(2),
    attempts: 2,
    part_bytes: 1000,
};
/// Time limit longer than any of these calls may take, and much shorter than for ever.
const DEADLINE: Duration = Duration::from_secs(20);

fn bucket(endpoint: &Endpoint) -> Bucket {
    Bucket::new("s3://bucket", &servers::s3::settings(&endpoint.address), QUICK).unwrap()
}

/// Returns the cause of an error that is neither a missing object nor a missing permission.
#[track_caller]
fn cause(error: Option<Error>) -> String {
    match error {
        Some(Error::Io { source, .. }) => source.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_transient_fault_does_not_show() {
    let passing = [
        Fault::Reset,
        Fault::Stall,
        Fault::Status(500),
        Fault::Status(503),
        Fault::Status(429),
        Fault::Cut(0),
        Fault::Cut(1),
        Fault::Cut(TOTAL - 1),
    ];
    for fault in passing {
        let endpoint = Endpoint::start();
        let store = bucket(&endpoint);
        endpoint.next([fault]);
        let blob = store.open("/x").unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        endpoint.next([fault]);
        let mut buffer = vec![0; TOTAL];
        assert_eq!(blob.read_at(0, &mut buffer).unwrap(), TOTAL, "{fault:?}");
        assert!(buffer == endpoint::content(), "{fault:?}");
        // The cut of a body shows only in an answer that has one.
        let asked = endpoint.requests().len();
        assert_eq!(asked, if matches!(fault, Fault::Cut(_)) { 3 } else { 4 }, "{fault:?}");
    }
}

#[test]
fn a_fault_that_stays_is_an_error_in_time_and_never_wrong_bytes() {
    let staying = [
        (Fault::Reset, ""),
        (Fault::Stall, "no answer within 2s"),
        (Fault::Status(503), "SlowDown (503): please"),
        (Fault::Cut(999), ""),
        (Fault::OtherRange, ""),
        (Fault::Whole, "range"),
        (Fault::Garbage, ""),
    ];
    for (fault, words) in staying {
        let endpoint = Endpoint::start();
        let blob = bucket(&endpoint).open("/x").unwrap();
        endpoint.next([fault; 100]);
        let start = Instant::now();
        let text = cause(blob.read_at(7, &mut [0; 1000]).err());
        assert!(text.contains(words) && text.len() < 300, "{fault:?}: {text}");
        assert!(start.elapsed() < DEADLINE, "{fault:?} took {:?}", start.elapsed());
        assert_eq!(endpoint.requests().len(), 3, "{fault:?}");
    }
}

#[test]
fn a_permanent_failure_is_not_retried() {
    for (fault, words) in [(Fault::Status(400), "BadThing (400)"), (Fault::OtherTag, "it changed while")] {
        let endpoint = Endpoint::start();
        let blob = bucket(&endpoint).open("/x").unwrap();
        endpoint.next([fault; 100]);
        let text = cause(blob.read_at(0, &mut [0; 1000]).err());
        assert!(text.contains(words), "{text}");
        assert_eq!(endpoint.requests().len(), 2, "{fault:?}");
    }
    let endpoint = Endpoint::start();
    let store = bucket(&endpoint);
    endpoint.next([Fault::Status(403); 2]);
    assert!(matches!(store.open("/x"), Err(Error::Denied { path }) if path == "s3://bucket/x"));
    endpoint.next([Fault::Status(404)]);
    assert!(matches!(store.open("/x"), Err(Error::NotFound { .. })));
}

#[test]
fn an_object_whose_parts_were_joined_unseen_is_whole() {
    let endpoint = Endpoint::start();
    let store = bucket(&endpoint);
    let mut output = store.create("/x").unwrap();
    output.write_all(&endpoint::content()).unwrap();
    endpoint.next([Fault::None, Fault::Reset, Fault::Status(404)]);
    output.finish().unwrap();
    assert!(endpoint.requests().last().unwrap().starts_with("HEAD"));

    // Another object of this name must not pass for the uploaded one.
    let mut output = store.create("/x").unwrap();
    output.write_all(&endpoint::content()[1..]).unwrap();
    endpoint.next([Fault::None, Fault::Reset, Fault::Status(404)]);
    assert!(output.finish().is_err());
}

#[test]
fn an_upload_that_fails_is_taken_back() {
    let endpoint = Endpoint::start();
    let store = bucket(&endpoint);
    let mut output = store.create("/x").unwrap();
    output.write_all(&[1; 1500]).unwrap();
    endpoint.next([Fault::Status(503); 2]);
    assert!(output.write_all(&[2; 1500]).is_err());
    let asked = endpoint.requests().len();
    assert!(output.finish().is_err(), "an object without one of its parts");
    let after = endpoint.requests().split_off(asked);
    assert!(after.len() == 1 && after[0].starts_with("DELETE /bucket/x?uploadId="), "{after:?}");
}

#[test]
fn a_listing_that_never_ends_ends() {
    let endpoint = Endpoint::start();
    endpoint.next([Fault::None, Fault::SameToken, Fault::SameToken, Fault::SameToken]);
    bucket(&endpoint).list("/folder").unwrap();
    assert_eq!(endpoint.requests().len(), 3);
}

#[test]
fn a_key_that_no_path_can_name_costs_that_key() {
    let endpoint = Endpoint::start();
    let store = bucket(&endpoint);
    // The pages of 1,024 keys to one key all hold it, and the page behind it does not.
    let pages = [Fault::Listed(&[("folder//b", 1)]); 11];
    endpoint.next(pages.into_iter().chain([Fault::Listed(&[("folder/c", 1)])]));
    let mut passed = Vec::new();
    let found = store.children_and_hidden("/folder", &mut passed).unwrap();
    assert_eq!(found.iter().map(|entry| &*entry.path).collect::<Vec<_>>(), ["/folder/c"]);
    assert_eq!(passed, ["/folder//b"]);
    let requests = endpoint.requests();
    assert!(
        requests[10].contains("max-keys=1 ") && requests[11].contains("start-after=folder%2F%2Fb"),
        "{requests:?}"
    );

    endpoint.next([Fault::Status(404), Fault::Listed(&[("folder//b", 1)])]);
    assert!(store.exists("/folder").unwrap());
}

#[test]
fn what_marks_a_directory_is_no_object_in_it() {
    let endpoint = Endpoint::start();
    let store = bucket(&endpoint);
    let listings: [(&[(&str, usize)], bool); 4] = [
        (&[], false),
        (&[("out/kept/", 0)], false),
        (&[("out/kept/", 0), ("out/kept/x", 0)], true),
        // This object has contents, so it must not be skipped as a mark.
        (&[("out/kept/", 5)], true),
    ];
    for (objects, exists) in listings {
        endpoint.next([Fault::Status(404), Fault::Listed(objects)]);
        assert_eq!(store.exists("/out/kept").unwrap(), exists, "{objects:?}");
    }
}

#[test]
fn without_credentials_the_error_comes_in_seconds_and_says_what_to_set() {
    // Outside of a cloud, the address of its metadata service behaves like this: it accepts the connection or
    // the bytes, and is silent.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", silent.local_addr().unwrap());
    let settings = vec![("AWS_METADATA_ENDPOINT".to_owned(), address)];
    let start = Instant::now();
    let store = Bucket::new("s3://bucket", &settings, QUICK).unwrap();
    thread::scope(|scope| {
        // Threads that ask at the same time get the same answer.
        for _ in 0..2 {
            scope.spawn(|| {
                let Err(Error::BadName { name, reason }) = store.open("/x") else { panic!("opened") };
                assert_eq!(name, "s3://bucket");
                let words = ["no credentials", "no answer within 2s", "AWS_ACCESS_KEY_ID"];
                assert!(words.iter().all(|word| reason.contains(word)), "{reason}");
            });
        }
    });
    assert!(start.elapsed() < DEADLINE);
    drop(silent);
    let refused =
        Bucket::new("s3://bucket", &settings, QUICK).unwrap().exists("/x").err().unwrap().to_string();
    assert!(refused.contains("no credentials"), "{refused}");
}
