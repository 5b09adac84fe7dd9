//! Manifests in the folder of a run: what was written of a split, and what the job has decided.

use std::collections::{BTreeMap, BTreeSet};

use datasets::{Annotation, Fate};
use serde::{Deserialize, Serialize};

use super::files::FileList;

/// Name of the job manifest in a run's folder.
pub(super) const JOB: &str = "job";

/// Numbers of records written, to be compared with the number of records read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Written {
    /// Number of records that are kept.
    pub kept: u64,
    /// Number of records that are removed.
    pub removed: u64,
    /// Number of records that could not be read.
    pub rejected: u64,
}

impl Written {
    /// Counts a record.
    pub fn count(&mut self, fate: &Fate) {
        match fate {
            Fate::Kept | Fate::Cut(_) | Fate::Annotated(Annotation { removal: None, .. }) => self.kept += 1,
            Fate::Removed(_) | Fate::Annotated(_) => self.removed += 1,
            Fate::Rejected => self.rejected += 1,
        }
    }

    /// Adds the numbers of others.
    pub fn add(&mut self, other: Written) {
        self.kept += other.kept;
        self.removed += other.removed;
        self.rejected += other.rejected;
    }
}

/// Task manifest: what was written of a split. A run that resumes does not write the split again if it
/// decides the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct TaskManifest {
    /// Hash of what was decided for the documents of the split.
    pub decided: u64,
    /// Numbers of kept, removed and rejected records of the split.
    #[serde(flatten)]
    pub written: Written,
    /// The same by the file or folder that the records came from.
    #[serde(default)]
    pub by_source: BTreeMap<String, Written>,
    /// Files of the split in the output.
    pub files: FileList,
}

/// Job manifest: what a job has decided to commit. Every file that it names was finished before the manifest
/// is written.
#[derive(Debug, Deserialize, Serialize)]
pub struct JobManifest {
    /// Text of `_SUCCESS`.
    pub success: String,
    /// Guards that the run has passed, as text. A run with other guards must pass its own before it finishes
    /// the commit.
    pub guards: String,
    /// Every file of the output.
    pub files: FileList,
    /// Files of an earlier output that this job replaces or removes; only in a store of uploads.
    pub earlier: EarlierOutput,
}

/// Content of the folders of an earlier output at the moment when a job is decided.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct EarlierOutput {
    /// Tags of the files that the job replaces, by the names of the files.
    pub replaced: BTreeMap<String, String>,
    /// Names of files that the job removes.
    pub removed: BTreeSet<String>,
    /// BLAKE3 hash of the `_SUCCESS` that the job replaces, in hexadecimal.
    #[serde(default)]
    pub success: Option<String>,
}
