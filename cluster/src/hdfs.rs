//! Files in HDFS.
//!
//! The client library may hang for ever (a frozen name node), panic (a malformed packet), or give up
//! though a good copy exists: so each call has a deadline (`remote.rs`), and a late one is given up together with
//! its client.

use std::future::Future;
use std::io::{self, Write};
use std::pin::pin;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use hdfs_native::file::{FileReader, FileWriter};
use hdfs_native::{Client, ClientBuilder, HdfsError, WriteOptions};
use tokio::runtime::{self, Runtime};

use crate::failure::Failure;
use crate::remote::{self, Patience, Silence};
use crate::store::{Blob, Child, Error, Output, Store, is_hidden};

/// The most that is asked of the library at once, in bytes; what has arrived of it waits in memory.
const RANGE_BYTES: usize = 8 << 20;
const WRITE_BYTES: usize = 1 << 20;
/// How long the library waits for a data node before it turns to another one that holds the block.
const DATA_NODE_WAIT_MS: &str = "10000";
/// Where Hadoop looks for a name node when it is told only the host.
const DEFAULT_PORT: u16 = 8020;
const DROP_WAIT: Duration = Duration::from_secs(5);

/// How long HDFS may take before it counts as failed.
#[derive(Clone, Copy, Debug)]
pub struct HdfsLimits {
    /// For an answer of the name node, and for writing a megabyte or closing a file.
    pub call: Duration,
    /// For the next bytes of a read; longer than a data node or two may stall.
    pub item: Duration,
    /// For one attempt at reading up to 8 MiB.
    pub range: Duration,
    /// How many attempts at reading 8 MiB, or at a call that changes nothing, may fail before the read
    /// or call does. With `range` this is the least rate: 8 MiB in `attempts * range`.
    pub attempts: u32,
}

impl Default for HdfsLimits {
    fn default() -> Self {
        HdfsLimits {
            call: Duration::from_secs(60),
            item: Duration::from_secs(30),
            range: Duration::from_secs(60),
            attempts: 4,
        }
    }
}

/// One HDFS. Settings come from the folder that `HADOOP_CONF_DIR` names.
///
/// Names without a temporary twin: a file being written is there at once, empty or not, so write where
/// nobody looks and rename.
pub struct Hdfs {
    shared: Arc<Shared>,
}

impl Hdfs {
    /// `prefix`: such as `hdfs://host:8020`, `hdfs://nameservice`, or `hdfs://` for the name node in
    /// `fs.defaultFS`. Connects to nothing yet.
    ///
    /// # Errors
    /// [`Error::BadName`] when the settings do not lead to a name node.
    pub fn new(prefix: &str, limits: HdfsLimits) -> Result<Self, Error> {
        let (prefix, runtime) = (prefix.to_owned(), remote::runtime("hdfs")?);
        let shared = Shared { prefix, limits, runtime, client: Mutex::new(None) };
        shared.client().map_err(|failure| {
            let reason = match failure {
                Failure::Library(HdfsError::InvalidArgument(_)) if shared.prefix.ends_with("//") => {
                    "it names no host, and HADOOP_CONF_DIR leads to no fs.defaultFS".to_owned()
                }
                failure => failure.to_string(),
            };
            Error::BadName { name: shared.prefix.clone(), reason }
        })?;
        Ok(Hdfs { shared: Arc::new(shared) })
    }
}

impl Store for Hdfs {
    fn prefix(&self) -> &str {
        &self.shared.prefix
    }

    fn open(&self, path: &str) -> Result<Arc<dyn Blob>, Error> {
        let reader = self.shared.ask(path, "open", |client, path| async move { client.read(&path).await })?;
        Ok(Arc::new(HdfsBlob {
            path: self.shared.name(path),
            file: path.to_owned(),
            bytes: reader.file_length() as u64,
            reader: Mutex::new(Some(Arc::new(reader))),
            shared: self.shared.clone(),
        }))
    }

    fn children(&self, path: &str) -> Result<Vec<Child>, Error> {
        let list = |client: Client, path: String| async move { client.list_status(&path, false).await };
        let children = self.shared.ask(path, "list", list)?.into_iter();
        let child = |status: hdfs_native::client::FileStatus| Child {
            bytes: status.length as u64,
            directory: status.isdir,
            path: status.path,
        };
        let seen = |child: &Child| {
            let name = child.path.rsplit('/').next().unwrap_or_default();
            child.path == path || !is_hidden(name.as_bytes())
        };
        Ok(children.map(child).filter(seen).collect())
    }

    fn create(&self, path: &str) -> Result<Box<dyn Output>, Error> {
        let create = |client: Client, path: String| async move {
            client.create(&path, WriteOptions::default().overwrite(true)).await
        };
        let writer = self.shared.tell(path, "create", create)?;
        Ok(Box::new(HdfsOutput {
            path: path.to_owned(),
            buffer: Vec::new(),
            writer: Some(writer),
            finished: false,
            shared: self.shared.clone(),
        }))
    }

    fn create_dir(&self, path: &str) -> Result<(), Error> {
        self.shared.tell(
            path,
            "create",
            |client, path| async move { client.mkdirs(&path, 0o755, true).await },
        )
    }

    fn exists(&self, path: &str) -> Result<bool, Error> {
        let look = |client: Client, path: String| async move { client.get_file_info(&path).await };
        match self.shared.ask(path, "look for", look) {
            Ok(_) => Ok(true),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        let to = to.to_owned();
        let rename = |client: Client, from: String| async move { client.rename(&from, &to, false).await };
        self.shared.tell(from, "rename", rename)
    }

    fn remove(&self, path: &str) -> Result<(), Error> {
        let remove = |client: Client, path: String| async move { client.delete(&path, true).await };
        self.shared.tell(path, "remove", remove).map(|_existed| ())
    }
}

/// What a store, its open files and its files being written have in common.
struct Shared {
    prefix: String,
    limits: HdfsLimits,
    runtime: Runtime,
    /// `None` after a deadline has passed: its connection may be the one that hangs.
    client: Mutex<Option<Client>>,
}

impl Shared {
    fn name(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    fn client(&self) -> Result<Client, Failure> {
        if let Some(client) = lock(&self.client).as_ref() {
            return Ok(client.clone());
        }
        let (prefix, handle) = (self.prefix.clone(), self.runtime.handle().clone());
        // In a task, for it may panic, and look up hosts.
        let client = self.wait(self.limits.call, async move { build(&prefix, &handle) })?;
        Ok(lock(&self.client).insert(client).clone())
    }

    /// Runs `work` in a task of its own, for at most `limit`.
    fn wait<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl Future<Output = hdfs_native::Result<T>> + Send + 'static,
    ) -> Result<T, Failure> {
        self.heard(remote::wait(&self.runtime, limit, work))
    }

    /// The library's next message, or why there is none.
    fn receive<T>(&self, messages: &Receiver<hdfs_native::Result<T>>, limit: Duration) -> Result<T, Failure> {
        self.heard(remote::receive(messages, limit))
    }

    /// A client that was late once is not asked again.
    fn heard<T>(&self, answer: Result<hdfs_native::Result<T>, Silence>) -> Result<T, Failure> {
        if let Err(Silence::Late(_)) = answer {
            *lock(&self.client) = None;
        }
        answer?.map_err(Failure::Library)
    }

    /// A call that may change something, and so is made once. A name node that wakes up after the deadline may
    /// still do it.
    fn tell<T: Send + 'static, F>(
        &self,
        path: &str,
        action: &'static str,
        work: impl FnOnce(Client, String) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = hdfs_native::Result<T>> + Send + 'static,
    {
        let answer =
            self.client().and_then(|client| self.wait(self.limits.call, work(client, path.to_owned())));
        answer.map_err(|failure| failure.at(&self.name(path), action))
    }

    /// A call that changes nothing, and so is made again when it fails.
    fn ask<T: Send + 'static, F>(
        &self,
        path: &str,
        action: &'static str,
        work: impl Fn(Client, String) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = hdfs_native::Result<T>> + Send + 'static,
    {
        let mut patience = Patience::new(self.limits.attempts);
        loop {
            match self.tell(path, action, &work) {
                Ok(answer) => return Ok(answer),
                Err(error) => patience.spend(error)?,
            }
        }
    }
}

fn build(prefix: &str, handle: &runtime::Handle) -> hdfs_native::Result<Client> {
    let builder = |url: &str| {
        let builder = ClientBuilder::new().with_io_runtime(handle.clone());
        if url.ends_with("//") { builder } else { builder.with_url(url) }
    };
    let wait = ("dfs.client.socket-timeout", DATA_NODE_WAIT_MS);
    // A single name node has no other to turn to; without this a wrong port takes minutes to be noticed.
    let single = [wait, ("dfs.client.failover.max.attempts", "1")];
    let authority = prefix.rsplit('/').next().unwrap_or_default();
    if authority.contains(':') {
        return builder(prefix).with_config(single).build();
    }
    match builder(prefix).with_config([wait]).build() {
        // Neither a name service of the settings nor with a port of its own.
        Err(HdfsError::InvalidArgument(_)) if !authority.is_empty() => {
            builder(&format!("{prefix}:{DEFAULT_PORT}")).with_config(single).build()
        }
        client => client,
    }
}

/// A thread that panicked while it held one of our locks left nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct HdfsBlob {
    /// For people.
    path: String,
    /// For the store.
    file: String,
    bytes: u64,
    /// Holds the places of all blocks. `None` after a failure: it also holds which data nodes it believes
    /// dead, and never takes that back.
    reader: Mutex<Option<Arc<FileReader>>>,
    shared: Arc<Shared>,
}

impl HdfsBlob {
    fn reader(&self) -> Result<Arc<FileReader>, Error> {
        let known = lock(&self.reader).clone();
        if let Some(reader) = known {
            return Ok(reader);
        }
        let open = |client: Client, path: String| async move { client.read(&path).await };
        let reader = Arc::new(self.shared.tell(&self.file, "read", open)?);
        if reader.file_length() as u64 != self.bytes {
            let source = io::Error::new(io::ErrorKind::InvalidData, "its length changed while it was read");
            return Err(Error::io(&self.path, "read", source));
        }
        *lock(&self.reader) = Some(reader.clone());
        Ok(reader)
    }

    /// Reads on from `offset + *filled`, which it moves, until `buffer` is full. It must lie in the file.
    fn attempt(&self, offset: u64, buffer: &mut [u8], filled: &mut usize) -> Result<(), Error> {
        let reader = self.reader()?;
        let (start, length) = (offset as usize + *filled, buffer.len() - *filled);
        let (sender, items) = mpsc::channel();
        let task = self.shared.runtime.spawn(async move {
            let mut stream = pin!(reader.read_range_stream(start, length));
            while let Some(item) = stream.next().await {
                if sender.send(item).is_err() {
                    return;
                }
            }
        });
        let read = self.fill(&items, buffer, filled);
        task.abort();
        read.map_err(|failure| failure.at(&self.path, "read"))
    }

    fn fill(
        &self,
        items: &Receiver<hdfs_native::Result<Bytes>>,
        buffer: &mut [u8],
        filled: &mut usize,
    ) -> Result<(), Failure> {
        let end = Instant::now() + self.shared.limits.range;
        while *filled < buffer.len() {
            let limit = self.shared.limits.item.min(end.saturating_duration_since(Instant::now()));
            let item = self.shared.receive(items, limit)?;
            // More than was asked for: the library's fault, and no reason to panic.
            let place = buffer.get_mut(*filled..*filled + item.len()).ok_or(Failure::Broken)?;
            place.copy_from_slice(&item);
            *filled += item.len();
        }
        Ok(())
    }
}

impl Blob for HdfsBlob {
    fn path(&self) -> &str {
        &self.path
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let left = self.bytes.saturating_sub(offset).min(RANGE_BYTES as u64) as usize;
        let wanted = left.min(buffer.len());
        let buffer = &mut buffer[..wanted];
        let mut filled = 0;
        let mut patience = Patience::new(self.shared.limits.attempts);
        while filled < wanted {
            if let Err(error) = self.attempt(offset, buffer, &mut filled) {
                *lock(&self.reader) = None;
                patience.spend(error)?;
            }
        }
        Ok(wanted)
    }

    fn read_ahead_bytes(&self) -> usize {
        RANGE_BYTES
    }
}

struct HdfsOutput {
    path: String,
    buffer: Vec<u8>,
    /// `None` once a write has failed.
    writer: Option<FileWriter>,
    finished: bool,
    shared: Arc<Shared>,
}

impl HdfsOutput {
    /// Hands what is in the buffer to the library.
    fn send(&mut self) -> Result<(), Error> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let bytes = Bytes::from(std::mem::take(&mut self.buffer));
        self.with_writer(|mut writer| async move { writer.write_bytes(bytes).await.map(|_| writer) })
    }

    fn with_writer<F>(&mut self, work: impl FnOnce(FileWriter) -> F) -> Result<(), Error>
    where
        F: Future<Output = hdfs_native::Result<FileWriter>> + Send + 'static,
    {
        let writer = self.writer.take().ok_or(Failure::Broken);
        let written = writer.and_then(|writer| self.shared.wait(self.shared.limits.call, work(writer)));
        self.writer = Some(written.map_err(|failure| failure.at(&self.shared.name(&self.path), "write"))?);
        Ok(())
    }
}

impl Write for HdfsOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= WRITE_BYTES {
            self.send()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(self.send()?)
    }
}

impl Output for HdfsOutput {
    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        self.send()?;
        self.with_writer(|mut writer| async move { writer.close().await.map(|()| writer) })?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for HdfsOutput {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        self.writer = None;
        if let Ok(client) = self.shared.client() {
            let path = self.path.clone();
            // Best effort: what is left behind lies under a temporary name.
            drop(self.shared.wait(DROP_WAIT, async move { client.delete(&path, false).await }));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future;

    use super::*;

    /// Of a name node that is not there.
    fn shared() -> Arc<Shared> {
        let limits = HdfsLimits { attempts: 2, ..HdfsLimits::default() };
        Hdfs::new("hdfs://127.0.0.1:1", limits).unwrap().shared
    }

    #[test]
    fn a_panic_of_the_library_is_an_error() {
        let answer = shared().wait(Duration::from_secs(60), async { panic!("as a malformed packet does") });
        assert!(matches!(answer, Err::<(), _>(Failure::Broken)));
    }

    #[test]
    fn a_late_answer_is_an_error_and_ends_the_client() {
        let shared = shared();
        let late = || shared.wait(Duration::from_millis(20), future::pending::<hdfs_native::Result<()>>());
        assert!(lock(&shared.client).is_some());
        assert!(matches!(late(), Err(Failure::Late(_))));
        assert!(lock(&shared.client).is_none());
        assert!(shared.client().is_ok());
    }

    #[test]
    fn what_was_delivered_before_a_failure_is_kept_and_no_more_than_asked_for_is_taken() {
        let (path, file) = (String::new(), String::new());
        let blob = HdfsBlob { path, file, bytes: 9, reader: Mutex::new(None), shared: shared() };
        let read = |items: &[&'static [u8]], filled: &mut usize| {
            let (sender, receiver) = mpsc::channel();
            items.iter().for_each(|item| sender.send(Ok(Bytes::from_static(item))).unwrap());
            drop(sender);
            let mut buffer = [0; 9];
            (blob.fill(&receiver, &mut buffer, filled).is_ok(), buffer)
        };
        let mut filled = 0;
        assert_eq!(read(&[b"012", b"34"], &mut filled), (false, *b"01234\0\0\0\0"));
        assert_eq!(filled, 5);
        assert_eq!(read(&[b"5", b"678"], &mut filled), (true, *b"\0\0\0\0\x005678"));
        let mut filled = 5;
        assert!(!read(&[b"56789"], &mut filled).0);
    }

    #[test]
    fn a_closed_port_is_noticed_in_seconds() {
        let start = Instant::now();
        let error = Hdfs { shared: shared() }.open("/x").err().unwrap();
        assert!(matches!(error, Error::Io { .. }) && start.elapsed() < Duration::from_secs(20), "{error:?}");
    }
}
