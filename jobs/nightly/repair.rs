//! `check --repair`: takes a state back to the last version that is whole, and runs the nights behind it again.

use std::env;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use cluster::{Group, Stores, one_line, path_of_text};
use serde::Deserialize;

use super::args::NightArgs;
use super::night::run_night;
use super::options::NightlyOptions;
use crate::Common;
use crate::cli::configuration::Configuration;
use crate::cli::terminal::say;
use crate::corpus::output_layout::SUCCESS;
use crate::output::read;
use crate::state::{CommittedVersion, NightEntry, StateFolder, StateManifest, check_state, faults_of_tables};

/// The part of `_SUCCESS` that says how a night was run.
#[derive(Deserialize)]
struct RecordedNight {
    configuration: Configuration<NightlyOptions>,
}

/// Repairs a state whose files are damaged or missing. Does nothing to one that is whole.
///
/// The nights that it runs again have the options that their outputs record, and write these outputs again.
///
/// # Errors
/// When the input of a lost night is gone or has changed. The state ends with the night before it then, and
/// remembers which nights are lost.
pub(super) fn repair(common: &Common, uri: &str, wait: Duration) -> Result<()> {
    let stores = Stores::new();
    let (store, path) = stores.locate(uri)?;
    // Nights are run in the folders in which they were run, so the name of the state must be whole.
    let uri = format!("{}{}", store.prefix(), path.trim_end_matches('/'));
    let (folder, removed) = StateFolder::claim_damaged(&stores, &uri, &Arc::new(Group::alone(1)), wait)?;
    for version in removed {
        say(format_args!("the manifest of version {version} was damaged and is removed"));
    }
    let taken_back = folder.or_release(take_back(&folder))?;
    folder.release()?;
    if let Some(line) = taken_back {
        say(one_line(&line));
    }
    while let Some(night) =
        StateFolder::open(&stores, &uri)?.newest()?.and_then(|state| state.lost.into_iter().next())
    {
        say(format_args!("running the night \"{}\" again", night.name));
        run_again(common, &uri, &night).with_context(|| {
            format!(
                "the night \"{}\" was lost to damage and could not be run again: put its input back and repair once more, or \
                 give it and all later nights up with nightly rollback",
                night.name
            )
        })?;
    }
    Ok(())
}

/// Commits a version without the nights whose files are damaged, if there are any, and removes the versions that
/// are not whole. Returns what was done, in words.
fn take_back(folder: &StateFolder) -> Result<Option<String>> {
    let check = check_state(folder)?;
    let newest = folder.newest()?.context("the versions of the state are gone")?;
    let damaged: Vec<u64> = {
        let whole = |version: &u64| check.whole.iter().any(|manifest| manifest.version == *version);
        folder.versions()?.into_iter().filter(|version| !whole(version)).collect()
    };
    let history = folder.history()?;
    let last = history.iter().map(|committed| committed.version).max().unwrap_or(0).max(newest.version);
    let mut done = None;
    if last > newest.version || damaged.contains(&newest.version) {
        let nights = nights_to_be(&newest, history);
        let mut base = StateManifest::empty(newest.pinned.clone(), newest.secret);
        for earlier in check.whole.into_iter().rev() {
            if nights.starts_with(&earlier.nights) && faults_of_tables(folder, &earlier)?.is_empty() {
                base = earlier;
                break;
            }
        }
        base.lost = nights[base.nights.len()..].to_vec();
        base.version = last + 1;
        base.oldest = newest.oldest;
        "repair".clone_into(&mut base.made_by);
        folder.commit(&base)?;
        folder.note_in_history(&base);
        done = Some(match base.nights.last() {
            Some(last) => format!("the state is that after the night \"{}\" again", last.name),
            None => "no version is whole: all nights are run again".to_owned(),
        });
    }
    folder.remove_versions(&damaged)?;
    Ok(done)
}

/// Returns the nights that a whole state would have. `history`: what tells of versions behind the newest one that
/// can be read.
fn nights_to_be(newest: &StateManifest, history: Vec<CommittedVersion>) -> Vec<NightEntry> {
    let mut nights: Vec<NightEntry> = newest.nights.iter().chain(&newest.lost).cloned().collect();
    for committed in history.into_iter().filter(|committed| committed.version > newest.version) {
        if let Some(last) = committed.made_by.strip_prefix("rollback to ") {
            let kept = nights.iter().position(|night| night.name == last);
            nights.truncate(kept.map_or(0, |kept| kept + 1));
        }
        nights.extend(committed.night);
    }
    nights
}

/// Runs a night as its output says that it was run.
fn run_again(common: &Common, state: &str, night: &NightEntry) -> Result<u8> {
    let (store, path) = Stores::new().locate(&night.output)?;
    let success = read(store.as_ref(), &format!("{path}/{SUCCESS}"))?
        .with_context(|| format!("the output \"{}\" is gone, which says how it was made", night.output))?;
    let RecordedNight { configuration } = serde_json::from_slice(&success)
        .with_context(|| format!("the output \"{}\" is of another job or version", night.output))?;
    let Configuration { options, inputs, directory, .. } = configuration;
    env::set_current_dir(path_of_text(&directory))
        .with_context(|| format!("could not go to \"{directory}\", where it was run"))?;
    run_night(common, NightArgs::again(state, night, options, inputs))
}
