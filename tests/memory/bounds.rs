//! Tests of memory that the input sets: each row of docs/design/text-files.md against an input that is made to use too
//! much of it.

mod made;

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::support::{Folder, Random, children};

const MEMORY: &str = "64M";
const MOST_RESIDENT: u64 = 96 << 20;

/// Holder of memory, and an input that is made to fill it.
struct Row {
    holder: &'static str,
    /// Makes the input in the folder `in`.
    make: fn(&Folder),
    job: &'static str,
    options: &'static str,
    exit: i32,
    /// Text in a line of `rejects/`, or of stderr.
    says: &'static str,
}

const ROWS: &[Row] = &[
    Row {
        holder: "rejects",
        make: |here| here.write("in/a.jsonl", "{bad}\n".repeat(200_000)),
        job: "dedup",
        options: "",
        exit: 3,
        says: "line 200000: key must be a string",
    },
    Row {
        holder: "rejects of a compressed file, between good records",
        make: |here| here.write("in/a.jsonl.gz", made::gzip("1\n{\"text\":\"a\"}\n".repeat(100_000))),
        job: "dedup",
        options: "",
        exit: 3,
        says: "line 199999: not a JSON object",
    },
    Row {
        holder: "a window of Zstandard",
        make: |here| here.write("in/a.jsonl.zst", made::zstd_frame(31, b"{\"text\":\"a\"}\n", 12_000)),
        job: "dedup",
        options: "",
        exit: 3,
        says: "its Zstandard window is longer than the 4 MiB",
    },
    Row {
        holder: "a line",
        make: |here| here.write("in/a.jsonl", format!("{{\"text\":\"{}\"}}\n", "x".repeat(100 << 20))),
        job: "dedup",
        options: "",
        exit: 3,
        says: "longer than the 2097152 bytes that a record may have",
    },
    Row {
        holder: "a line, compressed",
        make: |here| {
            here.write("in/a.jsonl.gz", made::gzip("x".repeat(100 << 20)));
            here.write("in/b.jsonl.bz2", made::bzip2("x".repeat(20 << 20)));
        },
        job: "dedup",
        options: "",
        exit: 3,
        says: "longer than the 2097152 bytes that a record may have",
    },
    Row {
        holder: "records as long as they may be",
        make: |here| {
            let mut random = Random(7);
            let lines = (0..8).map(|_| format!("{{\"text\":\"{}\"}}\n", random.text(300_000)));
            here.write("in/a.jsonl", lines.collect::<String>());
        },
        job: "dedup",
        options: "--verify none --method simhash:features=char:5",
        exit: 0,
        says: "",
    },
    Row {
        holder: "names and nesting of JSON, and a number as long as a record",
        make: |here| {
            let names: String = (0..150_000).map(|at| format!("\"reason{at}\":1,")).collect();
            let deep = format!("{{\"text\":\"a\",\"x\":{}", "[".repeat(2_000_000));
            let number = format!("{{\"id\":{},\"text\":\"b\"}}", "1".repeat(2_000_000));
            let same = format!("{{{names}\"text\":\"c\"}}\n");
            here.write("in/a.jsonl", format!("{same}{same}{deep}\n{number}\n"));
        },
        job: "dedup",
        options: "",
        exit: 3,
        says: "nested deeper than 128",
    },
    Row {
        holder: "a record of CSV whose quote is never closed",
        make: |here| here.write("in/a.csv", format!("id,text\n1,\"{}", "x\n".repeat(5 << 20))),
        job: "dedup",
        options: "",
        exit: 3,
        says: "longer than the 2097152 bytes that a record may have",
    },
    Row {
        holder: "fields of CSV",
        make: |here| {
            here.write("in/a.csv", format!("text{}\n", ",a".repeat(1_000_000)));
            here.write("in/b.csv", format!("text\n{}\n", ",a".repeat(1_000_000)));
        },
        job: "dedup",
        options: "",
        exit: 3,
        says: "1000001 fields, where at most 100000 are read",
    },
    Row {
        holder: "a text file that is a document",
        make: |here| here.write("in/class/a.txt", "字".repeat(20 << 20)),
        job: "dedup",
        options: "--format tancorp",
        exit: 3,
        says: "longer than the 2097152 bytes that a record may have",
    },
    Row {
        holder: "a document of SogouCS that does not end",
        make: |here| {
            let good = "<doc>\n<url>u</url>\n<docno>1</docno>\n<contenttitle>t</contenttitle>\n<content>good</content>\n</doc>\n";
            here.write("in/a.dat", format!("{good}<doc>\n{}", "<content>x</content>\n".repeat(1 << 20)));
        },
        job: "dedup",
        options: "--format sogoucs",
        exit: 3,
        says: "2097152",
    },
    Row {
        holder: "a value of a SequenceFile, by each codec",
        make: |here| {
            for (codec, value) in made::bombs() {
                here.write(&format!("in/{codec}.seq"), made::sequence_of_values(codec, &value));
            }
        },
        job: "dedup",
        options: "",
        exit: 3,
        says: "the value: more than 2097152 bytes decompressed",
    },
    Row {
        holder: "a block of a SequenceFile, by each codec",
        make: |here| {
            for (codec, value) in made::bombs() {
                here.write(&format!("in/{codec}.seq"), made::sequence_of_a_block(codec, &value));
            }
        },
        job: "dedup",
        options: "",
        exit: 3,
        says: "of the block: more than 6291456 bytes decompressed",
    },
    Row {
        holder: "metadata of a SequenceFile",
        make: |here| here.write("in/a.seq", made::sequence_with_metadata(40 << 20)),
        job: "dedup",
        options: "",
        exit: 3,
        says: "the header does not end within 4 MiB",
    },
    Row {
        holder: "a page of Parquet",
        make: |here| here.write("in/a.parquet", made::parquet_of_text(&"x".repeat(100 << 20), 1, "zstd")),
        job: "dedup",
        options: "",
        exit: 3,
        says: "where at most 6291456 are read",
    },
    Row {
        holder: "a value of a dictionary that many rows of Parquet have",
        make: |here| {
            here.write("in/a.parquet", made::parquet_of_text(&"x".repeat(1 << 20), 300, "dictionary"));
        },
        job: "dedup",
        options: "",
        exit: 0,
        says: "",
    },
    Row {
        holder: "such a value within a struct",
        make: |here| {
            here.write("in/a.parquet", made::parquet_of_nested_text(&"x".repeat(1 << 20), 300));
        },
        job: "dedup",
        options: "",
        exit: 0,
        says: "",
    },
    Row {
        holder: "values of Parquet that repeat the one before",
        make: |here| {
            here.write("in/a.parquet", made::parquet_of_text(&"x".repeat(200 << 10), 1_000, "delta"));
        },
        job: "dedup",
        options: "",
        exit: 0,
        says: "",
    },
    Row {
        holder: "values of Parquet of one length",
        make: |here| here.write("in/a.parquet", made::parquet_of_nulls(1 << 20, 5_000)),
        job: "dedup",
        options: "",
        exit: 0,
        says: "",
    },
    Row {
        holder: "columns of Parquet",
        make: |here| here.write("in/a.parquet", made::parquet_of_columns(20_000)),
        job: "dedup",
        options: "",
        exit: 3,
        says: "more columns than fit into the memory",
    },
    Row {
        holder: "the footer of Parquet",
        make: |here| here.write("in/a.parquet", made::parquet_with_metadata(60 << 20)),
        job: "dedup",
        options: "",
        exit: 3,
        says: "a footer of",
    },
    Row {
        holder: "a Word document and a PDF, in a process of their own",
        make: |here| {
            here.write("in/a.docx", made::docx_bomb(200 << 20));
            here.write("in/b.pdf", made::pdf_bomb(200));
        },
        job: "dedup",
        options: "",
        exit: 3,
        says: "more than",
    },
    Row {
        holder: "rejects of compare",
        make: |here| {
            let good = |at| format!("{{\"text\":\"文章{at}\",\"class\":\"{}\"}}\n", at % 2);
            let good: String = (0..40).map(good).collect();
            here.write("in/a.jsonl", good + &"{bad}\n".repeat(600_000));
            fs::remove_file(here.path("in/0.txt")).unwrap();
        },
        job: "compare",
        options: "--label-field class --features char:1",
        exit: 3,
        says: "line 600040: key must be a string",
    },
    Row {
        holder: "rejects of unpack",
        make: |here| {
            here.write("in/a.seq", made::sequence_of_keys("/", 400_000));
            fs::remove_file(here.path("in/0.txt")).unwrap();
        },
        job: "unpack",
        options: "",
        exit: 3,
        says: "the name begins with /",
    },
];

#[test]
fn no_input_makes_a_run_take_more_than_it_may() {
    // One row can be run by hand: DEDUP_BOUNDS=windows cargo test ...
    let only = std::env::var("DEDUP_BOUNDS").unwrap_or_default();
    let failed: Vec<String> = ROWS
        .iter()
        .filter(|row| row.holder.contains(&only))
        .filter_map(|row| row.check().err().map(|why| format!("{}: {why}", row.holder)))
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

impl Row {
    fn check(&self) -> Result<(), String> {
        let here = Folder::new();
        // A second file, so that the made one is not the only file, and a good record, without which the job fails.
        here.write("in/0.txt", "一\n");
        if self.job == "dedup" {
            here.write("in/1.jsonl", "{\"text\":\"good\"}\n");
        }
        (self.make)(&here);
        let mut line = format!("{} in out --quiet --workers 2 {}", self.job, self.options);
        if self.job == "dedup" {
            line += &format!(" --memory {MEMORY}");
            line += if self.options.contains("--method") { "" } else { " --method exact" };
        }
        let mut command = here.command(&line);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut peak = 0;
        let code = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status.code();
            }
            let process = child.id();
            let all = children(process).into_iter().chain([process]);
            peak = peak.max(all.map(high_water).sum());
            thread::sleep(Duration::from_millis(2));
        };
        let mut stderr = String::new();
        std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut stderr).unwrap();
        if here.path("out/_SUCCESS").exists() {
            peak = peak.max(here.success("out")["process"]["peak_memory_bytes"].as_u64().unwrap());
        }
        let rejects = here.lines("out/rejects", ".jsonl");
        eprintln!("{}: {} MiB, exit {code:?}", self.holder, peak >> 20);
        if code != Some(self.exit) {
            return Err(format!("exit code {code:?}: {stderr} {:?}", rejects.first()));
        }
        if peak > MOST_RESIDENT {
            return Err(format!("{} MiB", peak >> 20));
        }
        match rejects.iter().chain([&stderr]).any(|line| line.contains(self.says)) {
            true => Ok(()),
            false => Err(format!("nothing says \"{}\": {:?} {stderr}", self.says, rejects.first())),
        }
    }
}

/// Returns the most memory that a process has had resident, in bytes.
fn high_water(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kibibytes.unwrap_or(0) << 10
}
