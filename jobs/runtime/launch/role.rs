//! The role of this process in a job, from options and environment: the launcher, one of several, or the
//! only one.

use anyhow::{Result, bail};
#[cfg(feature = "cli")]
use clap::builder::TypedValueParser;
use cluster::Membership;

use super::hosts::Hosts;
use super::launcher::Launch;
use super::parent_watch::{self, Handed};
use super::scheduler::{Scheduled, kubernetes, slurm};
use super::token::Token;
use crate::cli::exit::WrongUse;
#[cfg(feature = "cli")]
use crate::cli::headings::PLACES;
#[cfg(feature = "cli")]
use crate::cli::values::paths;
use crate::cli::values::text_of_file;

/// Default of `--launcher`, which runs a shell command on a host.
const SSH: &str = "ssh -o BatchMode=yes {host}";

/// Options of a job of several processes.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub(crate) struct ProcessOptions {
    /// Where the job runs: local[N], hosts:FILE, slurm or kubernetes
    ///
    /// local[N]: N workers of this process, the same as --workers N. hosts:FILE: a process for each line
    /// `host[:port] [workers]` of FILE. Each is started over ssh with the same program, in a folder of the
    /// same name as this one, and its lines are shown with its number and host. slurm: a process that srun
    /// has started. kubernetes: a pod of a StatefulSet.
    #[cfg_attr(feature = "cli", arg(long, global = true, value_name = "WHERE", help_heading = PLACES, value_parser = paths().try_map(Master::read)))]
    master: Option<Master>,
    /// With --hosts: number of this process in the job, from 0, if something else has started it
    #[cfg_attr(feature = "cli", arg(long, global = true, value_name = "I", help_heading = PLACES, hide_short_help = true))]
    process: Option<u16>,
    /// Hosts file of all processes, for --process
    #[cfg_attr(feature = "cli", arg(long, global = true, value_name = "FILE", help_heading = PLACES, hide_short_help = true, value_parser = paths()))]
    hosts: Option<String>,
    /// File with the secret by which processes know each other, if something else than hosts:FILE has started
    /// them
    ///
    /// The secret is the same for all processes. It has 32 characters or more, made at random, and no other
    /// user may read the file: `(umask 077; head -c 32 /dev/urandom | base64 > FILE)`. A job needs it unless
    /// all of its processes are on this machine.
    #[cfg_attr(feature = "cli", arg(long, global = true, value_name = "FILE", help_heading = PLACES, hide_short_help = true, value_parser = paths()))]
    token_file: Option<String>,
    /// Number of times that the job is started again after one of its processes has died
    ///
    /// Finished work is not done again.
    #[cfg_attr(feature = "cli", arg(long, global = true, value_name = "N", help_heading = PLACES, hide_short_help = true, default_value_t = 0))]
    retries: u32,
    /// Command that runs a shell command on a host, for hosts:FILE; the shell command is added as its last
    /// word [default: ssh -o BatchMode=yes {host}]
    #[cfg_attr(feature = "cli", arg(long, global = true, value_name = "COMMAND", help_heading = PLACES, hide_short_help = true))]
    launcher: Option<String>,
    /// A launcher has started this process, and tells it the rest on its standard input
    #[cfg_attr(feature = "cli", arg(long, global = true, hide = true))]
    lifeline: bool,
}

/// Value of `--master`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Master {
    /// In this process, with this number of workers.
    Local(usize),
    /// On the hosts of this file.
    Hosts(String),
    /// Where srun has started the processes.
    Slurm,
    /// In the pods of a StatefulSet.
    Kubernetes,
}

impl Master {
    /// Reads the value of `--master`.
    ///
    /// # Errors
    /// A line that says what is expected.
    pub fn read(text: String) -> Result<Self, String> {
        let workers = text.strip_prefix("local[").and_then(|text| text.strip_suffix(']'));
        match (workers.map(str::parse), text.strip_prefix("hosts:")) {
            (Some(Ok(workers @ 1..=1024)), _) => Ok(Master::Local(workers)),
            (_, Some(file)) if !file.is_empty() => Ok(Master::Hosts(file.to_owned())),
            _ if text == "slurm" => Ok(Master::Slurm),
            _ if text == "kubernetes" => Ok(Master::Kubernetes),
            _ => Err("expected local[N], N from 1 to 1024, hosts:FILE, slurm or kubernetes".to_owned()),
        }
    }
}

/// Role of one process in a job of several.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProcessRole {
    pub membership: Membership,
    /// Secret of the job, if the user has given one.
    pub token: Option<Token>,
}

/// Task of this process.
#[derive(Debug, PartialEq)]
pub(crate) enum ProcessTask {
    /// Starts other processes, and looks after them.
    Launch(Launch),
    /// Does the job as one of several processes.
    Process(ProcessRole),
    /// Does the job alone, with this number of workers.
    Alone(usize),
}

impl ProcessOptions {
    /// Returns what this process has to do. `workers`: number of workers of all processes, if the user gives
    /// it; `env`: reads an environment variable.
    ///
    /// Reads the files that the options name. If a launcher has started this process, it also reads the
    /// standard input, and from then on the process ends with its launcher.
    pub fn start(&self, workers: Option<usize>, env: impl Fn(&str) -> Option<String>) -> Result<ProcessTask> {
        if let Some(index) = self.process.filter(|_| self.lifeline) {
            let Handed { addresses, workers, token } = parent_watch::hold()?;
            if addresses.is_empty() {
                return Ok(ProcessTask::Alone(workers));
            }
            let index = usize::from(index);
            let token = Some(Token(token.into_bytes()));
            let membership = Membership { index, addresses, workers };
            return Ok(ProcessTask::Process(ProcessRole { membership, token }));
        }
        if let Some(wrong) = self.contradiction(workers) {
            bail!(WrongUse(wrong.to_owned()));
        }
        let scheduled = match (&self.master, self.process, &self.hosts) {
            (Some(Master::Hosts(file)), ..) => {
                let Hosts { addresses, workers: of_each } = Hosts::parse(file, &text_of_file(file)?)?;
                let workers = share(workers, of_each, addresses.len())?;
                return Ok(ProcessTask::Launch(self.launch(addresses, workers)?));
            }
            (Some(Master::Slurm), ..) => slurm(&env)?,
            (Some(Master::Kubernetes), ..) => kubernetes(&env)?,
            (None, Some(index), Some(file)) => in_file(usize::from(index), file)?,
            (Some(Master::Local(_)) | None, ..) => {
                let workers = share(workers, self.local_workers(), 1)?;
                return Ok(match self.retries {
                    0 => ProcessTask::Alone(workers),
                    _ => ProcessTask::Launch(self.launch(Vec::new(), workers)?),
                });
            }
        };
        let Scheduled { index, addresses, workers: of_each } = scheduled;
        let workers = share(workers, of_each, addresses.len())?;
        let token = self.token_file.as_deref().map(Token::read).transpose()?;
        Ok(ProcessTask::Process(ProcessRole { membership: Membership { index, addresses, workers }, token }))
    }

    /// Returns a job whose processes this process starts.
    fn launch(&self, addresses: Vec<String>, workers: usize) -> Result<Launch> {
        let launcher = words(self.launcher.as_deref().unwrap_or(SSH))?;
        Ok(Launch { addresses, workers, launcher, retries: self.retries })
    }

    /// Returns the N of `local[N]`.
    fn local_workers(&self) -> Option<usize> {
        match self.master {
            Some(Master::Local(workers)) => Some(workers),
            _ => None,
        }
    }

    /// Returns a message about options that do not go together.
    fn contradiction(&self, workers: Option<usize>) -> Option<&'static str> {
        let launches = matches!(self.master, Some(Master::Hosts(_)));
        let scheduled = matches!(self.master, Some(Master::Slurm | Master::Kubernetes));
        let told = self.process.is_some();
        let other = self.local_workers().zip(workers).is_some_and(|(local, workers)| local != workers);
        [
            (told != self.hosts.is_some(), "--process and --hosts go together"),
            (
                told && self.master.is_some(),
                "--process is for a process that something else has started: leave --master out",
            ),
            (other, "--workers and --master local[N] differ: leave one of them out"),
            (self.launcher.is_some() && !launches, "--launcher is for --master hosts:FILE"),
            (
                self.retries > 0 && (told || scheduled),
                "--retries is for processes that dedup-job itself starts: leave it out here",
            ),
            (
                self.token_file.is_some() && !told && !scheduled,
                "--token-file is for processes that something else has started: leave it out here",
            ),
        ]
        .into_iter()
        .find_map(|(wrong, what)| wrong.then_some(what))
    }
}

/// Returns the role of process `index` of a hosts file.
fn in_file(index: usize, file: &str) -> Result<Scheduled> {
    let Hosts { addresses, workers } = Hosts::parse(file, &text_of_file(file)?)?;
    if index >= addresses.len() {
        bail!(WrongUse(format!(
            "--process {index} is not in \"{file}\", which names {} processes",
            addresses.len()
        )));
    }
    Ok(Scheduled { index, addresses, workers })
}

/// Returns the number of workers of each process. `all`: of all together, as the user says; `each`: of each
/// one, as hosts file or scheduler say.
fn share(all: Option<usize>, each: Option<usize>, processes: usize) -> Result<usize> {
    match (all, each) {
        (Some(all), _) if !all.is_multiple_of(processes) => bail!(WrongUse(format!(
            "--workers {all} is of all processes together: expected a multiple of {processes}"
        ))),
        (Some(all), Some(each)) if all != each * processes => bail!(WrongUse(format!(
            "--workers {all} is of all processes together, but each of {processes} is given {each}: leave it out"
        ))),
        (Some(all), _) => Ok(all / processes),
        (None, Some(each)) => Ok(each),
        (None, None) => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}

/// Splits a command into words, quoted as for a shell.
fn words(command: &str) -> Result<Vec<String>> {
    match shlex::split(command) {
        Some(words) if !words.is_empty() => Ok(words),
        _ => {
            bail!(WrongUse(format!("could not read --launcher \"{command}\": expected words as for a shell")))
        }
    }
}

#[cfg(test)]
#[cfg(feature = "cli")]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use clap::Parser;

    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    #[derive(Parser)]
    struct Line {
        #[cfg_attr(feature = "cli", command(flatten))]
        options: ProcessOptions,
        #[cfg_attr(feature = "cli", arg(long))]
        workers: Option<usize>,
    }

    /// Returns what a command line means in a folder with the hosts files `two` and `three`, and the token
    /// file `token`.
    fn start(line: &str) -> Result<ProcessTask> {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        fs::write(here.join("two"), "a 4\nb 4\n").unwrap();
        fs::write(here.join("three"), "a\na\nb\n").unwrap();
        for (name, text) in [("token", TOKEN), ("short", &TOKEN[1..])] {
            fs::write(here.join(name), text).unwrap();
            fs::set_permissions(here.join(name), fs::Permissions::from_mode(0o600)).unwrap();
        }
        let line = line.replace('@', &format!("{}/", here.display()));
        let line = Line::parse_from(format!("dedup-job {line}").split_whitespace());
        let env = |name: &str| {
            let text = "HOSTNAME=d-1 DEDUP_PROCESSES=2 DEDUP_SERVICE=d";
            let setting = text.split(' ').find_map(|setting| setting.strip_prefix(name)?.strip_prefix('='));
            setting.map(str::to_owned)
        };
        line.options.start(line.workers, env)
    }

    fn cores() -> usize {
        std::thread::available_parallelism().unwrap().get()
    }

    #[test]
    fn a_process_of_its_own_has_the_workers_that_it_is_given() {
        assert_eq!(start("").unwrap(), ProcessTask::Alone(cores()));
        assert_eq!(start("--workers 3").unwrap(), ProcessTask::Alone(3));
        assert_eq!(start("--master local[3]").unwrap(), ProcessTask::Alone(3));
        assert_eq!(start("--master local[3] --workers 3").unwrap(), ProcessTask::Alone(3));
    }

    #[test]
    fn a_launcher_has_a_process_for_each_line_or_one_that_it_starts_again() {
        let ProcessTask::Launch(launch) = start("--master hosts:@two --retries 2").unwrap() else { panic!() };
        assert_eq!((launch.addresses.join(" ").as_str(), launch.workers), ("a:7117 b:7117", 4));
        assert_eq!((launch.launcher.join(" ").as_str(), launch.retries), (SSH, 2));
        let ProcessTask::Launch(launch) =
            start("--master hosts:@three --workers 6 --launcher 'a'{host}").unwrap()
        else {
            panic!()
        };
        assert_eq!((launch.addresses.len(), launch.workers), (3, 2));
        assert_eq!(launch.launcher, ["a{host}"]);
        let ProcessTask::Launch(launch) = start("--retries 1 --workers 3").unwrap() else { panic!() };
        assert_eq!((launch.addresses.len(), launch.workers, launch.retries), (0, 3, 1));
    }

    #[test]
    fn a_process_that_something_else_has_started_is_told_its_place() {
        let addresses = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let ProcessTask::Process(role) = start("--process 1 --hosts @two --token-file @token").unwrap()
        else {
            panic!()
        };
        let token = Some(Token(TOKEN.as_bytes().to_vec()));
        let membership = Membership { index: 1, addresses: addresses("a:7117 b:7117"), workers: 4 };
        assert_eq!(role, ProcessRole { membership, token });
        let ProcessTask::Process(role) = start("--master kubernetes --workers 6").unwrap() else { panic!() };
        let membership = Membership { index: 1, addresses: addresses("d-0.d:7117 d-1.d:7117"), workers: 3 };
        assert_eq!(role, ProcessRole { membership, token: None });
    }

    #[test]
    fn wrong_combinations_are_said_in_one_line() {
        for (line, words) in [
            ("--process 1", "--process and --hosts go together"),
            ("--hosts @two", "--process and --hosts go together"),
            ("--process 1 --hosts @two --master slurm", "leave --master out"),
            ("--master hosts:@two --hosts @two --process 0", "leave --master out"),
            ("--process 2 --hosts @two", "names 2 processes"),
            ("--process 0 --hosts @none", "could not read"),
            ("--master hosts:@none", "could not read"),
            ("--master local[2] --workers 3", "differ"),
            ("--launcher x", "--launcher is for --master hosts:FILE"),
            ("--master kubernetes --retries 1", "--retries is for"),
            ("--process 0 --hosts @two --retries 1", "--retries is for"),
            ("--token-file @token", "--token-file is for"),
            ("--master hosts:@two --token-file @token", "--token-file is for"),
            ("--process 0 --hosts @two --token-file @short", "32 characters or more, made at random: (umask"),
            ("--process 0 --hosts @two --token-file @none", "could not read"),
            ("--master hosts:@three --workers 4", "a multiple of 3"),
            ("--master hosts:@two --workers 4", "each of 2 is given 4"),
            ("--master hosts:@two --launcher '", "--launcher"),
            ("--master slurm", "SLURM_STEP_NUM_TASKS is not set"),
        ] {
            let error = start(line).unwrap_err();
            let text = error.to_string();
            assert!(
                matches!(error.downcast_ref(), Some(WrongUse(_)))
                    && text.contains(words)
                    && !text.contains('\n'),
                "{line}: {text}"
            );
        }
        for wrong in ["local", "local[0]", "local[x]", "local[1025]", "hosts:", "yarn"] {
            assert!(Master::read(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
