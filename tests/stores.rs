//! Tests of the program on real servers that hold files: HDFS, S3 and Azure Blob Storage, and a bucket over
//! TLS. They need `scripts/hadoop/build`, `scripts/s3/build` and `scripts/azurite/build`.

mod buckets;
mod hdfs;
mod modes;
mod tls;

use std::fs;
use std::io::{Read, Write};
use std::sync::Arc;

use cluster::{BlobReader, Bucket, ObjectLimits, Store, Stores};
use flate2::write::GzEncoder;

use crate::corpus::write_parquet;
use crate::servers::hdfs::MiniDfs;
use crate::servers::s3::S3;
use crate::support::{Folder, Run, Tree, run};

/// Folder of a store or bucket, and a folder of this machine with the same files.
pub struct Both {
    /// Name of the folder, such as `hdfs://127.0.0.1:40123/x` or `s3://bucket`.
    pub uri: String,
    /// Path of the folder in the store, such as `/x`; empty for a bucket.
    root: String,
    /// Environment variables of a client.
    pub settings: Vec<(String, String)>,
    pub here: Folder,
    pub store: Arc<dyn Store>,
}

impl Both {
    /// `root`: such as `/x`.
    pub fn hdfs(root: &str, here: Folder) -> Self {
        let uri = format!("{}{root}", MiniDfs::shared().uri);
        let (store, _) = Stores::new().locate(&uri).unwrap();
        Both { uri, root: root.to_owned(), settings: Vec::new(), here, store }
    }

    /// `bucket`: its name.
    pub fn s3(bucket: &str, here: Folder) -> Self {
        S3::shared().bucket(bucket);
        Both::bucket(&format!("s3://{bucket}"), S3::shared().settings(), here)
    }

    fn bucket(uri: &str, settings: Vec<(String, String)>, here: Folder) -> Self {
        let store = Bucket::new(uri, &settings, ObjectLimits::default()).unwrap();
        Both { uri: uri.to_owned(), root: String::new(), settings, here, store: Arc::new(store) }
    }

    /// Returns the path in the store of a file of the folder.
    pub fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.root)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        self.here.write(name, bytes);
        let mut output = self.store.create(&self.path(name)).unwrap();
        output.write_all(bytes).unwrap();
        output.finish().unwrap();
    }

    /// Reads a file of the store. `None` if there is none, or it vanishes meanwhile.
    pub fn read(&self, path: &str) -> Option<Vec<u8>> {
        read(self.store.as_ref(), path)
    }

    pub fn exists(&self, name: &str) -> bool {
        self.store.exists(&self.path(name)).unwrap()
    }

    /// Returns the paths in the store of all files of a folder, sorted.
    fn list(&self, folder: &str) -> Vec<String> {
        self.store.list(&self.path(folder)).unwrap().into_iter().map(|entry| entry.path).collect()
    }

    /// Returns all visible files of an output in the store, but `_SUCCESS` and the page, which name the times of the run.
    pub fn output_there(&self, output: &str) -> Tree {
        let root = self.path(&format!("{output}/"));
        // Listings leave out names that begin with `_`.
        let reasons = format!("{output}/removed/_reasons");
        let mut files = self.list(output);
        if self.exists(&reasons) {
            files.extend(self.list(&reasons));
        }
        files.retain(|path| !path.ends_with("/report.html"));
        let name = |path: &str| path.strip_prefix(&root).unwrap().to_owned();
        files.into_iter().map(|path| (name(&path), self.read(&path).unwrap())).collect()
    }

    /// Runs the program with the settings of the server, and `more`. `@` in `line` stands for the folder.
    fn run_with(&self, line: &str, more: &[(&str, &str)]) -> Run {
        let mut command = self.here.command(&line.replace('@', &self.uri));
        run(command.envs(self.settings.clone()).envs(more.iter().copied()))
    }

    pub fn run(&self, line: &str) -> Run {
        self.run_with(line, &[])
    }
}

pub fn read(store: &dyn Store, path: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let blob = store.open(path).ok()?;
    BlobReader::new(blob, 0, u64::MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Writes documents in JSON lines, plain and compressed, Parquet, and a tree of files; some lines and
/// files are bad. `first`: name of the first file.
fn write_corpus(both: &Both, first: &str) {
    let here = &both.here;
    here.run("demo demo --documents 1500 --seed 5").ends(0);
    let lines = here.lines("demo", "corpus.jsonl");
    let part = |number: usize| lines[300 * number..300 * (number + 1)].join("\n");
    both.write(&format!("in/{first}"), format!("{}\nbad\n", part(0)).as_bytes());
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(part(1).as_bytes()).unwrap();
    both.write("in/b.jsonl.gz", &encoder.finish().unwrap());
    both.write("in/c.jsonl.zst", &zstd::encode_all(part(2).as_bytes(), 3).unwrap());
    write_parquet(here, "d.parquet", &lines[900..1200]);
    both.write("in/d.parquet", &fs::read(here.path("d.parquet")).unwrap());
    for (i, doc) in here.objects("demo", "corpus.jsonl")[1200..1250].iter().enumerate() {
        let text = encoding_rs::GBK.encode(doc["text"].as_str().unwrap()).0.into_owned();
        both.write(&format!("in/tree/{}/{i}.txt", ["Art", "法律"][i % 2]), &text);
    }
    both.write("in/tree/Art/bad.txt", b"\xff\xff");
    both.write("in/_hidden.jsonl", b"bad\n");
}

/// Checks that a run there writes what a run here writes, for each of `cases`: inputs, and options.
fn every_format_gives_the_same_bytes(both: &Both, first: &str, cases: &[(&str, &str)]) {
    write_corpus(both, first);
    let uri = &both.uri;
    for (inputs, options) in cases {
        let line = format!("dedup {inputs} @/out {options} --quiet --overwrite");
        let local = both.here.run(&line.replace("s3a://bucket", "@").replace('@', "."));
        let there = both.run(&line);
        assert_eq!((there.code, local.code), (Some(3), Some(3)), "{inputs}");
        let folder = both.here.path("");
        let folder = folder.to_str().unwrap();
        let said = there.stderr.replace(&format!("{uri}/"), folder);
        assert_eq!(said, local.stderr.replace(" ./", &format!(" {folder}")), "{inputs}");
        let known = ["_hidden.jsonl\" is hidden", "rejected"];
        assert!(said.lines().all(|line| known.iter().any(|known| line.contains(known))), "{said}");
        assert_eq!(there.stdout, local.stdout);

        let mut there = both.output_there("out");
        let local = both.here.output("out");
        let rejects = there.get_mut("rejects/part-00000.jsonl").unwrap();
        let text = String::from_utf8(rejects.clone()).unwrap();
        assert!(text.contains(&format!("\"uri\":\"{uri}/in/{first}\"")), "{text}");
        *rejects = text.replace(&format!("{uri}/"), both.here.path("").to_str().unwrap()).into_bytes();
        assert_eq!(there.keys().collect::<Vec<_>>(), local.keys().collect::<Vec<_>>(), "{inputs}");
        assert!(there.keys().filter(|name| name.starts_with("kept/")).count() > 3, "{inputs}");
        for (name, bytes) in &there {
            assert!(*bytes == local[name], "{name} of {inputs}");
        }
        let success = both.read(&both.path("out/_SUCCESS")).unwrap();
        let success = serde_json::from_slice::<serde_json::Value>(&success).unwrap();
        assert_eq!(success["counters"], both.here.success("out")["counters"], "{inputs}");
        assert!(success["input"][0]["uri"].as_str().unwrap().starts_with(&format!("{uri}/in/")));
        assert!(!both.exists("out/_temporary"));
    }
}

/// Checks the failures that all stores have. `bad`: an input in which a line is bad, or a pattern of it.
fn failures_have_their_codes_and_one_line(both: &Both, bad: &str) {
    let uri = &both.uri;
    let out = both.output_there("out");
    let named = |path: &str| format!("{uri}{path}");
    both.run("dedup @/none.jsonl @/new").fails(2, &[&named("/none.jsonl"), "does not exist"]);
    both.run("dedup @/in/*.csv @/new").fails(2, &[&named("/in/*.csv")]);
    both.run("dedup @/in/c.jsonl.zst,@/none @/new").fails(2, &["/none"]);
    both.run("dedup @/in/c.jsonl.zst @/out").fails(2, &[&named("/out"), "--overwrite"]);
    both.run("dedup @/in/d.parquet @/new --text-field body").fails(2, &["\"body\"", "text"]);
    both.run(&format!("dedup {bad} @/new --max-rejects 0"))
        .fails(4, &[&bad.replace('@', uri).replace('*', ""), "--max-rejects 0"]);
    assert!(!both.exists("new") || both.list("new").is_empty(), "a run that failed left something");
    both.run(&format!("dedup {bad} @/out --overwrite --max-rejects 0")).fails(4, &["--max-rejects 0"]);
    assert!(both.output_there("out") == out, "a run that failed was seen");
}
