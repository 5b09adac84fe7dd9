//! The job `nightly`: cleans what is new against everything that earlier nights have brought, and gives back what
//! withdrawn documents had suppressed.
//!
//! `night.rs` runs one night, `decide.rs` decides the clusters that it touches, `partitions.rs` finds the nights that
//! are not done yet, and `tools.rs` has the tools for a state. This room uses `dedup` and `state`.

mod decide;
mod export;
mod night;
mod options;
mod partitions;
mod tools;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use cluster::Stores;
use signal_hook::consts::SIGTERM;

use self::night::Night;
use self::options::NightlyOptions;
use self::partitions::{Partition, Partitions};
use self::tools::Tool;
use crate::Common;
use crate::cli::exit::WrongUse;
use crate::cli::terminal::say;
use crate::cli::values::paths;
use crate::dedup::guards::Guards;
use crate::dedup::memory::MemoryOptions;

/// Time between two looks for a signal.
const LOOK: Duration = Duration::from_millis(200);

/// Clean what is new against everything that earlier nights have brought
///
/// The output is that of dedup, for the new documents alone; a removed one may name an earlier document.
/// corrections/ tells which earlier decisions have changed. The state remembers all documents.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    override_usage = "dedup-job nightly [OPTIONS] --state <FOLDER> --output <FOLDER> [INPUT]...\n       \
                      dedup-job nightly <rollback|compact|stats|check|export> [OPTIONS] --state <FOLDER>"
)]
pub struct Args {
    #[command(subcommand)]
    tool: Option<Tool>,
    #[command(flatten)]
    night: NightArgs,
}

/// Options of a night.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct NightArgs {
    /// Whether the night may have neither input nor withdrawals, because its partition is empty.
    #[arg(skip)]
    empty: bool,
    /// Files, folders, globs or comma lists of them; with --since, the folder that holds the partitions
    #[arg(value_name = "INPUT", value_parser = paths())]
    inputs: Vec<String>,
    /// Folder of the state, local, on HDFS or in an object store; the first night makes it
    #[arg(long, value_name = "FOLDER", required = true, value_parser = paths())]
    state: Option<String>,
    /// Output folder of the night; with --since, the folder for the outputs of all partitions
    #[arg(long, value_name = "FOLDER", required = true, value_parser = paths())]
    output: Option<String>,
    /// Name of the night; by default the last part of the output's name
    #[arg(long, value_name = "NAME")]
    night: Option<String>,
    /// Take the partitions of the input that have a _SUCCESS and that the state does not have yet, in the order of
    /// their names, each into an output of its own
    #[arg(long, value_name = "WHEN")]
    since: Option<Since>,
    /// Name of the partitions' folders before the =, for --since
    #[arg(long, value_name = "NAME", default_value = "dt", requires = "since")]
    partition: String,
    /// Stay, and take further partitions as they are completed; SIGTERM ends it after the night in hand
    #[arg(long, requires = "since")]
    follow: bool,
    /// Seconds between two looks for further partitions, for --follow
    #[arg(long, value_name = "SECONDS", default_value = "60", requires = "follow",
        value_parser = clap::value_parser!(u64).range(1..))]
    poll: u64,
    /// Withdraw the documents whose ids are in this file, one a line, and give back what they had suppressed
    #[arg(long, value_name = "FILE", value_parser = paths())]
    retract: Option<String>,
    /// Seconds to wait while another run is writing the state; 0 ends at once with exit code 11
    #[arg(long, value_name = "SECONDS", default_value = "0")]
    wait: u64,
    #[command(flatten)]
    options: NightlyOptions,
    #[command(flatten)]
    memory: MemoryOptions,
    /// Stop with exit code 4 before anything is committed if more records than this are rejected
    #[arg(long, value_name = "N")]
    max_rejects: Option<u64>,
    #[command(flatten)]
    guards: Guards,
    /// Replace an output that exists
    #[arg(long)]
    overwrite: bool,
    /// Write the numbers of the run to this file as JSON
    #[arg(long, value_name = "FILE", value_parser = paths())]
    summary_json: Option<String>,
}

/// First partition that is taken.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Since {
    /// The first that the state does not have.
    Last,
}

impl Args {
    /// Whether several processes can do this.
    pub fn several(&self) -> bool {
        self.tool.is_none() && self.night.since.is_none()
    }
}

/// Runs a night or a tool as one of its processes. Returns the exit code: 0, or 3 if records were rejected.
pub fn run(common: &Common, args: Args) -> Result<u8> {
    let Args { tool, night: args } = args;
    if let Some(tool) = tool {
        return tool.run(common);
    }
    args.memory.give_back();
    match args.since {
        None => run_night(common, args),
        Some(Since::Last) => run_partitions(common, args),
    }
}

fn run_night(common: &Common, args: NightArgs) -> Result<u8> {
    let group = Arc::new(common.join(&args)?);
    let result = Night::new(common, &group, args).and_then(Night::run).and_then(|code| {
        for gone in group.leave()? {
            common.warn(format_args!("{gone}; the night was complete by then"));
        }
        Ok(code)
    });
    if let Err(error) = &result {
        group.fail(&format!("{error:#}"));
    }
    result
}

/// Runs a night for each partition that the state does not have. One that fails ends the job.
fn run_partitions(common: &Common, args: NightArgs) -> Result<u8> {
    if args.night.is_some() || args.retract.is_some() {
        bail!(WrongUse(
            "--since names the nights itself and withdraws nothing: leave --night and --retract out"
                .to_owned()
        ));
    }
    let [root] = &args.inputs[..] else {
        bail!(WrongUse("--since expects one INPUT, the folder that holds the partitions".to_owned()));
    };
    let stop = Arc::new(AtomicBool::new(false));
    if args.follow {
        // A second signal ends the program at once.
        signal_hook::flag::register_conditional_shutdown(SIGTERM, 128 + SIGTERM, Arc::clone(&stop))?;
        signal_hook::flag::register(SIGTERM, Arc::clone(&stop))?;
    }
    let (mut code, mut first) = (0, true);
    loop {
        let todo = Partitions::new(&Stores::new(), root, &args.partition)?.todo(args.state()?)?;
        if todo.is_empty() && first && !common.progress.quiet {
            say(format_args!(
                "nothing is new: the state \"{}\" has every complete partition of \"{root}\"",
                args.state()?
            ));
        }
        first = false;
        for partition in todo {
            if stop.load(Ordering::Relaxed) {
                return Ok(code);
            }
            code = code.max(run_night(common, args.of_partition(partition)?)?);
        }
        let next = Instant::now() + Duration::from_secs(args.poll);
        while args.follow && !stop.load(Ordering::Relaxed) && Instant::now() < next {
            thread::sleep(LOOK);
        }
        if !args.follow || stop.load(Ordering::Relaxed) {
            return Ok(code);
        }
    }
}

impl NightArgs {
    fn state(&self) -> Result<&str> {
        self.state.as_deref().ok_or_else(|| WrongUse("--state is missing".to_owned()).into())
    }

    fn output(&self) -> Result<&str> {
        self.output.as_deref().ok_or_else(|| WrongUse("--output is missing".to_owned()).into())
    }

    /// Returns the options of the night of a partition.
    fn of_partition(&self, partition: Partition) -> Result<NightArgs> {
        let output = format!("{}/{}", self.output()?.trim_end_matches('/'), partition.name);
        Ok(NightArgs {
            inputs: if partition.empty { Vec::new() } else { vec![partition.uri] },
            night: Some(partition.name),
            empty: partition.empty,
            output: Some(output),
            since: None,
            ..self.clone()
        })
    }

    /// Returns the name of the night.
    fn name(&self) -> Result<String> {
        let output = self.output()?.trim_end_matches('/');
        let name = self.night.as_deref().unwrap_or(output.rsplit('/').next().unwrap_or_default());
        if name.is_empty() {
            bail!(WrongUse(format!("the output \"{output}\" gives the night no name: use --night")));
        }
        Ok(name.to_owned())
    }

    fn wait(&self) -> Duration {
        Duration::from_secs(self.wait)
    }
}
