//! Tests of the program on real object stores. They need `scripts/s3/build` and `scripts/azurite/build`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use cluster::{BlobReader, Bucket, ObjectLimits, Store};
use flate2::write::GzEncoder;

use crate::azurite::{Azurite, KEY};
use crate::s3::S3;
use crate::support::{Folder, Run, run};

/// Bucket, and a folder of this machine with the same files.
struct Both {
    /// Name of the bucket, such as `s3://bucket`.
    uri: &'static str,
    /// Environment variables of a client.
    settings: Vec<(String, String)>,
    here: Folder,
    store: Bucket,
}

impl Both {
    fn of(uri: &'static str, settings: Vec<(String, String)>) -> Self {
        let store = Bucket::new(uri, &settings, ObjectLimits::default()).unwrap();
        Both { uri, settings, here: Folder::new(), store }
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        self.here.write(name, bytes);
        let mut output = self.store.create(&format!("/{name}")).unwrap();
        output.write_all(bytes).unwrap();
        output.finish().unwrap();
    }

    /// Returns all visible objects of an output in the bucket, but `_SUCCESS`.
    fn output_there(&self, output: &str) -> BTreeMap<String, Vec<u8>> {
        let root = format!("/{output}/");
        let read = |path: &str| {
            let mut bytes = Vec::new();
            BlobReader::new(self.store.open(path).unwrap(), 0, u64::MAX).read_to_end(&mut bytes).unwrap();
            bytes
        };
        // Listings leave out names that begin with `_`.
        let reasons = format!("/{output}/removed/_reasons");
        let mut files = self.store.list(&format!("/{output}")).unwrap();
        if self.store.exists(&reasons).unwrap() {
            files.extend(self.store.list(&reasons).unwrap());
        }
        files
            .into_iter()
            .map(|file| (file.path.strip_prefix(&root).unwrap().to_owned(), read(&file.path)))
            .collect()
    }

    /// Returns all files of an output on this machine, but `_SUCCESS`.
    fn output_here(&self, output: &str) -> BTreeMap<String, Vec<u8>> {
        let root = self.here.path(output);
        let files = self.here.files(output).into_iter().filter(|file| !file.ends_with("_SUCCESS"));
        let name = |file: &std::path::Path| file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        files.map(|file| (name(&file), fs::read(&file).unwrap())).collect()
    }

    /// Runs the program with the settings of the server, and `more`. `@` in `line` stands for the bucket.
    fn run_with(&self, line: &str, more: &[(&str, &str)]) -> Run {
        let mut command = self.here.command(&line.replace('@', self.uri));
        run(command.envs(self.settings.clone()).envs(more.iter().copied()))
    }

    fn run(&self, line: &str) -> Run {
        self.run_with(line, &[])
    }
}

#[test]
#[ignore = "needs scripts/s3/build"]
fn a_corpus_on_s3_is_as_one_of_this_machine() {
    let server = S3::start();
    let both = Both::of("s3://bucket", server.settings());
    every_format_gives_the_same_bytes(&both);
    failures_have_their_codes_and_one_line(&both);
    without_credentials_the_run_ends_in_seconds(&both);
}

/// Writes documents in JSON lines, plain and compressed, Parquet, and a tree of files; one line is bad.
fn write_corpus(both: &Both) {
    let here = &both.here;
    here.run("demo demo --documents 1300 --seed 5").ends(0);
    let lines = here.lines("demo", "corpus.jsonl");
    let part = |number: usize| lines[300 * number..300 * (number + 1)].join("\n");
    both.write("in/a b%20+中文.jsonl", format!("{}\nbad\n", part(0)).as_bytes());
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(part(1).as_bytes()).unwrap();
    both.write("in/b.jsonl.gz", &encoder.finish().unwrap());
    both.write("in/c.jsonl.zst", &zstd::encode_all(part(2).as_bytes(), 3).unwrap());
    crate::invariance::write_parquet(here, "d.parquet", &lines[900..1200]);
    both.write("in/d.parquet", &fs::read(here.path("d.parquet")).unwrap());
    for (i, doc) in here.objects("demo", "corpus.jsonl")[1200..1230].iter().enumerate() {
        let text = encoding_rs::GBK.encode(doc["text"].as_str().unwrap()).0.into_owned();
        both.write(&format!("in/tree/{}/{i}.txt", ["Art", "法律"][i % 2]), &text);
    }
    both.write("in/_hidden.jsonl", b"bad\n");
}

fn every_format_gives_the_same_bytes(both: &Both) {
    write_corpus(both);
    for (inputs, options) in [
        ("@/in", "--split-size 16K --workers 3"),
        ("s3a://bucket/in/*.jsonl*,@/in/d.parquet @/in/tree/*/[1-9]*.txt", "--split-size 8K --workers 2"),
    ] {
        let there = both.run(&format!("dedup {inputs} @/out {options} --quiet --overwrite"));
        let inputs = inputs.replace("s3a://bucket/", "").replace("@/", "");
        let here = both.here.run(&format!("dedup {inputs} out {options} --quiet --overwrite"));
        assert_eq!((there.code, there.stderr.as_str()), (Some(3), ""), "{inputs}");
        assert_eq!(here.code, Some(3), "{inputs}");

        let (mut there, here) = (both.output_there("out"), both.output_here("out"));
        let rejects = there.get_mut("rejects/part-00000.jsonl").unwrap();
        let text = String::from_utf8(rejects.clone()).unwrap();
        assert!(text.contains("\"uri\":\"s3://bucket/in/a b%20+中文.jsonl\""), "{text}");
        *rejects = text.replace("s3://bucket/", both.here.path("").to_str().unwrap()).into_bytes();
        assert_eq!(there.keys().collect::<Vec<_>>(), here.keys().collect::<Vec<_>>(), "{inputs}");
        assert!(there.keys().filter(|name| name.starts_with("kept/")).count() > 3, "{inputs}");
        for (name, bytes) in &there {
            assert!(*bytes == here[name], "{name} of {inputs}");
        }
        assert!(both.store.exists("/out/_SUCCESS").unwrap());
        assert!(!both.store.exists("/out/_temporary").unwrap());
    }
}

fn failures_have_their_codes_and_one_line(both: &Both) {
    let input = "@/in/c.jsonl.zst";
    both.run("dedup @/none.jsonl @/new").fails(2, &["s3://bucket/none.jsonl", "does not exist"]);
    both.run("dedup @/in/*.csv @/new").fails(2, &["s3://bucket/in/*.csv"]);
    both.run("dedup s3:///in @/new").fails(2, &["s3://bucket/path"]);
    both.run("dedup s3://missing/in @/new").fails(2, &["s3://missing", "does not exist"]);
    both.run(&format!("dedup {input} s3://missing/new")).fails(2, &["s3://missing"]);
    both.run(&format!("dedup {input} @/out")).fails(2, &["s3://bucket/out", "--overwrite"]);
    both.run(&format!("dedup {input} s3a://bucket/in --overwrite")).fails(2, &["lies in the output"]);
    let out = both.output_there("out");
    both.run("dedup @/in @/out --overwrite --max-rejects 0").fails(4, &["--max-rejects 0"]);
    both.run("dedup @/in @/new --max-rejects 0").fails(4, &["--max-rejects 0"]);
    assert!(both.output_there("out") == out, "a run that failed was seen");
    assert!(!both.store.exists("/new").unwrap(), "a run that failed left something");
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

/// Tries on a real server a sample of what `jobs/output/tests/requests.rs` tries in every combination.
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
        if both.store.exists("/out/_SUCCESS").unwrap() {
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
    let server = S3::start();
    die_at_any_request(&Both::of("s3://bucket", server.settings()));
    let left = fs::read_dir(server.file("")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let (marks, mut left): (Vec<_>, Vec<_>) = left.partition(|name| name.starts_with('.'));
    left.sort();
    assert_eq!(left, ["in", "out"]);
    // Nobody finds an upload whose id the process could not note before it died.
    assert!(marks.len() <= 4, "{marks:?}");
}

#[test]
#[ignore = "needs scripts/azurite/build"]
fn the_same_on_azure() {
    let server = Azurite::start();
    die_at_any_request(&Both::of("az://bucket", server.settings(KEY)));
}
