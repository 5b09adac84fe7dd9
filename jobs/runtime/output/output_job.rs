//! A job that writes an output: from the claim of the folder to the printed counters.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use chrono::DateTime;
use cluster::{Stores, path_of_text};
use serde::Serialize;
use serde_json::Value;

use super::file::FileOutput;
use super::files::FileList;
use super::folder::{EarlierWork, OutputFolder};
use super::key::Key;
use super::rejects::{RejectLimit, Rejects, SplitRejectsWriter};
use super::tables::TableFormat;
use crate::Common;
use crate::cli::exit::WrongUse;
#[cfg(feature = "cli")]
use crate::cli::headings::OUTPUT;
use crate::cli::piped::STANDARD;
use crate::cli::report_file::ReportFile;
use crate::cli::terminal::{grouped, say};
#[cfg(feature = "cli")]
use crate::cli::values::paths;
use crate::corpus::run::Run;
use crate::corpus::split::Split;
use crate::corpus::splits::each_split;
use crate::progress::{Stage, StageTable, StageTimer, StageTotals, Watch, Watched, merge};

/// Options of every job that writes an output.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct OutputArgs {
    /// Replace an output that exists
    #[cfg_attr(feature = "cli", arg(help_heading = OUTPUT, long))]
    pub overwrite: bool,
    /// Write the numbers of the run to this file as JSON
    #[cfg_attr(feature = "cli", arg(help_heading = OUTPUT, long, value_name = "FILE", value_parser = paths()))]
    pub summary_json: Option<String>,
    /// The file that the output is, if it is one.
    #[cfg_attr(feature = "cli", arg(skip))]
    pub file: Option<FileOutput>,
    /// Format of the tables.
    #[cfg_attr(feature = "cli", arg(skip))]
    pub table_format: TableFormat,
}

/// A job that writes an output, as one process of the job sees it.
///
/// Process 0 claims and commits; all processes work and write. Example with two processes:
///
/// ```text
/// call      process 0                                     process 1
/// begin     shows progress, takes the lock of the output  shows progress, opens the claimed output
/// (the caller does the work, and writes files to the folder)
/// commit    writes _SUCCESS and the file of the summary
/// end       gives the output back, prints the counters    ends
/// ```
pub struct OutputJob<'a> {
    /// Options that every job has, such as those of progress.
    pub common: &'a Common,
    /// Stores by which the output is opened.
    pub stores: &'a Stores,
    /// Processes, plan, reading and progress of the job.
    pub run: Run,
    /// Name of the job.
    pub name: &'static str,
    /// Time when the job began, from which its seconds are counted.
    pub start: Instant,
    /// Configuration for `_SUCCESS`.
    pub configuration: Value,
    /// Folder of the output, as the user has named it.
    pub output: &'a str,
    /// Options of the output, such as `--overwrite` and `--summary-json`.
    pub args: &'a OutputArgs,
    /// Key by which the work of a killed run is recognised; `None` if this run cannot resume another one.
    pub key: Option<Key>,
    /// Text of the guards and limits that can stop the run once its verdicts are known.
    pub limits: String,
}

/// Summary of a run, whose counters are shown by [`Display`].
pub trait JobSummary: Display {
    /// Returns what was done, such as `kept 374 of 500 documents`. `rejects`: what the line says of the place of the rejected records.
    fn done(&self, rejects: &str) -> String;
    /// Name in the output of what most users want of it; `None` for the whole output.
    fn result(&self) -> Option<&'static str> {
        None
    }
    /// Command that looks at the output, if there is one.
    fn look(&self) -> Option<&'static str> {
        None
    }
}

/// Writes how many records were rejected, for a line that ends a run; nothing if none were. `place`: what it says of their place.
pub fn rejected_words(rejected: u64, place: &str) -> String {
    if rejected == 0 { String::new() } else { format!(" ({} rejected: {place})", grouped(rejected)) }
}

/// A job whose output is claimed.
pub struct BegunJob {
    watch: Watch,
    /// The claimed folder; `None` if nothing is left for this process to do.
    folder: Option<Arc<OutputFolder>>,
}

impl BegunJob {
    /// Returns the result of `work` in the claimed folder, unless nothing is left for this process to do.
    pub fn work<S>(&self, work: impl FnOnce(&Arc<OutputFolder>) -> Result<JobEnd<S>>) -> Result<JobEnd<S>> {
        self.folder.as_ref().map_or_else(|| Ok(JobEnd::default()), work)
    }
}

/// End of a job at one process. `S`: the summary, which is shown as its counters.
pub struct JobEnd<S> {
    /// Summary, at process 0 alone. It is not printed if an earlier run has done the work.
    pub summary: Option<S>,
    /// Stage totals of the other processes, at process 0 alone.
    pub others: Vec<StageTotals>,
    /// Whether records were rejected.
    pub rejected: bool,
}

impl<S> Default for JobEnd<S> {
    fn default() -> Self {
        JobEnd { summary: None, others: Vec::new(), rejected: false }
    }
}

impl<'a> OutputJob<'a> {
    /// Makes a job of one process that cannot be resumed and that no guard stops once it writes.
    pub fn alone(
        (common, stores, start): (&'a Common, &'a Stores, Instant),
        run: Run,
        name: &'static str,
        (output, args): (&'a str, &'a OutputArgs),
        configuration: Value,
    ) -> Self {
        let key = None;
        let limits = String::new();
        OutputJob { common, stores, run, name, start, configuration, output, args, key, limits }
    }

    /// Begins to show progress, and claims the output.
    ///
    /// # Errors
    /// When the file of the summary cannot be written or is an input; those of [`Watch::begin`] and
    /// [`OutputFolder::claim`].
    pub fn begin(&self) -> Result<BegunJob> {
        let Run { group, plan, .. } = &self.run;
        self.begin_watched(plan.watched(
            &self.common.progress,
            self.name,
            self.output,
            &self.configuration,
            group.index(),
        )?)
    }

    /// Whether another run of the same command has other files.
    fn is_of_pipes(&self) -> bool {
        self.run.plan.piped.has_copies() || self.args.file.as_ref().is_some_and(FileOutput::is_temporary)
    }

    /// Does what [`OutputJob::begin`] does, and shows `watched`. `chunk export` reads a store, whose files no plan lists.
    pub fn begin_watched(&self, mut watched: Watched) -> Result<BegunJob> {
        watched.left_if_ended = Some(match self.key {
            Some(_) if !self.is_of_pipes() => {
                "finished splits are kept beside the output, and the same command goes on with them"
                    .to_owned()
            }
            _ => "nothing was committed".to_owned(),
        });
        let Run { group, plan, progress, .. } = &self.run;
        if self.output == STANDARD {
            bail!(WrongUse(format!("{} writes a folder, and not the standard output: name one", self.name)));
        }
        let summary_json = self.args.summary_json.as_deref();
        if let Some(file) = summary_json.filter(|file| plan.file_below("", file).is_some()) {
            bail!(WrongUse(format!("the summary would replace the input \"{file}\"")));
        }
        // A file in the output cannot be checked before the output exists.
        let elsewhere = |file: &&str| !path_of_text(file).starts_with(path_of_text(self.output));
        if let Some(file) = summary_json.filter(|_| group.index() == 0).filter(elsewhere) {
            ReportFile::check(file)?;
        }
        let watch = Watch::begin(&self.common.progress, watched, progress)?;
        match self.claim() {
            Ok(folder) => Ok(BegunJob { watch, folder: folder.map(Arc::new) }),
            Err(error) => watch.end(Err(error)),
        }
    }

    /// Claims the output folder at process 0, and opens it at the others. Returns `None` at the others if
    /// nothing is left for them to do.
    fn claim(&self) -> Result<Option<OutputFolder>> {
        let mut claimed = None;
        let (Run { group, plan, .. }, key, overwrite) = (&self.run, self.key.as_ref(), self.args.overwrite);
        let shared = group.all_reduce((), |_| -> Result<_> {
            let mut folder = OutputFolder::claim(self.stores, self.output, overwrite, plan, key, group)?;
            if overwrite && folder.decided.as_ref().is_some_and(|job| job.guards == self.limits) {
                folder.show_or_give_up(key)?;
            }
            let decided = folder.decided.as_ref().map(|job| job.guards == self.limits);
            if decided == Some(false) {
                // The earlier run passed other guards than those of this run.
                folder.rehearsal = true;
            }
            // A job without a key has one process.
            self.tell_of_earlier(folder.earlier.take());
            let shared = key.filter(|_| decided != Some(true)).map(|key| folder.shared(key));
            claimed = Some(folder);
            Ok(shared)
        })?;
        let opened = match (claimed, shared) {
            (Some(folder), _) => Some(folder),
            (None, shared) => {
                shared.map(|shared| OutputFolder::of_shared(self.stores, &shared, plan)).transpose()?
            }
        };
        Ok(opened.map(|folder| folder.with_tables(self.args.table_format)))
    }

    /// Says what becomes of the work of an earlier run that did not end.
    fn tell_of_earlier(&self, earlier: Option<EarlierWork>) {
        let splits = self.run.plan.splits.len();
        match earlier {
            Some(EarlierWork::Resumed { begun, mapped, written }) => {
                let begun = begun.and_then(|at| DateTime::from_timestamp_millis(at as i64));
                let of = begun.map_or(String::new(), |at| format!(", of {}", at.format("%Y-%m-%d %H:%M UTC")));
                self.run.progress.say(&format!(
                    "going on with an earlier run of the same command{of}: {mapped} of {splits} splits are searched, {written} \
                     written"
                ));
            }
            Some(EarlierWork::OfOtherKey) => self.run.progress.say(
                "beginning anew: an earlier run that did not end had other options or another input, so its work is removed",
            ),
            None => {}
        }
    }

    /// Writes something of each split of this process by `write`, and lists the records that it rejects in the output. Returns the results
    /// of `write` in the order of the splits, and the number of rejected records. For jobs of one process.
    ///
    /// # Errors
    /// Those of `write`, and that of more than `max_rejects` rejected records.
    pub fn write_splits<T: Send>(
        &self,
        folder: &OutputFolder,
        (stage, max_rejects): (Stage, Option<u64>),
        write: impl Fn(&StageTimer, u32, &Split, &mut SplitRejectsWriter) -> Result<T> + Sync,
    ) -> Result<(Vec<T>, u64)> {
        let Run { group, plan, reading, progress } = &self.run;
        let limit = RejectLimit::new(max_rejects, plan, reading);
        let outputs = folder.map_outputs();
        let written = each_split(plan, group, (progress, stage), |at, number, split| {
            let mut rejects = SplitRejectsWriter::new(&outputs, number);
            let result = write(at, number, split, &mut rejects)?;
            let rejects = rejects.finish()?;
            limit.count(&rejects)?;
            Ok((result, rejects))
        })?;
        let (results, of_splits): (Vec<T>, Vec<Rejects>) = written.into_iter().unzip();
        let mut rejects = Rejects::default();
        of_splits.into_iter().for_each(|of_split| rejects.join(of_split));
        rejects.write(folder, 0, &outputs, plan, reading)?;
        Ok((results, rejects.count()))
    }

    /// Commits the output. `files`: those of it that the folder has not noted itself.
    pub fn commit(&self, folder: &OutputFolder, summary: &impl Serialize, files: FileList) -> Result<()> {
        let success = folder.commit(summary, files, &self.limits)?;
        self.write_summary(&success);
        Ok(())
    }

    /// Writes the summary of a committed output to the file that the user named. A failure is only a warning,
    /// since the output is whole.
    pub fn write_summary(&self, json: &str) {
        let file = self.args.summary_json.as_deref();
        if let Err(error) = file.map_or(Ok(()), |file| ReportFile::new(file).replace(json)) {
            self.run
                .progress
                .warn(&format!("{error:#}; the output is whole, and its _SUCCESS says the same"));
        }
    }

    /// Ends the job with its result, and prints the counters and a line that says what was done. Returns the exit code: 0, or 3 if
    /// records were rejected.
    pub fn end<S: JobSummary>(&self, begun: BegunJob, result: Result<JobEnd<S>>) -> Result<u8> {
        let BegunJob { watch, folder } = begun;
        let closed = match &folder {
            Some(folder) => folder.close(result),
            None => result,
        };
        let taken = match &self.args.file {
            Some(file) => closed.and_then(|end| file.take().map(|()| end)),
            None => closed,
        };
        let JobEnd { summary, others, rejected } = watch.end(taken)?;
        let output = self.output.trim_end_matches('/');
        let rejects = match &self.args.file {
            Some(file) => file.place_of_rejects(),
            None => format!("see {output}/rejects"),
        };
        if let Some(summary) = summary.as_ref().filter(|_| !self.common.progress.quiet) {
            say(summary);
            if self.common.progress.verbose {
                say(StageTable(&merge(others.into_iter().chain(self.run.progress.totals()))));
            }
            say(cluster::one_line(&self.ending(summary, output, &rejects)));
        } else if rejected && self.run.group.index() == 0 {
            let done =
                summary.map_or_else(|| "records were rejected".to_owned(), |summary| summary.done(&rejects));
            say(cluster::one_line(&format!("{done}, so the exit code is 3")));
        }
        Ok(if rejected { 3 } else { 0 })
    }

    /// Returns the line that ends a run: what was done, how long it took, where the result is, and how to look at it.
    fn ending<S: JobSummary>(&self, summary: &S, output: &str, rejects: &str) -> String {
        let took = self.start.elapsed().as_secs_f64();
        if let Some(file) = &self.args.file {
            return format!("{} in {took:.1} s → {}", summary.done(rejects), file.name());
        }
        let result = summary.result().map_or(output.to_owned(), |result| format!("{output}/{result}"));
        let quoted = shlex::try_quote(output).unwrap_or(output.into());
        let look =
            summary.look().map_or_else(String::new, |look| format!(" · look: dedup-job {look} {quoted}"));
        format!("{} in {took:.1} s → {result}{look}", summary.done(rejects))
    }
}
