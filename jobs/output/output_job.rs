//! What is committed together with an output.

use anyhow::Result;
use serde_json::Value;

use super::summary::Counters;

/// What becomes visible together with an output.
pub(crate) trait Companion {
    /// Writes down that it is about to be committed with the output, and returns what `_SUCCESS` says of it. `counters`: those of
    /// the run, to which it adds its own.
    fn prepare(&self, counters: &mut Counters) -> Result<Value>;
    /// Commits it, after the output.
    fn commit(&self) -> Result<()>;
}
