//! Tests of the output folder with runs that do what `dedup` does, on stores that fail: a file system that
//! loses power, a bucket whose requests fail, and both with a run that sleeps while others take over.

mod asleep;
mod bucket_store;
mod power_loss;
#[path = "../../../../../tests/power_store/mod.rs"]
mod power_store;
#[path = "../../../../../tests/random.rs"]
mod random;
mod requests;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;

use anyhow::Result;
use cluster::{Store, TablePartition};

use datasets::Parts;
use serde_json::json;

use self::power_store::Files;
use super::lock::LockOwner;
use super::{OutputFolder, SplitParts};
use crate::corpus::output_layout::SUCCESS;
use crate::output::{FileList, Key, SuccessList, TaskManifest};

const OUT: &str = "/out";
/// Contents of a file that all jobs write.
const SAME: &str = "the same in all outputs";

/// Describes a process that is no longer alive, on another machine.
fn owner() -> LockOwner {
    let (boot, namespace) = ("boot".to_owned(), "namespace".to_owned());
    LockOwner { process: i32::MAX, boot, namespace, ..LockOwner::default() }
}

/// Run to be made; its name is in all files that it writes.
#[derive(Clone, Copy, Debug)]
struct Job {
    name: &'static str,
    splits: u32,
    overwrite: bool,
}

/// Returns the files of a job, without `_SUCCESS`. The job `old` has a folder that others do not have.
fn expected(name: &str, splits: u32) -> Files {
    let mut files = BTreeMap::new();
    for split in 0..splits {
        files.insert(format!("/kept/part-{split:05}.x"), format!("kept {split} {name}"));
        files.insert(format!("/removed/part-{split:05}.x"), format!("removed {split} {name}"));
    }
    let table = if name == "old" { "statistics" } else { "pairs" };
    files.insert(format!("/{table}/part-00000"), format!("table {name}"));
    files.insert("/clusters/part-00000".to_owned(), SAME.to_owned());
    files.into_iter().map(|(path, text)| (path, text.into_bytes())).collect()
}

/// Makes a whole run. Adds to `counts` the number of splits that it mapped and wrote, without those it found
/// finished.
fn run(store: &Arc<dyn Store>, job: Job, counts: &mut [u32; 2]) -> Result<()> {
    let mut folder = OutputFolder::lock(Arc::clone(store), OUT.to_owned(), OUT, owner())?;
    folder.run.splits = 0..job.splits;
    let key = Key(job.name.to_owned());
    folder.take_over(job.overwrite, Some(&key))?;
    if job.overwrite {
        folder.show_or_give_up(Some(&key))?;
    }
    let result = work(&folder, job, counts);
    folder.close(result)
}

/// Does the work of a run that has claimed its output.
fn work(folder: &OutputFolder, Job { name, splits, .. }: Job, counts: &mut [u32; 2]) -> Result<()> {
    if folder.decided.is_some() {
        return folder.finish_decided();
    }
    for split in 0..splits {
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
    let mut written = FileList::default();
    for split in 0..splits {
        let decided = u64::from(split) + 7;
        let task = match folder.finished_task(split, decided)? {
            Some(task) => task,
            None => {
                let parts = SplitParts::new(folder, split, TablePartition::of(""));
                for kind in ["kept", "removed"] {
                    let mut file = parts.part(kind, ".x")?;
                    file.write_all(format!("{kind} {split} {name}").as_bytes())?;
                    file.finish(1)?;
                }
                let task = TaskManifest { decided, files: parts.files(), ..TaskManifest::default() };
                folder.task(split, &task)?;
                counts[1] += 1;
                task
            }
        };
        written.add(task.files)?;
    }
    folder.write_held()?;
    let table = if name == "old" { "statistics" } else { "pairs" };
    for (name, text) in [(table, format!("table {name}")), ("clusters", SAME.to_owned())] {
        let mut file = folder.file(&format!("{name}/part-00000"))?;
        file.write_all(text.as_bytes())?;
        file.finish(1)?;
    }
    folder.commit(&json!({"name": name}), written, "").map(drop)
}

/// Checks what a reader sees: if there is `_SUCCESS`, the files are those that it lists, and those of one of
/// the `allowed` jobs. Returns whether there is `_SUCCESS`.
#[track_caller]
fn check_reader(mut files: Files, splits: u32, allowed: &[&str], when: &str) -> bool {
    files.retain(|path, _| !path.starts_with("/_temporary"));
    let Some(success) = files.remove(&format!("/{SUCCESS}")) else { return false };
    let name: serde_json::Value = serde_json::from_slice(&success).unwrap();
    let name = name["name"].as_str().unwrap();
    assert!(allowed.contains(&name) && expected(name, splits) == files, "{when}: {name} {files:?}");
    let SuccessList { files: listed } = serde_json::from_slice(&success).unwrap();
    let listed = listed.unwrap().0.into_iter().map(|(path, file)| {
        assert_eq!((file.records, file.blake3.len()), (1, 64));
        (format!("/{path}"), file.bytes)
    });
    let lengths = files.into_iter().map(|(path, contents)| (path, contents.len() as u64));
    assert!(listed.eq(lengths), "{when}: the list is not that of the files");
    true
}

/// Checks that the output of the last run is there, and nothing else.
#[track_caller]
fn check_files(files: Files, splits: u32, name: &str, when: &str) {
    assert_eq!(files.len(), expected(name, splits).len() + 1, "{when}: {:?}", files.keys());
    assert!(check_reader(files, splits, &[name], when), "{when}: there is no _SUCCESS");
}
