//! The base of every job: the command line, the processes, the progress, the corpus, the output and the page about a run.
//!
//! The rooms use each other in one direction, from low to high: `cli`, `launch`, `progress`, `corpus`, `output`,
//! `report`. The crates `batch`, `nightly`, `index` and `chunk` are the jobs that use them. This file has the options that all jobs share.
//! A program that runs a job itself makes them with [`Common::alone`]; with the feature `cli` they are parsed.

#![cfg_attr(not(feature = "cli"), allow(dead_code, reason = "the command line uses the rest"))]

pub mod cli;
pub mod clock;
pub mod corpus;
pub mod launch;
pub mod output;
pub mod progress;
pub mod report;

use std::sync::Arc;
use std::{env, fmt, process};

use anyhow::{Context, Result, bail};
#[cfg(feature = "cli")]
use clap::builder::TypedValueParser;
use cluster::{Group, Limits};
use operators::method::Spec;
use xxhash_rust::xxh3::xxh3_128;

#[cfg(feature = "cli")]
use cli::headings::RESOURCES;
use launch::build_identity::hash_of_program;
use launch::role::{ProcessOptions, ProcessRole, ProcessTask};
use progress::show_warnings;

pub use cli::exit::{Locked, WrongUse, exit_code, fail};
pub use cli::terminal::{print, say};
pub use launch::child_process::serve_as_child;
pub use launch::launcher::Launch;
pub use progress::ProgressOptions;

/// Options that every job has, which come before or after its name.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Common {
    /// Number of worker threads of all processes together; by default the cores of this machine for each
    /// process
    ///
    /// The result is the same for any number.
    #[cfg_attr(feature = "cli", arg(help_heading = RESOURCES, long, global = true, value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=1024).map(usize::from)))]
    workers: Option<usize>,
    #[cfg_attr(feature = "cli", command(flatten))]
    processes: ProcessOptions,
    /// Options of what is shown of the running job.
    #[cfg_attr(feature = "cli", command(flatten))]
    pub progress: ProgressOptions,
    /// Role of this process among several, once [`Common::start`] has found that there are several.
    #[cfg_attr(feature = "cli", arg(skip))]
    role: Option<ProcessRole>,
}

impl Common {
    /// Returns the options of a program that runs a job itself, with this number of worker threads. Nothing is printed.
    pub fn alone(workers: usize) -> Self {
        let progress = ProgressOptions { quiet: true, ..ProgressOptions::default() };
        Common { workers: Some(workers), progress, ..Common::default() }
    }

    /// Finds out what this process has to do: start other processes, or do the job, alone or as one of
    /// several.
    ///
    /// Returns the processes to be started, if this is a launcher. `several`: whether several processes can
    /// do the job.
    ///
    /// # Errors
    /// [`WrongUse`]; an error if a launcher has started this process and is gone.
    pub fn start(&mut self, several: bool) -> Result<Option<Launch>> {
        show_warnings(self.progress.quiet);
        let start = self.processes.start(self.workers, |name| env::var(name).ok())?;
        let processes = match &start {
            ProcessTask::Launch(launch) => launch.addresses.len(),
            ProcessTask::Process(role) => role.membership.addresses.len(),
            ProcessTask::Alone(_) => 1,
        };
        if processes > 1 && !several {
            bail!(WrongUse("only dedup, nightly and compare run in several processes".to_owned()));
        }
        match start {
            ProcessTask::Launch(launch) => return Ok(Some(launch)),
            ProcessTask::Process(role) => {
                self.workers = Some(role.membership.workers);
                self.role = Some(role);
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
    fn join(&self, asked: &impl fmt::Debug) -> anyhow::Result<Group> {
        let Some(role) = &self.role else { return Ok(Group::alone(self.workers())) };
        let program = hash_of_program().context("could not read this program")?;
        let mut job = [0; 32];
        job[..16].copy_from_slice(&program.to_le_bytes());
        job[16..].copy_from_slice(&xxh3_128(format!("{asked:?}").as_bytes()).to_le_bytes());
        let token = role.token.as_ref().map_or(&[][..], |token| &token.0);
        let lost = |line: &str| {
            say(cluster::one_line(&format!("error: {line}")));
            process::exit(1);
        };
        let group = Group::join(role.membership.clone(), job, token, Limits::default(), Box::new(lost))?;
        group.report_panics();
        Ok(group)
    }

    /// Works as one of the processes of a job, and waits until all have left. `asked`: as for `Common::join`. `whole`: what is
    /// complete when a process is lost after the work, for people.
    ///
    /// # Errors
    /// Those of `Common::join` and of the work, which the other processes are told.
    pub fn in_group<T: fmt::Debug>(
        &self,
        asked: T,
        whole: &str,
        work: impl FnOnce(&Arc<Group>, T) -> anyhow::Result<u8>,
    ) -> anyhow::Result<u8> {
        let group = Arc::new(self.join(&asked)?);
        let result = work(&group, asked).and_then(|code| {
            for gone in group.leave()? {
                self.warn(format_args!("{gone}; {whole} was complete by then"));
            }
            Ok(code)
        });
        if let Err(error) = &result {
            group.fail(&format!("{error:#}"));
        }
        result
    }

    /// Returns the number of this process in the job.
    #[cfg(feature = "faults")]
    pub fn index(&self) -> usize {
        self.role.as_ref().map_or(0, |role| role.membership.index)
    }

    /// Returns the number of worker threads of this process.
    pub fn workers(&self) -> usize {
        self.workers.unwrap_or(1)
    }

    /// Whether several processes do the job.
    pub fn is_one_of_several(&self) -> bool {
        self.role.is_some()
    }

    /// Whether the user wants to know more.
    pub fn is_verbose(&self) -> bool {
        self.progress.verbose
    }

    /// Says a warning, unless the user wants only errors.
    pub fn warn(&self, line: impl fmt::Display) {
        log::warn!("{line}");
    }

    /// Warns of parameters of a method that go together, but not well.
    pub fn warn_of(&self, method: &Spec) {
        method.warning().into_iter().for_each(|warning| self.warn(warning));
    }

    /// Says what was done, unless the user wants only errors.
    pub fn tell(&self, line: impl fmt::Display) {
        if !self.progress.quiet {
            say(line);
        }
    }
}
