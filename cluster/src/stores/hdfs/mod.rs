//! Files in HDFS.
//!
//! The client library may hang for ever (a frozen name node), panic (a malformed packet), or give up although
//! a good copy exists. So each call has a deadline (`stores/remote.rs`), and a call that misses it is given up
//! together with its client.

mod blob;
mod calls;
mod failure;
mod limits;
mod output;
mod rename;

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::sync::Arc;

use hdfs_native::client::FileStatus;
use hdfs_native::{Client, HdfsError, WriteOptions};
use xxhash_rust::xxh3::xxh3_64;

use self::blob::HdfsBlob;
use self::calls::Calls;
use self::failure::HdfsFailure;
pub use self::limits::HdfsLimits;
use self::output::HdfsOutput;
use self::rename::rename;
use super::error::Error;
use super::left_out::is_hidden;
use super::store::{Blob, Entry, Output, Rename, Showing, Store, Version, everything};

/// Returns the one spelling of an HDFS authority. Letters of host names have no case, and a name may end with
/// the dot of the DNS root. An authority without a port is a name service, which is spelled as in the
/// settings. Other names of the same host are not recognised.
pub(crate) fn one_spelling(authority: &str) -> String {
    match authority.split_once(':') {
        Some((host, port)) => format!("{}:{port}", host.strip_suffix('.').unwrap_or(host).to_lowercase()),
        None => authority.to_owned(),
    }
}

/// One HDFS. Its settings come from the folder that `HADOOP_CONF_DIR` names.
///
/// A file being written is visible at once, empty or partial, under its own name. So callers write under a
/// name that nobody reads and rename it afterwards.
pub struct Hdfs {
    calls: Arc<Calls>,
}

impl Hdfs {
    /// Creates a client and connects to nothing.
    ///
    /// `prefix`: such as `hdfs://host:8020`, `hdfs://nameservice`, `viewfs://cluster`, or `hdfs://` for the
    /// name node in `fs.defaultFS`.
    ///
    /// # Errors
    /// [`Error::BadName`] when the settings do not lead to a name node.
    pub fn new(prefix: &str, limits: HdfsLimits) -> Result<Self, Error> {
        Self::with_settings(prefix, limits, &[])
    }

    /// Does the same as [`Hdfs::new`], with Hadoop's `settings` (name and value) on top of those of
    /// `HADOOP_CONF_DIR`.
    ///
    /// # Errors
    /// Those of [`Hdfs::new`].
    pub fn with_settings(prefix: &str, limits: HdfsLimits, settings: &[(&str, &str)]) -> Result<Self, Error> {
        let calls = Calls::new(prefix, limits, settings)?;
        calls.client().map_err(|failure| {
            let reason = match failure {
                HdfsFailure::Library(HdfsError::InvalidArgument(_)) if prefix.ends_with("//") => {
                    "it names no host, and HADOOP_CONF_DIR leads to no fs.defaultFS".to_owned()
                }
                failure => failure.to_string(),
            };
            Error::BadName { name: prefix.to_owned(), reason }
        })?;
        Ok(Hdfs { calls: Arc::new(calls) })
    }
}

impl Store for Hdfs {
    fn prefix(&self) -> &str {
        &self.calls.prefix
    }

    fn open(&self, path: &str) -> Result<Arc<dyn Blob>, Error> {
        Ok(Arc::new(HdfsBlob::open(&self.calls, path)?))
    }

    fn children_and_hidden(&self, path: &str, hidden: &mut Vec<String>) -> Result<Vec<Entry>, Error> {
        let mut children = self.all_children(path)?;
        let unseen = |child: &mut Entry| child.path != path && is_hidden(child.name().as_bytes());
        hidden.extend(children.extract_if(.., unseen).map(|child| child.path));
        Ok(children)
    }

    fn create(&self, path: &str) -> Result<Box<dyn Output>, Error> {
        Ok(Box::new(self.output(path)?))
    }

    /// Writes under a hidden name beside it, which a process that dies leaves behind.
    fn replace(&self, path: &str) -> Result<Box<dyn Output>, Error> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let temporary = format!("{folder}/.{name}.{:016x}", RandomState::new().hash_one(path));
        Ok(Box::new(self.output(&temporary)?.renamed_to(path)))
    }

    fn create_new(&self, path: &str, contents: &[u8]) -> Result<bool, Error> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let temporary = format!("{folder}/.{name}.{:016x}", xxh3_64(contents));
        let mut output = self.create(&temporary)?;
        let written = output.write_all(contents);
        written.map_err(|source| Error::io(&self.calls.name(path), "create", source))?;
        output.finish()?;
        // A rename does not replace an existing file: the name node refuses.
        match self.rename(&temporary, path) {
            Ok(()) => Ok(true),
            Err(error) => {
                self.remove(&temporary)?;
                if self.exists(path)? { Ok(false) } else { Err(error) }
            }
        }
    }

    fn create_dir(&self, path: &str) -> Result<(), Error> {
        let create = |client: Client, path: String| async move { client.mkdirs(&path, 0o755, true).await };
        self.calls.ask(path, "create", create)
    }

    fn exists(&self, path: &str) -> Result<bool, Error> {
        let look = |client: Client, path: String| async move { client.get_file_info(&path).await };
        match self.calls.ask(path, "look for", look) {
            Ok(_) => Ok(true),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn remove(&self, path: &str) -> Result<(), Error> {
        let remove = |client: Client, path: String| async move { client.delete(&path, true).await };
        let removed = self.calls.tell(path, remove).map(|_existed| ());
        removed.map_err(|failure| failure.error(&self.calls.name(path), "remove"))
    }

    fn everything(&self, path: &str) -> Result<Vec<Entry>, Error> {
        everything(path, |directory| self.all_children(directory))
    }

    fn showing(&self) -> Showing<'_> {
        Showing::Rename(self)
    }
}

impl Rename for Hdfs {
    fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        rename(&self.calls, from, to, false)
    }

    fn rename_over(&self, from: &str, to: &str) -> Result<(), Error> {
        rename(&self.calls, from, to, true)
    }

    fn remove_empty(&self, path: &str) -> Result<(), Error> {
        let remove = |client: Client, path: String| async move { client.delete(&path, false).await };
        match self.calls.tell(path, remove).map_err(|failure| failure.error(&self.calls.name(path), "remove"))
        {
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            removed => removed.map(|_existed| ()),
        }
    }
}

impl Hdfs {
    fn output(&self, path: &str) -> Result<HdfsOutput, Error> {
        let create = |client: Client, path: String| async move {
            client.create(&path, WriteOptions::default().overwrite(true)).await
        };
        let writer = self.calls.tell(path, create);
        let writer = writer.map_err(|failure| failure.error(&self.calls.name(path), "create"))?;
        Ok(HdfsOutput::new(&self.calls, path, writer))
    }

    /// Lists the entries of one directory, including hidden names.
    fn all_children(&self, path: &str) -> Result<Vec<Entry>, Error> {
        let list = |client: Client, path: String| async move { client.list_status(&path, false).await };
        let child = |status: FileStatus| Entry {
            bytes: status.length as u64,
            version: Version { modified: Some(status.modification_time), tag: None },
            directory: status.isdir,
            path: status.path,
        };
        Ok(self.calls.ask(path, "list", list)?.into_iter().map(child).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_closed_port_is_noticed_in_seconds() {
        let start = Instant::now();
        let limits = HdfsLimits { attempts: 2, ..HdfsLimits::default() };
        let error = Hdfs::new("hdfs://127.0.0.1:1", limits).unwrap().open("/x").err().unwrap();
        assert!(matches!(error, Error::Io { .. }) && start.elapsed().as_secs() < 20, "{error:?}");
    }
}
