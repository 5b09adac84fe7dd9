//! Tests that kill a night, a compaction or a rollback at each step of its files in turn. The next run must find one
//! consistent order of nights, whatever it does.

use std::fs;

use super::ledger::{Exported, Ledger, export, is_sound, removals};
use crate::corpus::json_lines;
use crate::faults::Whole;
use crate::support::{Folder, Random, Tree, copy_folder, run};

/// Steps of the local store.
const STEPS: [&str; 6] = ["create", "write", "settle", "finish", "rename", "remove"];
/// Those after which a reader may see something else.
const VISIBLE: [&str; 4] = ["settle", "finish", "rename", "remove"];
/// Nights of the state that every trial begins with. With the next one there are enough to be merged.
const BEFORE: [&str; 3] = ["monday", "tuesday", "wednesday"];

const THURSDAY: &str =
    "nightly --quiet --workers 2 --state state --output thursday --retract thursday.txt thursday.jsonl";
pub const FRIDAY: &str =
    "nightly --quiet --workers 2 --state state --output friday --retract friday.txt friday.jsonl";

pub const COMPACT: &str = "nightly compact --state state --quiet";
pub const ROLLBACK: &str = "nightly rollback --state state --to tuesday --quiet";

/// Folder with a state of three nights, and the input of two more.
pub struct Trials {
    pub here: Folder,
    /// Decisions of the outputs of the three nights.
    ledger: Ledger,
}

impl Trials {
    pub fn new() -> Self {
        let here = Folder::new();
        let mut random = Random(1);
        let templates = [(); 6].map(|()| random.text(40));
        for night in BEFORE.into_iter().chain(["thursday", "friday"]) {
            let docs = (0..12).map(|number| {
                let mut text: Vec<char> = templates[random.below(6)].chars().collect();
                (0..random.below(3)).for_each(|_| text[random.below(40)] = '改');
                (format!("{night}{number}"), text.into_iter().collect::<String>())
            });
            let docs: Vec<_> = docs.collect();
            here.write(&format!("{night}.jsonl"), json_lines(docs));
        }
        let withdrawn = [("wednesday", "monday3"), ("thursday", "monday0\ntuesday1"), ("friday", "monday1")];
        for (night, ids) in withdrawn {
            here.write(&format!("{night}.txt"), ids);
        }
        here.write("monday.txt", "");
        here.write("tuesday.txt", "");
        let mut ledger = Ledger::default();
        for night in BEFORE {
            here.run(&THURSDAY.replace("thursday", night)).ends(0);
            ledger.add(&here, night, &ids(&here, night));
        }
        fs::rename(here.path("state"), here.path("base")).unwrap();
        Trials { here, ledger }
    }

    /// Puts the state of the three nights in place, and removes the outputs of the later ones.
    pub fn restore(&self) {
        for name in ["state", "thursday", "friday"] {
            if self.here.path(name).exists() {
                fs::remove_dir_all(self.here.path(name)).unwrap();
            }
        }
        copy_folder(&self.here.path("base"), &self.here.path("state"));
    }

    /// Kills a run at a step that comes for the `number`th time. Returns `false` if the run ends before.
    fn is_killed(&self, line: &str, step: &str, number: usize) -> bool {
        self.restore();
        let mut command = self.here.command(line);
        let killed = run(command.env("DEDUP_FAULT", format!("0 {step} {number} kill")));
        assert!(matches!(killed.code, None | Some(0)), "{step} {number}: {killed:?}");
        killed.code.is_none()
    }

    /// Kills runs at each of these steps in turn, and calls `then` with a name after each death.
    fn kill_at_each(&self, line: &str, steps: &[&str], then: impl Fn(&str)) {
        for step in steps {
            let mut deaths = 0;
            while self.is_killed(line, step, deaths + 1) {
                deaths += 1;
                then(&format!("{step} {deaths} of {line}"));
            }
            println!("{deaths} deaths at {step} of {line}");
        }
    }

    /// Returns the files of the state, without the parts of their names that differ by run. The history is for people, and
    /// has times.
    fn state(&self) -> Tree {
        let mut files = self.here.contents("state");
        files.remove("history.jsonl");
        files.into_iter().map(|(name, bytes)| (without_run(&name), without_run_in(&name, bytes))).collect()
    }

    pub fn export(&self) -> Vec<Exported> {
        export(&self.here, "state")
    }

    /// Returns what the state says after some runs that nobody kills.
    fn undisturbed(&self, lines: &[&str]) -> Vec<Exported> {
        self.restore();
        lines.iter().for_each(|line| drop(self.here.run(line).ends(0)));
        self.export()
    }

    /// Whether the output of a night is complete.
    pub fn is_done(&self, night: &str) -> bool {
        self.here.path(night).join("_SUCCESS").exists()
    }

    /// Checks that the outputs of the nights that are complete say what the state says.
    fn outputs_agree(&self, nights: &[&str], documents: &[Exported], what: &str) {
        let mut ledger = self.ledger.clone();
        for night in nights.iter().filter(|night| self.is_done(night)) {
            ledger.add(&self.here, night, &ids(&self.here, night));
        }
        assert!(ledger.0.iter().eq(removals(documents).keys()), "{what}");
    }
}

/// Returns a name without `-` and the 16 digits by which files of a run differ from those of others.
fn without_run(name: &str) -> String {
    match name.rsplit_once('-') {
        Some((before, rest)) if rest.find('.') == Some(16) => format!("{before}{}", &rest[16..]),
        _ => name.to_owned(),
    }
}

/// Returns the contents of a file in which a manifest names files without their runs, and has no hash of itself.
fn without_run_in(name: &str, bytes: Vec<u8>) -> Vec<u8> {
    if !name.ends_with(".json") {
        return bytes;
    }
    let text = String::from_utf8(bytes).unwrap();
    let (manifest, _hash) = text.trim_end().rsplit_once('\n').unwrap();
    manifest.split('"').map(without_run).collect::<Vec<_>>().join("\"").into_bytes()
}

/// Returns the ids that a night withdraws.
fn ids(here: &Folder, night: &str) -> Vec<String> {
    fs::read_to_string(here.path(&format!("{night}.txt"))).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_killed_night_that_runs_again_leaves_what_one_run_leaves() {
    let trials = Trials::new();
    trials.undisturbed(&[THURSDAY]);
    let state = trials.state();
    let output = Whole::read(&trials.here.path("thursday")).unwrap();
    assert!(output.files.keys().any(|name| name.starts_with("corrections/")), "{:?}", output.files.keys());
    assert!(state.keys().any(|name| name.contains("-merged")), "{:?}", state.keys());
    trials.kill_at_each(THURSDAY, &STEPS, |what| {
        trials.here.run(THURSDAY).ends(0);
        let now = trials.state();
        let differs = |name: &&String| now.get(*name) != state.get(*name);
        let differing: Vec<_> = now.keys().chain(state.keys()).filter(differs).collect();
        assert!(differing.is_empty(), "{what}: {differing:?}");
        assert!(Whole::read(&trials.here.path("thursday")).unwrap() == output, "{what}: another output");
    });
}

#[test]
fn a_killed_night_before_another_one_is_whole_or_never_was() {
    let trials = Trials::new();
    let before = trials.undisturbed(&[]);
    let killed = trials.undisturbed(&[THURSDAY]);
    let without = trials.undisturbed(&[FRIDAY]);
    let both = trials.undisturbed(&[THURSDAY, FRIDAY]);
    let turned = trials.undisturbed(&[FRIDAY, THURSDAY]);
    trials.kill_at_each(THURSDAY, &VISIBLE, |what| {
        let seen = trials.export();
        assert!(seen == before || seen == killed, "{what}: a part of a night was seen");
        trials.here.run(FRIDAY).ends(0);
        let is_done = trials.is_done("thursday");
        let now = trials.export();
        assert!(seen == before || is_done, "{what}: a night that was seen is gone");
        assert!(now == *if is_done { &both } else { &without }, "{what}: {now:?}");
        trials.outputs_agree(&["thursday", "friday"], &now, what);
        is_sound(&trials.here, "state");
        assert!(!trials.here.path("state/_temporary").exists(), "{what}");

        trials.here.run(THURSDAY).ends(0);
        let (order, expected) =
            if is_done { (["thursday", "friday"], &both) } else { (["friday", "thursday"], &turned) };
        assert!(trials.export() == *expected, "{what}: another order");
        trials.outputs_agree(&order, expected, what);
    });
}

/// Checks that a killed run of a tool, run again, leaves what one run or two of them leave.
fn a_killed_tool_goes_on(line: &str) {
    let trials = Trials::new();
    let before = trials.undisturbed(&[]);
    let after = trials.undisturbed(&[line]);
    let once = trials.state();
    trials.here.run(line).ends(0);
    let twice = trials.state();
    trials.kill_at_each(line, &STEPS, |what| {
        let seen = trials.export();
        assert!(seen == before || seen == after, "{what}: something in between was seen");
        trials.here.run(line).ends(0);
        let state = trials.state();
        assert!(state == once || state == twice, "{what}: {:?}", state.keys());
        is_sound(&trials.here, "state");
    });
}

#[test]
fn a_killed_compaction_goes_on() {
    a_killed_tool_goes_on(COMPACT);
}

#[test]
fn a_killed_rollback_goes_on() {
    a_killed_tool_goes_on(ROLLBACK);
}
