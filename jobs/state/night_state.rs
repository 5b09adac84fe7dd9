//! A state as the search of a night uses it.

use std::sync::Arc;

use super::reader::EarlierDocs;
use super::state_folder::StateFolder;
use super::writer::{Numbering, RunsOfNight};

/// The documents of earlier nights, and where those of this night are written to.
#[derive(Clone)]
pub(crate) struct NightState {
    pub folder: Arc<StateFolder>,
    pub docs: Arc<EarlierDocs>,
    /// Version of the state that the night makes.
    pub version: u64,
    /// Numbers of the new documents, which are known once all splits are mapped.
    pub numbering: Numbering,
}

impl NightState {
    /// Begins the files of a worker, which `name` tells from those of others.
    pub fn runs(&self, name: &str) -> RunsOfNight {
        RunsOfNight::new(&self.folder, self.version, name)
    }
}
