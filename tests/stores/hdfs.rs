//! Tests of the program on a real HDFS. They need `scripts/hadoop/build`.

use hdfs_native::WriteOptions;
use hdfs_native::sync::ClientBuilder;

use super::{Both, every_format_gives_the_same_bytes, failures_have_their_codes_and_one_line};
use crate::servers::hdfs::hadoop_lines;
use crate::support::{Folder, run, sorted};

/// Classes of keys of the SequenceFiles that are read, as Hadoop's writer is asked for them.
const KEYS: [&str; 2] = ["Text", "LongWritable"];
/// Classes of values of these files.
const VALUES: [&str; 2] = ["Text", "BytesWritable"];
const COMPRESSIONS: [&str; 6] =
    ["none default", "none gzip", "record default", "record gzip", "block default", "block gzip"];
/// Number of records that each file has more than the one before, with which it begins.
const MORE_RECORDS: usize = 20;

#[test]
#[ignore = "needs scripts/hadoop/build"]
fn a_corpus_on_hdfs_is_as_one_of_this_machine() {
    // No other test writes to the root itself.
    let both = Both::hdfs("", Folder::new());
    let cases = [
        ("@/in", "--split-size 16K --workers 3"),
        (
            "@/in/*.jsonl*,@/in/d.parquet @/in/tree",
            "--split-size 8K --workers 2 --method simhash:features=char:5",
        ),
        ("@/in/{d,c,a}.* @/in/tree/*/[1-9]*.txt", "--workers 1 --pairs all"),
    ];
    every_format_gives_the_same_bytes(&both, "a.jsonl", &cases);
    failures_have_their_codes_and_one_line(&both, "@/in/a.jsonl");
    what_is_forbidden_or_not_there_is_named(&both);
    an_input_in_the_output_is_told_by_whatever_name(&both);
    the_default_file_system_is_that_of_the_configuration(&both);
    hadoop_reads_what_we_write_of_what_it_wrote(&both);
}

fn an_input_in_the_output_is_told_by_whatever_name(both: &Both) {
    let there = &both.uri;
    let alias = there.replace("127.0.0.1", "localhost");
    assert_ne!(*there, alias);
    let run = both.here.run(&format!("dedup {alias}/out/kept {there}/out --overwrite"));
    run.fails(2, &[&alias, "lies in the output"]);
    assert!(both.exists("out/_SUCCESS") && !both.exists("out/_temporary"));
}

fn what_is_forbidden_or_not_there_is_named(both: &Both) {
    let superuser = ClientBuilder::new().with_url(&both.uri).with_user("hdfs").build().unwrap();
    superuser.create("/private/a.jsonl", WriteOptions::default()).unwrap().close().unwrap();
    superuser.set_permission("/private", 0o700).unwrap();
    let nobody = |line: &str| both.run_with(line, &[("HADOOP_USER_NAME", "nobody")]);
    nobody("dedup @/private @/new").fails(1, &["/private", "no permission"]);
    nobody("dedup @/private/a.jsonl @/new").fails(1, &["/private", "no permission"]);
    nobody("dedup @/in/a.jsonl @/private/new").fails(1, &["/private/new", "no permission"]);
    nobody("dedup @/in/a.jsonl @/nobodys --quiet").ends(3);
    assert!(both.exists("nobodys/_SUCCESS"));
    // This name node does not exist.
    both.run("dedup hdfs://127.0.0.1:1/in out").fails(1, &["hdfs://127.0.0.1:1/in"]);
}

fn the_default_file_system_is_that_of_the_configuration(both: &Both) {
    let (here, uri) = (&both.here, &both.uri);
    let property = format!("<property><name>fs.defaultFS</name><value>{uri}</value></property>");
    here.write(
        "conf/core-site.xml",
        format!("<?xml version=\"1.0\"?>\n<configuration>{property}</configuration>\n"),
    );
    let configured = |line: &str| run(here.command(line).env("HADOOP_CONF_DIR", here.path("conf")));
    let line = "dedup hdfs:///in/*.jsonl* hdfs:///configured --method exact --quiet";
    configured(line).ends(3);
    here.run(&line.replace("hdfs:///configured", "configured").replace("hdfs:///", "")).ends(3);
    let (there, here) = (both.output_there("configured/kept"), here.output("configured/kept"));
    assert!(there == here && there.len() == 3);
    // Without the variable, nobody knows which name node is meant.
    both.here.run(line).fails(2, &["HADOOP_CONF_DIR", "fs.defaultFS"]);
}

/// Returns the records of SequenceFiles on HDFS, as Hadoop's own reader reads them; sorted.
fn read_by_hadoop(both: &Both, paths: &[String]) -> Vec<String> {
    let read = |path: &String| vec!["read-seq".to_owned(), format!("{}{path}", both.uri)];
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
        let command = format!("write-seq {}{path} {count} {key} {value} {compression} 1000", both.uri);
        command.split(' ').map(str::to_owned).collect()
    };
    hadoop_lines(&files.iter().map(write).collect::<Vec<_>>());
    for (path, ..) in &files {
        both.here.write(path.trim_start_matches('/'), both.read(path).unwrap());
    }

    // A text equals an earlier one or is like none, so each file keeps the records that it has more than the
    // one before.
    let line = "dedup @/seq @/seq-out --method exact:clean=none --split-size 4K --workers 3 --quiet";
    both.run(line).ends(0);
    both.here.run(&line.replace("@/", "")).ends(0);
    let there = both.output_there("seq-out");
    let here = both.here.output("seq-out");
    assert!(there == here, "{:?}\n{:?}", there.keys(), here.keys());
    let [first, .., last] = &files[..] else { panic!("no files") };
    let (mut kept, mut removed) = (Vec::new(), Vec::new());
    for (_, count, (key, ..)) in &files {
        let new = count - MORE_RECORDS;
        kept.extend((new..*count).map(|i| record(key, i)));
        removed.extend((0..new).map(|i| record(key, i)));
    }
    let parts = |folder: &str| -> Vec<String> {
        both.list(&format!("seq-out/{folder}")).into_iter().filter(|path| path.ends_with(".seq")).collect()
    };
    // Every file has a kind of its own, and the long ones have several splits.
    assert!(parts("kept").len() >= files.len() && parts("removed").len() > files.len());
    assert_eq!(read_by_hadoop(both, &parts("kept")), sorted(kept));
    assert_eq!(read_by_hadoop(both, &parts("removed")), sorted(removed));
    assert_eq!((first.1, last.1), (MORE_RECORDS, 24 * MORE_RECORDS));

    // The written files are read again, and all of their records are kept.
    both.run("dedup @/seq-out/kept @/again --method exact --quiet").ends(0);
    let again: Vec<_> = both.list("again/kept");
    assert_eq!(read_by_hadoop(both, &again), read_by_hadoop(both, &parts("kept")));
}
