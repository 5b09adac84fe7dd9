//! The partitions of a root folder, such as `dt=2026-11-20`, and which of them a state does not have yet.

use anyhow::{Result, bail};
use cluster::Stores;

use crate::state::NightEntry;
use runtime::cli::exit::WrongUse;
use runtime::corpus::output_layout::SUCCESS;

/// Partitions that are complete: they have a `_SUCCESS`.
pub(super) struct Partitions(Vec<Partition>);

/// A folder of the root.
pub(super) struct Partition {
    /// Name of the folder, such as `dt=2026-11-20`, which is the name of its night.
    pub name: String,
    pub uri: String,
    /// Whether it has no files but its `_SUCCESS`.
    pub empty: bool,
}

impl Partitions {
    /// Lists the complete partitions of a folder in the order of their names. `key`: their name before the `=`.
    ///
    /// # Errors
    /// [`WrongUse`] when the folder has no partition at all, complete or not.
    pub fn new(stores: &Stores, root: &str, key: &str) -> Result<Self> {
        let (store, path) = stores.locate(root)?;
        let mut partitions = Vec::new();
        let mut seen = false;
        for child in store.children(path.trim_end_matches('/'))? {
            let name = child.name().to_owned();
            if !child.directory || !name.strip_prefix(key).is_some_and(|rest| rest.starts_with('=')) {
                continue;
            }
            seen = true;
            let path = &child.path;
            if store.exists(&format!("{path}/{SUCCESS}"))? {
                let uri = format!("{}/{name}", root.trim_end_matches('/'));
                partitions.push(Partition { name, uri, empty: store.list(path)?.is_empty() });
            }
        }
        if !seen {
            bail!(WrongUse(format!(
                "\"{root}\" has no folder {key}=...: name the partitions with --partition"
            )));
        }
        partitions.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(Partitions(partitions))
    }

    /// Returns those that the nights of a state have not taken, and those that they have, each with its night.
    pub fn by_nights(self, nights: &[NightEntry]) -> (Vec<Partition>, Vec<(Partition, &NightEntry)>) {
        let (mut missing, mut taken) = (Vec::new(), Vec::new());
        for partition in self.0 {
            match nights.iter().find(|night| night.name == partition.name) {
                None => missing.push(partition),
                Some(night) => taken.push((partition, night)),
            }
        }
        (missing, taken)
    }
}
