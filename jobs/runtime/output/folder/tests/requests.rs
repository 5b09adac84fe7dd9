//! Every request of a run to a bucket fails, and every request of the run that takes over: checks what a
//! reader sees in between, and what is there at the end. Every combination of two such requests is tried.

use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use cluster::Store;

use super::bucket_store::{BucketStore, Fault};
use super::{Job, OUT, check_files, check_reader};
use crate::cli::exit::WrongUse;
use crate::corpus::output_layout::SUCCESS;

/// Number of splits. One split writes files enough for a request that names several keys to do half of its
/// work.
const SPLITS: u32 = 1;

fn run(store: &BucketStore, name: &'static str, overwrite: bool) -> Result<()> {
    let job = Job { name, splits: SPLITS, overwrite };
    super::run(&(Arc::new(store.clone()) as Arc<dyn cluster::Store>), job, &mut [0; 2])
}

/// Makes a bucket, with an old output if that is to be replaced.
fn start(overwrite: bool) -> BucketStore {
    let store = BucketStore::default();
    if overwrite {
        run(&store, "old", false).unwrap();
    }
    store
}

/// Returns all faults that the requests of a run may have. `run` makes that run once, without faults.
fn faults(store: &BucketStore, run: impl FnOnce() -> Result<()>) -> Vec<(u64, Fault)> {
    store.restart(None);
    drop(run());
    let faults = |(number, changes): (usize, bool)| {
        // A request that only asks has no effect that could be lost.
        let kinds: &[Fault] =
            if changes { &[Fault::Fails, Fault::Half, Fault::Last] } else { &[Fault::Fails] };
        kinds.iter().map(move |kind| (number as u64, *kind)).collect::<Vec<_>>()
    };
    store.requests().into_iter().enumerate().flat_map(faults).collect()
}

/// Returns the bucket after a first run that met `fault`.
fn after(overwrite: bool, first: &'static str, fault: (u64, Fault)) -> BucketStore {
    let store = start(overwrite);
    store.restart(Some(fault));
    drop(run(&store, first, overwrite));
    store
}

/// Tries every fault of a run of `first` with every fault of the run of `second` that takes over. A last run
/// of `second` has no fault.
fn every_two_faults(overwrite: bool, first: &'static str, second: &'static str) {
    let allowed = &["old", first, second][usize::from(!overwrite)..];
    let store = start(overwrite);
    let mut combinations = 0;
    for one in faults(&store, || run(&store, first, overwrite)) {
        let store = after(overwrite, first, one);
        // A run with another key may only replace the output with `--overwrite`.
        let replace = overwrite || first != second;
        for other in faults(&store, || run(&store, second, replace)) {
            let when = format!("overwrite {overwrite}, {first} with {one:?}, {second} with {other:?}");
            let store = after(overwrite, first, one);
            check_reader(store.files(OUT), SPLITS, allowed, &when);
            store.restart(Some(other));
            drop(run(&store, second, replace));
            check_reader(store.files(OUT), SPLITS, allowed, &when);
            store.restart(None);
            if let Err(error) = run(&store, second, replace) {
                // The output was whole already, and then a run without `--overwrite` must not touch it.
                let whole = check_reader(store.files(OUT), SPLITS, &[second], &when);
                assert!(matches!(error.downcast_ref(), Some(WrongUse(_))) && whole, "{when}: {error:#}");
            } else {
                check_files(store.files(OUT), SPLITS, second, &when);
            }
            assert_eq!(store.forgotten_uploads(), [""; 0], "{when}");
            combinations += 1;
        }
    }
    assert!(combinations > 5_000, "{combinations}");
}

#[test]
fn any_two_requests_may_fail_where_there_was_nothing() {
    every_two_faults(false, "new", "new");
}

#[test]
fn any_two_requests_may_fail_where_an_output_is_replaced() {
    every_two_faults(true, "new", "new");
}

#[test]
fn any_two_requests_may_fail_where_another_job_takes_over() {
    every_two_faults(true, "new", "other");
}

#[test]
fn a_decided_commit_is_finished_by_whoever_comes_next() {
    let store = start(true);
    let mut finished = 0;
    for fault in faults(&store, || run(&store, "new", true)) {
        let store = after(true, "new", fault);
        let when = format!("{fault:?}");
        store.restart(None);
        match run(&store, "new", false) {
            Ok(()) => {
                check_files(store.files(OUT), SPLITS, "new", &when);
                finished += 1;
            }
            Err(error) => assert!(matches!(error.downcast_ref(), Some(WrongUse(_))), "{when}: {error:#}"),
        }
    }
    assert!(finished > 10, "{finished}");
}

#[test]
fn a_commit_whose_uploads_are_gone_is_given_up_where_the_output_may_be_replaced() {
    let store = start(true);
    let mut given_up = 0;
    for fault in faults(&store, || run(&store, "new", true)) {
        let store = after(true, "new", fault);
        store.forget_uploads();
        store.restart(None);
        let refused =
            run(&store, "new", false).is_err_and(|error| !matches!(error.downcast_ref(), Some(WrongUse(_))));
        store.restart(None);
        let when = format!("{fault:?}");
        // A run that resumes sees only when it completes the uploads that they are gone.
        if run(&store, "new", true).is_err() {
            store.restart(None);
            if let Err(error) = run(&store, "new", true) {
                panic!("{when}: {error:#}");
            }
        }
        check_files(store.files(OUT), SPLITS, "new", &when);
        given_up += u32::from(refused);
    }
    assert!(given_up > 5, "{given_up}");
}

/// The request that decides a job may come late, after another run has taken over and finished.
#[test]
fn a_commit_never_replaces_what_another_run_has_finished_since() {
    let store = start(true);
    let mut decided = 0;
    for fault in faults(&store, || run(&store, "new", true)) {
        let store = after(true, "new", fault);
        store.restart(None);
        let mut output = store.create(&format!("{OUT}/{SUCCESS}")).unwrap();
        output.write_all(b"of another run").unwrap();
        output.finish().unwrap();
        decided += u32::from(store.files(OUT).keys().any(|name| name.ends_with("/job")));
        assert!(run(&store, "other", false).is_err(), "{fault:?}");
        let left = store.files(OUT);
        let success = left.iter().find(|(name, _)| name.ends_with(SUCCESS));
        assert_eq!(success.map(|(_, contents)| &contents[..]), Some(&b"of another run"[..]), "{fault:?}");
    }
    assert!(decided > 5, "{decided}");
}
