//! The tools for a state: `rollback`, `compact`, `stats`, `check` and `export`.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};
use cluster::runs::RunReader;
use cluster::{Stores, path_of_text};

use super::export::export;
use super::repair;
use super::stats::print_stats;
use crate::state::{
    CommittedVersion, StateCheck, StateFolder, StateManifest, StateTable, check_state, compact, key_of_id,
};
use runtime::Common;
use runtime::cli::exit::WrongUse;
use runtime::cli::terminal::print;
#[cfg(feature = "cli")]
use runtime::cli::values::paths;
use runtime::cli::values::{id_lines, without_cr};

/// A tool for a state.
#[derive(Debug)]
#[cfg_attr(feature = "cli", derive(clap::Subcommand))]
pub(super) enum Tool {
    /// Go back to the state after an earlier night, as if the later ones had not been
    ///
    /// The outputs of the later nights stay where they are. What the state has kept of their documents is removed.
    Rollback {
        #[cfg_attr(feature = "cli", command(flatten))]
        state: StateOption,
        /// Name of the last night that stays
        #[cfg_attr(feature = "cli", arg(long, value_name = "NIGHT"))]
        to: String,
    },
    /// Merge the files of the state, and erase what withdrawn documents have left
    ///
    /// If documents were withdrawn, earlier versions are removed, since they hold them: no rollback leads behind
    /// a compaction then.
    Compact {
        #[cfg_attr(feature = "cli", command(flatten))]
        state: StateOption,
    },
    /// Print the nights of a state, and the rows and bytes of its tables
    Stats {
        #[cfg_attr(feature = "cli", command(flatten))]
        state: StateOption,
        /// Print JSON
        #[cfg_attr(feature = "cli", arg(long))]
        json: bool,
    },
    /// Read every byte of a state, and compare it with its checksums
    Check {
        #[cfg_attr(feature = "cli", command(flatten))]
        state: StateOption,
        /// Go back to the last version that is whole, and run the later nights again, if their input is still there
        ///
        /// These nights are run as their outputs say, and the outputs are written again.
        #[cfg_attr(feature = "cli", arg(long))]
        repair: bool,
        /// Check that nothing is left of the documents whose ids are in this file, in any version
        #[cfg_attr(feature = "cli", arg(long, value_name = "FILE", value_parser = paths()))]
        erased: Option<String>,
    },
    /// Write the documents of a state as Parquet: id, night, kept, duplicate_of, reason and more
    Export {
        #[cfg_attr(feature = "cli", command(flatten))]
        state: StateOption,
        /// File to be written
        #[cfg_attr(feature = "cli", arg(value_name = "OUTPUT", value_parser = paths()))]
        output: String,
        /// Replace a file that exists
        #[cfg_attr(feature = "cli", arg(long))]
        overwrite: bool,
    },
}

/// The state that a tool is for.
#[derive(Debug)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub(super) struct StateOption {
    /// Folder of the state
    #[cfg_attr(feature = "cli", arg(long, value_name = "FOLDER", value_parser = paths()))]
    state: String,
    /// Seconds to wait while another run is writing the state
    #[cfg_attr(feature = "cli", arg(long, value_name = "SECONDS", default_value = "0"))]
    wait: u64,
}

impl Tool {
    /// Runs the tool. Returns the exit code: 0, or 1 if a check has found faults.
    pub fn run(self, common: &Common) -> Result<u8> {
        match self {
            Tool::Rollback { state, to } => {
                let undone = state.change(|folder, manifest| roll_back(folder, manifest, &to))?;
                common.tell(format_args!(
                    "the state \"{}\" is that after the night \"{to}\" again{undone}",
                    state.state
                ));
                Ok(0)
            }
            Tool::Compact { state } => {
                state.change(compact)?;
                common.tell(format_args!("the state \"{}\" is compacted", state.state));
                Ok(0)
            }
            Tool::Stats { state, json } => {
                print_stats(&state.open()?.1, json)?;
                Ok(0)
            }
            Tool::Check { state, repair, erased } => {
                if repair {
                    repair::repair(common, &state.state, state.wait)?;
                }
                state.check(erased.as_deref())
            }
            Tool::Export { state, output, overwrite } => {
                let (folder, manifest) = state.open()?;
                if Stores::new().lies_in(&output, &folder.uri)? {
                    bail!(WrongUse(format!("\"{output}\" lies in the state \"{}\"", folder.uri)));
                }
                if !overwrite && Path::new(&path_of_text(&output)).exists() {
                    bail!(WrongUse(format!("\"{output}\" exists: --overwrite replaces it")));
                }
                if let Some(warning) = manifest.warning_of_lost() {
                    common.warn(warning);
                }
                let rows = export(&folder, &manifest, &output)?;
                common.tell(format_args!("{rows} documents written to \"{output}\""));
                Ok(0)
            }
        }
    }
}

/// Makes a manifest equal to that of the version after an earlier night. Returns which nights are undone, in words.
fn roll_back(folder: &StateFolder, manifest: &mut StateManifest, to: &str) -> Result<String> {
    let names = || manifest.nights.iter().map(|night| night.name.as_str()).collect::<Vec<_>>().join(", ");
    let Some(at) = manifest.nights.iter().position(|night| night.name == to) else {
        bail!(WrongUse(format!("the state has no night \"{to}\"; it has {}", names())));
    };
    let versions = folder.versions()?.into_iter().map(|version| folder.version(version));
    let versions = versions.collect::<Result<Vec<_>>>()?;
    // A compaction makes a version of the same nights.
    let after = |at: usize| versions.iter().rev().find(|version| version.nights == manifest.nights[..=at]);
    let Some(target) = after(at) else {
        let kept = (0..manifest.nights.len()).filter(|&at| after(at).is_some());
        let names: Vec<_> = kept.map(|at| &*manifest.nights[at].name).collect();
        bail!(WrongUse(format!(
            "the version after the night \"{to}\" is no longer kept; those after these nights are: {}",
            names.join(", ")
        )));
    };
    let later = manifest.nights.iter().skip_while(|other| other.name != to).skip(1);
    let undone = later.chain(&manifest.lost).map(|night| match night.withdrawn {
        0 => format!("\"{}\"", night.name),
        count => format!("\"{}\", whose {count} withdrawn documents are back", night.name),
    });
    let undone: Vec<_> = undone.collect();
    let version = manifest.version;
    *manifest = target.clone();
    manifest.version = version;
    manifest.lost.clear();
    manifest.made_by = CommittedVersion::rollback(to);
    Ok(if undone.is_empty() { String::new() } else { format!(", without {}", undone.join(" and ")) })
}

impl StateOption {
    fn open(&self) -> Result<(StateFolder, StateManifest)> {
        let folder = StateFolder::open_existing(&Stores::new(), &self.state)?;
        let manifest = folder.newest()?.context("the state is gone")?;
        Ok((folder, manifest))
    }

    /// Commits a version that `change` makes of the newest one.
    fn change<T>(&self, change: impl FnOnce(&StateFolder, &mut StateManifest) -> Result<T>) -> Result<T> {
        StateFolder::open_existing(&Stores::new(), &self.state)?;
        StateFolder::change(&self.state, self.wait, change)
    }

    /// Checks all versions, and that nothing is left in any of them of the ids in a file.
    fn check(&self, erased: Option<&str>) -> Result<u8> {
        let folder = StateFolder::open_existing(&Stores::new(), &self.state)?;
        let StateCheck { mut faults, whole } = check_state(&folder)?;
        if let Some(file) = erased {
            faults.extend(left_of(&folder, &id_lines(file)?)?);
        }
        for fault in &faults {
            print(cluster::one_line(fault) + "\n")?;
        }
        if let (true, Some(manifest)) = (faults.is_empty(), whole.last()) {
            let bytes: u64 = manifest.runs.iter().map(|run| run.summary.bytes).sum();
            let files = manifest.runs.len();
            print(format_args!("{}: {files} files, {bytes} bytes, all as they were written\n", self.state))?;
        }
        Ok(u8::from(!faults.is_empty()))
    }
}

/// Returns a line for each id that a file of any version still has. `lines`: those of a list of ids.
fn left_of(folder: &StateFolder, lines: &[String]) -> Result<Vec<String>> {
    let ids = lines.iter().flat_map(|line| [line.as_str(), without_cr(line)]);
    let wanted: BTreeSet<&[u8]> = ids.map(str::as_bytes).collect();
    let hashes: BTreeSet<u64> = wanted.iter().map(|id| key_of_id(id)).collect();
    let (mut seen, mut left) = (BTreeSet::new(), Vec::new());
    for version in folder.versions()? {
        let manifest = folder.version(version)?;
        for run in
            manifest.runs.iter().filter(|run| matches!(run.table, StateTable::Documents | StateTable::Ids))
        {
            if !seen.insert(run.file.clone()) {
                continue;
            }
            let mut rows = RunReader::open(folder.open_file(&run.file)?, &run.summary)?.cursor();
            while let Some(row) = rows.next_row()? {
                let is_left = match run.table {
                    StateTable::Documents => wanted.contains(row.bytes),
                    _ => hashes.contains(&row.words[0]),
                };
                // Their hashes alone do not name the ids.
                let id = String::from_utf8_lossy(row.bytes);
                let id = if id.is_empty() { String::new() } else { format!(" \"{id}\"") };
                if is_left && left.len() < 20 {
                    left.push(format!(
                        "the table \"{}\" of version {version} still has the id{id}: withdraw it, then run nightly compact",
                        run.table.name()
                    ));
                }
            }
        }
    }
    Ok(left)
}
