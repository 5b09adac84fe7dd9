//! The job `nightly`: cleans what is new against everything that earlier nights have brought, and gives back what
//! withdrawn documents had suppressed.
//!
//! `args.rs` has its options, `night.rs` plans and claims one night, `night_work.rs` does it, `earlier` adds the documents of
//! the state to its search, `decide.rs` decides the clusters that it touches, and `partitions.rs` finds the nights that are not done yet. `tools.rs` has the tools for
//! a state, of which `export.rs`, `repair.rs` and `stats.rs` have the larger ones. `state` is what is remembered. This crate uses `batch`.

#![cfg_attr(not(feature = "cli"), allow(dead_code, reason = "the command line uses the rest"))]

mod args;
mod decide;
mod earlier;
mod export;
mod night;
mod night_work;
mod options;
mod partitions;
mod repair;
pub mod state;
mod stats;
mod tools;

pub use options::Policy;

use std::net::SocketAddr;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use cluster::Stores;
use serde_json::Value;
use signal_hook::consts::SIGTERM;

use self::args::{NightArgs, Since};
use self::night::{hash_of_input, run_night};
use self::partitions::{Partition, Partitions};
use self::tools::Tool;
use crate::state::{NightEntry, StateFolder};
use runtime::Common;
use runtime::cli::exit::{WrongUse, exit_code};
use runtime::corpus::plan::Plan;
use runtime::progress::{MetricsPage, Termination, Watch};

/// Number of partitions that are looked at for changes, the last ones.
const LOOKED_AT: usize = 32;
/// Time between two looks for a signal.
const LOOK: Duration = Duration::from_millis(200);

/// Clean what is new against everything that earlier nights have brought
///
/// The output is that of dedup, for the new documents alone; a removed one may name an earlier document.
/// corrections/ tells which earlier decisions have changed. The state remembers all documents.
#[derive(Debug)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[cfg_attr(
    feature = "cli",
    command(
        args_conflicts_with_subcommands = true,
        subcommand_negates_reqs = true,
        override_usage = "dedup-job nightly [OPTIONS] --state <FOLDER> --output <FOLDER> [INPUT]...\n       \
                      dedup-job nightly <rollback|compact|stats|check|export> [OPTIONS] --state <FOLDER>"
    )
)]
pub struct Args {
    #[cfg_attr(feature = "cli", command(subcommand))]
    tool: Option<Tool>,
    #[cfg_attr(feature = "cli", command(flatten))]
    night: NightArgs,
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

/// Serves the metrics of the nights to come. Returns the options with which these nights are run.
fn serve_metrics(common: &Common, address: SocketAddr) -> Result<Common> {
    let page = MetricsPage::default();
    page.set_runs(0);
    let address = page.serve(address)?;
    common.tell(format_args!("metrics are at http://{address}/metrics"));
    let mut common = common.clone();
    common.progress.page = Some(page);
    Ok(common)
}

/// Warns of partitions whose files have changed since the state has taken them: nobody reads these files any more.
fn warn_of_changed(common: &Common, args: &NightArgs, taken: &[(Partition, &NightEntry)]) {
    for (partition, night) in &taken[taken.len().saturating_sub(LOOKED_AT)..] {
        let now = match partition.empty {
            true => Ok(Plan::nothing()),
            false => args.options.input.plan(&Stores::new(), slice::from_ref(&partition.uri)),
        };
        let now = now.and_then(|plan| hash_of_input(&plan, &[]));
        if !now.is_ok_and(|now| now == night.input) {
            common.warn(format_args!(
                "the files of \"{}\" have changed since its night, which is not run again: take what is new as a night of \
                 another name, or roll back",
                partition.uri
            ));
        }
    }
}

/// Says that nothing is new, in metrics and events too, which tell that the job has run.
fn do_nothing(common: &Common, args: &NightArgs, root: &str) -> Result<()> {
    let job = Plan::nothing().watched(&common.progress, "nightly", args.output()?, &Value::Null, 0)?;
    Watch::begin(&common.progress, job, &Arc::default())?.end(Ok(()))?;
    let state = args.state()?;
    common.tell(format_args!(
        "nothing is new: the state \"{state}\" has every complete partition of \"{root}\""
    ));
    Ok(())
}

/// Runs a night for each partition that the state does not have. One that fails ends the job.
fn run_partitions(common: &Common, args: NightArgs) -> Result<u8> {
    if args.night.is_some() || args.options.retract.is_some() {
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
    let mut common = match args.metrics_address {
        Some(address) => serve_metrics(common, address)?,
        None => common.clone(),
    };
    if args.follow {
        common.progress.termination = Termination::left_to_job();
    }
    let common = &common;
    let (mut code, mut first, mut done) = (0, true, 0);
    loop {
        let manifest = StateFolder::open(&Stores::new(), args.state()?)?.newest()?;
        let nights = manifest.as_ref().map_or(&[][..], |manifest| &manifest.nights);
        let (missing, taken) = Partitions::new(&Stores::new(), root, &args.partition)?.by_nights(nights);
        if first {
            if let Some(manifest) = &manifest {
                args.check_pinned(manifest)?;
            }
            warn_of_changed(common, &args, &taken);
        }
        if missing.is_empty() && first {
            do_nothing(common, &args, root)?;
        }
        first = false;
        for partition in missing {
            if stop.load(Ordering::Relaxed) {
                return Ok(code);
            }
            common.tell(format_args!("night {}", partition.name));
            let failed = format!("the night \"{}\" failed", partition.name);
            match run_night(common, args.of_partition(partition)?).context(failed) {
                // The run that writes the state now will end, so a run that follows looks again.
                Err(error) if args.follow && exit_code(&error) == 11 => {
                    common.warn(format_args!("{error:#}; looking again in {} s", args.poll));
                    break;
                }
                ended => code = code.max(ended?),
            }
            done += 1;
            common.progress.page.iter().for_each(|page| page.set_runs(done));
        }
        let looked = Instant::now();
        let is_over = || looked.elapsed() >= Duration::from_secs(args.poll);
        while args.follow && !stop.load(Ordering::Relaxed) && !is_over() {
            thread::sleep(LOOK);
        }
        if !args.follow || stop.load(Ordering::Relaxed) {
            return Ok(code);
        }
    }
}
