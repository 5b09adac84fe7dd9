//! Claims a state for writing, and puts in order what a killed run has left.
//!
//! A night commits an output and a version of the state. Neither may exist without the other for long:
//!
//! ```text
//! step                                          a run that finds this
//! runs/00000007/... are written                 removes them
//! versions/00000007-RUN.prepared names          asks the output: if its _SUCCESS has the stamp of the version, or its
//!   the output                                  commit is decided, it goes on with the next steps, else it keeps the
//!                                               output from being committed, and removes the files
//! the output is committed
//! versions/00000007.json is created             removes the .prepared file
//! ```
//!
//! The run that is found may only be asleep. Its files and its .prepared file have names that no other run gives, and what
//! all runs name alike is changed by [`Lock::create`] and [`Lock::replace`], which fail once another run has claimed the
//! state. Files are removed only if they were listed before the lock was looked at: they are none of a later run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{process, thread};

use anyhow::{Context, Result, bail};
use cluster::{Group, Stores, one_line};
use serde::Deserialize;

use super::manifest::{NightEntry, StateManifest};
use super::state_folder::{PreparedNight, StateFolder, StateStamp};
use runtime::cli::exit::{Locked, WrongUse, exit_code};
use runtime::cli::terminal::say;
use runtime::corpus::output_layout::SUCCESS;
use runtime::output::{Lock, LockOwner, OutputFolder, read};

/// Pause between two attempts to take the lock.
const RETRY: Duration = Duration::from_secs(1);
/// Number of versions that stay for a rollback.
const KEPT_VERSIONS: usize = 32;

/// The part of `_SUCCESS` that says which version of which state belongs to the output.
#[derive(Deserialize)]
struct Stamped {
    state: Option<StateStamp>,
}

impl StateFolder {
    /// Opens a state for writing, and repairs what a killed run has left. `wait`: how long to wait for another
    /// run to end.
    ///
    /// # Errors
    /// [`Locked`] when another run is writing; [`WrongUse`] when the folder holds anything else.
    pub fn claim(stores: &Stores, uri: &str, group: &Arc<Group>, wait: Duration) -> Result<Self> {
        let state = StateFolder::lock(stores, uri, group, wait)?;
        let claimed = state.recover(stores).and_then(|()| state.compare_with_history());
        state.or_release(claimed.and_then(|()| state.remove_old()))?;
        Ok(state)
    }

    /// Claims a state, commits a version that `change` makes of the newest one, and gives the lock back. `wait`: seconds
    /// to wait for another run.
    ///
    /// # Errors
    /// Those of [`StateFolder::claim`] and of `change`.
    pub fn change<T>(
        uri: &str,
        wait: u64,
        change: impl FnOnce(&StateFolder, &mut StateManifest) -> Result<T>,
    ) -> Result<T> {
        let group = Arc::new(Group::alone(1));
        let state = StateFolder::claim(&Stores::new(), uri, &group, Duration::from_secs(wait))?;
        let changed = state.newest().and_then(|manifest| {
            let mut manifest = manifest.context("the state is gone")?;
            manifest.version += 1;
            let changed = change(&state, &mut manifest)?;
            state.commit(&manifest)?;
            Ok(changed)
        });
        let changed = state.or_release(changed)?;
        state.release()?;
        Ok(changed)
    }

    /// The same as [`StateFolder::claim`] for a state whose manifests may be damaged. Returns the numbers of their versions. Nothing is cleaned
    /// up yet.
    pub fn claim_damaged(
        stores: &Stores,
        uri: &str,
        group: &Arc<Group>,
        wait: Duration,
    ) -> Result<(Self, Vec<u64>)> {
        let state = StateFolder::lock(stores, uri, group, wait)?;
        let damaged = state.damaged_manifests();
        let damaged = state.or_release(damaged.and_then(|damaged| {
            state.recover(stores)?;
            Ok(damaged)
        }))?;
        Ok((state, damaged))
    }

    /// Returns an error if versions are missing that the history tells of, as after a copy that was cut short. Adds the
    /// line of the newest version if a killed run has not written it.
    fn compare_with_history(&self) -> Result<()> {
        let newest = self.versions()?.last().copied().unwrap_or(0);
        let known = self.history()?.iter().map(|committed| committed.version).max().unwrap_or(0);
        if known > newest {
            bail!(WrongUse(format!(
                "the state \"{}\" is incomplete: its history.jsonl tells of version {known}, and the newest that is there is \
                 {newest}. Copy it again, or get it back with nightly check --repair, or remove history.jsonl to go on \
                 without what is missing",
                self.uri
            )));
        }
        if known < newest {
            self.note_in_history(&self.version(newest)?);
        }
        Ok(())
    }

    /// Takes the lock of a state.
    fn lock(stores: &Stores, uri: &str, group: &Arc<Group>, wait: Duration) -> Result<Self> {
        let mut state = StateFolder::open(stores, uri)?;
        state.refuse_others()?;
        state.store.create_dir(&state.path)?;
        let temporary = state.at("_temporary");
        let began = Instant::now();
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
        lock.unique().clone_into(&mut state.run);
        let unnamed = state.unnamed(&lock);
        lock.beat(move |taken: &anyhow::Error| {
            group.fail(&format!("{taken:#}"));
            // Only the first error is reported.
            drop(unnamed.remove());
            say(one_line(&format!("error: {taken:#}")));
            process::exit(1);
        })?;
        let fenced = lock.fence();
        state.lock = Some(lock);
        state.or_release(fenced)?;
        Ok(state)
    }

    /// Gives the lock back if `result` is an error. If another run has taken over, that is the error.
    pub fn or_release<T>(&self, result: Result<T>) -> Result<T> {
        let result = result.map_err(|error| match &self.lock {
            Some(lock) => lock.reason(error),
            None => error,
        });
        if result.is_err() {
            // Only the first error is reported.
            drop(self.release());
        }
        result
    }

    /// Returns the numbers of the versions whose manifests are damaged.
    fn damaged_manifests(&self) -> Result<Vec<u64>> {
        let versions = self.versions()?;
        let mut damaged = Vec::new();
        for &version in &versions {
            if self.is_damaged(version)? {
                damaged.push(version);
            }
        }
        if damaged.len() == versions.len() {
            bail!(WrongUse(format!(
                "no version of the state \"{}\" can be read: put a copy in its place, or remove it and run its nights again",
                self.uri
            )));
        }
        Ok(damaged)
    }

    /// Removes the manifest of a version. Its files go with the next clean-up, unless another version names them.
    fn remove_version(&self, version: u64) -> Result<()> {
        Ok(self.store.remove(&self.at(&format!("versions/{version:08}.json")))?)
    }

    /// Finishes or gives up the version that a killed run has prepared.
    fn recover(&self, stores: &Stores) -> Result<()> {
        for path in self.prepared()? {
            let text = read(self.store.as_ref(), &path)?.unwrap_or_default();
            // A file that is cut short was written before anything was decided.
            if let Ok(night) = serde_json::from_slice::<PreparedNight>(&text)
                && !self.versions()?.contains(&night.manifest.version)
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
        Ok(())
    }

    /// Returns the paths of the files that tell of versions which were about to be committed, in order.
    fn prepared(&self) -> Result<Vec<String>> {
        let children = self.store.children_if_any(&self.at("versions"))?.into_iter();
        let mut paths: Vec<String> =
            children.map(|child| child.path).filter(|path| path.ends_with(".prepared")).collect();
        paths.sort_unstable();
        Ok(paths)
    }

    /// Whether the output of a night was committed with this version.
    fn is_stamped(&self, stores: &Stores, night: &PreparedNight) -> Result<bool> {
        Ok(stamp_of(stores, &night.output)?.is_some_and(|state| state.stamp == night.stamp))
    }

    /// Removes versions that are damaged, and the files that no other version names.
    pub fn remove_versions(&self, versions: &[u64]) -> Result<()> {
        self.check()?;
        versions.iter().try_for_each(|&version| self.remove_version(version))?;
        self.remove_old()
    }

    /// Removes the versions that are too old for a rollback, hold what was erased, or have nights that were rolled back, to
    /// which no rollback leads. Then removes the files that no version names.
    pub(super) fn remove_old(&self) -> Result<()> {
        let numbers = self.versions()?;
        let Some(&last) = numbers.last() else { return self.remove_unknown(&[]) };
        let newest = self.version(last)?;
        let too_old = numbers.len().saturating_sub(KEPT_VERSIONS);
        // A version that is too old is not read, since it may be damaged.
        let is_recent = |at: usize, number: u64| at >= too_old && number >= newest.oldest;
        let (recent, old): (Vec<_>, Vec<_>) =
            numbers.into_iter().enumerate().partition(|(at, number)| is_recent(*at, *number));
        self.check()?;
        old.into_iter().try_for_each(|(_, number)| self.remove_version(number))?;
        let nights: Vec<&NightEntry> = newest.nights.iter().chain(&newest.lost).collect();
        let is_of_nights = |version: &StateManifest| {
            version.nights.len() <= nights.len()
                && version.nights.iter().eq(nights[..version.nights.len()].iter().copied())
        };
        let recent = recent.into_iter().map(|(_, number)| self.version(number));
        let (kept, undone): (Vec<_>, Vec<_>) =
            recent.collect::<Result<Vec<_>>>()?.into_iter().partition(is_of_nights);
        self.check()?;
        undone.iter().try_for_each(|version| self.remove_version(version.version))?;
        self.remove_unknown(&kept)
    }

    /// Removes the files that none of these versions names: those of killed runs and of removed versions, and what a killed
    /// run was writing under a hidden name.
    fn remove_unknown(&self, versions: &[StateManifest]) -> Result<()> {
        let files = versions.iter().flat_map(|version| version.files());
        let known: BTreeSet<String> = files.map(|file| self.at(file)).collect();
        let (runs, lock) = (self.at("runs/"), self.at("_temporary/"));
        let is_hidden = |path: &str| path.rsplit('/').next().is_some_and(|name| name.starts_with('.'));
        let is_unknown = |path: &String| match path.starts_with(&runs) {
            true => !known.contains(path),
            false => is_hidden(path) && !path.starts_with(&lock),
        };
        let files = self.store.everything(&self.path)?;
        let unknown = files.into_iter().map(|entry| entry.path).filter(is_unknown);
        self.check()?;
        Ok(self.store.remove_files(&unknown.collect::<Vec<_>>())?)
    }
}

/// Returns what the `_SUCCESS` of an output says of a state, if there is such an output and it says so.
pub(crate) fn stamp_of(stores: &Stores, output: &str) -> Result<Option<StateStamp>> {
    let (store, path) = stores.locate(output)?;
    let success = read(store.as_ref(), &format!("{}/{SUCCESS}", path.trim_end_matches('/')))?;
    Ok(success
        .and_then(|text| serde_json::from_slice::<Stamped>(&text).ok())
        .and_then(|stamped| stamped.state))
}
