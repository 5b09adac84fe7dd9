//! The jobs of the command line, one module each, and what they share.
//!
//! This package joins `operators`, `cluster` and `datasets`; no algorithm lives here.

mod cli;
pub mod commands;
mod corpus;
pub mod dedup;
pub mod launch;
mod output;
mod progress;

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::{env, fmt, process};

use anyhow::{Context, Result, bail};
use clap::builder::TypedValueParser;
use cluster::{Cluster, Limits};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use launch::role::{ProcessOptions, ProcessRole, ProcessTask};

pub use cli::exit::{WrongUse, exit_code};
pub use launch::launcher::Launch;
pub use launch::parent_watch::{BOUND, become_bound};
pub use progress::Show;

/// Writes a line to stderr. A closed or full stderr is no failure of the job.
pub fn say(line: impl fmt::Display) {
    if cfg!(test) {
        return eprintln!("{line}"); // the test harness shows stderr of tests that fail
    }
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Writes the answer of a job to stdout. A reader that has seen enough, such as `head`, is no failure.
fn print(answer: impl fmt::Display) -> Result<()> {
    match write!(std::io::stdout(), "{answer}").and_then(|()| std::io::stdout().flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("could not write to the standard output")
        }
        _ => Ok(()),
    }
}

/// Options that every job has, which come before or after its name.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// Number of worker threads of all processes together; by default the cores of this machine for each
    /// process
    ///
    /// The result is the same for any number.
    #[arg(long, global = true, value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=1024).map(usize::from))]
    workers: Option<usize>,
    /// How progress is shown on stderr
    ///
    /// With `auto`, a terminal gets one line that renews itself. Elsewhere there is a line every few seconds,
    /// from the first process only.
    #[arg(long, global = true, value_name = "HOW", default_value = "auto")]
    progress: Show,
    /// Print nothing but errors
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Keep the numbers of the running job in this file, for Prometheus
    ///
    /// The file is replaced in one step every 5 seconds and at the end, whether the job succeeds or fails.
    #[arg(long, global = true, value_name = "FILE", value_parser = cli::values::paths())]
    metrics_file: Option<String>,
    /// Append what happens to this file, as JSON lines
    ///
    /// An event is written when the job, a stage or a split begins or ends, when a worker is slow, and for
    /// each warning. Each has its time.
    #[arg(long, global = true, value_name = "FILE", value_parser = cli::values::paths())]
    events: Option<String>,
    #[command(flatten)]
    processes: ProcessOptions,
    /// Place of this process among several, once [`Common::start`] has found that there are several.
    #[arg(skip)]
    place: Option<ProcessRole>,
}

impl Common {
    /// Finds out what this process has to do: start other processes, or do the job, alone or as one of
    /// several.
    ///
    /// Returns the processes to be started, if this is a launcher. `several`: whether several processes can
    /// do the job.
    ///
    /// # Errors
    /// [`WrongUse`]; an error if a launcher has started this process and is gone.
    pub fn start(&mut self, several: bool) -> Result<Option<Launch>> {
        let start = self.processes.start(self.workers, self.quiet, |name| env::var(name).ok())?;
        let processes = match &start {
            ProcessTask::Launch(launch) => launch.addresses.len(),
            ProcessTask::Process(place) => place.addresses.len(),
            ProcessTask::Alone(_) => 1,
        };
        if processes > 1 && !several {
            bail!(WrongUse("only dedup runs in several processes".to_owned()));
        }
        match start {
            ProcessTask::Launch(launch) => return Ok(Some(launch)),
            ProcessTask::Process(place) => {
                self.workers = Some(place.workers);
                self.place = Some(place);
            }
            ProcessTask::Alone(workers) => self.workers = Some(workers),
        }
        Ok(None)
    }

    /// Meets the other processes of the job, if there are any. From then on this process ends when one of
    /// them fails.
    ///
    /// # Errors
    /// When another process is not the same program or was not asked for the same.
    fn join(&self, asked: &impl fmt::Debug) -> anyhow::Result<Cluster> {
        let Some(place) = &self.place else { return Ok(Cluster::alone(self.workers())) };
        let program = hash_of_program().context("could not read this program")?;
        let mut job = [0; 32];
        job[..16].copy_from_slice(&program.to_le_bytes());
        job[16..].copy_from_slice(&xxh3_128(format!("{asked:?}").as_bytes()).to_le_bytes());
        let token = place.token.as_ref().map_or(&[][..], |token| &token.0);
        let ProcessRole { index, workers, .. } = *place;
        let place = cluster::Place { index, addresses: place.addresses.clone(), workers };
        let lost = |line: &str| {
            say(cluster::shown(&format!("error: {line}")));
            process::exit(1);
        };
        let cluster = Cluster::join(place, job, token, Limits::default(), Box::new(lost))?;
        cluster.report_panics();
        Ok(cluster)
    }

    /// Returns the number of this process in the job.
    #[cfg(feature = "faults")]
    pub fn index(&self) -> usize {
        self.place.as_ref().map_or(0, |place| place.index)
    }

    /// Returns the number of worker threads of this process.
    fn workers(&self) -> usize {
        self.workers.unwrap_or(1)
    }

    /// Says a warning, unless the user wants only errors.
    fn warn(&self, line: impl fmt::Display) {
        if !self.quiet {
            say(cluster::shown(&format!("warning: {line}")));
        }
    }

    /// Returns how this process shows its progress.
    fn show(&self) -> Show {
        match &self.place {
            _ if self.quiet => Show::None,
            Some(place) if place.index > 0 && self.progress == Show::Auto => Show::None,
            _ => self.progress,
        }
    }
}

/// Returns a name for the build of this program. The processes of a job must be of one build, and so must a
/// run and the run that it resumes.
///
/// Linkers put a hash of the whole program into its head (GNU's build id), and then the head is enough.
/// Without it the whole program is read, which takes 25 ms for 100 MB.
pub(crate) fn hash_of_program() -> io::Result<u128> {
    // Another program may have taken its name by now.
    let program = File::open("/proc/self/exe").or_else(|_| File::open(env::current_exe()?))?;
    hash_of_build(program)
}

fn hash_of_build(mut program: impl Read) -> io::Result<u128> {
    let (mut hash, mut window) = (Xxh3::new(), Vec::with_capacity(PROGRAM_WINDOW));
    loop {
        window.clear();
        program.by_ref().take(PROGRAM_WINDOW as u64).read_to_end(&mut window)?;
        hash.update(&window);
        if window.len() < PROGRAM_WINDOW || memchr::memmem::find(&window, BUILD_ID).is_some() {
            return Ok(hash.digest128());
        }
    }
}

/// Number of bytes of the program that are read at a time.
const PROGRAM_WINDOW: usize = 64 << 10;
/// Head of the ELF note with the build id: a name of 4 bytes, 20 bytes of hash, type 3, "GNU".
const BUILD_ID: &[u8] = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_byte_of_a_program_without_a_build_id_tells_its_build() {
        let program = |byte: usize, head: &[u8]| {
            let mut program = vec![7; 5 * PROGRAM_WINDOW + 3];
            program[100..100 + head.len()].copy_from_slice(head);
            program[byte] ^= 1;
            hash_of_build(&program[..]).unwrap()
        };
        for byte in [0, 70_000, 200_000, 5 * PROGRAM_WINDOW + 2] {
            assert_ne!(program(byte, b""), program(byte + 1 - 2 * (byte > 0) as usize, b""), "{byte}");
        }
        // The build id is in the head.
        assert_eq!(program(200_000, BUILD_ID), program(70_000, BUILD_ID));
        assert_ne!(program(120, BUILD_ID), program(70_000, BUILD_ID));
        assert!(hash_of_program().is_ok());
    }
}
