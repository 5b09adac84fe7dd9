//! The commit on a store that renames: files lie in the run's own folder, and are moved folder by folder.
//!
//! Every step that changes what readers see is a rename from or to the run's own folder; replaced files go
//! there too. A run that takes over renames that folder first. So every step of an owner that was only asleep
//! fails once it wakes.

use std::os::unix::fs::MetadataExt;
use std::{fs, io};

use anyhow::{Result, bail};
use cluster::{Rename, Showing, Store, path_of_text};

use super::run_folder::{EARLIER, KEY, PARTS, RunFolder};
use crate::cli::exit::WrongUse;
use crate::corpus::output_layout::{FILES, FOLDERS, SUCCESS};
use crate::output::files::found_below;
use crate::output::manifests::{JOB, JobManifest};
use crate::output::requests::put;

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
pub(super) fn decide(run: &RunFolder, renamer: &dyn Rename, job: &JobManifest) -> Result<()> {
    let store = run.store.as_ref();
    put(store, &run.temporary(SUCCESS), job.success.as_bytes())?;
    store.settle(&run.temporary(""))?;
    let found = found_below(store, &run.temporary(PARTS))?;
    job.files.compare(
        &found,
        "process 0 does not see the files that were written (all processes need one shared file system)",
    )?;
    // A rename fails if another run has taken over and renamed this run's folder; creating a file would not.
    let (new, decided) = (run.temporary("job.new"), run.temporary(JOB));
    put(store, &new, &serde_json::to_vec(job)?)?;
    store.settle(&new)?;
    run.check()?;
    Ok(renamer.rename(&new, &decided)?)
}

/// Moves each folder and file to where readers look, then `_SUCCESS`.
pub(super) fn show(run: &RunFolder, renamer: &dyn Rename, job: &JobManifest) -> Result<()> {
    let store = run.store.as_ref();
    let success = run.temporary(SUCCESS);
    store.settle(&run.temporary(""))?;
    // `_SUCCESS` is moved last, so all is done if it is gone from here.
    if !store.exists(&success)? {
        return Ok(());
    }
    store.create_dir(&run.temporary(REPLACED))?;
    displace(run, renamer, SUCCESS)?;
    store.settle(&run.path)?;
    for name in FOLDERS.into_iter().chain(FILES) {
        let finished = run.temporary(&format!("{PARTS}/{name}"));
        let in_folder = format!("{name}/");
        let listed = job.files.0.range(in_folder.clone()..).next();
        let in_folder = listed.is_some_and(|(file, _)| file.starts_with(&in_folder));
        if !in_folder && !job.files.0.contains_key(name) {
            displace(run, renamer, name)?;
        } else if store.exists(&finished)? {
            displace(run, renamer, name)?;
            run.check()?;
            renamer.rename(&finished, &run.at(name))?;
        } else if !store.exists(&run.at(name))? {
            bail!("\"{}\" is lost: \"{finished}\" is not there either", run.at(name));
        }
    }
    store.settle(&run.path)?;
    let found = found_below(store, &run.path)?;
    job.files.compare(&found, &format!("the output \"{}\" is not whole", run.uri))?;
    run.check()?;
    renamer.rename(&success, &run.at(SUCCESS))?;
    Ok(store.settle(&run.path)?)
}

/// Moves what an earlier output has under this name into the run's own folder.
fn displace(run: &RunFolder, renamer: &dyn Rename, name: &str) -> Result<()> {
    if run.store.exists(&run.at(name))? {
        let aside = run.temporary(&format!("{REPLACED}/{name}"));
        run.store.remove(&aside)?;
        run.check()?;
        renamer.rename(&run.at(name), &aside)?;
    }
    Ok(())
}

/// Removes what the run has left besides the job manifest. The key goes first: after that nobody resumes the
/// run.
pub(super) fn clear(run: &RunFolder) -> Result<()> {
    for name in [KEY, "map", PARTS, EARLIER, "tasks", REPLACED] {
        run.store.remove(&run.temporary(name))?;
    }
    Ok(())
}

/// Removes the folder of a run that lost its lock, on stores that rename.
///
/// The run that took over has renamed the folder it knew, so anything here was written since. The folder is
/// renamed here as well, so that only one of the two runs has it. A folder with a job manifest is left to the
/// run that took over.
pub fn vanish(store: &dyn Store, run: &str) -> Result<(), cluster::Error> {
    let Showing::Rename(renamer) = store.showing() else { return Ok(()) };
    if store.exists(run)? && !store.exists(&format!("{run}/{JOB}"))? {
        let gone = format!("{run}.gone");
        renamer.rename(run, &gone)?;
        store.remove(&gone)?;
    }
    renamer.remove_empty(run.rsplit_once('/').map_or("", |(temporary, _)| temporary))
}
