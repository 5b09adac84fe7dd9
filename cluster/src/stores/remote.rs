//! Requests to other machines: every answer has a deadline, and transient failures are retried with backoff.
//!
//! Client libraries are async, may hang for ever and may panic. So each request runs in a task of its own,
//! and the thread that wants the answer waits for it on a channel. A late task is aborted, and a task that
//! panics closes the channel.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use tokio::runtime::{self, Runtime};

use super::error::Error;
use crate::panics;

/// Pause after the first failure, without jitter.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// Reason why a task gave no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// No answer came within this time.
    Late(Duration),
    /// The task ended without an answer: it panicked, or had no more to say.
    Broken,
}

/// Starts the threads for a client library.
pub(crate) fn runtime(name: &str) -> Result<Runtime, Error> {
    let runtime = runtime::Builder::new_multi_thread()
        .thread_name(name)
        // A panic of the library ends its task, and is an error to the caller.
        .on_thread_start(panics::panics_are_caught)
        .enable_all()
        .build();
    runtime.map_err(|source| Error::io(name, "start a client for", source))
}

/// Runs `work` in a task of its own, for at most `limit`.
pub(crate) fn wait<T: Send + 'static>(
    runtime: &Runtime,
    limit: Duration,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, NoAnswer> {
    let (sender, answers) = mpsc::channel();
    // After the deadline nobody receives the answer.
    let task = runtime.spawn(async move { drop(sender.send(work.await)) });
    let answer = receive(&answers, limit);
    task.abort();
    answer
}

/// Receives the next message of a task.
pub(crate) fn receive<T>(messages: &Receiver<T>, limit: Duration) -> Result<T, NoAnswer> {
    messages.recv_timeout(limit).map_err(|error| match error {
        RecvTimeoutError::Disconnected => NoAnswer::Broken,
        RecvTimeoutError::Timeout => NoAnswer::Late(limit),
    })
}

/// Retries with exponential backoff: counts failures, and waits about twice as long after each. Four attempts
/// at a request that always fails with a transient error take this course:
///
/// | failure | effect |
/// |---|---|
/// | 1 | a pause of 0.2 to 0.3 s |
/// | 2 | a pause of 0.4 to 0.6 s |
/// | 3 | a pause of 0.8 to 1.2 s |
/// | 4 | the error is returned |
pub struct Backoff {
    left: u32,
    pause: Duration,
}

impl Backoff {
    /// Makes the retries of a request that is made at most `attempts` times.
    pub fn new(attempts: u32) -> Self {
        Backoff { left: attempts, pause: FIRST_PAUSE }
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// `error`, if no attempt is left, or if another one could not succeed.
    pub fn wait_after(&mut self, error: Error) -> Result<(), Error> {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || is_final(&error) {
            return Err(error);
        }
        // A jitter of up to half the pause spreads the retries of requests that failed together.
        let jitter = RandomState::new().hash_one(self.left) % (self.pause.as_millis() as u64 / 2 + 1);
        thread::sleep(self.pause + Duration::from_millis(jitter));
        self.pause *= 2;
        Ok(())
    }
}

fn is_final(error: &Error) -> bool {
    match error {
        Error::Io { source, .. } => source.kind() == io::ErrorKind::IsADirectory,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_transient_failures_are_retried() {
        let error = |kind: io::ErrorKind| Error::io("x", "read", kind.into());
        let mut backoff = Backoff::new(3);
        assert!(backoff.wait_after(error(io::ErrorKind::TimedOut)).is_ok());
        assert!(backoff.wait_after(error(io::ErrorKind::NotFound)).is_err());
        assert!(backoff.wait_after(error(io::ErrorKind::TimedOut)).is_err());
    }
}
