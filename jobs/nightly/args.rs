//! The options of a night.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, bail};

use super::options::{NightlyOptions, PinnedOptions};
use super::partitions::Partition;
use crate::state::{NightEntry, Pinned, StateManifest};
use batch::guards::Guards;
use batch::memory::MemoryOptions;
use batch::options::RefusedLines;
use runtime::cli::exit::WrongUse;
#[cfg(feature = "cli")]
use runtime::cli::values::paths;
use runtime::output::OutputArgs;
use runtime::report::ReportArgs;

/// Help of an option that several nights may share.
const SUMMARY_OF_NIGHT: &str =
    "Write the numbers of the run to this file as JSON; with --since those of the last night";

/// Options of a night.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[cfg_attr(feature = "cli", command(mut_arg("summary_json", |arg| arg.help(SUMMARY_OF_NIGHT))))]
pub(super) struct NightArgs {
    /// Whether the night may have neither input nor withdrawals, because its partition is empty.
    #[cfg_attr(feature = "cli", arg(skip))]
    pub empty: bool,
    /// The recorded input and options, for a night that is run again.
    #[cfg_attr(feature = "cli", arg(skip))]
    pub again: Option<NightAgain>,
    /// Files, folders, globs or comma lists of them; with --since, the folder that holds the partitions
    #[cfg_attr(feature = "cli", arg(value_name = "INPUT", value_parser = paths()))]
    pub inputs: Vec<String>,
    /// Folder of the state, local, on HDFS or in an object store; the first night makes it
    #[cfg_attr(feature = "cli", arg(long, value_name = "FOLDER", required = true, value_parser = paths()))]
    pub state: Option<String>,
    /// Output folder of the night; with --since, the folder for the outputs of all partitions
    #[cfg_attr(feature = "cli", arg(long, value_name = "FOLDER", required = true, value_parser = paths()))]
    pub output: Option<String>,
    /// Name of the night; by default the last part of the output's name
    #[cfg_attr(feature = "cli", arg(long, value_name = "NAME"))]
    pub night: Option<String>,
    /// Take the partitions of the input that have a _SUCCESS and that the state does not have yet, in the order of
    /// their names, each into an output of its own
    #[cfg_attr(feature = "cli", arg(long, value_name = "WHEN"))]
    pub since: Option<Since>,
    /// Name of the partitions' folders before the =, for --since
    #[cfg_attr(feature = "cli", arg(long, value_name = "NAME", default_value = "dt", requires = "since"))]
    pub partition: String,
    /// Stay, and take further partitions as they are completed; SIGTERM ends it after the night in hand
    #[cfg_attr(feature = "cli", arg(long, requires = "since"))]
    pub follow: bool,
    /// Serve metrics for Prometheus as http://ADDRESS/metrics, such as 127.0.0.1:9400, while --follow stays
    ///
    /// Anyone who reaches the address can read them. They hold names of folders and numbers, and no documents.
    #[cfg_attr(feature = "cli", arg(long, value_name = "ADDRESS", requires = "follow"))]
    pub metrics_address: Option<SocketAddr>,
    /// Seconds between two looks for further partitions, for --follow
    #[cfg_attr(feature = "cli", arg(long, value_name = "SECONDS", default_value = "60", requires = "follow",
        value_parser = clap::value_parser!(u64).range(1..)))]
    pub poll: u64,
    /// Seconds to wait while another run is writing the state; 0 ends at once with exit code 11
    #[cfg_attr(feature = "cli", arg(long, value_name = "SECONDS", default_value = "0"))]
    pub wait: u64,
    #[cfg_attr(feature = "cli", command(flatten))]
    pub given: PinnedOptions,
    #[cfg_attr(feature = "cli", command(flatten))]
    pub options: NightlyOptions,
    #[cfg_attr(feature = "cli", command(flatten))]
    pub refused: RefusedLines,
    #[cfg_attr(feature = "cli", command(flatten))]
    pub memory: MemoryOptions,
    /// Stop with exit code 4 before anything is committed if more records than this are rejected
    #[cfg_attr(feature = "cli", arg(long, value_name = "N"))]
    pub max_rejects: Option<u64>,
    #[cfg_attr(feature = "cli", command(flatten))]
    pub guards: Guards,
    #[cfg_attr(feature = "cli", command(flatten))]
    pub report: ReportArgs,
    #[cfg_attr(feature = "cli", command(flatten))]
    pub output_args: OutputArgs,
}

/// A night that is run again.
#[derive(Clone, Debug)]
pub(super) struct NightAgain {
    /// Hash that its input must have.
    pub input: String,
    /// Settings that all nights of its state have in common.
    pub pinned: Pinned,
}

/// First partition that is taken.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub(super) enum Since {
    /// The first that the state does not have.
    Last,
}

impl NightArgs {
    pub fn state(&self) -> Result<&str> {
        self.state.as_deref().ok_or_else(|| WrongUse("--state is missing".to_owned()).into())
    }

    pub fn output(&self) -> Result<&str> {
        self.output.as_deref().ok_or_else(|| WrongUse("--output is missing".to_owned()).into())
    }

    /// Returns the options of a night that is run again, with the options and the input that were recorded.
    pub fn again(
        (state, pinned): (&str, &Pinned),
        night: &NightEntry,
        options: NightlyOptions,
        inputs: Vec<String>,
    ) -> NightArgs {
        NightArgs {
            empty: inputs.is_empty(),
            again: Some(NightAgain { input: night.input.clone(), pinned: pinned.clone() }),
            inputs,
            state: Some(state.to_owned()),
            output: Some(night.output.clone()),
            night: Some(night.name.clone()),
            // The state has the method and the rest.
            given: PinnedOptions::default(),
            options,
            refused: RefusedLines::default(),
            report: ReportArgs { no_report: false },
            output_args: OutputArgs { overwrite: true, ..OutputArgs::default() },
            since: None,
            partition: String::new(),
            follow: false,
            metrics_address: None,
            poll: 0,
            wait: 0,
            memory: MemoryOptions::default(),
            max_rejects: None,
            guards: Guards::default(),
        }
    }

    /// Returns the options of the night of a partition.
    pub fn of_partition(&self, partition: Partition) -> Result<NightArgs> {
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

    /// Returns an error if the state was made with other options than those that are given.
    pub fn check_pinned(&self, manifest: &StateManifest) -> Result<()> {
        let mut options = self.options.clone();
        options.resolve(&self.given, Some(&manifest.pinned))?;
        let lexicon = options.input.lexicon(options.method.cuts_words())?;
        manifest.check_pinned(self.state()?, &options.pinned(&lexicon))
    }

    /// Returns the name of the night.
    pub fn name(&self) -> Result<String> {
        let output = self.output()?.trim_end_matches('/');
        let name = self.night.as_deref().unwrap_or(output.rsplit('/').next().unwrap_or_default());
        if name.is_empty() {
            bail!(WrongUse(format!("the output \"{output}\" gives the night no name: use --night")));
        }
        Ok(name.to_owned())
    }

    pub fn wait(&self) -> Duration {
        Duration::from_secs(self.wait)
    }
}
