//! The commit on a store of uploads (S3, Google Cloud Storage, Azure). Each file is uploaded to its final
//! name, where nobody sees it until the commit completes the upload. Small files wait in bundles
//! (`bundles.rs`), and the commit writes them. Nothing is copied or renamed.
//!
//! Every step can be repeated, also by several runs at once: an upload is completed once, and a job is
//! decided by creating the job manifest if it is absent, in which only one run succeeds.
//!
//! Source: the design of Hadoop's "magic" S3A committer, which keeps the ids of pending uploads beside the
//! output; see docs/design/stores.md.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use cluster::{Store, Upload, UploadOutput, Uploads};
use xxhash_rust::xxh3::xxh3_128;

use super::bundles::{self, BUNDLES, TASKS};
use super::run_folder::{KEY, RunFolder};
use crate::corpus::at_once::each;
use crate::corpus::output_layout::SUCCESS;
use crate::output::files::{found_below, found_in_ranges};
use crate::output::manifests::{JOB, JobManifest};
use crate::output::requests::{AT_ONCE, hash, hash_of, put, read};

/// Folder of a run with notes of the uploads that it has begun, so that those of a dead run can be aborted.
const UPLOADS: &str = "uploads";
/// Content in place of a job manifest which says that the run may not decide any more.
const ABANDONED: &[u8] = b"abandoned";
/// Number of files that one request removes (S3: up to 1,000).
const REMOVED_AT_ONCE: usize = 1_000;
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
        let note = serde_json::to_vec(&upload)
            .map_err(|error| cluster::Error::io(&upload.path, "note the upload of", error.into()))?;
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
pub(super) fn decide(run: &RunFolder, uploads: &dyn Uploads, mut job: JobManifest) -> Result<()> {
    let found = found_below(run.store.as_ref(), &run.path)?.into_keys();
    let (replaced, removed) = found.partition::<Vec<_>, _>(|name| job.files.0.contains_key(name));
    job.earlier.removed = removed.into_iter().collect();
    let tags = each(AT_ONCE, &replaced, |name| Ok(uploads.tag(&run.at(name))?))?;
    job.earlier.replaced =
        replaced.into_iter().zip(tags).filter_map(|(name, tag)| Some((name, tag?))).collect();
    job.earlier.success = read(run.store.as_ref(), &run.at(SUCCESS))?.as_deref().map(hash_of);
    let path = run.temporary(JOB);
    let contents = serde_json::to_vec(&job)?;
    run.check()?;
    let created = run.store.create_new(&path, &contents)?;
    // Two cases are no error: the answer to our first request was lost, or another run that resumes the same
    // folder has decided first. The first decision counts.
    if !created && read(run.store.as_ref(), &path)?.as_deref() == Some(ABANDONED) {
        bail!("another run has taken over the output \"{}\"", run.uri);
    }
    Ok(())
}

/// Completes all uploads, writes the small files, removes the files that go, and creates `_SUCCESS` last.
pub(super) fn show(run: &RunFolder, uploads: &dyn Uploads, job: &JobManifest) -> Result<()> {
    let store = run.store.as_ref();
    match read(store, &run.at(SUCCESS))? {
        Some(there) if there == job.success.as_bytes() => return Ok(()),
        // The request that created the manifest may have come late, after another run had taken over and
        // finished.
        Some(there) if Some(hash_of(&there)) != job.earlier.success => {
            bail!("another run has finished this output since that commit was decided")
        }
        _ => {}
    }
    // From here to the end no output is visible.
    run.check()?;
    store.remove(&run.at(SUCCESS))?;
    complete(run, uploads, job)?;
    bundles::show(run, uploads, job)?;
    run.check()?;
    remove_files(run, job.earlier.removed.iter().map(|name| run.at(name)).collect())?;
    // The ranges are wrong for a store that lists in another order, so a difference is checked in one
    // listing.
    let found = found_in_ranges(store, &run.path, &job.files);
    if !found.is_ok_and(|found| job.files.differences(&found).is_empty()) {
        let found = found_below(store, &run.path)?;
        job.files.compare(&found, &format!("the output \"{}\" is not whole", run.uri))?;
    }
    show_success(run, job)
}

/// Creates `_SUCCESS`. One that exists was written by a late request of an earlier run, and is replaced.
fn show_success(run: &RunFolder, job: &JobManifest) -> Result<()> {
    let store = run.store.as_ref();
    let success = run.at(SUCCESS);
    for _ in 0..2 {
        run.check()?;
        if store.create_new(&success, job.success.as_bytes())? {
            return Ok(());
        }
        if read(store, &success)?.as_deref() == Some(job.success.as_bytes()) {
            return Ok(());
        }
        run.check()?;
        store.remove(&success)?;
    }
    bail!("\"{success}\" was written by another run; run again")
}

/// Completes the uploads of a decided job. If the store does not know an upload any more, its file must exist
/// with the hash of the list.
fn complete(run: &RunFolder, uploads: &dyn Uploads, job: &JobManifest) -> Result<()> {
    let files: Vec<_> = job.files.0.iter().filter(|(_, file)| file.place.is_none()).collect();
    each(AT_ONCE, &files, |(name, file)| {
        let Some(upload) = &file.upload else { bail!("no upload of \"{name}\" is known") };
        run.check_lately()?;
        if uploads.complete(upload)? {
            return Ok(());
        }
        match hash(run.store.as_ref(), &run.at(name)) {
            Ok(hash) if hash == file.blake3 => Ok(()),
            Ok(_) | Err(cluster::Error::NotFound { .. }) => bail!("the upload of \"{name}\" is lost"),
            Err(error) => Err(error.into()),
        }
    })
    .map(drop)
}

/// Removes files, up to 1,000 with one request.
fn remove_files(run: &RunFolder, paths: Vec<String>) -> Result<()> {
    let requests: Vec<_> = paths.chunks(REMOVED_AT_ONCE).collect();
    each(AT_ONCE, &requests, |paths| {
        run.check_lately()?;
        Ok(run.store.remove_files(paths)?)
    })
    .map(drop)
}

/// Keeps the run in the folder `other` from deciding. Returns `false` if it may have decided already.
pub(super) fn abandon(store: &dyn Store, other: &str) -> Result<bool, cluster::Error> {
    store.create_new(&format!("{other}/{JOB}"), ABANDONED)
}

/// Whether the job manifest of a run decides nothing: the run was kept from deciding, or its request came
/// after its key was removed.
pub(super) fn is_void(store: &dyn Store, other: &str, manifest: &[u8]) -> Result<bool> {
    Ok(manifest == ABANDONED || !store.exists(&format!("{other}/{KEY}"))?)
}

/// Aborts the uploads that the run in the folder `cleared` has begun and that do not belong to `job`, and
/// removes that folder but for the job manifest.
///
/// `None` for `job` means that the run did not finish its commit. Its key is removed first then: a decision
/// without a key is void, also one whose request comes late.
pub(super) fn clear(
    run: &RunFolder,
    uploads: &dyn Uploads,
    cleared: &str,
    job: Option<&JobManifest>,
) -> Result<()> {
    let store = run.store.as_ref();
    if job.is_none() {
        store.remove(&format!("{cleared}/{KEY}"))?;
    }
    let completed: BTreeSet<String> = job.map_or_else(BTreeSet::new, |job| {
        job.files.0.values().filter_map(|file| file.upload.as_ref()).map(note_name).collect()
    });
    let notes = store.everything(&format!("{cleared}/{UPLOADS}"))?;
    let strays: Vec<_> = notes.iter().filter(|note| !completed.contains(note.name())).collect();
    each(AT_ONCE, &strays, |note| {
        let upload = read(store, &note.path)?.and_then(|note| serde_json::from_slice(&note).ok());
        upload.map_or(Ok(()), |upload: Upload| Ok(uploads.abort(&upload)?))
    })?;
    if cleared == run.own {
        // The names are known, and listing very many files takes longer than removing them.
        remove_files(run, run.map_outputs().paths(run.splits.clone()))?;
    }
    for name in ["map", TASKS, BUNDLES, UPLOADS, KEY] {
        store.remove(&format!("{cleared}/{name}"))?;
    }
    Ok(())
}
