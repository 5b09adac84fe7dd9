//! The commit on a store of uploads (S3, Google Cloud Storage, Azure). Each file is uploaded to its final
//! name, where nobody sees it until the commit completes the upload. Small files wait in bundles
//! (`bundles.rs`), and the commit writes them. Nothing is copied or renamed.
//!
//! Every step can be repeated, also by several runs at once: an upload is completed once, and a job is
//! decided by creating the job manifest if it is absent, in which only one run succeeds.
//!
//! Source: the design of Hadoop's "magic" S3A committer, which keeps the ids of pending uploads beside the
//! output; see docs/design/0009.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use anyhow::{Result, anyhow, bail};
use cluster::{Store, Upload, UploadOutput, Uploads};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::bundles::{self, BUNDLES, TASKS};
use super::commit::{JOB, JobManifest};
use super::files::{found_below, found_in_ranges, hash};
use super::{KEY, OutputFolder, put, read};
use crate::corpus::output_layout::{FOLDERS, SUCCESS};

/// Folder of a run with notes of the uploads that it has begun, so that those of a dead run can be aborted.
const UPLOADS: &str = "uploads";
/// Content in place of a job manifest which says that the run may not decide any more.
const ABANDONED: &[u8] = b"abandoned";
/// Number of files that one request removes (S3: up to 1,000).
const REMOVED_AT_ONCE: usize = 1_000;
/// Number of requests that are on their way at a time. In a test they come one after the other, so that each
/// can fail.
pub(super) const AT_ONCE: usize = if cfg!(test) { 1 } else { 32 };

/// Content of the folders of an earlier output at the moment when a job is decided.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Earlier {
    /// Tags of the files that the job replaces, by the names of the files.
    replaced: BTreeMap<String, String>,
    /// Names of files that the job removes.
    removed: BTreeSet<String>,
    /// BLAKE3 hash of the `_SUCCESS` that the job replaces, in hexadecimal.
    #[serde(default)]
    success: Option<String>,
}

impl Earlier {
    /// Returns the tag that the file of that name had, if the job replaces one.
    pub fn tag(&self, name: &str) -> Option<&str> {
        self.replaced.get(name).map(String::as_str)
    }
}

/// Begins the upload of a file of the output to `path`, and notes it in the folder of the run.
pub(super) fn begin(
    store: &dyn Store,
    uploads: &dyn Uploads,
    path: &str,
    run: &str,
) -> Result<Box<dyn UploadOutput>, cluster::Error> {
    let output = uploads.begin(path)?;
    let upload = output.begun();
    // Azure gives an upload no id, and removes its parts by itself.
    if !upload.id.is_empty() {
        let note = serde_json::to_vec(&upload).map_err(|error| cluster::Error::Io {
            path: upload.path.clone(),
            action: "note the upload of",
            source: error.into(),
        })?;
        put(store, &format!("{run}/{UPLOADS}/{}", note_name(&upload)), &note)?;
    }
    Ok(output)
}

/// Returns the name of the note of an upload.
fn note_name(upload: &Upload) -> String {
    format!("{:032x}", xxh3_128(format!("{}\0{}", upload.path, upload.id).as_bytes()))
}

/// Creates the job manifest.
///
/// # Errors
/// When another run has taken over.
pub(super) fn decide(folder: &OutputFolder, uploads: &dyn Uploads, mut job: JobManifest) -> Result<()> {
    let found = found_below(folder.store.as_ref(), &folder.path, FOLDERS)?.into_keys();
    let (replaced, removed) = found.partition::<Vec<_>, _>(|name| job.files.0.contains_key(name));
    job.earlier.removed = removed.into_iter().collect();
    let tags = Mutex::new(&mut job.earlier.replaced);
    each_at_once(AT_ONCE, &replaced, |name| {
        if let Some(tag) = uploads.tag(&folder.at(name))? {
            tags.lock().insert(name.clone(), tag);
        }
        Ok(())
    })?;
    job.earlier.success = read(folder.store.as_ref(), &folder.at(SUCCESS))?.as_deref().map(hash_of);
    let (path, contents) = (folder.temporary(JOB), serde_json::to_vec(&job)?);
    folder.check()?;
    let created = folder.store.create_new(&path, &contents)?;
    // Two cases are no error: the answer to our first request was lost, or another run that resumes the same
    // folder has decided first. The first decision counts.
    if !created && read(folder.store.as_ref(), &path)?.as_deref() == Some(ABANDONED) {
        bail!("another run has taken over the output \"{}\"", folder.uri);
    }
    Ok(())
}

/// Completes all uploads, writes the small files, removes the files that go, and creates `_SUCCESS` last.
pub(super) fn show(folder: &OutputFolder, uploads: &dyn Uploads, job: &JobManifest) -> Result<()> {
    let store = folder.store.as_ref();
    match read(store, &folder.at(SUCCESS))? {
        Some(there) if there == job.success.as_bytes() => return Ok(()),
        // The request that created the manifest may have come late, after another run had taken over and
        // finished.
        Some(there) if Some(hash_of(&there)) != job.earlier.success => {
            bail!("another run has finished this output since that commit was decided")
        }
        _ => {}
    }
    // From here to the end no output is visible.
    folder.check()?;
    store.remove(&folder.at(SUCCESS))?;
    complete(folder, uploads, job)?;
    bundles::show(folder, uploads, job)?;
    folder.check()?;
    remove_files(folder, job.earlier.removed.iter().map(|name| folder.at(name)).collect())?;
    // The ranges are wrong for a store that lists in another order, so a difference is checked in one
    // listing.
    let found = found_in_ranges(store, &folder.path, &job.files);
    if !found.is_ok_and(|found| job.files.differences(&found).is_empty()) {
        let found = found_below(store, &folder.path, FOLDERS)?;
        job.files.compare(&found, &format!("the output \"{}\" is not whole", folder.uri))?;
    }
    show_success(folder, job)
}

/// Creates `_SUCCESS`. One that exists was written by a late request of an earlier run, and is replaced.
fn show_success(folder: &OutputFolder, job: &JobManifest) -> Result<()> {
    let (store, success) = (folder.store.as_ref(), folder.at(SUCCESS));
    for _ in 0..2 {
        folder.check()?;
        if store.create_new(&success, job.success.as_bytes())? {
            return Ok(());
        }
        if read(store, &success)?.as_deref() == Some(job.success.as_bytes()) {
            return Ok(());
        }
        folder.check()?;
        store.remove(&success)?;
    }
    bail!("\"{success}\" was written by another run; run again")
}

/// Returns the BLAKE3 hash of `bytes`, in hexadecimal.
pub(super) fn hash_of(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Completes the uploads of a decided job. If the store does not know an upload any more, its file must exist
/// with the hash of the list.
fn complete(folder: &OutputFolder, uploads: &dyn Uploads, job: &JobManifest) -> Result<()> {
    let files: Vec<_> = job.files.0.iter().filter(|(_, file)| file.place.is_none()).collect();
    each_at_once(AT_ONCE, &files, |(name, file)| {
        let Some(upload) = &file.upload else { bail!("no upload of \"{name}\" is known") };
        folder.check_lately()?;
        if uploads.complete(upload)? {
            return Ok(());
        }
        match hash(folder.store.as_ref(), &folder.at(name)) {
            Ok(hash) if hash == file.blake3 => Ok(()),
            Ok(_) | Err(cluster::Error::NotFound { .. }) => bail!("the upload of \"{name}\" is lost"),
            Err(error) => Err(error.into()),
        }
    })
}

/// Removes files, up to 1,000 with one request.
fn remove_files(folder: &OutputFolder, paths: Vec<String>) -> Result<()> {
    let requests: Vec<_> = paths.chunks(REMOVED_AT_ONCE).collect();
    each_at_once(AT_ONCE, &requests, |paths| {
        folder.check_lately()?;
        Ok(folder.store.remove_files(paths)?)
    })
}

/// Keeps the run in that folder from deciding. If it has already decided, returns its job manifest.
pub(super) fn abandon(folder: &OutputFolder, run: &str) -> Result<Option<JobManifest>> {
    if folder.store.create_new(&format!("{run}/{JOB}"), ABANDONED)? {
        return Ok(None);
    }
    folder.decided_in(run)
}

/// Whether the job manifest of a run decides nothing: the run was kept from deciding, or its request came
/// after its key was removed.
pub(super) fn is_void(folder: &OutputFolder, run: &str, manifest: &[u8]) -> Result<bool> {
    Ok(manifest == ABANDONED || !folder.store.exists(&format!("{run}/{KEY}"))?)
}

/// Aborts the uploads that a run has begun and that do not belong to `job`, and removes the run's folder but
/// for the job manifest.
///
/// `None` for `job` means that the run did not finish its commit. Its key is removed first then: a decision
/// without a key is void, also one whose request comes late.
pub(super) fn clear(
    folder: &OutputFolder,
    uploads: &dyn Uploads,
    run: &str,
    job: Option<&JobManifest>,
) -> Result<()> {
    let store = folder.store.as_ref();
    if job.is_none() {
        store.remove(&format!("{run}/{KEY}"))?;
    }
    let completed: BTreeSet<String> = job.map_or_else(BTreeSet::new, |job| {
        job.files.0.values().filter_map(|file| file.upload.as_ref()).map(note_name).collect()
    });
    let notes = store.everything(&format!("{run}/{UPLOADS}"))?;
    let is_stray = |path: &str| !completed.contains(path.rsplit('/').next().unwrap_or_default());
    let strays: Vec<_> = notes.iter().filter(|note| is_stray(&note.path)).collect();
    each_at_once(AT_ONCE, &strays, |note| {
        let upload = read(store, &note.path)?.and_then(|note| serde_json::from_slice(&note).ok());
        upload.map_or(Ok(()), |upload: Upload| Ok(uploads.abort(&upload)?))
    })?;
    if run == folder.run {
        // The names are known, and listing very many files takes longer than removing them.
        remove_files(folder, folder.map_outputs().paths(folder.splits))?;
    }
    for name in ["map", TASKS, BUNDLES, UPLOADS, KEY] {
        store.remove(&format!("{run}/{name}"))?;
    }
    Ok(())
}

/// Calls `work` for each of `items`, up to `at_once` at a time, until one call fails.
pub(crate) fn each_at_once<T: Sync>(
    at_once: usize,
    items: &[T],
    work: impl Fn(&T) -> Result<()> + Sync,
) -> Result<()> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let each = || -> Result<()> {
        while !failed.load(Ordering::Relaxed) {
            let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            work(item).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    };
    if at_once == 1 {
        return each();
    }
    thread::scope(|scope| {
        let threads: Vec<_> = (0..at_once.min(items.len())).map(|_| scope.spawn(each)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().map_err(|_| anyhow!("a thread that talked to the store panicked"))?
        })
    })
}
