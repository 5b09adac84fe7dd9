//! The processes that read documents, as seen from the one that started them.

use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
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
    program: Option<PathBuf>,
    idle: Mutex<Vec<Extractor>>,
}

impl Extractors {
    /// Extractors that are this program, started again with [`EXTRACT`], which its `main` must hand to
    /// [`serve`](super::child::serve) before all else.
    pub fn of_this_program() -> io::Result<Self> {
        // The name of the program may be another one's by now, after an upgrade; this is what runs.
        let program =
            if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { std::env::current_exe()? };
        Ok(Extractors { program: Some(program), ..Extractors::default() })
    }

    /// The text of a document of up to `max_bytes`, or why there is none.
    ///
    /// An error means that no extractor could be started.
    pub(super) fn extract(&self, document: Vec<u8>, max_bytes: usize) -> io::Result<Result<String, String>> {
        let Some(program) = &self.program else {
            return Ok(extract(document, max_bytes));
        };
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let extractor = idle.map_or_else(|| Extractor::start(program.clone(), max_bytes), Ok)?;
        match extractor.extract(document) {
            Ok((extractor, answer)) => {
                self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(extractor);
                Ok(answer)
            }
            Err(died) => Ok(Err(died)),
        }
    }
}

type Answer = Result<String, String>;

/// One process, and the thread that talks to it.
#[derive(Debug)]
struct Extractor {
    process: Process,
    max_bytes: usize,
    documents: Sender<Vec<u8>>,
    answers: Receiver<io::Result<Answer>>,
}

impl Extractor {
    fn start(program: PathBuf, max_bytes: usize) -> io::Result<Self> {
        let mut command = Command::new(program);
        // No environment: it may hold keys, and nothing in it matters here.
        command.arg(EXTRACT).arg(max_bytes.to_string()).env_clear().current_dir("/");
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
        let (documents, waiting) = mpsc::channel::<Vec<u8>>();
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
    fn extract(mut self, document: Vec<u8>) -> Result<(Self, Answer), String> {
        // A thread that is gone has closed its side of the answers too.
        let _gone = self.documents.send(document);
        match self.answers.recv_timeout(PATIENCE) {
            Ok(Ok(answer)) => Ok((self, answer)),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                let (status, said) = self.process.end();
                Err(why_died(status, &said, self.max_bytes))
            }
            Err(RecvTimeoutError::Timeout) => {
                self.process.end();
                Err(format!("the extractor gave no answer for {PATIENCE:?}"))
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
        self.end();
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

fn why_died(status: ExitStatus, said: &str, max_bytes: usize) -> String {
    let signal = status.signal();
    if signal == Some(Signal::XCPU.as_raw()) {
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
    }
}
