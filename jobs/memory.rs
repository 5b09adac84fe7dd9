//! How much memory a search may take, and where that goes which does not fit.

use std::env;

use cluster::path_of_text;
use operators::Scratch;
use operators::method::Spec;

use crate::options;

/// What a process takes however large the corpus is: the program, each worker's readers and writers, and the words
/// that texts are cut into. Measured: docs/design/0022.
const PROGRAM_BYTES: u64 = 16 << 20;
const WORKER_BYTES: u64 = 12 << 20;
const WORDS_BYTES: u64 = 48 << 20;

/// What a search may hold.
#[derive(Debug, clap::Args)]
pub(crate) struct MemoryOptions {
    /// About how much memory each process may take, such as 500M or 4G, at least 64M; by default as much as there is
    ///
    /// What does not fit is kept in files of --local-dir for a while. The result is the same.
    #[arg(long, value_name = "SIZE", value_parser = options::memory)]
    memory: Option<u64>,
    /// Folder for files that do not fit into --memory; by default the system's folder for temporary files
    #[arg(long, value_name = "DIR", value_parser = options::paths())]
    local_dir: Option<String>,
}

impl MemoryOptions {
    /// What each of so many workers of this process has for what it holds.
    pub fn scratch(&self, workers: usize, method: &Spec) -> Scratch {
        let folder = self.local_dir.as_deref().map_or_else(env::temp_dir, path_of_text);
        let words = if method.cuts_words() { WORDS_BYTES } else { 0 };
        let fixed = PROGRAM_BYTES + words + workers as u64 * WORKER_BYTES;
        let left = self.memory.map(|memory| memory.saturating_sub(fixed).max(memory / 8));
        Scratch::new(&folder, left.map(|bytes| bytes as usize)).shared_by(workers)
    }
}
