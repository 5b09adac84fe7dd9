//! Tests of SequenceFiles of every style, codec and version between Hadoop's own code and ours. They need
//! `scripts/hadoop/build`.
//!
//! zstd is not among them: Hadoop's ZStandardCodec is native code, which its jars do not bring along.

use std::fs;

use crate::records::sequence;
use crate::servers::hdfs::hadoop_lines;
use crate::support::{Folder, sorted};

const RECORDS: usize = 150;
const CODECS: [&str; 5] = ["default", "gzip", "bzip2", "snappy", "lz4"];
const CLASSES: [(&str, &str); 6] = [
    ("Text", "Text"),
    ("LongWritable", "BytesWritable"),
    ("IntWritable", "Text"),
    ("NullWritable", "Text"),
    ("BytesWritable", "LongWritable"),
    ("Text", "IntWritable"),
];

/// Returns what Hadoop.java says of record number `i` that it wrote.
fn record((key, value): (&str, &str), i: usize) -> String {
    let key = match key {
        "Text" | "BytesWritable" => format!("key-{i}"),
        "NullWritable" => String::new(),
        _ => i.to_string(),
    };
    let value = match value {
        "Text" | "BytesWritable" => format!("第{i}条记录").repeat(i % 7 + 1),
        _ => i.to_string(),
    };
    format!("{key}\t{value}")
}

/// Returns commands that read all files of a folder whose names end with `name`.
fn read_all(folder: &Folder, name: &str) -> Vec<Vec<String>> {
    let files = folder.files(name).into_iter().map(|file| file.to_str().unwrap().to_owned());
    files.filter(|file| file.ends_with(".seq")).map(|file| vec!["read-seq".to_owned(), file]).collect()
}

#[test]
fn every_style_and_codec_goes_from_hadoop_to_us_and_back() {
    let folder = Folder::new();
    let styles = ["record", "block"].into_iter().flat_map(|style| CODECS.map(|codec| (style, codec)));
    let styles: Vec<_> = [("none", "default")].into_iter().chain(styles).collect();
    let kinds = styles.iter().flat_map(|&style| CLASSES.map(|classes| (style, classes)));
    let kinds: Vec<_> = kinds.enumerate().collect();
    let mut writes = Vec::new();
    for (n, ((style, codec), (key, value))) in &kinds {
        fs::create_dir_all(folder.path(&format!("in{n}"))).unwrap();
        let file = folder.path(&format!("in{n}/a.seq"));
        // A sync marker stands every kilobyte, so that a file has splits.
        let line = format!("write-seq {} {RECORDS} {key} {value} {style} {codec} 1000", file.display());
        writes.push(line.split(' ').map(str::to_owned).collect());
    }
    assert!(hadoop_lines(&writes).is_empty());

    let (mut reads, mut expected) = (Vec::new(), Vec::new());
    for (n, (_, classes)) in &kinds {
        // A copy of the file beside it is removed as a whole.
        fs::copy(folder.path(&format!("in{n}/a.seq")), folder.path(&format!("in{n}/b.seq"))).unwrap();
        let line =
            format!("dedup in{n} out{n} --method exact:clean=none --workers 2 --split-size 4K --quiet");
        folder.run(&line).ends(0);
        for part in ["kept", "removed"] {
            reads.extend(read_all(&folder, &format!("out{n}/{part}")));
            expected.extend((0..RECORDS).map(|i| record(*classes, i)));
        }
    }
    assert_eq!(hadoop_lines(&reads), expected);
}

/// Returns `records` in the layout of an earlier version, after
/// org.apache.hadoop.io.SequenceFile.Reader.init.
fn written_in(version: u8, records: &[(String, String)]) -> Vec<u8> {
    // The head has the names of the classes, two flags, the number of metadata entries, and the sync marker.
    let body = sequence::written(records, if version == 1 { usize::MAX } else { 3 });
    let (names, sync) = (&body[4..56], &body[62..78]);
    let mut file = vec![b'S', b'E', b'Q', version];
    match version {
        // The length of a name took two bytes in these versions.
        1..=3 => names.chunks(26).for_each(|name| file.extend([&[0], name].concat())),
        _ => file.extend(names),
    }
    file.extend(vec![0; [0, 0, 0, 1, 2, 2][version as usize]]);
    if version > 1 {
        file.extend(sync);
    }
    file.extend(&body[78..]);
    file
}

#[test]
fn earlier_versions_are_read_as_hadoop_reads_them_and_come_out_as_version_6() {
    let folder = Folder::new();
    let records: Vec<_> = (0..20).map(|i| (format!("key-{i}"), format!("第{i}条记录"))).collect();
    let said: Vec<_> = records.iter().map(|(key, value)| format!("{key}\t{value}")).collect();
    for version in 1..=5 {
        let name = format!("in{version}.seq");
        folder.write(&name, written_in(version, &records));
        folder
            .run(&format!("dedup {name} out{version} --method exact:clean=none --split-size 200 --quiet"))
            .ends(0);
        for part in folder.files(&format!("out{version}/kept")) {
            assert_eq!(fs::read(part).unwrap()[3], 6);
        }
        assert_eq!(hadoop_lines(&read_all(&folder, &name)), said, "version {version} as Hadoop reads it");
        let kept = hadoop_lines(&read_all(&folder, &format!("out{version}/kept")));
        assert_eq!(sorted(kept), sorted(said.clone()), "version {version} as it comes out");
    }
}
