//! The commit on a store that renames: files lie in the run's own folder, and are moved folder by folder.
//!
//! Whatever a step moves comes from or goes to the run's own folder, also what it replaces: a run that takes over renames
//! that folder first, and so none of the steps of an owner that was only asleep can succeed.

use std::os::unix::fs::MetadataExt;
use std::{fs, io};

use anyhow::{Result, bail};
use cluster::{Rename, Showing, Store, path_of_text};

use super::commit::{FOLDERS, JOB, JobManifest};
use super::files::found_below;
use super::{EARLIER, KEY, OutputFolder, PARTS, SUCCESS, put};
use crate::WrongUse;

/// What an earlier output had, until the new one is whole.
const REPLACED: &str = "replaced";

/// An error if the folders of a local output, whose path this is, do not lie on one file system, or `_temporary` is a link:
/// the commit could not rename them. A folder of an old output that is a link is renamed as such. Folders of HDFS lie on one
/// name node.
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

/// Writes the job manifest, once all files that it names are seen and durable.
pub(super) fn decide(folder: &OutputFolder, renamer: &dyn Rename, job: &JobManifest) -> Result<()> {
    let store = folder.store.as_ref();
    put(store, &folder.temporary(SUCCESS), job.success.as_bytes())?;
    store.settle(&folder.temporary(""))?;
    let found = found_below(store, &folder.temporary(PARTS), FOLDERS)?;
    job.files.compare(
        &found,
        "process 0 does not see the files that were written (all processes need one shared file system)",
    )?;
    // By rename, which a run that takes over can prevent.
    let (new, decided) = (folder.temporary("job.new"), folder.temporary(JOB));
    put(store, &new, &serde_json::to_vec(job)?)?;
    store.settle(&new)?;
    folder.check()?;
    Ok(renamer.rename(&new, &decided)?)
}

/// Moves folder after folder to where readers look, then `_SUCCESS`.
pub(super) fn show(folder: &OutputFolder, renamer: &dyn Rename, job: &JobManifest) -> Result<()> {
    let store = folder.store.as_ref();
    let success = folder.temporary(SUCCESS);
    store.settle(&folder.temporary(""))?;
    // It is moved last.
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

/// Moves what an earlier output had under this name out of sight.
fn displace(folder: &OutputFolder, renamer: &dyn Rename, name: &str) -> Result<()> {
    if folder.store.exists(&folder.at(name))? {
        let aside = folder.temporary(&format!("{REPLACED}/{name}"));
        folder.store.remove(&aside)?;
        folder.check()?;
        renamer.rename(&folder.at(name), &aside)?;
    }
    Ok(())
}

/// Removes what the run has left besides the job manifest. The key goes first: nobody goes on with what is left then.
pub(super) fn clear(folder: &OutputFolder) -> Result<()> {
    for name in [KEY, "map", PARTS, EARLIER, "tasks", REPLACED] {
        folder.store.remove(&folder.temporary(name))?;
    }
    Ok(())
}

/// Removes locks and beats. They are moved to the run's own folder first: the names of locks come again, and an owner that
/// was asleep must not remove that of another run.
pub(super) fn discard(folder: &OutputFolder, renamer: &dyn Rename, paths: &[String]) -> Result<()> {
    let aside = folder.temporary("discarded");
    // It is made before the look at the lock: whoever takes over later removes it or gives it another name.
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

/// Removes what a run that lost its lock has written since, where runs have folders that no other run uses: who took over has
/// given the folder another name. It gets a new one here as well, so that only one of the two has it, and one that was decided
/// is left to whoever took over.
pub(super) fn vanish(store: &dyn Store, run: &str) -> Result<(), cluster::Error> {
    let Showing::Rename(renamer) = store.showing() else { return Ok(()) };
    if store.exists(run)? && !store.exists(&format!("{run}/{JOB}"))? {
        let gone = format!("{run}.gone");
        renamer.rename(run, &gone)?;
        store.remove(&gone)?;
    }
    renamer.remove_empty(run.rsplit_once('/').map_or("", |(temporary, _)| temporary))
}
