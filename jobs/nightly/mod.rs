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

use std::time::Duration;

use anyhow::{Result, bail};
use cluster::Stores;

use self::night::Night;
use self::options::NightlyOptions;
use self::partitions::Partitions;
use self::tools::Tool;
use crate::Common;
use crate::cli::exit::WrongUse;
use crate::cli::terminal::say;
use crate::cli::values::paths;
use crate::dedup::guards::Guards;
use crate::dedup::memory::MemoryOptions;

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
    let group = std::sync::Arc::new(common.join(&args)?);
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
        bail!(WrongUse("--since names the nights itself and withdraws nothing: leave --night and --retract out".to_owned()));
    }
    let [root] = &args.inputs[..] else {
        bail!(WrongUse("--since expects one INPUT, the folder that holds the partitions".to_owned()));
    };
    let partitions = Partitions::new(&Stores::new(), root, &args.partition)?;
    let (state, output) = (args.state()?.to_owned(), args.output()?.to_owned());
    let todo = partitions.todo(&state)?;
    if todo.is_empty() && !common.progress.quiet {
        say(format_args!("nothing is new: the state \"{state}\" has every partition of \"{root}\""));
    }
    let mut code = 0;
    for partition in todo {
        let name = partition.name;
        let output = format!("{}/{name}", output.trim_end_matches('/'));
        let night = NightArgs {
            inputs: vec![partition.uri],
            night: Some(name),
            output: Some(output),
            since: None,
            ..args.clone()
        };
        code = code.max(run_night(common, night)?);
    }
    Ok(code)
}

impl NightArgs {
    fn state(&self) -> Result<&str> {
        self.state.as_deref().ok_or_else(|| WrongUse("--state is missing".to_owned()).into())
    }

    fn output(&self) -> Result<&str> {
        self.output.as_deref().ok_or_else(|| WrongUse("--output is missing".to_owned()).into())
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
