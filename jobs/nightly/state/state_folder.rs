//! The folder of a state: its versions, and the commit of one.
//!
//! A version is a manifest that names files. It comes into being when its manifest is created, which is one step
//! in every store, and is never changed. The files of a version are written first, under names that only the run which
//! writes them has. So a run that was asleep while another one took the state over finds no file of the other under a
//! name of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use cluster::{Blob, Entry, Showing, Store, Stores};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::manifest::{FORMAT, NightEntry, StateManifest, StatisticsFile};
use super::unnamed_runs::UnnamedRuns;
use runtime::cli::exit::{WrongUse, while_running};
use runtime::output::{Lock, hash, put, read, seal, unsealed};

/// Folder of a state, which this process reads, and writes if it has claimed it.
pub struct StateFolder {
    pub(super) store: Arc<dyn Store>,
    /// Folder as the user has named it.
    pub uri: String,
    pub(super) path: String,
    pub(super) lock: Option<Lock>,
    /// Part of the names of files that the run which has claimed the state writes, which no other run has.
    pub(super) run: String,
    /// Whether a version may name files that this run has written.
    pub(super) may_be_named: Arc<AtomicBool>,
}

/// A version whose files are written, and the output that must be committed with it.
#[derive(Debug, Deserialize, Serialize)]
pub struct PreparedNight {
    pub manifest: StateManifest,
    /// Output folder as the user has named it.
    pub output: String,
    /// Hash of the manifest, which `_SUCCESS` of the output holds too.
    pub stamp: String,
}

/// Version of a state, as `_SUCCESS` of a night's output names it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct StateStamp {
    pub uri: String,
    pub version: u64,
    pub night: String,
    pub stamp: String,
}

/// Line of `history.jsonl`.
#[derive(Serialize)]
struct HistoryLine<'a> {
    finished: String,
    made_by: &'a str,
    /// Version that was made, if no night has made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    /// Members of the night, if a night has made the version.
    #[serde(flatten)]
    night: Option<&'a NightEntry>,
}

/// A version that `history.jsonl` tells of.
pub struct CommittedVersion {
    /// Number of the version, which rises by each commit.
    pub version: u64,
    /// Name of the night that has made it, or another reason, such as `compact` or `rollback to NIGHT`.
    pub made_by: String,
    /// Seconds since 1970 at which it was committed, if the line has them.
    pub finished: Option<u64>,
    /// The night, if one has made the version.
    pub night: Option<NightEntry>,
}

/// Beginning of what has made a version that is equal to an earlier one; the name of the night follows.
const ROLLBACK: &str = "rollback to ";

impl CommittedVersion {
    /// Returns what makes a version that is equal to the one after a night.
    pub fn rollback(night: &str) -> String {
        format!("{ROLLBACK}{night}")
    }

    /// Returns the night that a rollback has led to, if one has made the version.
    pub fn rolled_back_to(&self) -> Option<&str> {
        self.made_by.strip_prefix(ROLLBACK).filter(|_| self.night.is_none())
    }

    fn of_line(line: &[u8]) -> Option<Self> {
        let line: Value = serde_json::from_slice(line).ok()?;
        let version = line.get("version")?.as_u64()?;
        let made_by = line.get("made_by")?.as_str()?.to_owned();
        let finished = line.get("finished").and_then(Value::as_str);
        let finished = finished.and_then(|time| chrono::DateTime::parse_from_rfc3339(time).ok());
        let finished = finished.and_then(|time| time.timestamp().try_into().ok());
        Some(CommittedVersion { version, made_by, finished, night: serde_json::from_value(line).ok() })
    }
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
            uri: state.address(),
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
        let uri = uri.to_owned();
        let run = String::new();
        let may_be_named = Arc::default();
        Ok(StateFolder { store, uri, path, lock: None, run, may_be_named })
    }

    /// Opens a state in another process of the run that has claimed it. `run`: [`StateFolder::run`] there.
    pub fn of_run(stores: &Stores, uri: &str, run: String) -> Result<Self> {
        Ok(StateFolder { run, ..StateFolder::open(stores, uri)? })
    }

    /// Returns the part of the names of files that the run which has claimed the state writes.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Opens a state for reading that must be there.
    ///
    /// # Errors
    /// [`WrongUse`] when the folder has no version.
    pub fn open_existing(stores: &Stores, uri: &str) -> Result<Self> {
        let state = StateFolder::open(stores, uri)?;
        if state.versions()?.is_empty() {
            bail!(WrongUse(format!("there is no state in \"{uri}\"")));
        }
        Ok(state)
    }

    /// Returns an error if the folder has files that no state has.
    pub fn refuse_others(&self) -> Result<()> {
        if !self.store.exists(&self.path)? {
            return Ok(());
        }
        let known = ["versions", "runs", "_temporary", "history.jsonl"];
        let children = self.store.children(&self.path)?;
        if children.first().is_some_and(|file| file.path == self.path) {
            bail!(WrongUse(format!("the state \"{}\" is a file", self.uri)));
        }
        match children.iter().map(Entry::name).find(|name| !known.contains(name)) {
            Some(other) => bail!(WrongUse(format!(
                "\"{}\" holds \"{other}\" and is no state: name a folder for the state alone",
                self.uri
            ))),
            None => Ok(()),
        }
    }

    /// Gives the lock back. What this run has written goes if another run has taken over.
    pub fn release(&self) -> Result<()> {
        let Some(lock) = &self.lock else { return Ok(()) };
        lock.release().inspect_err(|_| {
            if lock.is_lost() {
                // Only the first error is reported, and the next run that claims the state removes the files too.
                drop(self.unnamed(lock).remove());
            }
        })
    }

    /// Returns the files that this run, which has `lock`, writes.
    pub(super) fn unnamed(&self, lock: &Lock) -> UnnamedRuns {
        let StateFolder { store, run, may_be_named, .. } = self;
        UnnamedRuns {
            store: Arc::clone(store),
            own: lock.own(),
            folder: self.at("runs"),
            run: run.clone(),
            may_be_named: Arc::clone(may_be_named),
        }
    }

    /// Returns a path below the folder of the state.
    pub fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// Returns the numbers of all versions, in order.
    pub fn versions(&self) -> Result<Vec<u64>> {
        let children = self.store.children_if_any(&self.at("versions"))?;
        let number = |name: &str| name.strip_suffix(".json")?.parse().ok();
        let mut numbers: Vec<u64> = children.iter().filter_map(|child| number(child.name())).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Reads the manifest of a version.
    ///
    /// # Errors
    /// When the version does not exist, is damaged, or is of another format.
    pub fn version(&self, version: u64) -> Result<StateManifest> {
        let path = self.at(&format!("versions/{version:08}.json"));
        let text = self.manifest_text(version)?;
        let Some(body) = unsealed(&text) else {
            bail!(
                "\"{}{path}\" is damaged: its hash is wrong; see nightly check --repair",
                self.store.prefix()
            );
        };
        let manifest: StateManifest = serde_json::from_slice(body).with_context(|| {
            format!("\"{}{path}\" is of another version of this program", self.store.prefix())
        })?;
        if manifest.format != FORMAT {
            bail!(
                "\"{}{path}\" has format {}, and this program knows {FORMAT}: earlier programs cleaned texts by other rules, so \
                 begin a new state with the documents that were kept, and give the state another name",
                self.store.prefix(),
                manifest.format
            );
        }
        Ok(manifest)
    }

    /// Whether the hash of the manifest of a version is wrong.
    pub(super) fn is_damaged(&self, version: u64) -> Result<bool> {
        Ok(unsealed(&self.manifest_text(version)?).is_none())
    }

    fn manifest_text(&self, version: u64) -> Result<Vec<u8>> {
        let text = read(self.store.as_ref(), &self.at(&format!("versions/{version:08}.json")))?;
        Ok(text.with_context(|| format!("the state \"{}\" has no version {version}", self.uri))?.to_vec())
    }

    /// Reads the manifest of the newest version, if there is any.
    pub fn newest(&self) -> Result<Option<StateManifest>> {
        self.versions()?.last().map(|&version| self.version(version)).transpose()
    }

    /// Writes down that a version is about to be committed with an output. Its files become durable first.
    ///
    /// The lock is looked at afterwards. A run that takes over later finds what is written here, and keeps the output from
    /// being committed, or commits the version with it.
    pub fn prepare(&self, night: &PreparedNight) -> Result<()> {
        self.check()?;
        self.settle("runs")?;
        self.may_be_named.store(true, Ordering::Relaxed);
        let path = self.prepared_path(night.manifest.version);
        put(self.store.as_ref(), &path, &serde_json::to_vec(night)?)?;
        self.settle("versions")?;
        // The night ends here, so nobody need look for its output.
        self.check().inspect_err(|_| drop(self.store.remove(&path)))
    }

    fn prepared_path(&self, version: u64) -> String {
        self.at(&format!("versions/{version:08}-{}.prepared", self.run))
    }

    /// Commits a version, removes the versions that are too old for a rollback, and their files, and notes the version
    /// in the history.
    ///
    /// # Errors
    /// When another run has taken over; those of the store.
    pub fn commit(&self, manifest: &StateManifest) -> Result<()> {
        let lock = self.lock.as_ref().context("the state is open to be read")?;
        self.check()?;
        self.settle("runs")?;
        self.may_be_named.store(true, Ordering::Relaxed);
        self.store.create_dir(&self.at("versions"))?;
        let text = seal(serde_json::to_vec_pretty(manifest)?);
        let path = self.at(&format!("versions/{:08}.json", manifest.version));
        // A version that exists is one whose creation was not answered.
        if !lock.create(&path, &text)? && read(self.store.as_ref(), &path)?.as_deref() != Some(&text[..]) {
            bail!("another run has written version {} of the state \"{}\"", manifest.version, self.uri);
        }
        self.settle("versions")?;
        self.check()?;
        self.store.remove(&self.prepared_path(manifest.version))?;
        // The version is committed, so a failure to remove old files is no error.
        if let Err(error) = self.remove_old() {
            log::warn!("old files of the state \"{}\" stay: {error:#}", self.uri);
        }
        self.note_in_history(manifest);
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

    /// Returns the whole name of the folder, which means the same wherever the program runs.
    pub fn address(&self) -> String {
        format!("{}{}", self.store.prefix(), self.path)
    }

    /// Returns the prefix of the paths of its store.
    pub fn prefix(&self) -> &str {
        self.store.prefix()
    }

    /// Appends a line about a version that was committed to `history.jsonl`, which is for people and tools only, so a
    /// failure is no error.
    pub(super) fn note_in_history(&self, manifest: &StateManifest) {
        let StateManifest { version, made_by, nights, .. } = manifest;
        // Other versions repeat the nights of earlier ones.
        let night = nights.last().filter(|night| night.version == *version);
        let finished = chrono::DateTime::<chrono::Utc>::from(SystemTime::now());
        let finished = finished.format("%Y-%m-%dT%H:%M:%SZ").to_string();
        let line = HistoryLine { finished, made_by, version: night.is_none().then_some(*version), night };
        let append = |history: Option<Vec<u8>>| -> Result<Vec<u8>> {
            let mut history = history.unwrap_or_default();
            // A line that was cut short takes no other line with it.
            if history.last().is_some_and(|&last| last != b'\n') {
                history.push(b'\n');
            }
            history.extend(serde_json::to_vec(&line)?);
            history.push(b'\n');
            Ok(history)
        };
        let path = self.at("history.jsonl");
        let noted = self.lock.as_ref().map_or(Ok(()), |lock| lock.replace(&path, append));
        if let Err(error) = noted {
            log::warn!("the history of the state \"{}\" was not written: {error:#}", self.uri);
        }
    }

    /// Returns what `history.jsonl` tells of versions, in order. Lines that cannot be read are left out.
    pub fn history(&self) -> Result<Vec<CommittedVersion>> {
        let history = read(self.store.as_ref(), &self.at("history.jsonl"))?.unwrap_or_default();
        Ok(history.split(|&byte| byte == b'\n').filter_map(CommittedVersion::of_line).collect())
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
}
