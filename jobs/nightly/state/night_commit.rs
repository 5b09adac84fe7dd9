//! The commit of a night: of its version of the state, together with its output.

use std::sync::Arc;

use anyhow::{Context, Result};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::manifest::{NightEntry, RunEntry, StateManifest};
use super::state_folder::{PreparedNight, StateFolder};
use super::tiers::merge_tiers;
use batch::dedup_job::Companion;
use runtime::output::summary::{Counters, NightCounters};

/// Number of nights that `_SUCCESS` tells of: this one and those before it.
const NIGHTS: usize = 60;

/// A version of a state that becomes visible with the output of its night.
pub struct NightCommit {
    /// State that this run has claimed, in which the version is committed.
    pub folder: Arc<StateFolder>,
    /// Output folder as the user has named it.
    pub output: String,
    night: Mutex<Option<PreparedNight>>,
}

impl NightCommit {
    /// Begins without a version.
    pub fn new(folder: Arc<StateFolder>, output: &str) -> Self {
        NightCommit { folder, output: output.to_owned(), night: Mutex::default() }
    }

    /// Takes the version that is to be committed, once all its files are written. Merges runs of about one size.
    ///
    /// `manifest`: the version with the night as its last entry. `runs`: the files of the night.
    pub fn set(&self, mut manifest: StateManifest, runs: Vec<RunEntry>) -> Result<()> {
        manifest.runs.extend(runs);
        merge_tiers(&self.folder, &mut manifest)?;
        *self.night.lock() = Some(PreparedNight::new(manifest, &self.output)?);
        Ok(())
    }
}

impl Companion for NightCommit {
    fn prepare(&self, counters: &mut Counters) -> Result<Value> {
        let mut night = self.night.lock();
        let mut manifest = night.take().context("the night has written no state")?.manifest;
        if let Some(entry) = manifest.nights.last_mut() {
            let Counters { kept, removed, rejected, .. } = *counters;
            (entry.kept, entry.removed, entry.rejected) = (kept, removed, rejected);
            entry.documents = kept + removed;
            counters.night =
                Some(NightCounters { withdrawn: entry.withdrawn, corrections: entry.corrections });
        }
        let prepared = PreparedNight::new(manifest, &self.output)?;
        self.folder.prepare(&prepared)?;
        let mut stamp = serde_json::to_value(prepared.stamp(&self.folder))?;
        let nights = &prepared.manifest.nights;
        stamp["nights"] = nights[nights.len().saturating_sub(NIGHTS)..].iter().map(shown_night).collect();
        *night = Some(prepared);
        Ok(stamp)
    }

    fn commit(&self) -> Result<()> {
        let night = self.night.lock();
        let manifest = &night.as_ref().context("the night has written no state")?.manifest;
        self.folder.commit(manifest)
    }
}

/// Returns what `_SUCCESS` says of a night.
fn shown_night(night: &NightEntry) -> Value {
    let NightEntry { name, documents, kept, removed, rejected, withdrawn, corrections, .. } = night;
    json!({
        "night": name, "documents": documents, "kept": kept, "removed": removed, "rejected": rejected,
        "withdrawn": withdrawn, "corrections": corrections,
    })
}
