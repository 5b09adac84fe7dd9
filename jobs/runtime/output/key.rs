//! The key of a run, by which another run knows whether it may resume the work.

use std::fmt::Write as _;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::corpus::plan::Plan;
use crate::launch::build_identity::hash_of_program;

/// Hash of everything that the output of a run depends on. A run may resume the work of another one with the
/// same key.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Key(pub(super) String);

impl Key {
    /// Hashes this program, its options (`asked`), and the paths, lengths, modification times and tags of the
    /// input files.
    pub fn new(asked: &impl Serialize, plan: &Plan) -> Result<Self> {
        let mut text = format!("{:032x}\n{}\n", hash_of_program()?, serde_json::to_string(asked)?);
        writeln!(text, "{}", plan.reference_files)?;
        for file in &plan.files {
            let modified = file.version.modified;
            // The tag of a local file holds the number of its device, which may change when the machine is
            // restarted.
            let tag = file.version.tag.filter(|_| !file.store.prefix().is_empty());
            writeln!(text, "{}\0{}\0{}\0{modified:?}{tag:?}", file.store.prefix(), file.path, file.bytes)?;
        }
        Ok(Key(format!("{:032x}", xxh3_128(text.as_bytes()))))
    }
}
