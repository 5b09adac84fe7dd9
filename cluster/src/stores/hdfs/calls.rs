//! Calls of the name node: each has a deadline, and is retried where that can do no harm.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use hdfs_native::{Client, ClientBuilder, HdfsError};
use parking_lot::Mutex;
use tokio::runtime::{self, Runtime};

use super::failure::HdfsFailure;
use super::limits::HdfsLimits;
use crate::stores::error::Error;
use crate::stores::remote;
use crate::stores::remote::{Backoff, NoAnswer};

/// Port of a name node that is given as a host alone, as in Hadoop.
const DEFAULT_PORT: u16 = 8020;

/// State that a store, its open files and its files being written share.
pub(super) struct Calls {
    pub prefix: String,
    pub limits: HdfsLimits,
    pub runtime: Runtime,
    settings: Vec<(String, String)>,
    /// Whether a name node missed a deadline. Among several name nodes it is then perhaps not the one to ask
    /// first.
    was_late: AtomicBool,
    /// The client. `None` after a missed deadline, because its connection may be the one that hangs.
    client: Mutex<Option<Client>>,
}

impl Calls {
    pub fn new(prefix: &str, limits: HdfsLimits, settings: &[(&str, &str)]) -> Result<Self, Error> {
        let prefix = prefix.to_owned();
        let runtime = remote::runtime("hdfs")?;
        let settings = settings.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        let was_late = AtomicBool::new(false);
        Ok(Calls { prefix, limits, runtime, settings, was_late, client: Mutex::new(None) })
    }

    /// Returns a path as messages show it.
    pub fn name(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    pub fn client(&self) -> Result<Client, HdfsFailure> {
        if let Some(client) = self.client.lock().as_ref() {
            return Ok(client.clone());
        }
        let prefix = self.prefix.clone();
        let handle = self.runtime.handle().clone();
        let mut settings = self.settings.clone();
        let data_node_ms = self.limits.data_node.as_millis().max(1).to_string();
        settings.push(("dfs.client.socket-timeout".to_owned(), data_node_ms));
        if self.was_late.load(Ordering::Relaxed) {
            let service = prefix.rsplit('/').next().unwrap_or_default();
            settings.push((format!("dfs.client.failover.random.order.{service}"), "true".to_owned()));
        }
        // This runs in a task, because it may panic and looks up hosts.
        let client = self.wait(self.limits.call, async move { build(&prefix, &handle, settings) })?;
        Ok(self.client.lock().insert(client).clone())
    }

    /// Runs `work` in a task of its own, for at most `limit`.
    pub fn wait<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl Future<Output = hdfs_native::Result<T>> + Send + 'static,
    ) -> Result<T, HdfsFailure> {
        log::trace!(target: "request", "{}", self.prefix);
        self.heard(remote::wait(&self.runtime, limit, work))
    }

    /// Receives the library's next message.
    pub fn receive<T>(
        &self,
        messages: &Receiver<hdfs_native::Result<T>>,
        limit: Duration,
    ) -> Result<T, HdfsFailure> {
        self.heard(remote::receive(messages, limit))
    }

    /// Passes on an answer. After a missed deadline, drops the client so that the next call makes a new one.
    fn heard<T>(&self, answer: Result<hdfs_native::Result<T>, NoAnswer>) -> Result<T, HdfsFailure> {
        if let Err(NoAnswer::Late(_)) = answer {
            self.was_late.store(true, Ordering::Relaxed);
            *self.client.lock() = None;
        }
        answer?.map_err(HdfsFailure::Library)
    }

    /// Makes a call, and repeats it after each failure that may be retried by `again`.
    fn repeat<T: Send + 'static, F>(
        &self,
        path: &str,
        again: impl Fn(&HdfsFailure) -> bool,
        work: impl Fn(Client, String) -> F,
    ) -> Result<T, HdfsFailure>
    where
        F: Future<Output = hdfs_native::Result<T>> + Send + 'static,
    {
        let mut backoff = Backoff::new(self.limits.attempts);
        loop {
            let client = self.client();
            match client.and_then(|client| self.wait(self.limits.call, work(client, path.to_owned()))) {
                Err(failure) if again(&failure) => {
                    backoff.wait_after(failure.error(path, "ask for")).map_err(|_| failure)?;
                }
                answer => return answer,
            }
        }
    }

    /// Makes a call that changes something. The call is repeated only where the failure shows that nothing
    /// was changed: a name node that wakes up after the deadline may still execute the first call, and must
    /// not undo what was done since.
    pub fn tell<T: Send + 'static, F>(
        &self,
        path: &str,
        work: impl Fn(Client, String) -> F,
    ) -> Result<T, HdfsFailure>
    where
        F: Future<Output = hdfs_native::Result<T>> + Send + 'static,
    {
        self.repeat(path, HdfsFailure::changed_nothing, work)
    }

    /// Makes a call that can be repeated safely, because it changes nothing or nothing more the second time.
    /// A failed call is retried.
    pub fn ask<T: Send + 'static, F>(
        &self,
        path: &str,
        action: &'static str,
        work: impl Fn(Client, String) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = hdfs_native::Result<T>> + Send + 'static,
    {
        self.repeat(path, |_| true, work).map_err(|failure| failure.error(&self.name(path), action))
    }
}

/// Creates a client with the settings of `HADOOP_CONF_DIR`, overridden by `settings`.
fn build(
    prefix: &str,
    handle: &runtime::Handle,
    settings: Vec<(String, String)>,
) -> hdfs_native::Result<Client> {
    // A single name node has no other to turn to. Without this setting, a wrong port is noticed only after
    // minutes.
    let single = ("dfs.client.failover.max.attempts".to_owned(), "1".to_owned());
    let builder = |url: &str, more: Option<(String, String)>| {
        let settings = settings.iter().cloned().chain(more);
        let builder = ClientBuilder::new().with_io_runtime(handle.clone()).with_config(settings);
        if url.ends_with("//") { builder } else { builder.with_url(url) }
    };
    let authority = prefix.rsplit('/').next().unwrap_or_default();
    if authority.contains(':') {
        return builder(prefix, Some(single)).build();
    }
    match builder(prefix, None).build() {
        // The authority is neither a name service of the settings nor has a port.
        Err(HdfsError::InvalidArgument(_)) if !authority.is_empty() && prefix.starts_with("hdfs:") => {
            builder(&format!("{prefix}:{DEFAULT_PORT}"), Some(single)).build()
        }
        client => client,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::{future, io};

    use super::*;

    /// Returns the calls of a name node that does not exist.
    fn calls() -> Calls {
        let limits = HdfsLimits { attempts: 3, ..HdfsLimits::default() };
        Calls::new("hdfs://127.0.0.1:1", limits, &[]).unwrap()
    }

    #[test]
    fn a_panic_of_the_library_is_an_error() {
        let answer = calls().wait(Duration::from_secs(60), async { panic!("as a malformed packet does") });
        assert!(matches!(answer, Err::<(), _>(HdfsFailure::Silent(NoAnswer::Broken))));
    }

    #[test]
    fn a_late_answer_is_an_error_and_ends_the_client() {
        let calls = calls();
        calls.client().unwrap();
        let late = || calls.wait(Duration::from_millis(20), future::pending::<hdfs_native::Result<()>>());
        assert!(calls.client.lock().is_some());
        assert!(matches!(late(), Err(HdfsFailure::Silent(NoAnswer::Late(_)))));
        assert!(calls.client.lock().is_none());
        assert!(calls.client().is_ok());
    }

    #[test]
    fn a_change_is_asked_for_again_only_when_it_was_certainly_not_made() {
        let calls = calls();
        let asked = |failure: fn() -> HdfsError| {
            let count = AtomicU32::new(0);
            let told = calls.tell("/x", |_, _| {
                count.fetch_add(1, Ordering::Relaxed);
                async move { Err::<(), _>(failure()) }
            });
            assert!(told.is_err());
            count.into_inner()
        };
        assert_eq!(asked(|| HdfsError::RPCError("org.x.SafeModeException".into(), "wait".into())), 3);
        assert_eq!(asked(|| io::Error::from(io::ErrorKind::ConnectionRefused).into()), 3);
        assert_eq!(asked(|| io::Error::from(io::ErrorKind::ConnectionAborted).into()), 1);
        assert_eq!(asked(|| HdfsError::RPCError("java.io.IOException".into(), "no".into())), 1);
    }
}
