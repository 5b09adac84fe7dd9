//! The folder of a state: its lock, its versions, and the commit of a night.
//!
//! A version is a manifest that names files. It comes into being when its manifest is created, which is one step
//! in every store, and is never changed. The files of a version are written first, under names that only this
//! version has.
//!
//! A night commits an output and a version of the state. Neither may exist without the other for long:
//!
//! ```text
//! step                                          a run that finds this
//! runs/00000007/... are written                 removes them
//! versions/00000007.prepared names the output   asks the output: if its _SUCCESS has the stamp of the version, or its
//!                                               commit is decided, it goes on with the next steps, else it removes the files
//! the output is committed
//! versions/00000007.json is created             removes the .prepared file
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{process, thread};

use anyhow::{Context, Result, bail};
use cluster::{Blob, Group, Showing, Store, Stores, one_line, path_of_text};
use serde::{Deserialize, Serialize};

use super::manifest::{FORMAT, StateManifest, StatisticsFile};
use crate::cli::exit::{Locked, WrongUse, exit_code, while_running};
use crate::cli::terminal::say;
use crate::corpus::output_layout::SUCCESS;
use crate::output::{Lock, LockOwner, OutputFolder, hash, put, read};

/// Pause between two attempts to take the lock.
const RETRY: Duration = Duration::from_secs(1);
/// Number of versions that stay for a rollback.
const KEPT_VERSIONS: usize = 32;

/// Folder of a state, which this process reads, and writes if it has claimed it.
pub(crate) struct StateFolder {
    pub(super) store: Arc<dyn Store>,
    /// Folder as the user has named it.
    pub uri: String,
    pub(super) path: String,
    lock: Option<Lock>,
}

/// A version whose files are written, and the output that must be committed with it.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct PreparedNight {
    pub manifest: StateManifest,
    /// Output folder as the user has named it.
    pub output: String,
    /// Hash of the manifest, which `_SUCCESS` of the output holds too.
    pub stamp: String,
}

/// The part of `_SUCCESS` that says which version of which state belongs to the output.
#[derive(Deserialize)]
struct Stamped {
    state: Option<StateStamp>,
}

/// Version of a state, as `_SUCCESS` of a night's output names it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct StateStamp {
    pub uri: String,
    pub version: u64,
    pub night: String,
    pub stamp: String,
}

impl PreparedNight {
    /// Prepares a version that is committed with an output.
    pub fn new(manifest: StateManifest, output: &str) -> Result<Self> {
        let stamp = blake3::hash(&serde_json::to_vec(&manifest)?).to_hex()[..32].to_owned();
        Ok(PreparedNight { manifest, output: output.to_owned(), stamp })
    }

    /// Returns what `_SUCCESS` of the output says about the state.
    pub fn stamp(&self, state: &StateFolder) -> StateStamp {
        StateStamp {
            uri: state.uri.clone(),
            version: self.manifest.version,
            night: self.manifest.made_by.clone(),
            stamp: self.stamp.clone(),
        }
    }
}

impl StateFolder {
    /// Opens a state for reading. It need not exist.
    pub fn open(stores: &Stores, uri: &str) -> Result<Self> {
        let (store, path) = stores.locate(uri)?;
        let path = path.trim_end_matches('/').to_owned();
        if path.is_empty() && matches!(store.showing(), Showing::Rename(_)) {
            bail!(WrongUse(format!("the state \"{uri}\" is the root of a file system: name a folder in it")));
        }
        Ok(StateFolder { store, uri: uri.to_owned(), path, lock: None })
    }

    /// Opens a state for writing, and repairs what a killed run has left. `wait`: how long to wait for another
    /// run to end.
    ///
    /// # Errors
    /// [`Locked`] when another run is writing; [`WrongUse`] when the folder holds anything else.
    pub fn claim(stores: &Stores, uri: &str, group: &Arc<Group>, wait: Duration) -> Result<Self> {
        let mut state = StateFolder::open(stores, uri)?;
        state.refuse_others()?;
        state.store.create_dir(&state.path)?;
        let (temporary, began) = (state.at("_temporary"), Instant::now());
        let lock = loop {
            let name = format!("state \"{uri}\"");
            match Lock::take(&state.store, &temporary, &name, LockOwner::of_this_process()) {
                Err(error) if exit_code(&error) == 11 && began.elapsed() < wait => thread::sleep(RETRY),
                Err(error) if exit_code(&error) == 11 && !wait.is_zero() => {
                    bail!(Locked(format!("{error:#}; waited for {} s", wait.as_secs())))
                }
                lock => break lock?,
            }
        };
        let group = Arc::clone(group);
        lock.beat(move |taken: &anyhow::Error| {
            group.fail(&format!("{taken:#}"));
            say(one_line(&format!("error: {taken:#}")));
            process::exit(1);
        })?;
        state.lock = Some(lock);
        if let Err(error) = state.recover(stores) {
            state.release()?;
            return Err(error);
        }
        Ok(state)
    }

    /// Returns an error if the folder has files that no state has.
    fn refuse_others(&self) -> Result<()> {
        if !self.store.exists(&self.path)? {
            return Ok(());
        }
        let known = ["versions", "runs", "_temporary", "history.jsonl"];
        let name = |path: &str| path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
        let children = self.store.children(&self.path)?;
        if children.first().is_some_and(|file| file.path == self.path) {
            bail!(WrongUse(format!("the state \"{}\" is a file", self.uri)));
        }
        match children.iter().map(|child| name(&child.path)).find(|name| !known.contains(&name.as_str())) {
            Some(other) => bail!(WrongUse(format!(
                "\"{}\" holds \"{other}\" and is no state: name a folder for the state alone",
                self.uri
            ))),
            None => Ok(()),
        }
    }

    /// Gives the lock back.
    pub fn release(&self) -> Result<()> {
        let Some(lock) = &self.lock else { return Ok(()) };
        lock.stop();
        lock.check()?;
        let paths = lock.earlier_paths()?.into_iter().chain(lock.paths());
        paths.into_iter().try_for_each(|path| self.store.remove(&path))?;
        if let Showing::Rename(renamer) = self.store.showing() {
            renamer.remove_empty(&self.at("_temporary"))?;
        }
        Ok(())
    }

    /// Returns a path below the folder of the state.
    pub fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// Returns the numbers of all versions, in order.
    pub fn versions(&self) -> Result<Vec<u64>> {
        self.numbers(".json")
    }

    fn numbers(&self, extension: &str) -> Result<Vec<u64>> {
        let children = match self.store.children(&self.at("versions")) {
            Err(cluster::Error::NotFound { .. }) => Vec::new(),
            children => children?,
        };
        let number = |path: &str| path.rsplit('/').next()?.strip_suffix(extension)?.parse().ok();
        let mut numbers: Vec<u64> = children.iter().filter_map(|child| number(&child.path)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Reads the manifest of a version.
    ///
    /// # Errors
    /// When the version does not exist, is damaged, or is of another format.
    pub fn version(&self, version: u64) -> Result<StateManifest> {
        let path = self.at(&format!("versions/{version:08}.json"));
        let text = read(self.store.as_ref(), &path)?
            .with_context(|| format!("the state \"{}\" has no version {version}", self.uri))?;
        // The last line is the hash of all before it.
        let text = text.trim_ascii_end();
        let end = text.iter().rposition(|&byte| byte == b'\n').unwrap_or(0);
        let (body, hash) = (&text[..end], text[end..].trim_ascii());
        if blake3::hash(body).to_hex().as_bytes() != hash {
            bail!("\"{}{path}\" is damaged: its hash is wrong", self.store.prefix());
        }
        let manifest: StateManifest = serde_json::from_slice(body).with_context(|| {
            format!("\"{}{path}\" is of another version of this program", self.store.prefix())
        })?;
        if manifest.format != FORMAT {
            bail!(
                "\"{}{path}\" has format {}, and this program knows {FORMAT}",
                self.store.prefix(),
                manifest.format
            );
        }
        Ok(manifest)
    }

    /// Reads the manifest of the newest version, if there is any.
    pub fn newest(&self) -> Result<Option<StateManifest>> {
        self.versions()?.last().map(|&version| self.version(version)).transpose()
    }

    /// Writes down that a version is about to be committed with an output. Its files become durable first.
    pub fn prepare(&self, night: &PreparedNight) -> Result<()> {
        self.check()?;
        self.settle("runs")?;
        let path = self.at(&format!("versions/{:08}.prepared", night.manifest.version));
        put(self.store.as_ref(), &path, &serde_json::to_vec(night)?)?;
        self.settle("versions")
    }

    /// Commits a version, removes the versions that are too old for a rollback, and their files.
    pub fn commit(&self, manifest: &StateManifest) -> Result<()> {
        self.check()?;
        self.settle("runs")?;
        let mut text = serde_json::to_vec_pretty(manifest)?;
        let hash = blake3::hash(&text).to_hex();
        text.push(b'\n');
        text.extend(hash.as_bytes());
        text.push(b'\n');
        let path = self.at(&format!("versions/{:08}.json", manifest.version));
        // A version that exists is one whose creation was not answered.
        if !self.store.create_new(&path, &text)?
            && read(self.store.as_ref(), &path)?.as_deref() != Some(&text[..])
        {
            bail!("another run has written version {} of the state \"{}\"", manifest.version, self.uri);
        }
        self.settle("versions")?;
        self.store.remove(&self.at(&format!("versions/{:08}.prepared", manifest.version)))?;
        // The version is committed, so a failure to remove old files is no error.
        if let Err(error) = self.remove_old() {
            say(one_line(&format!("warning: old files of the state \"{}\" stay: {error:#}", self.uri)));
        }
        Ok(())
    }

    /// Writes a file below the folder of the state.
    pub fn write_file(&self, name: &str, bytes: &[u8]) -> Result<()> {
        Ok(put(self.store.as_ref(), &self.at(name), bytes)?)
    }

    /// Opens a file below the folder of the state, which a version names.
    pub fn open_file(&self, name: &str) -> Result<Arc<dyn Blob>> {
        self.store.open(&self.at(name)).map_err(|error| while_running(error.into()))
    }

    /// Compares a file with its hash.
    pub fn check_statistics(&self, of: &StatisticsFile) -> Result<()> {
        let path = self.at(&of.file);
        let hash = hash(self.store.as_ref(), &path).map_err(|error| while_running(error.into()))?;
        if hash != of.blake3 {
            bail!("\"{}{path}\" is damaged: its hash is wrong", self.store.prefix());
        }
        Ok(())
    }

    /// Whether a file or folder is, or lies in, the folder of the state.
    pub fn holds(&self, stores: &Stores, uri: &str) -> Result<bool> {
        let (store, path) = stores.locate(uri)?;
        Ok(store.prefix() == self.store.prefix() && path_of_text(&path).starts_with(path_of_text(&self.path)))
    }

    /// Returns the prefix of the paths of its store.
    pub fn prefix(&self) -> &str {
        self.store.prefix()
    }

    /// Appends a line about a night to `history.jsonl`, which is for people and tools only.
    pub fn note_in_history(&self, line: &impl Serialize) -> Result<()> {
        let path = self.at("history.jsonl");
        let mut history = read(self.store.as_ref(), &path)?.unwrap_or_default();
        history.extend(serde_json::to_vec(line)?);
        history.push(b'\n');
        Ok(put(self.store.as_ref(), &path, &history)?)
    }

    /// Returns an error if another run has taken over.
    pub fn check(&self) -> Result<()> {
        self.lock.as_ref().map_or(Ok(()), Lock::check)
    }

    fn settle(&self, folder: &str) -> Result<()> {
        let path = self.at(folder);
        if self.store.exists(&path)? {
            self.store.settle(&path)?;
        }
        Ok(())
    }

    /// Finishes or gives up the version that a killed run has prepared.
    fn recover(&self, stores: &Stores) -> Result<()> {
        for version in self.numbers(".prepared")? {
            let path = self.at(&format!("versions/{version:08}.prepared"));
            let text = read(self.store.as_ref(), &path)?.unwrap_or_default();
            // A file that is cut short was written before anything was decided.
            if let Ok(night) = serde_json::from_slice::<PreparedNight>(&text)
                && !self.versions()?.contains(&version)
            {
                OutputFolder::finish_abandoned(stores, &night.output)?;
                if self.is_stamped(stores, &night)? {
                    self.commit(&night.manifest)?;
                    say(format_args!(
                        "finished the night \"{}\" of the state \"{}\", whose output an earlier run had committed",
                        night.manifest.made_by, self.uri
                    ));
                }
            }
            self.store.remove(&path)?;
        }
        self.remove_old()
    }

    /// Whether the output of a night was committed with this version.
    fn is_stamped(&self, stores: &Stores, night: &PreparedNight) -> Result<bool> {
        let (store, path) = stores.locate(&night.output)?;
        let success = read(store.as_ref(), &format!("{}/{SUCCESS}", path.trim_end_matches('/')))?;
        let stamped = success.and_then(|text| serde_json::from_slice::<Stamped>(&text).ok());
        Ok(stamped.and_then(|stamped| stamped.state).is_some_and(|state| state.stamp == night.stamp))
    }

    /// Removes the versions that are too old for a rollback or hold what was erased, and then the files that no
    /// version names.
    fn remove_old(&self) -> Result<()> {
        let versions = self.versions()?;
        let oldest = self.newest()?.map_or(0, |newest| newest.oldest);
        let too_old = versions.len().saturating_sub(KEPT_VERSIONS);
        for (at, version) in versions.into_iter().enumerate() {
            if at < too_old || version < oldest {
                self.store.remove(&self.at(&format!("versions/{version:08}.json")))?;
            }
        }
        self.remove_unknown()
    }

    /// Removes the files that no version names: those of killed runs and of removed versions, and what a killed run
    /// was writing under a hidden name.
    fn remove_unknown(&self) -> Result<()> {
        let manifests = self.versions()?.into_iter().map(|version| self.version(version));
        let manifests = manifests.collect::<Result<Vec<_>>>()?;
        let known: std::collections::BTreeSet<String> =
            manifests.iter().flat_map(StateManifest::files).map(|file| self.at(file)).collect();
        let (runs, lock) = (self.at("runs/"), self.at("_temporary/"));
        let is_hidden = |path: &str| path.rsplit('/').next().is_some_and(|name| name.starts_with('.'));
        let is_unknown = |path: &String| match path.starts_with(&runs) {
            true => !known.contains(path),
            false => is_hidden(path) && !path.starts_with(&lock),
        };
        let files = self.store.everything(&self.path)?;
        let unknown = files.into_iter().map(|entry| entry.path).filter(is_unknown);
        Ok(self.store.remove_files(&unknown.collect::<Vec<_>>())?)
    }
}
