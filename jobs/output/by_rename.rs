//! The commit on a store that renames: files lie in the run's own folder, and are moved folder by folder.
//!
//! Every step that changes what readers see is a rename from or to the run's own folder; replaced files go
//! there too. A run that takes over renames that folder first. So every step of an owner that was only asleep
//! fails once it wakes.

use std::os::unix::fs::MetadataExt;
use std::{fs, io};

use anyhow::{Result, bail};
use cluster::{Rename, Showing, Store, path_of_text};

use super::commit::{JOB, JobManifest};
use super::files::found_below;
use super::{EARLIER, KEY, OutputFolder, PARTS, put};
use crate::cli::exit::WrongUse;
use crate::corpus::output_layout::{FOLDERS, SUCCESS};

/// Folder of a run that holds the files of an earlier output until the new one is whole.
const REPLACED: &str = "replaced";

/// Returns an error if `path`, a local output, cannot be committed by renames: when one of its folders lies
/// on another file system, or `_temporary` is a symbolic link. A folder of an old output that is a link is
/// fine, since the link itself is renamed. On HDFS all folders lie on one name node.
pub(super) fn refuse_several_file_systems(path: &str) -> Result<()> {
    let failed = |source| cluster::Error::io(path, "look for", source);
    let device = fs::metadata(path_of_text(path)).map_err(failed)?.dev();
    for name in ["_temporary"].into_iter().chain(FOLDERS) {
        let folder = format!("{path}/{name}");
        let metadata = match fs::symlink_metadata(path_of_text(&folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            metadata => metadata.map_err(failed)?,
        };
        if name == "_temporary" && metadata.is_symlink() {
            bail!(WrongUse(format!(
                "\"{folder}\" is a link, but what is written there is renamed into the output: remove the link and run again"
            )));
        }
        if metadata.is_dir() && metadata.dev() != device {
            bail!(WrongUse(format!(
                "\"{folder}\" lies on another file system than the output, so that nothing could be renamed into or out of it: \
                 unmount it, or choose another output"
            )));
        }
    }
    Ok(())
}

/// Writes the job manifest, once all files that it names are visible to this process and durable.
pub(super) fn decide(folder: &OutputFolder, renamer: &dyn Rename, job: &JobManifest) -> Result<()> {
    let store = folder.store.as_ref();
    put(store, &folder.temporary(SUCCESS), job.success.as_bytes())?;
    store.settle(&folder.temporary(""))?;
    let found = found_below(store, &folder.temporary(PARTS), FOLDERS)?;
    job.files.compare(
        &found,
        "process 0 does not see the files that were written (all processes need one shared file system)",
    )?;
    // A rename fails if another run has taken over and renamed this run's folder; creating a file would not.
    let (new, decided) = (folder.temporary("job.new"), folder.temporary(JOB));
    put(store, &new, &serde_json::to_vec(job)?)?;
    store.settle(&new)?;
    folder.check()?;
    Ok(renamer.rename(&new, &decided)?)
}

/// Moves each folder to where readers look, then `_SUCCESS`.
pub(super) fn show(folder: &OutputFolder, renamer: &dyn Rename, job: &JobManifest) -> Result<()> {
    let store = folder.store.as_ref();
    let success = folder.temporary(SUCCESS);
    store.settle(&folder.temporary(""))?;
    // `_SUCCESS` is moved last, so all is done if it is gone from here.
    if !store.exists(&success)? {
        return Ok(());
    }
    store.create_dir(&folder.temporary(REPLACED))?;
    displace(folder, renamer, SUCCESS)?;
    store.settle(&folder.path)?;
    let folders: Vec<_> = job.folders().collect();
    for name in FOLDERS {
        let finished = folder.temporary(&format!("{PARTS}/{name}"));
        if !folders.contains(&name) {
            displace(folder, renamer, name)?;
        } else if store.exists(&finished)? {
            displace(folder, renamer, name)?;
            folder.check()?;
            renamer.rename(&finished, &folder.at(name))?;
        } else if !store.exists(&folder.at(name))? {
            bail!("\"{}\" is lost: \"{finished}\" is not there either", folder.at(name));
        }
    }
    store.settle(&folder.path)?;
    let found = found_below(store, &folder.path, FOLDERS)?;
    job.files.compare(&found, &format!("the output \"{}\" is not whole", folder.uri))?;
    folder.check()?;
    renamer.rename(&success, &folder.at(SUCCESS))?;
    Ok(store.settle(&folder.path)?)
}

/// Moves what an earlier output has under this name into the run's own folder.
fn displace(folder: &OutputFolder, renamer: &dyn Rename, name: &str) -> Result<()> {
    if folder.store.exists(&folder.at(name))? {
        let aside = folder.temporary(&format!("{REPLACED}/{name}"));
        folder.store.remove(&aside)?;
        folder.check()?;
        renamer.rename(&folder.at(name), &aside)?;
    }
    Ok(())
}

/// Removes what the run has left besides the job manifest. The key goes first: after that nobody resumes the
/// run.
pub(super) fn clear(folder: &OutputFolder) -> Result<()> {
    for name in [KEY, "map", PARTS, EARLIER, "tasks", REPLACED] {
        folder.store.remove(&folder.temporary(name))?;
    }
    Ok(())
}

/// Removes locks and beats. They are first moved to the run's own folder: the numbers of locks are used
/// again, and an owner that was asleep must not remove the lock of another run.
pub(super) fn discard(folder: &OutputFolder, renamer: &dyn Rename, paths: &[String]) -> Result<()> {
    let aside = folder.temporary("discarded");
    // The folder is made before the lock is looked at: a run that takes over later removes or renames it.
    folder.store.create_dir(&folder.temporary(""))?;
    folder.check()?;
    for path in paths {
        if folder.store.exists(path)? {
            folder.store.remove(&aside)?;
            renamer.rename(path, &aside)?;
        }
    }
    Ok(folder.store.remove(&aside)?)
}

/// Removes the folder of a run that lost its lock, on stores that rename.
///
/// The run that took over has renamed the folder it knew, so anything here was written since. The folder is
/// renamed here as well, so that only one of the two runs has it. A folder with a job manifest is left to the
/// run that took over.
pub(super) fn vanish(store: &dyn Store, run: &str) -> Result<(), cluster::Error> {
    let Showing::Rename(renamer) = store.showing() else { return Ok(()) };
    if store.exists(run)? && !store.exists(&format!("{run}/{JOB}"))? {
        let gone = format!("{run}.gone");
        renamer.rename(run, &gone)?;
        store.remove(&gone)?;
    }
    renamer.remove_empty(run.rsplit_once('/').map_or("", |(temporary, _)| temporary))
}
