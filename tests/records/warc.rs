//! WARC files that warcio has written, and whose kept records it reads. Needs `scripts/warcio/build`.

use std::collections::BTreeSet;
use std::process::Command;

use crate::support::Folder;

/// Runs the program that writes and reads by warcio, and returns the lines that it prints.
fn warcio(arguments: &[&str]) -> Vec<String> {
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/warcio");
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", format!("{scripts}/target")).arg(format!("{scripts}/warc.py"));
    let output = command.args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn what_warcio_wrote_is_read_in_every_coding_and_kept_as_warcio_reads_it() {
    let here = Folder::new();
    let file = here.path("crawl.warc.gz").display().to_string();
    let written = warcio(&["write", &file]);
    let written: Vec<(&str, &str)> = written.iter().map(|line| line.split_once('\t').unwrap()).collect();
    // The first record with each text stays, and so do all records without text.
    let mut seen = BTreeSet::new();
    let stays: Vec<&str> =
        written.iter().filter(|(_, text)| *text == "-" || seen.insert(*text)).map(|(id, _)| *id).collect();
    assert_eq!((written.len(), stays.len()), (42, 24));
    for options in ["--workers 1", "--workers 2 --split-size 1K"] {
        here.run(&format!("dedup --overwrite {options} crawl.warc.gz clean")).ends(0);
        let mut parts: Vec<String> = std::fs::read_dir(here.path("clean/kept"))
            .unwrap()
            .map(|part| part.unwrap().path().display().to_string())
            .collect();
        parts.sort();
        let read = [vec!["read"], parts.iter().map(String::as_str).collect()].concat();
        assert_eq!(warcio(&read), stays, "{options}");
    }
    here.run("dedup crawl.warc.gz clean.warc.gz").ends(0);
    assert_eq!(warcio(&["read", &here.path("clean.warc.gz").display().to_string()]), stays);
}
