//! `check --repair`: takes a state back to the last version that is whole, and runs the nights behind it again.

use std::collections::BTreeMap;
use std::env;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use cluster::{Group, Stores, one_line, path_of_text};
use serde::Deserialize;

use super::args::NightArgs;
use super::night::{Night, run_night};
use super::options::NightlyOptions;
use crate::state::{
    CommittedVersion, NightEntry, Pinned, StateFolder, StateManifest, check_state, compact, faults_of_tables,
    stamp_of,
};
use runtime::Common;
use runtime::cli::configuration::Configuration;
use runtime::cli::exit::WrongUse;
use runtime::corpus::output_layout::SUCCESS;
use runtime::output::read;

/// The part of `_SUCCESS` that says how a night was run.
#[derive(Deserialize)]
struct RecordedNight {
    configuration: Configuration<NightlyOptions>,
}

/// Repairs a state whose files are damaged or missing. Does nothing to one that is whole. `wait`: seconds to wait for
/// another run.
///
/// The nights that it runs again have the options that their outputs record, and write these outputs again. If the
/// state had erased withdrawn documents, they are erased again.
///
/// # Errors
/// When the output or the input of a lost night is gone, has changed or is of another state: nothing is changed then.
pub(super) fn repair(common: &Common, uri: &str, wait: u64) -> Result<()> {
    let stores = Stores::new();
    let here = env::current_dir()?;
    // Nights are run in the folders in which they were run, so the name of the state must be whole.
    let uri = StateFolder::open_existing(&stores, uri)?.address();
    let group = Arc::new(Group::alone(1));
    let (folder, damaged) = StateFolder::claim_damaged(&stores, &uri, &group, Duration::from_secs(wait))?;
    let repair = Repair { common, uri, wait, group };
    let taken_back = folder.or_release(repair.take_back(&folder, damaged))?;
    folder.release()?;
    let repaired = taken_back.map_or(Ok(()), |line| {
        repair.say(&line);
        repair.run_lost()
    });
    env::set_current_dir(here)?;
    repaired
}

/// A repair of a state.
struct Repair<'a> {
    common: &'a Common,
    /// Whole name of the state.
    uri: String,
    wait: u64,
    group: Arc<Group>,
}

impl Repair<'_> {
    fn say(&self, line: &str) {
        self.common.tell(one_line(line));
    }

    /// Commits a version without the nights whose files are damaged, if there are any, and removes the versions that
    /// are not whole. `damaged`: versions whose manifests are. Returns what was done, in words; `None` if no night is
    /// lost.
    fn take_back(&self, folder: &StateFolder, damaged: Vec<u64>) -> Result<Option<String>> {
        let check = check_state(folder)?;
        let versions = folder.versions()?;
        let newest = versions.iter().rev().find(|version| !damaged.contains(version));
        let newest = folder.version(*newest.context("no manifest of the state can be read")?)?;
        let (nights, last) = nights_to_be(&newest, &damaged, folder.history()?)?;
        let is_whole = |version: &u64| check.whole.iter().any(|manifest| manifest.version == *version);
        let not_whole: Vec<u64> = versions.into_iter().filter(|version| !is_whole(version)).collect();
        if last == newest.version && is_whole(&last) {
            folder.remove_versions(&not_whole)?;
            return Ok(newest
                .lost
                .first()
                .map(|night| format!("the night \"{}\" is not back yet", night.name)));
        }
        let mut base = StateManifest::empty(newest.pinned.clone(), newest.secret);
        for earlier in check.whole.into_iter().rev() {
            if nights.starts_with(&earlier.nights) && faults_of_tables(folder, &earlier)?.is_empty() {
                base = earlier;
                break;
            }
        }
        base.lost = nights[base.nights.len()..].to_vec();
        for night in &base.lost {
            let args = self.args_again(night, &newest.pinned).with_context(|| cannot_run(night))?;
            Night::new(self.common, &self.group, args).with_context(|| cannot_run(night))?;
        }
        base.version = last + 1;
        base.oldest = newest.oldest;
        "repair".clone_into(&mut base.made_by);
        folder.commit(&base)?;
        folder.remove_versions(&not_whole)?;
        Ok(Some(match base.nights.last() {
            Some(last) => format!("the state is that after the night \"{}\" again", last.name),
            None => "no version is whole: all nights are run again".to_owned(),
        }))
    }

    /// Runs the nights that the state has lost, and erases again what it had erased.
    fn run_lost(&self) -> Result<()> {
        let stores = Stores::new();
        let newest = || StateFolder::open(&stores, &self.uri)?.newest()?.context("the state is gone");
        let mut manifest = newest()?;
        let erased = manifest.oldest > 0;
        while let Some(night) = manifest.lost.first() {
            self.say(&format!("running the night \"{}\" again", night.name));
            let run = self.args_again(night, &manifest.pinned).and_then(|args| run_night(self.common, args));
            run.with_context(|| cannot_run(night))?;
            let before = manifest.lost.len();
            manifest = newest()?;
            if manifest.lost.len() >= before {
                bail!("the state lists a night as lost that it has: put a copy of the state in its place");
            }
        }
        if erased {
            StateFolder::change(&self.uri, self.wait, compact)?;
        }
        Ok(())
    }

    /// Returns the options of a night as its output records them, in the folder where it was run.
    fn args_again(&self, night: &NightEntry, pinned: &Pinned) -> Result<NightArgs> {
        let stores = Stores::new();
        let output = &night.output;
        let stamp = stamp_of(&stores, output)?;
        let is_ours = stamp
            .is_some_and(|stamp| (stamp.uri.as_str(), stamp.version) == (self.uri.as_str(), night.version));
        if !is_ours {
            bail!(WrongUse(format!("its output \"{output}\" is gone, or of another state or run")));
        }
        let (store, path) = stores.locate(output)?;
        let success = read(store.as_ref(), &format!("{path}/{SUCCESS}"))?.context("its output is gone")?;
        let RecordedNight { configuration } = serde_json::from_slice(&success)
            .with_context(|| format!("the output \"{output}\" is of another version of this program"))?;
        let Configuration { options, inputs, directory, .. } = configuration;
        env::set_current_dir(path_of_text(&directory))
            .with_context(|| format!("could not go to \"{directory}\", where it was run"))?;
        Ok(NightArgs { wait: self.wait, ..NightArgs::again((&self.uri, pinned), night, options, inputs) })
    }
}

fn cannot_run(night: &NightEntry) -> String {
    format!(
        "the night \"{}\" is lost to damage and cannot be run again: put back what it needs and repair once more, or give it \
         and all later nights up with nightly rollback",
        night.name
    )
}

/// Returns the nights that a whole state would have, and the number of its last version. `newest`: the last version
/// that can be read. `damaged`: versions that cannot. `history`: what tells of versions behind it.
///
/// # Errors
/// [`WrongUse`] when the history does not tell what made a version that cannot be read.
fn nights_to_be(
    newest: &StateManifest,
    damaged: &[u64],
    history: Vec<CommittedVersion>,
) -> Result<(Vec<NightEntry>, u64)> {
    let mut nights: Vec<NightEntry> = newest.nights.iter().chain(&newest.lost).cloned().collect();
    let mut told: BTreeMap<u64, CommittedVersion> = history
        .into_iter()
        .filter(|committed| committed.version > newest.version)
        .map(|committed| (committed.version, committed))
        .collect();
    let last = told.keys().chain(damaged).copied().max().unwrap_or(0).max(newest.version);
    for version in newest.version..last {
        let known = |name: &str, nights: &[NightEntry]| nights.iter().position(|night| night.name == name);
        let committed = told.remove(&(version + 1)).filter(|committed| {
            // Each night comes once, and a rollback leads to a night that there is.
            match (&committed.night, committed.rolled_back_to()) {
                (Some(night), _) => known(&night.name, &nights).is_none(),
                (None, Some(to)) => known(to, &nights).is_some(),
                (None, None) => true,
            }
        });
        let Some(committed) = committed else {
            bail!(WrongUse(format!(
                "version {} cannot be read, and history.jsonl does not tell what made it, so later nights are unknown: put a \
                 copy of the state in its place, or remove history.jsonl and the manifests behind version {} to go on from \
                 there",
                version + 1,
                newest.version
            )));
        };
        if let Some(to) = committed.rolled_back_to() {
            nights.truncate(known(to, &nights).map_or(0, |kept| kept + 1));
        }
        nights.extend(committed.night);
    }
    Ok((nights, last))
}
