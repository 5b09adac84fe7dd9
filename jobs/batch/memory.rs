//! The memory that a search may take, and the folder for what does not fit.

use std::path::Path;

use anyhow::{Result, bail};
use cluster::Group;
use datasets::Reading;
use operators::SpillBudget;
use operators::method::Spec;
use operators::text::features::Lexicon;

use runtime::cli::allocator;
use runtime::cli::exit::WrongUse;
#[cfg(feature = "cli")]
use runtime::cli::headings::RESOURCES;
#[cfg(feature = "cli")]
use runtime::cli::values;

/// Bytes of the program itself, whatever the size of the corpus. Measured: docs/design/memory.md.
const PROGRAM_BYTES: u64 = 16 << 20;
/// Bytes of the readers and writers of each worker. Measured: docs/design/memory.md.
const WORKER_BYTES: u64 = 8 << 20;
/// Bytes that adding the user's words to the dictionary takes at the start; without them the dictionary is part
/// of the program. Measured: docs/design/features.md.
const USER_WORDS_BYTES: u64 = 96 << 20;
/// Bytes of the engine's network buffers between a worker and each other process. The process itself needs as
/// many again for each other process.
const CONNECTION_BYTES: u64 = 1 << 20;
/// Smallest share of a worker for its records, in bytes.
const LEAST_BYTES: u64 = 2 << 20;
/// Smallest share of a worker that counts features, in bytes.
const COUNTERS_BYTES: u64 = 32 << 20;
/// Part of the input that a process needs in memory for an exact search, as a divisor. With less, its
/// counters of features tell so little that it takes many times as long. Measured: docs/design/memory.md.
const EXACT_INPUT_SHARE: u64 = 32;

/// Number of longest records that the share of a worker holds.
const RECORD_SHARE: u64 = 16;
/// Number of blocks of records that the share of a worker holds.
const BLOCK_SHARE: u64 = 8;

/// Options for the memory of a search.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct MemoryOptions {
    /// Approximate memory that each process may take, such as 500M or 4G; by default as much as there is
    ///
    /// Records that do not fit are spilled to files of --local-dir. The result is the same, unless a record
    /// is longer than --max-record-bytes then allows.
    #[cfg_attr(feature = "cli", arg(help_heading = RESOURCES, long, value_name = "SIZE", value_parser = values::size))]
    memory: Option<u64>,
}

impl MemoryOptions {
    /// With `--memory`, makes the allocator give freed memory back to the system. Without it, nothing changes.
    pub fn give_back(&self) {
        if let Some(memory) = self.memory {
            allocator::give_back_from((memory / 64).clamp(1 << 20, 32 << 20) as i32);
        }
    }

    /// Returns limits for each worker with `--memory`, in bytes: the longest record, and
    /// [`Reading::block_bytes`].
    pub fn of_records(&self, workers: usize) -> Option<(u64, u64)> {
        let share = self.memory? / workers as u64;
        // A record is held several times: as stored, decoded, cleaned, and in what is kept of it.
        let record = (share / RECORD_SHARE).min(Reading::MAX_RECORD_BYTES as u64);
        let block = (share / BLOCK_SHARE).min(Reading::MOST_BLOCK_BYTES as u64);
        Some((record, block.max(Reading::LEAST_BLOCK_BYTES as u64)))
    }

    /// Returns the memory and the folder for what all workers hold together, in a job of one process that sorts records
    /// and compares no texts. `local`: the folder for temporary files.
    ///
    /// # Errors
    /// When the memory is too little for the workers.
    pub fn sorting_budget(&self, workers: usize, local: &Path) -> Result<SpillBudget> {
        let workers = workers as u64;
        let fixed = PROGRAM_BYTES + workers * WORKER_BYTES;
        let least = fixed + workers * LEAST_BYTES;
        if let Some(memory) = self.memory.filter(|&memory| memory < least) {
            let memory = said(memory);
            let least = least.div_ceil(1 << 20);
            bail!(WrongUse(format!(
                "--memory {memory} is too little for {workers} workers in a process: it takes {least}M"
            )));
        }
        Ok(SpillBudget::new(local, self.memory.map(|memory| (memory - fixed) as usize)))
    }

    /// Returns the memory and the folder for what each worker of this process holds. `lexicon`: the words of
    /// the user. `text_bytes`: about how many bytes the records have. `local`: the folder for temporary files.
    ///
    /// # Errors
    /// When the memory is too little for the workers, or for an exact search of so many records.
    pub fn spill_budget(
        &self,
        group: &Group,
        method: &Spec,
        lexicon: &Lexicon,
        text_bytes: u64,
        local: &Path,
    ) -> Result<SpillBudget> {
        let whole = self.left_of(1, group, method, lexicon, text_bytes, local)?;
        Ok(whole.shared_by(group.workers()))
    }

    /// Returns the memory and the folder for what all workers of a process hold together, of which the search gets
    /// one of `parts` equal parts. The other parameters are those of [`MemoryOptions::spill_budget`].
    ///
    /// # Errors
    /// When a part is too little for the search.
    pub fn left_of(
        &self,
        parts: u64,
        group: &Group,
        method: &Spec,
        lexicon: &Lexicon,
        text_bytes: u64,
        local: &Path,
    ) -> Result<SpillBudget> {
        let fixed = fixed_bytes(group, lexicon);
        let of_worker = if method.counted().is_some() { COUNTERS_BYTES } else { LEAST_BYTES };
        let of_workers = group.workers() as u64 * of_worker;
        let exact = method.cost().feature > 0;
        let of_text = if exact { text_bytes / EXACT_INPUT_SHARE } else { 0 };
        let least = fixed + parts * of_workers.max(of_text);
        if let Some(memory) = self.memory.filter(|&memory| memory < least) {
            let memory = said(memory);
            let workers = group.workers();
            let least = least.div_ceil(1 << 20);
            let because =
                format!("--memory {memory} is too little for {method} with {workers} workers in a process");
            let takes_less = if parts == 1 { "; auto:search=minhash takes less" } else { "" };
            bail!(WrongUse(match of_text > of_workers {
                true => format!(
                    "{because} and about {} MiB of records: its search is exact and takes {least}M{takes_less}",
                    text_bytes >> 20
                ),
                false => format!("{because}: it takes {least}M"),
            }));
        }
        Ok(SpillBudget::new(local, self.memory.map(|memory| (memory - fixed) as usize)))
    }
}

/// Returns the memory of this process that is not for records, in bytes.
fn fixed_bytes(group: &Group, lexicon: &Lexicon) -> u64 {
    let workers = group.workers() as u64;
    let others = group.processes() as u64 - 1;
    let words = if lexicon.user_words.is_empty() { 0 } else { USER_WORDS_BYTES };
    let connections = others * (workers * CONNECTION_BYTES + CONNECTION_BYTES);
    PROGRAM_BYTES + words + workers * WORKER_BYTES + connections
}

/// Returns a number of bytes that is too small, as people write it. A user who gave no unit probably meant
/// another one.
fn said(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("of {bytes} bytes (a number without a unit is one of bytes)"),
        megabytes => format!("{megabytes}M"),
    }
}
