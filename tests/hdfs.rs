//! Tests of the program on a real HDFS. They need `scripts/hadoop/build`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::sync::Arc;

use cluster::{BlobReader, Store, Stores};
use flate2::write::GzEncoder;
use hdfs_native::WriteOptions;
use hdfs_native::sync::ClientBuilder;

use crate::hadoop::{MiniDfs, hadoop_lines};
use crate::support::{Folder, run, sorted};

/// Classes of keys of the SequenceFiles that are read, as Hadoop's writer is asked for them.
const KEYS: [&str; 2] = ["Text", "LongWritable"];
/// Classes of values of these files.
const VALUES: [&str; 2] = ["Text", "BytesWritable"];
const COMPRESSIONS: [&str; 6] =
    ["none default", "none gzip", "record default", "record gzip", "block default", "block gzip"];
/// Number of records that each file has more than the one before, with which it begins.
const MORE_RECORDS: usize = 20;

/// HDFS, and a folder of this machine with the same files.
struct Both {
    dfs: MiniDfs,
    here: Folder,
    store: Arc<dyn Store>,
}

impl Both {
    fn start() -> Self {
        let dfs = MiniDfs::start(3);
        let (store, _) = Stores::new().locate(&dfs.uri).unwrap();
        Both { dfs, here: Folder::new(), store }
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        self.here.write(name, bytes);
        let mut output = self.store.create(&format!("/{name}")).unwrap();
        output.write_all(bytes).unwrap();
        output.finish().unwrap();
    }

    fn read(&self, path: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let blob = self.store.open(path).unwrap();
        BlobReader::new(blob, 0, u64::MAX).read_to_end(&mut bytes).unwrap();
        bytes
    }

    /// Returns the paths of all files of a folder on HDFS, sorted.
    fn list(&self, folder: &str) -> Vec<String> {
        self.store.list(folder).unwrap().into_iter().map(|entry| entry.path).collect()
    }

    /// Returns all visible files of an output on HDFS.
    fn output_there(&self, output: &str) -> BTreeMap<String, Vec<u8>> {
        let root = format!("/{output}/");
        // Listings leave out names that begin with `_`.
        let reasons = format!("/{output}/removed/_reasons");
        let mut files = self.list(&format!("/{output}"));
        if self.store.exists(&reasons).unwrap() {
            files.extend(self.list(&reasons));
        }
        files
            .into_iter()
            .map(|path| (path.strip_prefix(&root).unwrap().to_owned(), self.read(&path)))
            .collect()
    }

    /// Returns all files of an output on this machine, but `_SUCCESS`.
    fn output_here(&self, output: &str) -> BTreeMap<String, Vec<u8>> {
        let root = self.here.path(output);
        let files = self.here.files(output).into_iter().filter(|file| !file.ends_with("_SUCCESS"));
        let name = |file: &std::path::Path| file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        files.map(|file| (name(&file), fs::read(&file).unwrap())).collect()
    }
}

#[test]
#[ignore = "needs scripts/hadoop/build"]
fn a_corpus_on_hdfs_is_as_one_of_this_machine() {
    let both = Both::start();
    every_format_gives_the_same_bytes(&both);
    failures_have_their_codes_and_one_line(&both);
    an_input_in_the_output_is_told_by_whatever_name(&both);
    the_default_file_system_is_that_of_the_configuration(&both);
    hadoop_reads_what_we_write_of_what_it_wrote(&both);
}

fn an_input_in_the_output_is_told_by_whatever_name(both: &Both) {
    let there = &both.dfs.uri;
    let alias = there.replace("127.0.0.1", "localhost");
    assert_ne!(*there, alias);
    let run = both.here.run(&format!("dedup {alias}/out/kept {there}/out --overwrite"));
    run.fails(2, &[&alias, "lies in the output"]);
    assert!(both.store.exists("/out/_SUCCESS").unwrap() && !both.store.exists("/out/_temporary").unwrap());
}

/// Writes documents in JSON lines, plain and compressed, Parquet, and a tree of files; some lines and files
/// are bad.
fn write_corpus(both: &Both) {
    let here = &both.here;
    here.run("demo demo --documents 1500 --seed 5").ends(0);
    let lines = here.lines("demo", "corpus.jsonl");
    let part = |number: usize| lines[300 * number..300 * (number + 1)].join("\n");
    both.write("in/a.jsonl", format!("{}\nbad\n", part(0)).as_bytes());
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(part(1).as_bytes()).unwrap();
    both.write("in/b.jsonl.gz", &encoder.finish().unwrap());
    both.write("in/c.jsonl.zst", &zstd::encode_all(part(2).as_bytes(), 3).unwrap());
    crate::invariance::write_parquet(here, "d.parquet", &lines[900..1200]);
    both.write("in/d.parquet", &fs::read(here.path("d.parquet")).unwrap());
    for (i, doc) in here.objects("demo", "corpus.jsonl")[1200..1250].iter().enumerate() {
        let text = encoding_rs::GBK.encode(doc["text"].as_str().unwrap()).0.into_owned();
        both.write(&format!("in/tree/{}/{i}.txt", ["Art", "法律"][i % 2]), &text);
    }
    both.write("in/tree/Art/bad.txt", b"\xff\xff");
    both.write("in/_hidden.jsonl", b"bad\n");
}

fn every_format_gives_the_same_bytes(both: &Both) {
    write_corpus(both);
    let uri = &both.dfs.uri;
    for (inputs, options) in [
        ("@/in", "--split-size 16K --workers 3"),
        (
            "@/in/*.jsonl*,@/in/d.parquet @/in/tree",
            "--split-size 8K --workers 2 --method simhash:features=char:5",
        ),
        ("@/in/{d,c,a}.* @/in/tree/*/[1-9]*.txt", "--workers 1 --pairs all"),
    ] {
        let run = |root: &str, output: &str| {
            both.here
                .run(&format!("dedup {} {output} {options} --quiet --overwrite", inputs.replace('@', root)))
        };
        let [there, here] =
            [(uri.as_str(), format!("{uri}/out")), (".", "out".to_owned())].map(|(root, output)| {
                let run = run(root, &output);
                assert_eq!((run.code, run.stderr.as_str()), (Some(3), ""), "{inputs} of {root}");
                run
            });
        assert_eq!(there.stdout, here.stdout);

        let (mut there, here) = (both.output_there("out"), both.output_here("out"));
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let rejects = there.get_mut("rejects/part-00000.jsonl").unwrap();
        assert!(text(rejects).contains(&format!("\"uri\":\"{uri}/in/")));
        *rejects = text(rejects)
            .replace(uri, both.here.path("").to_str().unwrap().trim_end_matches('/'))
            .into_bytes();
        assert_eq!(there.keys().collect::<Vec<_>>(), here.keys().collect::<Vec<_>>(), "{inputs}");
        assert!(there.keys().filter(|name| name.starts_with("kept/")).count() > 3, "{inputs}");
        for (name, bytes) in &there {
            assert!(*bytes == here[name], "{name} of {inputs}");
        }
        let success = serde_json::from_slice::<serde_json::Value>(&both.read("/out/_SUCCESS")).unwrap();
        assert_eq!(success["counters"], both.here.success("out")["counters"], "{inputs}");
        assert!(success["input"][0]["uri"].as_str().unwrap().starts_with(&format!("{uri}/in/")));
        assert!(!both.store.exists("/out/_temporary").unwrap());
    }
}

fn failures_have_their_codes_and_one_line(both: &Both) {
    let (here, uri) = (&both.here, &both.dfs.uri);
    let superuser = ClientBuilder::new().with_url(uri).with_user("hdfs").build().unwrap();
    superuser.create("/private/a.jsonl", WriteOptions::default()).unwrap().close().unwrap();
    superuser.set_permission("/private", 0o700).unwrap();
    let nobody = |line: &str| run(here.command(&line.replace('@', uri)).env("HADOOP_USER_NAME", "nobody"));
    nobody("dedup @/private @/new").fails(1, &["/private", "no permission"]);
    nobody("dedup @/private/a.jsonl @/new").fails(1, &["/private", "no permission"]);
    nobody("dedup @/in/a.jsonl @/private/new").fails(1, &["/private/new", "no permission"]);
    nobody("dedup @/in/a.jsonl @/nobodys --quiet").ends(3);
    assert!(both.store.exists("/nobodys/_SUCCESS").unwrap());

    let ours = |line: &str| here.run(&line.replace('@', uri));
    ours("dedup @/none.jsonl @/new").fails(2, &["/none.jsonl", "does not exist"]);
    ours("dedup @/in/*.csv @/new").fails(2, &["/in/*.csv"]);
    ours("dedup @/in/a.jsonl,@/none @/new").fails(2, &["/none"]);
    ours("dedup @/in/a.jsonl @/out").fails(2, &["/out", "--overwrite"]);
    ours("dedup @/in/d.parquet @/new --text-field body").fails(2, &["\"body\"", "text"]);
    ours("dedup @/in/a.jsonl @/new --max-rejects 0").fails(4, &["/in/a.jsonl"]);
    assert!(!both.store.exists("/new").unwrap() || both.list("/new").is_empty());
    let out = both.list("/out");
    ours("dedup @/in/a.jsonl @/out --overwrite --max-rejects 0").fails(4, &["--max-rejects 0"]);
    assert_eq!(both.list("/out"), out);
    // This name node does not exist.
    here.run("dedup hdfs://127.0.0.1:1/in out").fails(1, &["hdfs://127.0.0.1:1/in"]);
}

fn the_default_file_system_is_that_of_the_configuration(both: &Both) {
    let (here, uri) = (&both.here, &both.dfs.uri);
    let property = format!("<property><name>fs.defaultFS</name><value>{uri}</value></property>");
    here.write(
        "conf/core-site.xml",
        format!("<?xml version=\"1.0\"?>\n<configuration>{property}</configuration>\n"),
    );
    let configured = |line: &str| run(here.command(line).env("HADOOP_CONF_DIR", here.path("conf")));
    let line = "dedup hdfs:///in/*.jsonl* hdfs:///configured --method exact --quiet";
    configured(line).ends(3);
    here.run(&line.replace("hdfs:///configured", "configured").replace("hdfs:///", "")).ends(3);
    let (there, here) = (both.output_there("configured/kept"), both.output_here("configured/kept"));
    assert!(there == here && there.len() == 3);
    // Without the variable, nobody knows which name node is meant.
    both.here.run(line).fails(2, &["HADOOP_CONF_DIR", "fs.defaultFS"]);
}

/// Returns the records of SequenceFiles on HDFS, as Hadoop's own reader reads them; sorted.
fn read_by_hadoop(both: &Both, paths: &[String]) -> Vec<String> {
    let read = |path: &String| vec!["read-seq".to_owned(), format!("{}{path}", both.dfs.uri)];
    sorted(hadoop_lines(&paths.iter().map(read).collect::<Vec<_>>()))
}

/// Returns record number `i`, as Hadoop.java writes it.
fn record(key: &str, i: usize) -> String {
    let key = if key == "Text" { format!("key-{i}") } else { i.to_string() };
    format!("{key}\t{}", format!("第{i}条记录").repeat(i % 7 + 1))
}

fn hadoop_reads_what_we_write_of_what_it_wrote(both: &Both) {
    let kinds = KEYS.into_iter().flat_map(|key| VALUES.map(|value| (key, value)));
    let kinds = kinds.flat_map(|(key, value)| COMPRESSIONS.map(|compression| (key, value, compression)));
    let files: Vec<_> = kinds
        .enumerate()
        .map(|(n, kind)| (format!("/seq/{n:02}.seq"), (n + 1) * MORE_RECORDS, kind))
        .collect();
    let write = |(path, count, (key, value, compression)): &(String, usize, (&str, &str, &str))| {
        // A sync marker stands every kilobyte, so that a file has splits.
        let command = format!("write-seq {}{path} {count} {key} {value} {compression} 1000", both.dfs.uri);
        command.split(' ').map(str::to_owned).collect()
    };
    hadoop_lines(&files.iter().map(write).collect::<Vec<_>>());
    for (path, ..) in &files {
        both.here.write(path.trim_start_matches('/'), both.read(path));
    }

    // A text equals an earlier one or is like none, so each file keeps the records that it has more than the
    // one before.
    let line = "dedup @/seq @/seq-out --method exact:clean=none --split-size 4K --workers 3 --quiet";
    both.here.run(&line.replace('@', &both.dfs.uri)).ends(0);
    both.here.run(&line.replace("@/", "")).ends(0);
    let (there, here) = (both.output_there("seq-out"), both.output_here("seq-out"));
    assert!(there == here, "{:?}\n{:?}", there.keys(), here.keys());
    let [first, .., last] = &files[..] else { panic!("no files") };
    let (mut kept, mut removed) = (Vec::new(), Vec::new());
    for (_, count, (key, ..)) in &files {
        let new = count - MORE_RECORDS;
        kept.extend((new..*count).map(|i| record(key, i)));
        removed.extend((0..new).map(|i| record(key, i)));
    }
    let parts = |folder: &str| -> Vec<String> {
        both.list(&format!("/seq-out/{folder}")).into_iter().filter(|path| path.ends_with(".seq")).collect()
    };
    // Every file has a kind of its own, and the long ones have several splits.
    assert!(parts("kept").len() >= files.len() && parts("removed").len() > files.len());
    assert_eq!(read_by_hadoop(both, &parts("kept")), sorted(kept));
    assert_eq!(read_by_hadoop(both, &parts("removed")), sorted(removed));
    assert_eq!((first.1, last.1), (MORE_RECORDS, 24 * MORE_RECORDS));

    // The written files are read again, and all of their records are kept.
    both.here.run(&"dedup @/seq-out/kept @/again --method exact --quiet".replace('@', &both.dfs.uri)).ends(0);
    let again: Vec<_> = both.list("/again/kept");
    assert_eq!(read_by_hadoop(both, &again), read_by_hadoop(both, &parts("kept")));
}
