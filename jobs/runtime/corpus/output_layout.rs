//! Names in an output folder, by which an input can tell an output of this program.

use cluster::Store;

/// Name of the file that is written last.
pub const SUCCESS: &str = "_SUCCESS";
/// Prefix of the names of locks and beats, before their numbers.
pub(crate) const LOCK: &str = "lock-";
/// Folders of an output, in the order in which they become visible.
pub const FOLDERS: [&str; 16] = [
    "rejects",
    "rejected",
    "labels",
    "statistics",
    "ignored-lines",
    "corrections",
    "clusters",
    "pairs",
    "spans",
    "removed",
    "annotated",
    "kept",
    "packed",
    "unpacked",
    "exported",
    "fingerprints",
];

/// Those of them that hold the records which a job has made or let stay.
pub const RECORDS: [&str; 6] = ["kept", "annotated", "packed", "unpacked", "exported", "fingerprints"];

/// Files beside these folders, besides [`SUCCESS`].
pub const FILES: [&str; 1] = [REPORT];
/// Name of the page about a run.
pub const REPORT: &str = "report.html";

/// Whether a run of this program has begun an output in that folder and not finished it: `_temporary` holds a
/// lock, a beat or the folder of a run.
pub fn is_begun(store: &dyn Store, output: &str) -> Result<bool, cluster::Error> {
    let children = store.children_if_any(&format!("{output}/_temporary"))?;
    Ok(children.iter().any(|child| is_of_run(&child.path)))
}

/// Whether `_temporary` of an output holds what is of another program, such as a job of Spark that is writing there, and nothing of a run
/// of this one.
pub(crate) fn is_begun_by_others(store: &dyn Store, output: &str) -> Result<bool, cluster::Error> {
    let children = store.children_if_any(&format!("{output}/_temporary"))?;
    // The store writes a lock under a hidden name first.
    let is_hidden = |path: &str| name_of(path).starts_with('.');
    Ok(children.iter().any(|child| !is_hidden(&child.path))
        && !children.iter().any(|child| is_of_run(&child.path)))
}

/// Whether a path in `_temporary` is that of a lock, of a beat, or of the folder of a run.
pub(crate) fn is_of_run(path: &str) -> bool {
    let is_number = |text: &str| text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit());
    let name = name_of(path);
    match name.strip_prefix(LOCK) {
        Some(lock) => is_number(lock.strip_suffix(".beat").unwrap_or(lock)),
        None => {
            let name = name.strip_suffix(".gone").unwrap_or(name);
            name.split_once('-').is_some_and(|(number, unique)| is_number(number) && unique.len() == 16)
        }
    }
}

fn name_of(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}
