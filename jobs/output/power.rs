//! Power loss at every step of a run, and of the run that resumes it: what a reader sees, and what comes out at last.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;

use anyhow::Result;
use datasets::Parts;

use super::lock::Owner;
use super::power_store::PowerStore;
use super::{Key, OutputFolder, SUCCESS, SplitParts, TaskManifest};
use crate::WrongUse;

const OUT: &str = "/out";
const SPLITS: u32 = 3;

/// Of a machine that has lost its power there is no process left.
fn owner() -> Owner {
    let (boot, namespace) = ("boot".to_owned(), "namespace".to_owned());
    Owner { process: i32::MAX, boot, namespace, ..Owner::default() }
}

/// What a run named so leaves. `old` has a folder that `new` has not.
fn expected(name: &str) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::from([("/_SUCCESS".to_owned(), format!("success {name}"))]);
    for split in 0..SPLITS {
        files.insert(format!("/kept/part-{split:05}.x"), format!("kept {split} {name}"));
        files.insert(format!("/removed/part-{split:05}.x"), format!("removed {split} {name}"));
    }
    let table = if name == "old" { "statistics" } else { "pairs" };
    files.insert(format!("/{table}/part-00000"), format!("table {name}"));
    files.into_iter().map(|(path, text)| (path, text.into_bytes())).collect()
}

/// What a run does; `counts` the splits that were mapped and written, and not found finished.
fn run(store: &PowerStore, name: &str, overwrite: bool, counts: &mut [u32; 2]) -> Result<()> {
    let shared: Arc<dyn cluster::Store> = Arc::new(store.clone());
    let mut folder = OutputFolder::lock(shared, OUT.to_owned(), OUT, owner())?;
    folder.take_over(overwrite, Some(&Key(name.to_owned())))?;
    if folder.committed().is_some() {
        return Ok(());
    }
    for split in 0..SPLITS {
        let text = format!("map {split} {name}");
        let outputs = folder.map_outputs();
        if outputs.finished::<u64>(split)?.is_none() {
            let mut writer = outputs.create(split, 1)?;
            writer.sections()[0].extend_from_slice(text.as_bytes());
            writer.finish(7_u64)?;
            counts[0] += 1;
        }
        let (number, output) = outputs.open::<u64>(split)?;
        output.read(0, |frame| {
            assert_eq!((number, frame), (7, text.as_bytes()));
            Ok(())
        })?;
    }
    for split in 0..SPLITS {
        let decided = u64::from(split) + 7;
        if folder.finished_task(split, decided)?.is_none() {
            let parts = SplitParts::new(&folder, split);
            for kind in ["kept", "removed"] {
                let mut file = parts.part(kind, ".x")?;
                file.write_all(format!("{kind} {split} {name}").as_bytes())?;
                file.finish()?;
            }
            folder.task(split, &TaskManifest { decided, files: parts.files(), ..TaskManifest::default() })?;
            counts[1] += 1;
        }
    }
    let table = if name == "old" { "statistics" } else { "pairs" };
    let mut file = folder.file(&format!("{table}/part-00000"))?;
    file.write_all(format!("table {name}").as_bytes())?;
    file.finish()?;
    folder.commit(&format!("success {name}"))
}

/// Numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }
}

/// The power comes back; which steps have survived is chosen by `seed`.
fn restart(store: &PowerStore, seed: u64) {
    let mut random = Random(seed);
    store.restart(|content| match seed % 8 {
        0 => true,
        1 => false,
        2 => !content,
        3 => content,
        // Names and lengths go to the disk by themselves, and bytes when there is time.
        4 => !content || random.next().is_multiple_of(2),
        _ => random.next().is_multiple_of(2),
    });
}

/// Whoever sees `_SUCCESS` sees one whole output.
#[track_caller]
fn check_reader(store: &PowerStore, allowed: &[&str], when: &str) -> bool {
    let mut files = store.files(OUT);
    files.retain(|path, _| !path.starts_with("/_temporary"));
    let finished = files.contains_key(&format!("/{SUCCESS}"));
    assert!(!finished || allowed.iter().any(|name| expected(name) == files), "{when}: {files:?}");
    finished
}

/// After the last run: its output, and nothing else.
#[track_caller]
fn check_end(store: &PowerStore, name: &str, overwrite: bool, when: &str) {
    let mut counts = [0; 2];
    if let Err(error) = run(store, name, overwrite, &mut counts) {
        // It had been whole already, and then is not to be touched.
        assert!(error.is::<WrongUse>() && check_reader(store, &[name], when), "{when}: {error:#}");
        return;
    }
    assert_eq!(store.files(OUT), expected(name), "{when}");
    store.restart(|_| false);
    check_reader(store, &[name], when);
    assert!(store.files(OUT).contains_key(&format!("/{SUCCESS}")), "{when}: it was not durable");
}

/// An old output that is to be replaced, if `overwrite`.
fn start(overwrite: bool) -> PowerStore {
    let store = PowerStore::new();
    if overwrite {
        run(&store, "old", false, &mut [0; 2]).unwrap();
        store.restart(|_| true);
    }
    store
}

/// The changes that a whole run makes.
fn changes(overwrite: bool) -> u64 {
    let store = start(overwrite);
    let before = store.changes();
    run(&store, "new", overwrite, &mut [0; 2]).unwrap();
    store.changes() - before
}

#[test]
fn power_may_go_at_any_step() {
    for overwrite in [false, true] {
        let allowed: &[&str] = if overwrite { &["old", "new"] } else { &["new"] };
        for changes in 0..=changes(overwrite) {
            for seed in 0..24 {
                let when = format!("overwrite {overwrite}, after {changes} changes, seed {seed}");
                let store = start(overwrite);
                store.fail_after(changes);
                let ended = run(&store, "new", overwrite, &mut [0; 2]).is_ok();
                restart(&store, seed);
                let finished = check_reader(&store, allowed, &when);
                assert!(finished || !ended, "{when}: not durable");
                check_end(&store, "new", overwrite, &when);
            }
        }
    }
}

#[test]
fn power_may_go_again_at_any_step_of_the_run_that_resumes() {
    for overwrite in [false, true] {
        let allowed: &[&str] = if overwrite { &["old", "new"] } else { &["new"] };
        let all = changes(overwrite);
        for first in 0..=all {
            for second in (first % 5..=all).step_by(5) {
                let seed = first * all + second;
                let when = format!("overwrite {overwrite}, after {first} and {second} changes");
                let store = start(overwrite);
                store.fail_after(first);
                drop(run(&store, "new", overwrite, &mut [0; 2]));
                restart(&store, seed);
                store.fail_after(second);
                drop(run(&store, "new", overwrite, &mut [0; 2]));
                restart(&store, seed / 8);
                check_reader(&store, allowed, &when);
                check_end(&store, "new", overwrite, &when);
            }
        }
    }
}

#[test]
fn a_run_with_another_key_takes_nothing_over() {
    for changes in 0..=changes(false) {
        for seed in 0..8 {
            let when = format!("after {changes} changes, seed {seed}");
            let store = start(false);
            store.fail_after(changes);
            drop(run(&store, "new", false, &mut [0; 2]));
            restart(&store, seed);
            check_reader(&store, &["new"], &when);
            check_end(&store, "other", true, &when);
        }
    }
}

#[test]
fn what_was_finished_is_not_done_again() {
    let all = changes(false);
    let mut most = [0; 2];
    for changes in 0..all {
        let store = start(false);
        store.fail_after(changes);
        let (mut before, mut after) = ([0; 2], [0; 2]);
        drop(run(&store, "new", false, &mut before));
        store.restart(|_| true); // the process was killed, the machine was not
        drop(run(&store, "new", false, &mut after));
        if before[1] > 0 && after != [0; 2] {
            assert_eq!(before[0] + after[0], SPLITS, "after {changes} changes");
            // The last one may have been finished when the power went, and before it was counted.
            assert!(
                (SPLITS - 1..=SPLITS).contains(&(before[1] + after[1])),
                "after {changes} changes: {before:?} {after:?}"
            );
        }
        most = [most[0].max(before[0]), most[1].max(before[1])];
    }
    assert_eq!(most, [SPLITS; 2]);
}
