//! Tests of the program on real object stores. They need `scripts/s3/build` and `scripts/azurite/build`.

use std::fs;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use super::{Both, every_format_gives_the_same_bytes, failures_have_their_codes_and_one_line};
use crate::servers::azurite::{Azurite, KEY};
use crate::servers::s3::S3;
use crate::support::{Folder, run, sorted};

#[test]
#[ignore = "needs scripts/s3/build"]
fn a_corpus_on_s3_is_as_one_of_this_machine() {
    let both = Both::s3("bucket", Folder::new());
    let cases = [
        ("@/in", "--split-size 16K --workers 3"),
        ("s3a://bucket/in/*.jsonl*,@/in/d.parquet @/in/tree/*/[1-9]*.txt", "--split-size 8K --workers 2"),
    ];
    every_format_gives_the_same_bytes(&both, "a b%20+中文.jsonl", &cases);
    failures_have_their_codes_and_one_line(&both, "@/in/a*");
    a_bucket_has_failures_of_its_own(&both);
    without_credentials_the_run_ends_in_seconds(&both);
}

fn a_bucket_has_failures_of_its_own(both: &Both) {
    let input = "@/in/c.jsonl.zst";
    both.run("dedup s3:///in @/new").fails(2, &["s3://bucket/path"]);
    both.run("dedup s3://missing/in @/new").fails(2, &["s3://missing", "does not exist"]);
    both.run(&format!("dedup {input} s3://missing/new")).fails(2, &["s3://missing"]);
    both.run(&format!("dedup {input} s3a://bucket/in --overwrite")).fails(2, &["lies in the output"]);
    assert!(!both.exists("new"), "a run that failed left something");
    both.run_with("dedup @/in @/new", &[("AWS_SECRET_ACCESS_KEY", "wrong")])
        .fails(1, &["SignatureDoesNotMatch"]);
    both.run_with("dedup @/in @/new", &[("AWS_ALLOW_HTTP", "false")]).fails(2, &["AWS_ALLOW_HTTP=true"]);
}

fn without_credentials_the_run_ends_in_seconds(both: &Both) {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let metadata = format!("http://{}", silent.local_addr().unwrap());
    let mut command = both.here.command("dedup s3://bucket/in out");
    command.env("AWS_METADATA_ENDPOINT", metadata);
    let start = Instant::now();
    run(&mut command).fails(2, &["no credentials", "AWS_ACCESS_KEY_ID"]);
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

/// Tries on a real server a sample of what `jobs/runtime/output/folder/tests/requests.rs` tries in every combination.
fn die_at_any_request(both: &Both) {
    // Kept parts are long enough for uploads. Removed ones and tables are small and wait in bundles.
    both.here.run("demo demo --documents 1500 --seed 7").ends(0);
    both.write("in/a.jsonl", &fs::read(both.here.path("demo/corpus.jsonl")).unwrap());
    let dedup = "dedup @/in @/out --split-size 350K --method exact --workers 1 -q --overwrite";
    both.run(dedup).ends(0);
    let usual = both.output_there("out");
    assert!(usual["kept/part-00000.jsonl"].len() > 256 << 10);
    let die = |request: usize| {
        let run = both.run_with(dedup, &[("DEDUP_FAULT", &format!("0 request {request} kill"))]);
        if both.exists("out/_SUCCESS") {
            both.run("check --full @/out").ends(0);
        }
        run.code.is_none()
    };
    let mut deaths = 0;
    for request in (3..).step_by(7) {
        if !die(request) {
            break;
        }
        // The next run dies as well, at any request.
        deaths += 1 + u32::from(die(1 + request * 5 % 60));
        let last = both.run(dedup);
        assert_eq!(last.code, Some(0), "after a death at request {request}: {last:?}");
        both.run("check --full @/out").ends(0);
        assert!(both.output_there("out") == usual, "after a death at request {request}");
    }
    assert!(deaths > 10, "{deaths} deaths");
}

#[test]
#[ignore = "needs scripts/s3/build"]
fn a_run_and_the_one_that_takes_over_may_die_at_any_request() {
    die_at_any_request(&Both::s3("deaths", Folder::new()));
    let left = fs::read_dir(S3::shared().bucket("deaths")).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let (marks, left): (Vec<_>, Vec<_>) = left.partition(|name| name.starts_with('.'));
    assert_eq!(sorted(left), ["in", "out"]);
    // Nobody finds an upload whose id the process could not note before it died.
    assert!(marks.len() <= 4, "{marks:?}");
}

#[test]
#[ignore = "needs scripts/azurite/build"]
fn a_run_on_azure_and_the_one_that_takes_over_may_die_at_any_request() {
    let server = Azurite::start();
    die_at_any_request(&Both::bucket("az://bucket", server.settings(KEY), Folder::new()));
}
