//! Small files of the output on a store of uploads. An upload of its own takes four requests, whatever its length. So the
//! contents of many small files lie in one object of the run's folder, a bundle, until the commit writes each file to its
//! name; and the task manifests of many splits are one object too.
//!
//! Source: Hadoop's "magic" S3A committer keeps the pending uploads of a task in one object; see docs/design/0009.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use cluster::Uploads;
use serde::{Deserialize, Serialize};

use super::by_upload::{AT_ONCE, each_at_once, hash_of};
use super::commit::JobManifest;
use super::{OutputFile, OutputFolder, TaskManifest, put, read};

/// The length of the longest file that is small, in bytes.
pub(super) const SMALL_BYTES: usize = if cfg!(test) { 12 } else { 256 << 10 };
/// A bundle is written when it has so many bytes.
const BUNDLE_BYTES: usize = 4 << 20;
/// A finished task is written with the next one when the one before was written less than this ago. A killed run loses it.
const HELD: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_secs(1) };
/// In a run's folder: the bundles, and the task manifests.
pub(super) const BUNDLES: &str = "bundles";
pub(super) const TASKS: &str = "tasks";

/// The place of a small file's contents.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Place {
    /// The name of the bundle.
    bundle: String,
    /// Where the contents begin in the bundle, in bytes.
    offset: u64,
}

/// The bundle and the task manifests that a process has not written yet, and what an earlier process had written.
///
/// Holds up to [`BUNDLE_BYTES`] and the small files that are being written. A run that resumes another one holds the task
/// manifests of all splits, as the list of files does.
#[derive(Default)]
pub(super) struct Bundles {
    open: Mutex<Open>,
    /// By the number of the split and the hash of what was decided for it. `None` until it is asked for.
    found: Mutex<Option<BTreeMap<(u32, u64), TaskManifest>>>,
}

#[derive(Default)]
struct Open {
    /// The name of the bundle; empty while it has no file.
    bundle: String,
    contents: Vec<u8>,
    tasks: Vec<(u32, TaskManifest)>,
    written: Option<Instant>,
}

impl Open {
    /// The contents are written before a task manifest that may name them.
    fn write(&mut self, folder: &OutputFolder) -> Result<(), cluster::Error> {
        let store = folder.store.as_ref();
        if !self.bundle.is_empty() {
            put(store, &bundle_path(folder, &self.bundle), &self.contents)?;
            self.contents.clear();
            self.bundle.clear();
        }
        if let Some((first, _)) = self.tasks.first() {
            let path = folder.temporary(&format!("{TASKS}/{first:05}-{}", unique()));
            let tasks = serde_json::to_vec(&self.tasks).map_err(|error| cluster::Error::Io {
                path: path.clone(),
                action: "write",
                source: error.into(),
            })?;
            put(store, &path, &tasks)?;
            self.tasks.clear();
        }
        self.written = Some(Instant::now());
        Ok(())
    }
}

impl Bundles {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the contents of a small file.
    pub fn add(&self, contents: &[u8]) -> Place {
        let open = &mut *self.open();
        if open.bundle.is_empty() {
            open.bundle = unique();
        }
        let place = Place { bundle: open.bundle.clone(), offset: open.contents.len() as u64 };
        open.contents.extend_from_slice(contents);
        place
    }

    /// Adds the manifest of a split whose files are finished. It is written soon.
    pub fn add_task(
        &self,
        folder: &OutputFolder,
        split: u32,
        task: &TaskManifest,
    ) -> Result<(), cluster::Error> {
        let open = &mut *self.open();
        open.tasks.push((split, task.clone()));
        if open.written.is_none_or(|written| written.elapsed() >= HELD) { open.write(folder) } else { Ok(()) }
    }

    /// Writes the bundle if it is long enough.
    pub fn write_long(&self, folder: &OutputFolder) -> Result<(), cluster::Error> {
        let open = &mut *self.open();
        if open.contents.len() >= BUNDLE_BYTES { open.write(folder) } else { Ok(()) }
    }

    /// Writes what is not written yet.
    pub fn write_all(&self, folder: &OutputFolder) -> Result<(), cluster::Error> {
        self.open().write(folder)
    }

    /// The task manifest of a split that an earlier run has left with what is decided for it now; once.
    pub fn take_found(
        &self,
        folder: &OutputFolder,
        split: u32,
        decided: u64,
    ) -> Result<Option<TaskManifest>> {
        let found = &mut *self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match found {
            Some(found) => found,
            None => found.insert(find_tasks(folder)?),
        };
        Ok(found.remove(&(split, decided)))
    }
}

/// The task manifests in a run's folder.
fn find_tasks(folder: &OutputFolder) -> Result<BTreeMap<(u32, u64), TaskManifest>> {
    let store = folder.store.as_ref();
    let found = Mutex::new(BTreeMap::new());
    each_at_once(AT_ONCE, &store.everything(&folder.temporary(TASKS))?, |entry| {
        let tasks = read(store, &entry.path)?.unwrap_or_default();
        let tasks: Vec<(u32, TaskManifest)> = serde_json::from_slice(&tasks).unwrap_or_default();
        let tasks = tasks.into_iter().map(|(split, task)| ((split, task.decided), task));
        found.lock().unwrap_or_else(PoisonError::into_inner).extend(tasks);
        Ok(())
    })?;
    Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Writes each small file of a decided job to its name. Can be done again. Holds one bundle.
pub(super) fn show(folder: &OutputFolder, uploads: &dyn Uploads, job: &JobManifest) -> Result<()> {
    let store = folder.store.as_ref();
    let mut bundles = BTreeMap::<&str, Vec<(&String, &OutputFile, u64)>>::new();
    for (name, file) in &job.files.0 {
        if let Some(Place { bundle, offset }) = &file.place {
            bundles.entry(bundle).or_default().push((name, file, *offset));
        }
    }
    for (bundle, files) in bundles {
        let path = bundle_path(folder, bundle);
        let contents = read(store, &path)?.ok_or_else(|| anyhow!("\"{path}\" is missing"))?;
        each_at_once(AT_ONCE, &files, |(name, file, offset)| {
            let contents = contents.get(*offset as usize..(offset + file.bytes) as usize);
            let contents = contents.filter(|bytes| hash_of(bytes) == file.blake3);
            let contents = contents.with_context(|| format!("\"{path}\" does not hold \"{name}\""))?;
            folder.check_lately()?;
            Ok(uploads.write(&folder.at(name), contents, job.earlier.tag(name))?)
        })?;
    }
    Ok(())
}

fn bundle_path(folder: &OutputFolder, bundle: &str) -> String {
    folder.temporary(&format!("{BUNDLES}/{bundle}"))
}

/// A name like no other. Two owners may write to one folder for a while, and neither may replace what the other one names.
fn unique() -> String {
    let [a, b] = [0; 2].map(|_| RandomState::new().hash_one(Instant::now()));
    format!("{a:016x}{b:016x}")
}
