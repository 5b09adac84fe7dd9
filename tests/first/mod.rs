//! Tests of what a new user meets first: the help, completions, signals, and the lines that say how to go on.

use std::process::Stdio;
use std::time::Duration;

use crate::support::{Folder, Random, run, signal, wait_until};

#[test]
fn the_short_help_of_dedup_fits_on_a_screen_and_the_long_one_is_in_groups() {
    let here = Folder::new();
    let short = here.run("dedup -h").ends(0).stdout;
    assert!(short.lines().count() <= 60, "{} lines\n{short}", short.lines().count());
    assert!(short.contains("--help shows all options"), "{short}");
    let long = here.run("dedup --help").ends(0).stdout;
    let mut from = 0;
    for heading in [
        "Examples:",
        "\nInput:",
        "\nMethod:",
        "\nWhat stays:",
        "\nOutput:",
        "\nResources:",
        "\nWhere it runs:",
        "\nWatching:",
    ] {
        let at =
            long[from..].find(heading).unwrap_or_else(|| panic!("{heading} is not behind {}", &long[..from]));
        from += at;
    }
}

#[test]
fn every_shell_completes_and_man_has_a_page_for_each_command() {
    let here = Folder::new();
    let line = "dedup-job completions bash > c.bash && bash -c 'source c.bash && COMP_WORDS=(dedup-job ded) COMP_CWORD=1 \
                && _dedup__job dedup-job ded dedup-job && echo ${COMPREPLY[@]}'";
    assert_eq!(run(&mut here.shell(line)).ends(0).stdout, "dedup\n");
    for shell in ["zsh", "fish"] {
        let script = here.run(&format!("completions {shell}")).ends(0).stdout;
        assert!(script.contains("max-removed-per-source"), "{shell}");
    }
    std::fs::create_dir(here.path("man1")).unwrap();
    here.run("man man1").ends(0);
    let pages = here.files("man1").len();
    assert!(pages > 20 && here.path("man1/dedup-job-dedup.1").exists(), "{pages}");
    here.run("man none").fails(1, &["none"]);
}

#[test]
fn the_version_tells_how_it_was_built() {
    let here = Folder::new();
    let short = here.run("--version").ends(0).stdout;
    assert_eq!(here.run("version").ends(0).stdout, short);
    for line in ["--version --verbose", "version --verbose", "-V -v"] {
        let long = here.run(line).ends(0).stdout;
        assert!(
            long.starts_with(&short) && long.contains("\nkernel ") && long.contains("\ncommit "),
            "{long}"
        );
    }
}

/// Writes an input of many splits, starts a run of it, and ends that by a signal in the midst of it. Returns what the run said.
fn interrupted(here: &Folder, options: &str, name: &str) -> String {
    let mut random = Random(3);
    let texts: String =
        (0..60_000).map(|id| format!("{{\"id\":\"{id}\",\"text\":\"{}\"}}\n", random.text(60))).collect();
    here.write("in.jsonl", texts);
    let line = format!(
        "dedup in.jsonl {options} --workers 1 --split-size 300K --events events.jsonl --progress none"
    );
    let mut job = here.command(&line);
    let job = job.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("a split is mapped", Duration::from_secs(60), || {
        let events = std::fs::read_to_string(here.path("events.jsonl")).unwrap_or_default();
        events.contains("split_finished")
    });
    signal(job.id(), name);
    let ended = job.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), None, "{ended:?}");
    String::from_utf8(ended.stderr).unwrap()
}

#[test]
fn a_run_that_is_interrupted_says_what_is_kept_and_the_same_command_goes_on() {
    for name in ["INT", "TERM"] {
        let here = Folder::new();
        let said = interrupted(&here, "out", name);
        let expected = format!(
            "SIG{name}: finished splits are kept beside the output, and the same command goes on with them\n"
        );
        assert_eq!(said, expected);
        let again = here.run("dedup in.jsonl out --workers 1 --split-size 300K").ends(0).stderr;
        assert!(
            again.contains("going on with an earlier run of the same command, of 20")
                && again.contains(" UTC: "),
            "{again}"
        );
        assert!(!again.contains(": 0 of "), "{again}");
    }
}

#[test]
fn a_run_with_other_options_says_that_it_begins_anew() {
    let here = Folder::new();
    interrupted(&here, "out", "INT");
    let again = here.run("dedup in.jsonl out --method exact").ends(0).stderr;
    assert!(again.contains("beginning anew: "), "{again}");
}

#[test]
fn a_run_into_a_file_leaves_nothing_else_once_it_has_gone_on() {
    let here = Folder::new();
    interrupted(&here, "clean.jsonl", "INT");
    assert!(!here.path("clean.jsonl").exists());
    let again = here.run("dedup in.jsonl clean.jsonl --workers 1 --split-size 300K").ends(0).stderr;
    assert!(again.contains("going on with an earlier run"), "{again}");
    assert_eq!(here.files("").len(), 3, "{:?}", here.files(""));
    assert_eq!(std::fs::read_to_string(here.path("clean.jsonl")).unwrap().lines().count(), 60_000);
}
