//! How much memory a search may take, and where that goes which does not fit.

use std::env;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result, bail};
use cluster::{Cluster, path_of_text};
use datasets::Reading;
use operators::Scratch;
use operators::method::Spec;

use crate::WrongUse;
use crate::cli::values;

/// What a process takes however large the corpus is: the program, each worker's readers and writers, and the words
/// that texts are cut into. Measured: docs/design/0022.
const PROGRAM_BYTES: u64 = 16 << 20;
const WORKER_BYTES: u64 = 8 << 20;
const WORDS_BYTES: u64 = 48 << 20;
/// Which the engine writes to and reads from, for each other process: one of each worker, and one of all.
const CONNECTION_BYTES: u64 = 1 << 20;
/// What a worker must have besides: little, or what it counts features with.
const LEAST_BYTES: u64 = 2 << 20;
const COUNTERS_BYTES: u64 = 32 << 20;

/// A worker's share of the memory holds so many longest records, and so many blocks.
const RECORD_SHARE: u64 = 16;
const BLOCK_SHARE: u64 = 8;

/// What a search may hold.
#[derive(Debug, clap::Args)]
pub(crate) struct MemoryOptions {
    /// About how much memory each process may take, such as 500M or 4G; by default as much as there is
    ///
    /// What does not fit is kept in files of --local-dir for a while. The result is the same, unless a record is longer
    /// than --max-record-bytes then allows.
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    memory: Option<u64>,
    /// Folder for files that do not fit into --memory; by default the system's folder for temporary files
    #[arg(long, value_name = "DIR", value_parser = values::paths())]
    local_dir: Option<String>,
}

/// By which the C library is told to give memory back: blocks of so many bytes at once, and others when there are so many.
/// It reads them when a process starts; without them it learns to keep up to 32 MB of either for each worker. Others ignore them.
const GIVE_BACK: [&str; 2] = ["MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"];
/// Says that this program was started with these.
const GIVES_BACK: &str = "DEDUP_JOB_GIVES_BACK";

impl MemoryOptions {
    /// With `--memory`, starts the program of this process anew so that memory that is given back does not stay with it.
    ///
    /// # Errors
    /// When it cannot be started. To be called before anything is held open.
    pub fn give_back(&self) -> Result<()> {
        let Some(memory) = self.memory.filter(|_| env::var_os(GIVES_BACK).is_none()) else { return Ok(()) };
        let bytes = (memory / 64).clamp(1 << 20, 32 << 20).to_string();
        let mut args = env::args_os();
        let mut again = Command::new(env::current_exe().context("could not find this program")?);
        again.arg0(args.next().unwrap_or_default()).args(args).envs(GIVE_BACK.map(|name| (name, &bytes)));
        again.env(GIVES_BACK, "1");
        Err(again.exec()).context("could not start this program anew")
    }

    /// What a record, and what records lie in, may take with `--memory`, for each worker: the longest record, and
    /// [`Reading::block_bytes`]. `None` without.
    pub fn of_records(&self, workers: usize) -> Option<(u64, u64)> {
        let share = self.memory? / workers as u64;
        // A record is held several times: as it is stored, decoded, cleaned, and in what is kept of it.
        let record = (share / RECORD_SHARE).min(Reading::MAX_RECORD_BYTES as u64);
        let block = (share / BLOCK_SHARE).min(Reading::BLOCK_BYTES as u64);
        Some((record, block.max(Reading::LEAST_BLOCK_BYTES as u64)))
    }

    /// What each worker of this process has for what it holds.
    ///
    /// # Errors
    /// When the memory is too little for the workers.
    pub fn scratch(&self, cluster: &Cluster, method: &Spec) -> Result<Scratch> {
        let (workers, others) = (cluster.workers(), cluster.processes() as u64 - 1);
        let folder = self.local_dir.as_deref().map_or_else(env::temp_dir, path_of_text);
        let of_workers = |bytes: u64| workers as u64 * bytes;
        let words = if method.cuts_words() { WORDS_BYTES } else { 0 };
        let connections = others * (of_workers(CONNECTION_BYTES) + CONNECTION_BYTES);
        let fixed = PROGRAM_BYTES + words + of_workers(WORKER_BYTES) + connections;
        let least = fixed + of_workers(if method.counted().is_some() { COUNTERS_BYTES } else { LEAST_BYTES });
        if let Some(memory) = self.memory.filter(|&memory| memory < least) {
            bail!(WrongUse(format!(
                "--memory {}M is too little for {method} with {workers} workers in a process: it takes {}M",
                memory >> 20,
                least.div_ceil(1 << 20)
            )));
        }
        let left = self.memory.map(|memory| (memory - fixed) as usize);
        Ok(Scratch::new(&folder, left).shared_by(workers))
    }
}
