//! A state as the search of a night uses it.

use std::sync::Arc;

use operators::DocId;
use operators::incremental::CorpusChange;

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
    /// Whether new documents can come before old ones in keep order.
    pub reorders: bool,
}

impl NightState {
    /// Begins the files of a worker, which `name` tells from those of others.
    pub fn runs(&self, name: &str) -> RunsOfNight {
        RunsOfNight::new(&self.folder, self.version, name)
    }

    /// Returns what the night changes.
    pub fn change(&self) -> CorpusChange<'_> {
        CorpusChange {
            first_new: self.numbering.first_new(),
            gone_before: self.docs.withdrawn(),
            going: self.docs.going(),
            reorders: self.reorders,
        }
    }

    /// Whether a document is withdrawn, by this night or before.
    pub fn is_gone(&self, doc: DocId) -> bool {
        [self.docs.withdrawn(), self.docs.going()].iter().any(|gone| gone.binary_search(&doc).is_ok())
    }
}
