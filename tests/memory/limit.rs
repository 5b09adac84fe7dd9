//! Tests of `--memory`: the output is the same as without, from no more memory; and what happens when a disk
//! fills up.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

use operators::method::SimHashSpec;
use operators::text::document_frequencies::Statistics;
use operators::text::features::Features;
use serde_json::Value;

use crate::corpus::json_line;
use crate::support::{Folder, Random, run, sorted, unshare};

const MIB: u64 = 1 << 20;
/// Memory of a run. `scripts/bench/memory` takes four times as much, and ten times that of input.
const MEMORY: u64 = 64 * MIB;

/// Method of which each document shares its features with others, so that the exact join has to hold it.
const EXACT: &str = "jaccard:0.8,features=char:2";

/// Writes texts, every tenth of which equals the one before it.
fn write_corpus(here: &Folder, bytes: u64) {
    let mut file = BufWriter::new(File::create(here.path("in.jsonl")).unwrap());
    let mut random = Random(1);
    let mut text = String::new();
    let mut written = 0;
    for number in 0_u64.. {
        if number % 10 == 9 {
            text.push('。');
        } else {
            let chars = 100 + random.below(400);
            text = random.text(chars);
        }
        let line = json_line(number.to_string(), &text);
        file.write_all(line.as_bytes()).unwrap();
        written += line.len() as u64;
        if written >= bytes {
            break;
        }
    }
    file.into_inner().unwrap();
}

/// Returns removed documents, kept ones, pairs and clusters.
fn found(here: &Folder, output: &str) -> impl PartialEq {
    let lines = |folder| sorted(here.lines(&format!("{output}/{folder}"), ".jsonl"));
    let table = |folder| sorted(here.table(&format!("{output}/{folder}")));
    (lines("removed"), lines("kept"), table("pairs"), table("clusters"))
}

/// Runs a method with and without the limit; returns how many documents it removed.
#[track_caller]
fn same_in_less_memory(here: &Folder, method: &str, workers: u64, memory: u64) -> u64 {
    let dedup = format!("dedup in.jsonl --quiet --overwrite --workers {workers} --method {method}");
    here.run(&format!("{dedup} free")).ends(0);
    here.run(&format!("{dedup} limited --memory {}M --local-dir .", memory / MIB)).ends(0);
    assert!(found(here, "free") == found(here, "limited"), "{method}");
    let process = here.success("limited")["process"].clone();
    let peak = process["peak_memory_bytes"].as_u64().unwrap();
    assert!(peak <= memory * 11 / 10, "{method}: {peak} bytes");
    here.counter("limited", "removed")
}

#[test]
fn a_search_keeps_within_its_memory() {
    let here = Folder::new();
    write_corpus(&here, 3 * MEMORY);
    for method in [EXACT, "simhash:features=char:5", "minhash:features=char:5"] {
        assert!(same_in_less_memory(&here, method, 2, MEMORY) > 0, "{method}");
        let spilled = here.success("limited")["process"]["spilled_bytes"].as_u64().unwrap();
        // 24 bytes for each document of a band fit into memory.
        assert!(spilled > 0 || method.starts_with("minhash"), "{method}");
    }
}

/// Returns characters whose hashes agree with each other in 13 or more of the 16 bits of the first block.
fn alike(count: usize) -> String {
    let mut simhash = SimHashSpec::default().simhash(Features::Chars(1), &Statistics::default());
    let block = |fingerprint: u64| fingerprint as u16;
    let first = block(simhash.fingerprint("一"));
    let hanzi = (0x4E00..0x9FA5).filter_map(char::from_u32);
    let near = hanzi.filter(|c| (block(simhash.fingerprint(&c.to_string())) ^ first).count_ones() <= 3);
    let found: String = near.take(count).collect();
    assert_eq!(found.chars().count(), count);
    found
}

/// The corpus has 100,000 copies of one text, and 100,000 texts of which most share one block of their
/// fingerprints and no other.
#[test]
fn many_copies_and_many_that_share_a_block_fit_into_memory_and_are_spread() {
    const WORKERS: u64 = 4;
    const METHOD: &str = "simhash:features=char:1,clean=none";
    let here = Folder::new();
    let mut random = Random(2);
    let copy = random.text(100);
    let shared = alike(40);
    let mut lines = String::new();
    for number in 0..100_000 {
        lines += &json_line(format!("a{number}"), &copy);
        lines += &json_line(format!("b{number}"), &(shared.clone() + &random.text(60)));
    }
    here.write("in.jsonl", lines);
    assert!(same_in_less_memory(&here, METHOD, WORKERS, MEMORY) >= 99_999);
    let success = here.success("limited");
    let blocks = success["blocks"].as_array().unwrap();
    let number = |block: &Value, name: &str| block[name].as_u64().unwrap();
    assert!(number(&blocks[0], "largest_bucket") > 50_000, "{}", blocks[0]);
    for block in blocks {
        let (all, most) = (number(block, "compared"), number(block, "most_compared_by_a_worker"));
        assert!(most * WORKERS <= 2 * all, "{block}");
    }
}

/// Returns a run of `line` in a mount namespace of its own, where the folder `small` is a disk of 1 MB.
fn on_a_small_disk(here: &Folder, line: &str) -> Command {
    let inner = here.command(line);
    let mut command = unshare(&["--map-root-user", "--mount"]);
    let mount = "mount -t tmpfs -o size=1m none small && exec \"$0\" \"$@\"";
    command.args(["sh", "-c", mount]);
    command.arg(inner.get_program()).args(inner.get_args());
    command.current_dir(here.path("")).process_group(0);
    command
}

#[test]
fn a_full_local_disk_is_one_clear_error_and_the_old_output_stays() {
    let here = Folder::new();
    write_corpus(&here, 48 * MIB);
    fs::create_dir(here.path("small")).unwrap();
    let dedup = format!("dedup in.jsonl out --quiet --overwrite --workers 2 --method {EXACT}");
    here.run(&dedup.replace(EXACT, "exact")).ends(0);
    let before = (here.bytes("out/kept", ".jsonl"), here.success("out"));
    let limited = format!("{dedup} --memory 64M --local-dir small");
    let failed = run(&mut on_a_small_disk(&here, &limited));
    failed.fails(1, &["the disk of \"small\" is full", "could not spill"]);
    assert!(before == (here.bytes("out/kept", ".jsonl"), here.success("out")));
    // The map stage is not done again.
    here.run(&limited).ends(0);
    here.run(&dedup.replace(" out ", " fresh ")).ends(0);
    assert!(found(&here, "out") == found(&here, "fresh"));
}
