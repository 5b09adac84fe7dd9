//! The launcher: it starts the processes of a job and shows their lines. When one process dies, it ends all
//! others and starts the job again.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};
use std::{env, thread};

use anyhow::{Context, Result};

use super::hosts::host_of;
use super::parent_watch::{BEAT, Handed, bound};
use crate::cli::terminal::say;

/// Time between two looks at the processes.
const LOOK: Duration = Duration::from_millis(50);
/// Time for the other processes to say why they end, once one has failed.
const AFTER_FAILURE: Duration = Duration::from_secs(2);
/// Time for the other processes to end, once process 0 has ended well.
const AFTER_SUCCESS: Duration = Duration::from_secs(10);
/// Time to wait for the last lines of processes that have ended: something else may hold their pipes open.
const LAST_LINES: Duration = Duration::from_secs(2);
/// Pause before the job is started again: the cause of the failure may need a moment to go away.
const PAUSE: Duration = Duration::from_secs(1);
/// Exit code of an ssh that has lost its connection or whose command was killed. This program has no such
/// code.
const LOST: i32 = 255;

/// Job whose processes this process starts.
#[derive(Debug, PartialEq)]
pub struct Launch {
    /// `host:port` of each process; empty for one process on this machine.
    pub addresses: Vec<String>,
    /// Number of workers of each process.
    pub workers: usize,
    /// Words of the command that runs a shell command on `{host}`.
    pub launcher: Vec<String>,
    /// Number of times that the job is started again.
    pub retries: u32,
}

/// Failure of one attempt.
struct AttemptFailure {
    /// The process that failed, and how it ended.
    what: String,
    /// Exit code of a process that has said why it failed, and would fail again in the same way.
    telling: Option<u8>,
}

impl Launch {
    /// Runs the job to its end, with all its attempts; returns its exit code.
    ///
    /// The processes die with the thread that calls this, so a signal that ends this process ends all of
    /// them.
    ///
    /// # Errors
    /// When a process cannot be started.
    pub fn run(&self) -> Result<u8> {
        let mut again = 0;
        loop {
            match self.attempt()? {
                Ok(code) => return Ok(code),
                Err(AttemptFailure { telling: Some(code), .. }) => return Ok(code),
                Err(AttemptFailure { what, .. }) if again == self.retries => {
                    say(format_args!("error: {what}"));
                    return Ok(1);
                }
                Err(AttemptFailure { what, .. }) => {
                    again += 1;
                    log::warn!("{what}; starting again ({again} of {})", self.retries);
                    thread::sleep(PAUSE);
                }
            }
        }
    }

    /// Starts all processes and waits until they have ended. Once one has failed or process 0 is done, the
    /// others get a few seconds and are then killed.
    fn attempt(&self) -> Result<Result<u8, AttemptFailure>> {
        let handed = self.handed()?;
        // Each process drops its sender when it has no more lines.
        let (open, lines) = mpsc::channel();
        let processes = (0..self.addresses.len().max(1)).map(|index| self.start(index, &handed, &open));
        let mut processes = processes.collect::<Result<Vec<_>>>()?;
        drop(open);

        let mut failed = None;
        let mut limit = None;
        let mut beat = Instant::now();
        while processes.iter().any(|process| process.ended.is_none()) {
            thread::sleep(LOOK);
            if beat.elapsed() >= BEAT {
                beat = Instant::now();
                processes.iter_mut().for_each(|process| process.tell(b"\n"));
            }
            let mut ended = Vec::new();
            for (index, process) in processes.iter_mut().enumerate() {
                ended.extend(process.look()?.filter(|&status| !well(status)).map(|status| (index, status)));
            }
            // A killed process is the cause, and the others ended because of it, even if the system reports
            // its end later.
            ended.sort_by_key(|&(_, status)| !killed(status));
            let first = ended
                .first()
                .filter(|first| failed.is_none_or(|(_, known)| killed(first.1) && !killed(known)));
            if let Some(&first) = first {
                failed = Some(first);
                limit = limit.or(Some(Instant::now() + AFTER_FAILURE));
            } else if limit.is_none() && processes[0].ended.is_some() {
                limit = Some(Instant::now() + AFTER_SUCCESS);
            }
            if limit.is_some_and(|limit| Instant::now() >= limit) {
                for (index, process) in processes.iter_mut().enumerate() {
                    if process.ended.is_none() {
                        let status = process.kill()?;
                        log::warn!("{} did not end with the others: killed", self.name(index));
                        failed = failed.or(Some((index, status)));
                    }
                }
            }
        }
        // Waits until all senders are dropped.
        let _ = lines.recv_timeout(LAST_LINES);

        let first = processes[0].ended;
        let code = |status: ExitStatus| status.code().and_then(|code| u8::try_from(code).ok());
        let Some((index, status)) = failed else {
            return Ok(Ok(first.and_then(code).unwrap_or_default()));
        };
        if let Some(first) = first.filter(|&first| well(first)) {
            let what = format_args!("{} {}", self.name(index), how(status));
            log::warn!("{what}; the output was complete by then");
            return Ok(Ok(code(first).unwrap_or_default()));
        }
        // Wrong use, a guard, or an output that another run writes: the process has said so, and the next
        // attempt would fail too.
        let telling = |status| code(status).filter(|code| [2, 4, 11].contains(code));
        let telling = first.and_then(telling).or_else(|| telling(status));
        Ok(Err(AttemptFailure { what: format!("{} {}", self.name(index), how(status)), telling }))
    }

    /// Returns the line that is handed to every process, with a new secret.
    fn handed(&self) -> Result<String> {
        let mut secret = [0; 32];
        File::open("/dev/urandom")
            .and_then(|mut random| random.read_exact(&mut secret))
            .context("could not make a token from \"/dev/urandom\"")?;
        let token = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let handed = Handed { addresses: self.addresses.clone(), workers: self.workers, token };
        Ok(serde_json::to_string(&handed)? + "\n")
    }

    /// Starts process `index` and hands it its line. If it runs on a host, its lines are shown with its
    /// number and host.
    fn start(&self, index: usize, handed: &str, open: &Sender<()>) -> Result<ChildProcess> {
        let mut command = bound(self.command(index)?)?;
        command.stdin(Stdio::piped());
        let prefix = self.addresses.get(index).map(|address| format!("[{index} {}] ", host_of(address)));
        if prefix.is_some() {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        let mut child = command.spawn().with_context(|| format!("could not start {}", self.name(index)))?;
        let prefix = prefix.unwrap_or_default();
        if let Some(stdout) = child.stdout.take() {
            let (prefix, open) = (prefix.clone(), open.clone());
            thread::spawn(move || (forward(stdout, &prefix, io::stdout()), drop(open)));
        }
        if let Some(stderr) = child.stderr.take() {
            let open = open.clone();
            thread::spawn(move || (forward(stderr, &prefix, io::stderr()), drop(open)));
        }
        let stdin = child.stdin.take();
        let mut process = ChildProcess { child, stdin, ended: None };
        process.tell(handed.as_bytes());
        Ok(process)
    }

    /// Returns the command that starts process `index`: that of this process, with more options before all
    /// others.
    fn command(&self, index: usize) -> Result<Vec<OsString>> {
        let program = env::current_exe().context("could not find this program")?;
        let options = ["--process".into(), index.to_string().into(), "--lifeline".into()];
        let own = [program.into()].into_iter().chain(options).chain(env::args_os().skip(1)).collect();
        let Some(address) = self.addresses.get(index) else { return Ok(own) };
        let directory = env::current_dir().context("could not find the current directory")?;
        let words = self.launcher.iter().map(|word| word.replace("{host}", host_of(address)).into());
        Ok(words.chain([on_host(directory.as_os_str(), &own)?]).collect())
    }

    /// Names a process for people.
    fn name(&self, index: usize) -> String {
        match self.addresses.get(index) {
            Some(address) => format!("process {index} ({address})"),
            None => "the job's process".to_owned(),
        }
    }
}

/// Process that this one has started. It is killed when it is dropped.
struct ChildProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    ended: Option<ExitStatus>,
}

impl ChildProcess {
    /// Writes to the standard input of the process. If that fails, the process has ended or soon will.
    fn tell(&mut self, bytes: &[u8]) {
        if self.stdin.as_mut().is_some_and(|stdin| stdin.write_all(bytes).is_err()) {
            self.stdin = None;
        }
    }

    /// Returns how the process has ended, once.
    fn look(&mut self) -> Result<Option<ExitStatus>> {
        if self.ended.is_some() {
            return Ok(None);
        }
        self.ended = self.child.try_wait().context("could not wait for a process")?;
        Ok(self.ended)
    }

    fn kill(&mut self) -> Result<ExitStatus> {
        self.child.kill().context("could not kill a process")?;
        let status = self.child.wait().context("could not wait for a process")?;
        self.ended = Some(status);
        Ok(status)
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if self.ended.is_none() {
            // The error that led here is the one to report.
            let _ = self.kill();
        }
    }
}

/// Whether the job is done, also if records were rejected.
fn well(status: ExitStatus) -> bool {
    matches!(status.code(), Some(0 | 3))
}

/// Whether the process was killed by a signal, or is on a host that can no longer be reached.
fn killed(status: ExitStatus) -> bool {
    matches!(status.code(), None | Some(LOST))
}

/// Says how a process has ended.
fn how(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was killed by signal {signal}"),
        (None, Some(LOST)) => format!("was killed, or could not be reached (code {LOST})"),
        (None, code) => format!("ended with code {}", code.unwrap_or_default()),
    }
}

/// Returns the shell command that runs `words` in `directory` on a host.
fn on_host(directory: &OsStr, words: &[OsString]) -> Result<OsString> {
    let mut line = b"cd ".to_vec();
    line.extend_from_slice(&shlex::bytes::try_quote(directory.as_bytes())?);
    line.extend_from_slice(b" && exec ");
    line.extend(shlex::bytes::try_join(words.iter().map(|word| word.as_bytes()))?);
    Ok(OsString::from_vec(line))
}

/// Writes each line as a whole, with `prefix` before it, whatever its bytes are. Memory: the longest line.
fn forward(from: impl Read, prefix: &str, mut to: impl Write) {
    let mut from = BufReader::new(from);
    let mut line = prefix.as_bytes().to_vec();
    while from.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        if !line.ends_with(b"\n") {
            line.push(b'\n');
        }
        // If nobody reads the line, the process that writes it goes on.
        let _ = to.write_all(&line);
        line.truncate(prefix.len());
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn lines_get_a_prefix_whatever_their_bytes() {
        let mut to = Vec::new();
        forward(&b"one\n\ncaf\xe9\nno end"[..], "[1 b] ", &mut to);
        assert_eq!(to, b"[1 b] one\n[1 b] \n[1 b] caf\xe9\n[1 b] no end\n");
    }

    #[test]
    fn a_command_comes_through_a_shell_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join(OsStr::from_bytes(b"a 'b' \"c\"\n$(d) caf\xe9"));
        std::fs::create_dir(&directory).unwrap();
        let words: [&[u8]; 7] = [b"", b"it's", b"$HOME `x`", b"a\nb", b"\\\"", b"caf\xe9 ~ * !", b"-n"];
        let printf: [&[u8]; 2] = [b"printf", b"<%s>"];
        let command: Vec<_> =
            printf.iter().chain(&words).map(|word| OsStr::from_bytes(word).to_owned()).collect();
        let line = on_host(directory.as_os_str(), &command).unwrap();
        let output = Command::new("sh").arg("-c").arg(line).output().unwrap();
        let expected: Vec<u8> = words.iter().flat_map(|word| [b"<", *word, b">"].concat()).collect();
        assert_eq!(output.stdout, expected, "{output:?}");

        let pwd = on_host(directory.as_os_str(), &["pwd".into()]).unwrap();
        let output = Command::new("sh").arg("-c").arg(pwd).output().unwrap();
        assert!(output.stdout.ends_with(b"/a 'b' \"c\"\n$(d) caf\xe9\n"), "{output:?}");
    }
}
