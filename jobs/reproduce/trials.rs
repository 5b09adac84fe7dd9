//! Trials: commands of this program and measurements, each of which leaves a raw run behind.

use std::fmt::{Display, Write as _};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use cluster::text_of_path;
use serde_json::Value;
use tempfile::TempDir;

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Scale {
    /// A tenth of the paper's sizes or less: all papers in three minutes
    Quick,
    /// The paper's sizes
    Paper,
}

/// Runs the trials of a paper, and keeps what they print.
pub(super) struct Trials {
    paper: &'static str,
    folder: PathBuf,
    pub scale: Scale,
    pub seed: u64,
    /// Corpus that the user has given, if any, and a file of labels of its pairs.
    pub input: Vec<String>,
    pub labels: Option<String>,
    /// Folder below the output for what runs write.
    work: TempDir,
    runs: Vec<TrialRun>,
    /// Commit of the checkout in which the trials run, and the machine.
    pub place: TrialPlace,
}

/// A trial that was made.
pub(super) struct TrialRun {
    pub command: String,
    /// File with what it printed, below the output.
    pub file: String,
}

/// The place where trials were made.
pub(super) struct TrialPlace {
    pub commit: String,
    pub machine: String,
}

/// Number of a run among those of the paper, from 1.
pub(super) type RunNumber = usize;

impl Trials {
    /// Begins without runs. `folder`: the output of the job.
    pub fn new(paper: &'static str, folder: &Path, scale: Scale, seed: u64) -> Result<Self> {
        let folder = fs::canonicalize(folder)?;
        fs::create_dir_all(folder.join("runs"))?;
        fs::create_dir_all(folder.join("input"))?;
        let work = tempfile::Builder::new().prefix("work").rand_bytes(0).tempdir_in(&folder)?;
        let place = TrialPlace::here();
        Ok(Trials {
            paper,
            folder,
            scale,
            seed,
            input: Vec::new(),
            labels: None,
            work,
            runs: Vec::new(),
            place,
        })
    }

    /// Takes the corpus of the user.
    pub fn take_input(&mut self, input: &[String], labels: Option<&str>) -> Result<()> {
        let absolute = |path: &String| match path.contains("://") {
            true => Ok(path.clone()),
            false => Ok::<_, std::io::Error>(text_of_path(std::path::absolute(path)?.as_os_str())),
        };
        self.input = input.iter().map(absolute).collect::<Result<_, _>>()?;
        self.labels = labels.map(str::to_owned);
        Ok(())
    }

    /// Returns the corpus of the user as words of a command line.
    pub fn quoted_input(&self) -> Result<String> {
        Ok(self.input.iter().map(|path| shlex::try_quote(path)).collect::<Result<Vec<_>, _>>()?.join(" "))
    }

    /// Returns the folder that is written.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the runs so far, in order.
    pub fn runs(&self) -> &[TrialRun] {
        &self.runs
    }

    /// Returns one of two values: the first one for a quick run, the other for the paper's sizes.
    pub fn sized<T>(&self, quick: T, paper: T) -> T {
        match self.scale {
            Scale::Quick => quick,
            Scale::Paper => paper,
        }
    }

    /// Returns a path for the output of a run, relative to the folder that is written.
    pub fn work(&self, name: &str) -> String {
        let work = self.work.path().strip_prefix(&self.folder).unwrap_or(self.work.path());
        work.join(name).to_string_lossy().into_owned()
    }

    /// Writes a generated corpus, unless it is there. Returns its path, relative to the folder.
    pub fn corpus(&self, name: &str, make: impl FnOnce() -> String) -> Result<String> {
        let path = format!("input/{name}");
        let file = self.folder.join(&path);
        if !file.exists() {
            fs::write(&file, make()).with_context(|| format!("could not write \"{}\"", file.display()))?;
        }
        Ok(path)
    }

    /// Runs a command of this program in the folder. Returns its number and the summary that it has written, if it does.
    ///
    /// # Errors
    /// When the command fails; the error has its last line.
    pub fn command(&mut self, line: &str, writes_summary: bool) -> Result<(RunNumber, Value)> {
        let words = shlex::split(line).with_context(|| format!("could not split the command {line:?}"))?;
        let summary = self.work("summary.json");
        let program = std::env::current_exe().context("could not find the program of this process")?;
        let mut command = Command::new(program);
        command.current_dir(&self.folder).args(["--progress", "none"]).args(&words);
        if writes_summary {
            command.args(["--summary-json", &summary]);
        }
        let start = Instant::now();
        let output = command.output().context("could not run a command of this program")?;
        let seconds = start.elapsed().as_secs_f64();
        let printed = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut raw = printed(&output.stdout) + &printed(&output.stderr);
        let _ = writeln!(raw, "exit code {}, {seconds:.2} s", output.status.code().unwrap_or(-1));
        // Code 3 says that some records were rejected, and that all others are done.
        let done = matches!(output.status.code(), Some(0 | 3));
        let mut value = Value::Null;
        if done && writes_summary {
            let text = fs::read_to_string(self.folder.join(&summary))?;
            value = serde_json::from_str(&text)?;
            raw += &(serde_json::to_string_pretty(&without_long_lists(value.clone()))? + "\n");
        }
        let number = self.keep(format!("dedup-job {line}"), &raw)?;
        if !done {
            let last = raw.lines().rev().nth(1).unwrap_or_default();
            bail!("the command \"dedup-job {line}\" failed: {last}");
        }
        Ok((number, value))
    }

    /// Makes a measurement in this process. `name`: says what is measured. `measure`: gets a text to which it adds the raw figures.
    pub fn measured<T>(
        &mut self,
        name: impl Display,
        measure: impl FnOnce(&mut String) -> Result<T>,
    ) -> Result<(RunNumber, T)> {
        let mut raw = String::new();
        let measured = measure(&mut raw)?;
        let scale = self.sized("quick", "paper");
        let command = format!(
            "dedup-job reproduce {} OUTPUT --scale {scale} --seed {} ({name})",
            self.paper, self.seed
        );
        Ok((self.keep(command, &raw)?, measured))
    }

    fn keep(&mut self, command: String, raw: &str) -> Result<RunNumber> {
        let number = self.runs.len() + 1;
        let file = format!("runs/{}-{number:02}.txt", self.paper);
        let TrialPlace { commit, machine } = &self.place;
        let head = format!("commit: {commit}\ncommand: {command}\nmachine: {machine}\n\n");
        fs::write(self.folder.join(&file), head + raw)?;
        self.runs.push(TrialRun { command, file });
        Ok(number)
    }
}

/// Number of files up to which a raw run lists them.
const LISTED: usize = 20;

/// Replaces the lists of files of a summary by their numbers, if they are long.
fn without_long_lists(mut summary: Value) -> Value {
    for name in ["input", "files"] {
        let Some(list) = summary.get_mut(name) else { continue };
        let files = list.as_array().map_or(list.as_object().map_or(0, serde_json::Map::len), Vec::len);
        if files > LISTED {
            *list = format!("{files} files").into();
        }
    }
    summary
}

impl TrialPlace {
    /// Asks git for the commit, and the system for the machine.
    fn here() -> Self {
        let git = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok();
        let git = git.filter(|output| output.status.success());
        let commit = git.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        let version = env!("CARGO_PKG_VERSION");
        let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let model = model.map_or(std::env::consts::ARCH, |(_, model)| model);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        TrialPlace {
            commit: commit.unwrap_or_else(|| format!("version {version}")),
            machine: format!("{cores} x {model}"),
        }
    }
}
