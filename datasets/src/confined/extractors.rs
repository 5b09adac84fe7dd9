//! The processes that read documents, as seen from the process that started them.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::Signal;

use super::child::{EXTRACT, READY, read_message, write_message};
use super::confine::Bounds;
use super::task::ConfinedTask;

/// Time limit for an answer. The CPU time of a document is limited by [`Bounds::cpu_seconds`]; this limit is for a
/// process that was stopped.
const PATIENCE: Duration = Duration::from_secs(600);

/// Makes the allocator of glibc keep what is freed: tables of a megabyte that come and go with every stream of a file
/// otherwise cost a third of the CPU time, in page faults. The first is the greatest that it takes.
const KEEP_FREED_MEMORY: [(&str, &str); 2] =
    [("MALLOC_MMAP_THRESHOLD_", "33554432"), ("MALLOC_TRIM_THRESHOLD_", "1073741824")];

/// Processes that work on foreign files, so that a malicious one costs a document and not the job.
///
/// Each process reads one document and ends, so that no document can affect the next. The next process starts
/// while one reads. So each reader has two processes at most, one of which has read nothing, and each process
/// takes up to [`Bounds::memory_bytes`]. The processes end with this value.
///
/// The default has no processes: documents are read in this process, which a decompression bomb can end.
#[derive(Debug, Default)]
pub struct Extractors {
    /// A program and its first arguments. Empty means this process.
    command: Vec<OsString>,
    /// Processes that were started and may not be ready yet.
    waiting: Mutex<Vec<Extractor>>,
}

impl Extractors {
    /// Creates extractors that are this program, started again with [`EXTRACT`]. The program's `main` must
    /// hand that argument to [`serve`](super::child::serve) before all else.
    pub fn of_this_program() -> io::Result<Self> {
        // After an upgrade, the program's name may belong to another program; this path is the one that runs.
        let program =
            if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { std::env::current_exe()?.into() };
        Ok(Extractors { command: vec![program, EXTRACT.into()], ..Extractors::default() })
    }

    /// Returns the result of a task, or why there is none.
    ///
    /// An error means that no extractor could be started.
    pub(crate) fn ask(
        &self,
        task: ConfinedTask,
        document: Vec<u8>,
        bounds: Bounds,
    ) -> io::Result<ExtractorAnswer> {
        if self.command.is_empty() {
            return Ok(task.run(document, bounds.max_bytes));
        }
        let next = || self.waiting.lock().pop();
        let start = || Extractor::start(&self.command, bounds);
        let extractor = next().filter(|next| next.bounds == bounds).map_or_else(start, Ok)?;
        self.waiting.lock().push(start()?);
        extractor.ask(task, document)
    }
}

/// The result of a task, or why there is none.
pub(crate) type ExtractorAnswer = Result<Vec<u8>, String>;

/// One process, which reads one document.
#[derive(Debug)]
struct Extractor {
    process: Process,
    bounds: Bounds,
    stdin: ChildStdin,
    stdout: ChildStdout,
}

impl Extractor {
    fn start(command: &[OsString], bounds: Bounds) -> io::Result<Self> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        // The environment is empty: it may hold keys, and nothing in it matters here.
        command.args(arguments).args(bounds.arguments()).env_clear().current_dir("/");
        command.envs(KEEP_FREED_MEMORY);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Process(command.spawn()?);
        match (process.0.stdin.take(), process.0.stdout.take()) {
            (Some(stdin), Some(stdout)) => Ok(Extractor { process, bounds, stdin, stdout }),
            _ => Err(io::Error::other("the extractor has no pipes")),
        }
    }

    fn ask(self, task: ConfinedTask, document: Vec<u8>) -> io::Result<ExtractorAnswer> {
        let Extractor { mut process, bounds, mut stdin, mut stdout } = self;
        let (answered, answers) = mpsc::channel();
        thread::Builder::new().name("extractor".to_owned()).spawn(move || {
            // After the deadline nobody receives the answer.
            let _late = answered.send(converse(&mut stdin, &mut stdout, task, &document, bounds.max_bytes));
        })?;
        match answers.recv_timeout(PATIENCE) {
            Ok(Ok(Some(answer))) => Ok(answer),
            Ok(Ok(None)) => {
                let (status, said) = process.end();
                let said = said.trim_end();
                Err(io::Error::other(format!("the extractor did not start: {status}: {said}")))
            }
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                let (status, said) = process.end();
                Ok(Err(why_died(status, &said, bounds)))
            }
            Err(RecvTimeoutError::Timeout) => {
                process.end();
                Ok(Err(format!("the extractor gave no answer for {PATIENCE:?}")))
            }
        }
    }
}

/// A child process that does not outlive this value.
#[derive(Debug)]
struct Process(Child);

impl Process {
    /// Ends the process, unless it has ended by itself. Returns its exit status and its last output.
    fn end(&mut self) -> (ExitStatus, String) {
        // Neither fails for a child that we started and have not waited for.
        let _ended = self.0.kill();
        let status = self.0.wait().unwrap_or_default();
        let mut said = Vec::new();
        if let Some(stderr) = self.0.stderr.take() {
            let _cut = stderr.take(4096).read_to_end(&mut said);
        }
        (status, String::from_utf8_lossy(&said).into_owned())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}

/// Sends a task to a process and reads the answer. Returns `None` if the process is not ready for one.
fn converse(
    stdin: &mut ChildStdin,
    stdout: &mut ChildStdout,
    task: ConfinedTask,
    document: &[u8],
    max_bytes: usize,
) -> io::Result<Option<ExtractorAnswer>> {
    let mut ready = [0; READY.len()];
    if stdout.read_exact(&mut ready).is_err() || &ready != READY {
        return Ok(None);
    }
    stdin.write_all(&[task.number()])?;
    write_message(stdin, document)?;
    let mut sort = [0];
    stdout.read_exact(&mut sort)?;
    // A reason is short, but may be longer than a small limit for records.
    let said = read_message(stdout, max_bytes.max(1 << 16))?;
    Ok(Some(match sort {
        [1] => Ok(said),
        _ => Err(String::from_utf8(said).map_err(io::Error::other)?),
    }))
}

fn why_died(status: ExitStatus, said: &str, bounds: Bounds) -> String {
    let signal = status.signal();
    if signal == Some(Signal::XCPU.as_raw()) {
        format!("reading it took more than {} s of CPU time", bounds.cpu_seconds)
    } else if said.contains("memory allocation of") {
        format!("reading it took more than {} bytes of memory", bounds.memory_bytes)
    } else if said.contains("has overflowed its stack") || signal == Some(Signal::SEGV.as_raw()) {
        "reading it went too deep: the extractor's stack overflowed".to_owned()
    } else {
        let said = said.lines().next().unwrap_or_default();
        format!("the extractor ended without an answer: {status}: {said}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns extractors that are a shell with this script. A document has one byte, so a request has ten.
    fn extractors(script: &str) -> Extractors {
        let command = ["/bin/sh", "-c", script].map(OsString::from).to_vec();
        Extractors { command, ..Extractors::default() }
    }

    fn ask(extractors: &Extractors) -> io::Result<ExtractorAnswer> {
        let bounds = Bounds { max_bytes: 1000, memory_bytes: 128 << 20, cpu_seconds: 10 };
        extractors.ask(ConfinedTask::ExtractText, b"x".to_vec(), bounds)
    }

    const TAKE: &str = "PATH=/usr/bin:/bin; echo ready; head -c 10 >/dev/null;";

    #[test]
    fn each_process_reads_one_document_and_another_one_is_ready() {
        // The script answers with its process number.
        let number = "printf '\\001\\007\\000\\000\\000\\000\\000\\000\\000%07d' $$";
        let once = extractors(&format!("{TAKE} {number}; exec head -c 10 >/dev/null"));
        let mut processes = std::collections::BTreeSet::new();
        for _ in 0..4 {
            processes.insert(ask(&once).unwrap().unwrap());
            assert_eq!(once.waiting.lock().len(), 1);
        }
        assert_eq!(processes.len(), 4);
    }

    #[test]
    fn the_error_says_how_an_extractor_died() {
        for (end, reason) in [
            ("kill -XCPU $$", "more than 10 s of CPU time"),
            (
                "echo memory allocation of 9 bytes failed >&2; kill -ABRT $$",
                "more than 134217728 bytes of memory",
            ),
            ("kill -SEGV $$", "stack overflowed"),
            ("kill -KILL $$", "signal: 9"),
            ("echo why >&2; exit 7", "exit status: 7: why"),
            (
                "printf '\\001\\377\\377\\377\\377\\377\\377\\377\\377'; exec head -c 10 >/dev/null",
                "ended without an answer",
            ),
        ] {
            let dying = extractors(&format!("{TAKE} {end}"));
            let said = ask(&dying).unwrap().unwrap_err();
            assert!(said.contains(reason), "\"{reason}\" is not in \"{said}\"");
        }
    }

    #[test]
    fn an_extractor_that_does_not_start_is_no_fault_of_the_document() {
        let error = ask(&extractors("echo no seccomp >&2; exit 1")).unwrap_err();
        assert!(
            error.to_string().contains("did not start") && error.to_string().contains("no seccomp"),
            "{error}"
        );
        assert!(ask(&Extractors { command: vec!["/no/such".into()], ..Extractors::default() }).is_err());
    }
}
