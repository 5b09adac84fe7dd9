//! `snapshot`: a copy of an index that is one of its own, while another process may change the index.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use cluster::{Local, Store, Stores, path_of_text, text_of_path};
use operators::text::features::Lexicon;

use crate::index_folder::{BUILDING, IndexFolder, LOG_FLOOR, SETTINGS, absolute, is_missing};
use crate::topics::{MANIFEST, Topic, TopicManifest};
use runtime::cli::exit::WrongUse;
use runtime::output::read_sealed;

/// Number of times that the copying begins anew because the log was shortened or segments were merged meanwhile.
const ATTEMPTS: usize = 10;

/// Copies the index in the folder `from` to the folder `to`, as it is at some time during the copying. Segments never
/// change, so they are linked where both folders are on one disk.
///
/// # Errors
/// [`WrongUse`] when `from` is no index, and when `to` lies in it or has files that no unfinished snapshot has left.
pub(super) fn snapshot(from: &str, to: &str) -> Result<()> {
    let (from, to) = (absolute(from)?, absolute(to)?);
    let (source, target) = (path_of_text(&from), path_of_text(&to));
    if !source.join(SETTINGS).exists() {
        bail!(WrongUse(format!("\"{from}\" is no index: index build makes one")));
    }
    if Stores::new().lies_in(&to, &from)? {
        bail!(WrongUse(format!("\"{to}\" lies in the index \"{from}\"")));
    }
    let is_empty = fs::read_dir(&target).map_or(true, |mut entries| entries.next().is_none());
    if !is_empty && !target.join(BUILDING).exists() {
        bail!(WrongUse(format!("\"{to}\" is no empty folder")));
    }
    let mut attempts = 0;
    loop {
        attempts += 1;
        if target.exists() {
            fs::remove_dir_all(&target).with_context(|| format!("could not clear \"{to}\""))?;
        }
        match copy(&source, &target) {
            Ok(true) => break,
            Err(error) if !is_missing(&error) => return Err(error),
            _ if attempts == ATTEMPTS => bail!("the index \"{from}\" changes faster than it can be copied"),
            _ => {}
        }
    }
    Local.settle(&to)?;
    fs::rename(target.join(BUILDING), target.join(SETTINGS))?;
    Local.settle(&to)?;
    // Whatever group of the log was half written when it was copied is cut off here, and a copy that lacks a file is found.
    let copy = IndexFolder::open(&to, &Lexicon::default(), Duration::ZERO)?;
    copy.topics.values().try_for_each(Topic::open_files)
}

/// Copies everything. Returns whether manifests and log belong together: they do unless the log was shortened, because
/// manifests may be newer than the beginning of the log, and not older.
fn copy(source: &Path, target: &Path) -> Result<bool> {
    fs::create_dir_all(target.join("topics"))?;
    copy_file(&source.join(SETTINGS), &target.join(BUILDING))?;
    let has_floor = source.join(LOG_FLOOR).exists();
    if has_floor {
        copy_file(&source.join(LOG_FLOOR), &target.join(LOG_FLOOR))?;
    }
    for topic in names(&source.join("topics"))? {
        let topic = Path::new("topics").join(topic);
        // The log has all documents of a topic without a manifest.
        if source.join(&topic).join(MANIFEST).exists() {
            copy_topic(&source.join(&topic), &target.join(&topic))?;
        }
    }
    fs::create_dir(target.join("log"))?;
    for file in names(&source.join("log"))? {
        let file = Path::new("log").join(file);
        copy_file(&source.join(&file), &target.join(&file))?;
    }
    let read = |folder: &Path| fs::read(folder.join(LOG_FLOOR)).ok();
    Ok(read(source) == read(target))
}

/// Copies the manifest of a topic, and the segments that it names.
fn copy_topic(source: &Path, target: &Path) -> Result<()> {
    fs::create_dir(target)?;
    copy_file(&source.join(MANIFEST), &target.join(MANIFEST))?;
    let path = text_of_path(target.join(MANIFEST).as_os_str());
    let manifest: TopicManifest =
        read_sealed(&Local, &path)?.context("a manifest that was copied is there")?;
    for segment in manifest.segments {
        let name = format!("{:08}", segment.number);
        fs::create_dir(target.join(&name))?;
        for (file, _) in segment.files() {
            let file = Path::new(&name).join(format!("{file}.run"));
            if fs::hard_link(source.join(&file), target.join(&file)).is_err() {
                copy_file(&source.join(&file), &target.join(&file))?;
            }
        }
    }
    Ok(())
}

/// Returns the names of what is in a folder, in their order.
fn names(folder: &Path) -> Result<Vec<String>> {
    let children = Local.children_if_any(&text_of_path(folder.as_os_str()))?;
    let mut names: Vec<String> = children.iter().map(|child| child.name().to_owned()).collect();
    names.sort();
    Ok(names)
}

fn copy_file(from: &Path, to: &Path) -> Result<()> {
    let path = text_of_path(from.as_os_str());
    fs::copy(from, to).map(|_| ()).map_err(|source| cluster::Error::io(&path, "copy", source).into())
}
