//! A disk that is full while files are put.

use std::fs;

use super::store::restored;
use crate::support::{Folder, Random, Tree, run, unshare};

/// Returns the files of a folder by their names in a snapshot.
fn put_files(here: &Folder, folder: &str) -> Tree {
    let files = here.contents(folder).into_iter();
    files.map(|(name, bytes)| (format!("{folder}/{name}"), bytes)).collect()
}

/// The script runs in a mount namespace of its own, where `small` is a disk of 1 MB.
#[test]
fn a_put_on_a_full_disk_is_one_clear_error_and_costs_no_snapshot() {
    let here = Folder::new();
    let mut random = Random(8);
    here.write("one/a.txt", random.text(20_000));
    here.write("large/random.bin", random.bytes(3 << 20));
    here.write("two/b.txt", random.text(20_000));
    fs::create_dir(here.path("small")).unwrap();
    drop(unshare(&["--mount"]));
    // The ballast leaves less space than one file after the other needs, so a put fails at another step each time.
    let script = "mount -t tmpfs -o size=1m none small || exit 9; \
        dedup-job chunk put small/store one >log || exit 8; \
        dedup-job chunk put small/store large 2>large.err >>log; echo $? >large.code; \
        for left in 4 8 12 16 20 24 28 32; do \
          head -c 2m /dev/zero >small/ballast 2>>log; truncate -s -${left}k small/ballast; \
          dedup-job chunk put small/store two 2>two.$left.err >>log; echo $? >two.$left.code; \
          dedup-job chunk restore small/store full.$left --snapshot \"$(cut -d' ' -f2 log | head -1 | tr -d :)\" 2>>log || exit 7; \
          rm small/ballast; \
        done; \
        dedup-job chunk prune small/store >>log || exit 6; \
        dedup-job chunk put small/store two >>log || exit 5; \
        dedup-job chunk check small/store --read-data >>log || exit 4; \
        cp -r small/store after";
    let script = format!("exec unshare --mount sh -c '{}'", script.replace('\'', "'\\''"));
    run(&mut here.shell(&script)).ends(0);
    let text = |name: &str| fs::read_to_string(here.path(name)).unwrap();
    let mut failed = 0;
    for name in ["large".to_owned()].into_iter().chain((1..9).map(|n| format!("two.{}", n * 4))) {
        if text(&format!("{name}.code")) == "0\n" {
            continue;
        }
        failed += 1;
        let error = text(&format!("{name}.err"));
        let lines: Vec<_> = error.lines().filter(|line| line.starts_with("error: ")).collect();
        assert!(lines.len() == 1 && lines[0].contains("small/store/"), "{name}: {error}");
        assert!(lines[0].contains("full") || lines[0].contains("No space left"), "{name}: {error}");
    }
    assert!(failed > 3, "{failed} puts failed");
    for left in (1..9).map(|n| n * 4) {
        assert!(here.contents(&format!("full.{left}")) == put_files(&here, "one"), "{left}");
    }
    assert!(restored(&here, "after", "latest") == put_files(&here, "two"));
}
