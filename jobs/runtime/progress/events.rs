//! Events of a job, as JSON lines in a file.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::time::SystemTime;

use anyhow::{Context, Result};
use cluster::path_of_text;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;

use super::stage::Stage;
use super::stages::StageRow;

/// Job whose progress is shown, as it is known before it runs.
#[derive(Serialize)]
pub struct Watched {
    /// Version of the program that runs.
    pub version: &'static str,
    /// Name of the job.
    pub job: &'static str,
    /// Output as the user has named it; empty for a command that writes none.
    pub output: String,
    /// Number of this process in the job. Each process but 0 writes files of its own.
    pub process: usize,
    /// Configuration as `_SUCCESS` has it; where there is none, the options that matter.
    pub configuration: Value,
    /// Number of files to be read, with those of a reference.
    pub input_files: u64,
    /// Length of these files in bytes.
    pub input_bytes: u64,
    /// Number of splits to be read, with those of a reference; 0 if the job has none.
    pub splits: u64,
    /// Words for people about what stays of a job that a signal ends; `None` if that is for the job to say.
    #[serde(skip)]
    pub left_if_ended: Option<String>,
}

/// Event of a job (docs/formats.md).
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Event<'a> {
    JobStarted(&'a Watched),
    StageStarted { stage: Stage },
    StageFinished(StageRow),
    SplitFinished { stage: Stage, split: u32, worker: usize, records: u64, bytes: u64, seconds: f64 },
    SlowWorker { stage: Stage, worker: usize, split: u32, file: &'a str, message: &'a str },
    Warning { message: &'a str },
    JobFinished { seconds: f64, cpu_seconds: f64, peak_memory_bytes: u64 },
    JobFailed { seconds: f64, exit_code: u8, error: &'a str },
}

#[derive(Serialize)]
struct EventLine<'a> {
    time: String,
    #[serde(flatten)]
    event: &'a Event<'a>,
}

/// File that events are appended to.
pub(super) struct Events {
    path: String,
    /// `None` after the last event, or after an error.
    file: Mutex<Option<File>>,
}

impl Events {
    /// Opens the file, which may have events of earlier jobs. Ends its last line if that was cut short.
    pub fn open(path: &str) -> Result<Self> {
        let open = || {
            let mut file =
                OpenOptions::new().read(true).append(true).create(true).open(path_of_text(path))?;
            let mut last = [b'\n'];
            // A pipe or a device has no last line.
            if file.metadata()?.is_file() && file.seek(SeekFrom::End(0))? > 0 {
                file.seek(SeekFrom::End(-1))?;
                file.read_exact(&mut last)?;
            }
            if last != [b'\n'] {
                file.write_all(b"\n")?;
            }
            Ok::<_, std::io::Error>(file)
        };
        let file = open().with_context(|| format!("could not append to \"{path}\""))?;
        Ok(Events { path: path.to_owned(), file: Mutex::new(Some(file)) })
    }

    /// Appends an event as one line in one write, so that the line is whole whenever the process is killed.
    ///
    /// # Errors
    /// When the write fails. Then nothing more is appended, and later calls return no error.
    pub fn tell(&self, event: &Event) -> Result<()> {
        let mut open = self.file.lock();
        let Some(file) = open.as_mut() else { return Ok(()) };
        // The time is taken under the lock so that the times of lines ascend.
        let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        let line = serde_json::to_string(&EventLine { time, event })? + "\n";
        let written = file.write_all(line.as_bytes());
        if written.is_err() || matches!(event, Event::JobFinished { .. } | Event::JobFailed { .. }) {
            *open = None;
        }
        written.with_context(|| format!("could not append to \"{}\"", self.path))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn told(before: &str, events: &[Event]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        fs::write(&path, before).unwrap();
        let file = Events::open(path.to_str().unwrap()).unwrap();
        events.iter().for_each(|event| file.tell(event).unwrap());
        fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_line_has_time_event_and_fields() {
        let lines = told("", &[Event::Warning { message: "a\nb" }]);
        let [line] = &lines[..] else { panic!("{lines:?}") };
        let (time, rest) = line.strip_prefix("{\"time\":\"").unwrap().split_once('"').unwrap();
        assert_eq!(rest, ",\"event\":\"warning\",\"message\":\"a\\nb\"}");
        let millis = humantime::parse_rfc3339(time).unwrap().elapsed().unwrap().as_millis();
        assert!(time.ends_with('Z') && millis < 600_000, "{time}");
    }

    #[test]
    fn earlier_lines_stay_and_a_broken_one_is_ended() {
        let warning = Event::Warning { message: "w" };
        assert_eq!(told("{}\n", &[warning])[0], "{}");
        let lines = told("{}\n{\"time", &[Event::StageStarted { stage: Stage::Map }]);
        assert_eq!((lines.len(), lines[1].as_str()), (3, "{\"time"));
        assert!(lines[2].ends_with("\"event\":\"stage_started\",\"stage\":\"map\"}"), "{lines:?}");
    }

    #[test]
    fn nothing_is_told_of_a_job_that_has_failed() {
        let failed = Event::JobFailed { seconds: 1.0, exit_code: 1, error: "e" };
        let lines = told("", &[failed, Event::StageStarted { stage: Stage::Map }]);
        assert_eq!(lines.len(), 1, "{lines:?}");
    }
}
