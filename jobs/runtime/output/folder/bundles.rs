//! Bundles: small files of the output share one object until the commit, on a store of uploads.
//!
//! An upload takes four requests (begin, note, part, complete), whatever its length. So the contents of small
//! files are appended to one object in the folder of the run, the bundle. The task manifests say in which
//! bundle a file lies and at which offset. The commit reads one bundle at a time and writes each file to its
//! name with one request. The task manifests of many splits also share an object.
//!
//! Example: three splits keep 100 bytes each.
//!
//! ```text
//! split 4 finishes  0.2 s after the last write: 100 bytes are held, kept/part-00004 is at offset 0
//! split 5 finishes  0.9 s after the last write: 200 bytes are held, kept/part-00005 is at offset 100
//! split 6 finishes  1.3 s after the last write: 300 bytes are written to bundles/7c.., then the task
//!                   manifests of splits 4, 5 and 6 to tasks/00004-e1..
//! the job commits   bundles/7c.. is read, and each of the three files is written to its name
//! ```
//!
//! Source: Hadoop's "magic" S3A committer keeps the pending uploads of a task in one object; see
//! docs/design/stores.md.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use cluster::Uploads;
use parking_lot::Mutex;

use super::run_folder::RunFolder;
use crate::corpus::at_once::each;
use crate::output::files::{BundlePlace, OutputFile};
use crate::output::manifests::{JobManifest, TaskManifest};
use crate::output::requests::{AT_ONCE, hash_of, put, read};

/// Length of the longest file that is small, in bytes.
pub(super) const SMALL_BYTES: usize = if cfg!(test) { 12 } else { 256 << 10 };
/// Length at which a bundle is written, in bytes.
const BUNDLE_BYTES: usize = 4 << 20;
/// Time after a write for which finished tasks are held back, to be written with a later one. A killed run
/// loses them.
const HELD: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_secs(1) };
/// Folder of a run with the bundles.
pub(super) const BUNDLES: &str = "bundles";
/// Folder of a run with the task manifests.
pub(super) const TASKS: &str = "tasks";

/// Bundle and task manifests that a process has not written yet, and the task manifests of an earlier run.
///
/// Holds up to 4 MiB ([`BUNDLE_BYTES`]) and the small files that are being written. A run that resumes
/// another one also holds the task manifests of all splits, as the list of files does.
#[derive(Default)]
pub(super) struct Bundles {
    open: Mutex<Open>,
    /// Task manifests of the earlier run, by the number of the split and the hash of what was decided for it;
    /// `None` until they are asked for.
    found: Mutex<Option<BTreeMap<(u32, u64), TaskManifest>>>,
}

/// Contents and task manifests that are not written yet.
#[derive(Default)]
struct Open {
    /// Name of the bundle; empty while the bundle has no file.
    bundle: String,
    contents: Vec<u8>,
    tasks: Vec<(u32, TaskManifest)>,
    /// Time of the last write.
    written: Option<Instant>,
}

impl Open {
    /// Writes the bundle, then the task manifests, which may name it.
    fn write(&mut self, run: &RunFolder) -> Result<(), cluster::Error> {
        let store = run.store.as_ref();
        if !self.bundle.is_empty() {
            put(store, &bundle_path(run, &self.bundle), &self.contents)?;
            self.contents.clear();
            self.bundle.clear();
        }
        if let Some((first, _)) = self.tasks.first() {
            let path = run.temporary(&format!("{TASKS}/{first:05}-{}", unique()));
            let tasks = serde_json::to_vec(&self.tasks);
            let tasks = tasks.map_err(|error| cluster::Error::io(&path, "write", error.into()))?;
            put(store, &path, &tasks)?;
            self.tasks.clear();
        }
        self.written = Some(Instant::now());
        Ok(())
    }
}

impl Bundles {
    /// Adds the contents of a small file to the bundle.
    pub fn add(&self, contents: &[u8]) -> BundlePlace {
        let open = &mut *self.open.lock();
        if open.bundle.is_empty() {
            open.bundle = unique();
        }
        let place = BundlePlace { bundle: open.bundle.clone(), offset: open.contents.len() as u64 };
        open.contents.extend_from_slice(contents);
        place
    }

    /// Adds the manifest of a split whose files are finished. Writes all that is held if this is the first
    /// split or the last write was at least a second ago; otherwise a later split of this process does, or
    /// [`Bundles::write_all`].
    pub fn add_task(&self, run: &RunFolder, split: u32, task: &TaskManifest) -> Result<(), cluster::Error> {
        let open = &mut *self.open.lock();
        open.tasks.push((split, task.clone()));
        if open.written.is_none_or(|written| written.elapsed() >= HELD) { open.write(run) } else { Ok(()) }
    }

    /// Writes the bundle if it is long enough.
    pub fn write_long(&self, run: &RunFolder) -> Result<(), cluster::Error> {
        let open = &mut *self.open.lock();
        if open.contents.len() >= BUNDLE_BYTES { open.write(run) } else { Ok(()) }
    }

    /// Writes everything that is held.
    pub fn write_all(&self, run: &RunFolder) -> Result<(), cluster::Error> {
        self.open.lock().write(run)
    }

    /// Returns the task manifest that an earlier run has left for a split, if it had decided the same.
    /// Returns each manifest once.
    pub fn take_found(&self, run: &RunFolder, split: u32, decided: u64) -> Result<Option<TaskManifest>> {
        let found = &mut *self.found.lock();
        let found = match found {
            Some(found) => found,
            None => found.insert(find_tasks(run)?),
        };
        Ok(found.remove(&(split, decided)))
    }
}

/// Reads the task manifests in the folder of this run.
fn find_tasks(run: &RunFolder) -> Result<BTreeMap<(u32, u64), TaskManifest>> {
    let store = run.store.as_ref();
    let found = each(AT_ONCE, &store.everything(&run.temporary(TASKS))?, |entry| {
        let tasks = read(store, &entry.path)?.unwrap_or_default();
        Ok(serde_json::from_slice::<Vec<(u32, TaskManifest)>>(&tasks).unwrap_or_default())
    })?;
    Ok(found.into_iter().flatten().map(|(split, task)| ((split, task.decided), task)).collect())
}

/// Writes each small file of a decided job to its name. Can be repeated. Holds one bundle at a time.
pub(super) fn show(run: &RunFolder, uploads: &dyn Uploads, job: &JobManifest) -> Result<()> {
    let store = run.store.as_ref();
    let mut bundles = BTreeMap::<&str, Vec<(&String, &OutputFile, u64)>>::new();
    for (name, file) in &job.files.0 {
        if let Some(BundlePlace { bundle, offset }) = &file.place {
            bundles.entry(bundle).or_default().push((name, file, *offset));
        }
    }
    for (bundle, files) in bundles {
        let path = bundle_path(run, bundle);
        let contents = read(store, &path)?.ok_or_else(|| anyhow!("\"{path}\" is missing"))?;
        each(AT_ONCE, &files, |(name, file, offset)| {
            let contents = contents.get(*offset as usize..(offset + file.bytes) as usize);
            let contents = contents.filter(|bytes| hash_of(bytes) == file.blake3);
            let contents = contents.with_context(|| format!("\"{path}\" does not hold \"{name}\""))?;
            run.check_lately()?;
            let tag = job.earlier.replaced.get(*name).map(String::as_str);
            Ok(uploads.write(&run.at(name), contents, tag)?)
        })?;
    }
    Ok(())
}

fn bundle_path(run: &RunFolder, bundle: &str) -> String {
    run.temporary(&format!("{BUNDLES}/{bundle}"))
}

/// Returns a unique name. Two owners may write to one folder for a while, and neither may replace an object
/// that the other one names.
fn unique() -> String {
    let [a, b] = [0; 2].map(|_| RandomState::new().hash_one(Instant::now()));
    format!("{a:016x}{b:016x}")
}
