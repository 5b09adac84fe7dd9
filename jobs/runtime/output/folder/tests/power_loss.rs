//! Loss of power at every step of a run, and of the run that resumes it: checks what a reader sees in
//! between, and what is there at the end.

use std::sync::Arc;

use anyhow::Result;

use super::power_store::PowerStore;
use super::random::Random;
use super::{Job, OUT, check_files, check_reader};
use crate::cli::exit::WrongUse;

const SPLITS: u32 = 3;

fn run(store: &PowerStore, name: &'static str, overwrite: bool, counts: &mut [u32; 2]) -> Result<()> {
    let job = Job { name, splits: SPLITS, overwrite };
    super::run(&(Arc::new(store.clone()) as Arc<dyn cluster::Store>), job, counts)
}

/// Turns the power on again. `seed` chooses which steps have survived.
fn restart(store: &PowerStore, seed: u64) {
    let mut random = Random(seed);
    store.restart(|content| match seed % 8 {
        0 => true,
        1 => false,
        2 => !content,
        3 => content,
        // Names and lengths survive, and any of the contents: file systems write names first.
        4 => !content || random.next().is_multiple_of(2),
        _ => random.next().is_multiple_of(2),
    });
}

/// Makes the last run, and checks that its output is there and durable, and nothing else.
#[track_caller]
fn check_end(store: &PowerStore, name: &'static str, overwrite: bool, when: &str) {
    let mut counts = [0; 2];
    if let Err(error) = run(store, name, overwrite, &mut counts) {
        // The output was whole already, and then a run without `--overwrite` must not touch it.
        assert!(
            matches!(error.downcast_ref(), Some(WrongUse(_)))
                && check_reader(store.files(OUT), SPLITS, &[name], when),
            "{when}: {error:#}"
        );
        return;
    }
    check_files(store.files(OUT), SPLITS, name, when);
    store.restart(|_| false);
    assert!(check_reader(store.files(OUT), SPLITS, &[name], when), "{when}: it was not durable");
}

/// Makes a disk with an old output, if that is to be replaced.
fn start(overwrite: bool) -> PowerStore {
    let store = PowerStore::new();
    if overwrite {
        run(&store, "old", false, &mut [0; 2]).unwrap();
        store.restart(|_| true);
    }
    store
}

/// Returns the number of changes that a whole run makes.
fn changes(overwrite: bool) -> u64 {
    let store = start(overwrite);
    let before = store.changes();
    run(&store, "new", overwrite, &mut [0; 2]).unwrap();
    store.changes() - before
}

#[test]
fn a_power_loss_at_any_step_leaves_no_broken_output() {
    for overwrite in [false, true] {
        let allowed: &[&str] = if overwrite { &["old", "new"] } else { &["new"] };
        for changes in 0..=changes(overwrite) {
            for seed in 0..24 {
                let when = format!("overwrite {overwrite}, after {changes} changes, seed {seed}");
                let store = start(overwrite);
                store.fail_after(changes);
                let ended = run(&store, "new", overwrite, &mut [0; 2]).is_ok();
                restart(&store, seed);
                let finished = check_reader(store.files(OUT), SPLITS, allowed, &when);
                assert!(finished || !ended, "{when}: not durable");
                check_end(&store, "new", overwrite, &when);
            }
        }
    }
}

#[test]
fn a_power_loss_at_any_step_of_the_resumed_run_leaves_no_broken_output() {
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
                check_reader(store.files(OUT), SPLITS, allowed, &when);
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
            check_reader(store.files(OUT), SPLITS, &["new"], &when);
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
            // The last split may have been finished when the power went and before it was counted.
            assert!(
                (SPLITS - 1..=SPLITS).contains(&(before[1] + after[1])),
                "after {changes} changes: {before:?} {after:?}"
            );
        }
        most = [most[0].max(before[0]), most[1].max(before[1])];
    }
    assert_eq!(most, [SPLITS; 2]);
}
