//! The processes that read documents, as seen from the one that started them.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::child::{EXTRACT, READY, read_message, write_message};
use super::confine::{CPU_SECONDS, memory_bytes};
use super::extract;

/// A document takes no more CPU time than [`CPU_SECONDS`]; this is for a process that was stopped.
const PATIENCE: Duration = Duration::from_secs(600);

/// Processes that read Word and PDF documents, so that one that explodes costs a document and not the job.
///
/// Each is started when a reader needs one and none is idle, serves one document after the other, and is
/// replaced when it dies. So there are never more than there are readers at one time, and each takes up to six times
/// the longest document (768 MiB by default). They end with this value.
///
/// The default is none: then documents are read in this process, which a bomb can end.
#[derive(Debug, Default)]
pub struct Extractors {
    /// A program and its first arguments; none: this process.
    command: Vec<OsString>,
    idle: Mutex<Vec<Extractor>>,
}

impl Extractors {
    /// Extractors that are this program, started again with [`EXTRACT`], which its `main` must hand to
    /// [`serve`](super::child::serve) before all else.
    pub fn of_this_program() -> io::Result<Self> {
        // The name of the program may be another one's by now, after an upgrade; this is what runs.
        let program =
            if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { std::env::current_exe()?.into() };
        Ok(Extractors { command: vec![program, EXTRACT.into()], ..Extractors::default() })
    }

    /// The text of a document of up to `max_bytes`, or why there is none.
    ///
    /// An error means that no extractor could be started.
    pub(super) fn extract(&self, document: Vec<u8>, max_bytes: usize) -> io::Result<Result<String, String>> {
        if self.command.is_empty() {
            return Ok(extract(document, max_bytes));
        }
        let document = Arc::new(document);
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(used) = idle {
            match used.extract(&document) {
                // What documents before it have left in memory must not decide about this one.
                Err(Death { with_any: false, .. }) => {}
                outcome => return Ok(self.put_back(outcome)),
            }
        }
        let outcome = Extractor::start(&self.command, max_bytes)?.extract(&document);
        Ok(self.put_back(outcome))
    }

    fn put_back(&self, outcome: Result<(Extractor, Answer), Death>) -> Answer {
        let (extractor, answer) = outcome.map_err(|death| death.reason)?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(extractor);
        answer
    }
}

type Answer = Result<String, String>;

/// Why there is neither an answer nor an extractor any more.
struct Death {
    reason: String,
    /// Whether an extractor that had read nothing before would have died too.
    with_any: bool,
}

/// One process, and the thread that talks to it.
#[derive(Debug)]
struct Extractor {
    process: Process,
    max_bytes: usize,
    documents: Sender<Arc<Vec<u8>>>,
    answers: Receiver<io::Result<Answer>>,
}

impl Extractor {
    fn start(command: &[OsString], max_bytes: usize) -> io::Result<Self> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        // No environment: it may hold keys, and nothing in it matters here.
        command.args(arguments).arg(max_bytes.to_string()).env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Process(command.spawn()?);
        let (Some(mut stdin), Some(mut stdout)) = (process.0.stdin.take(), process.0.stdout.take()) else {
            return Err(io::Error::other("the extractor has no pipes"));
        };
        let mut ready = [0; READY.len()];
        if stdout.read_exact(&mut ready).is_err() || &ready != READY {
            let (status, said) = process.end();
            return Err(io::Error::other(format!(
                "the extractor did not start: {status}: {}",
                said.trim_end()
            )));
        }
        let (documents, waiting) = mpsc::channel::<Arc<Vec<u8>>>();
        let (answered, answers) = mpsc::channel();
        thread::Builder::new().name("extractor".to_owned()).spawn(move || {
            for document in waiting {
                if answered.send(ask(&mut stdin, &mut stdout, &document, max_bytes)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Extractor { process, max_bytes, documents, answers })
    }

    /// Itself, ready for the next, with the answer; or why it died.
    fn extract(mut self, document: &Arc<Vec<u8>>) -> Result<(Self, Answer), Death> {
        // A thread that is gone has closed its side of the answers too.
        let _gone = self.documents.send(document.clone());
        match self.answers.recv_timeout(PATIENCE) {
            Ok(Ok(answer)) => Ok((self, answer)),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                let (status, said) = self.process.end();
                Err(why_died(status, &said, self.max_bytes))
            }
            Err(RecvTimeoutError::Timeout) => {
                self.process.end();
                Err(Death {
                    reason: format!("the extractor gave no answer for {PATIENCE:?}"),
                    with_any: true,
                })
            }
        }
    }
}

/// A child process that does not outlive this value.
#[derive(Debug)]
struct Process(Child);

impl Process {
    /// Ends it, if it has not ended by itself: how it ended, and what it said last.
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

fn ask(
    stdin: &mut ChildStdin,
    stdout: &mut ChildStdout,
    document: &[u8],
    max_bytes: usize,
) -> io::Result<Answer> {
    write_message(stdin, document)?;
    let mut sort = [0];
    stdout.read_exact(&mut sort)?;
    // A reason is short, but may be longer than the shortest records.
    let said = read_message(stdout, max_bytes.max(1 << 16))?;
    let said = String::from_utf8(said).map_err(io::Error::other)?;
    Ok(if sort == [1] { Ok(said) } else { Err(said) })
}

fn why_died(status: ExitStatus, said: &str, max_bytes: usize) -> Death {
    let signal = status.signal();
    // Each document has its own CPU time, while memory is the process's.
    let with_any = signal == Some(Signal::XCPU.as_raw());
    let reason = if with_any {
        format!("reading it took more than {CPU_SECONDS} s of CPU time")
    } else if said.contains("memory allocation of") {
        format!("reading it took more than {} bytes of memory", memory_bytes(max_bytes))
    } else if said.contains("has overflowed its stack") || signal == Some(Signal::SEGV.as_raw()) {
        "reading it went too deep: the extractor's stack overflowed".to_owned()
    } else {
        format!(
            "the extractor ended without an answer: {status}: {}",
            said.lines().next().unwrap_or_default()
        )
    };
    Death { reason, with_any }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Extractors that are a shell with this script; a document has one byte, so a request has nine.
    fn extractors(script: &str) -> Extractors {
        let command = ["/bin/sh", "-c", script].map(OsString::from).to_vec();
        Extractors { command, ..Extractors::default() }
    }

    fn ask(extractors: &Extractors) -> io::Result<Answer> {
        extractors.extract(b"x".to_vec(), 1000)
    }

    const TAKE: &str = "PATH=/usr/bin:/bin; echo ready; head -c 9 >/dev/null;";

    #[test]
    fn what_came_before_does_not_decide_about_a_document() {
        // It dies when it is asked for the second time.
        let once = extractors(&format!(
            "{TAKE} printf '\\001\\002\\000\\000\\000\\000\\000\\000\\000ab'; exec head -c 9 >/dev/null"
        ));
        for _ in 0..4 {
            assert_eq!(ask(&once).unwrap(), Ok("ab".to_owned()));
        }
    }

    #[test]
    fn how_an_extractor_died_is_said() {
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
                "printf '\\001\\377\\377\\377\\377\\377\\377\\377\\377'; exec head -c 9 >/dev/null",
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
