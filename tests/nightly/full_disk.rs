//! A disk that is full while a night writes its state.

use std::fs;

use super::ledger::is_sound;
use crate::corpus::json_lines;
use crate::support::{Folder, Random, run, unshare};

/// KiB that are left on the disk of the state, so that a night fails at one step after the other.
const LEFT: [u32; 10] = [0, 4, 8, 12, 20, 28, 36, 44, 56, 72];

/// The script runs in a mount namespace of its own, where `small` is a disk of 1 MB.
#[test]
fn a_night_on_a_full_disk_is_one_error_that_says_what_to_do_and_runs_when_there_is_space() {
    let here = Folder::new();
    let mut random = Random(9);
    for night in ["first", "second"] {
        let docs: Vec<_> = (0..20).map(|number| (format!("{night}{number}"), random.text(60))).collect();
        here.write(&format!("{night}.jsonl"), json_lines(docs));
    }
    fs::create_dir(here.path("small")).unwrap();
    // Fails here, with what is missing, on a machine without namespaces.
    drop(unshare(&["--mount"]));
    let night = |name: &str| {
        format!(
            "dedup-job --progress none --workers 1 nightly --state small/state --output {name} {name}.jsonl"
        )
    };
    let script = format!(
        "mount -t tmpfs -o size=1m none small || exit 9; \
        {} >>log 2>&1 || exit 8; cp -r small/state base; \
        for left in {}; do \
          rm -rf small/state second; cp -r base small/state; \
          head -c 2m /dev/zero >small/ballast 2>>log; truncate -s -${{left}}k small/ballast; \
          {} 2>$left.err >>log; echo $? >$left.code; \
          dedup-job nightly check --state small/state >>log || exit 7; \
          rm small/ballast; \
          {} 2>>log >>log || exit 6; \
          rm -rf after.$left; cp -r small/state after.$left; \
        done",
        night("first"),
        LEFT.map(|left| left.to_string()).join(" "),
        night("second"),
        night("second"),
    );
    let script = format!("exec unshare --mount sh -c '{script}'");
    run(&mut here.shell(&script)).ends(0);
    let text = |name: &str| fs::read_to_string(here.path(name)).unwrap();
    let mut failed = 0;
    for left in LEFT {
        is_sound(&here, &format!("after.{left}"));
        if text(&format!("{left}.code")) == "0\n" {
            continue;
        }
        failed += 1;
        let error = text(&format!("{left}.err"));
        let lines: Vec<_> = error.lines().filter(|line| line.starts_with("error: ")).collect();
        assert!(lines.len() == 1 && lines[0].contains("small/state"), "{left}: {error}");
        assert!(
            lines[0].contains("No space left") && lines[0].contains("free some space"),
            "{left}: {error}"
        );
    }
    assert!(failed > 4, "{failed} nights failed");
}
