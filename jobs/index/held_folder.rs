//! Keeps a process that changes an index to the folder that it has locked.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use cluster::{Blob, Entry, Error, Output, Rename, Showing, Store, path_of_text};

use runtime::cli::exit::Locked;

/// The lock of the folder of an index, which ends with its process.
pub(super) struct FolderLock {
    path: String,
    file: File,
}

impl FolderLock {
    /// Takes the lock of the index at `path`. `wait`: how long to wait for the process that is changing it.
    ///
    /// # Errors
    /// [`Locked`] when another process is changing the index; those of the disk.
    pub fn take(path: &str, wait: Duration) -> Result<Arc<Self>> {
        let open = File::options().create(true).truncate(false).write(true).open(file_of(path));
        let open = open.with_context(|| format!("could not open \"{path}/lock\""))?;
        let start = Instant::now();
        loop {
            match open.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => {
                    return Err(error).context(format!("could not lock \"{path}\""));
                }
                Err(TryLockError::WouldBlock) if start.elapsed() >= wait => {
                    bail!(Locked(format!("another process is changing the index \"{path}\"")))
                }
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(50)),
            }
        }
        let lock = FolderLock { path: path.to_owned(), file: open };
        // The folder may have been renamed since the lock was opened.
        lock.check()?;
        Ok(Arc::new(lock))
    }

    /// Returns an error if the index at the path is not the one that is locked.
    ///
    /// The lock is open, so no other file has its device and inode. It is another file, or none, once the folder was
    /// renamed, removed or unmounted, and once somebody has removed the lock, so that another process may have it.
    pub fn check(&self) -> Result<(), Error> {
        let failed = |source| Error::Io { path: self.path.clone(), action: "change", source };
        let open = self.file.metadata().map_err(failed)?;
        match fs::metadata(file_of(&self.path)) {
            Ok(found) if (found.dev(), found.ino()) == (open.dev(), open.ino()) => Ok(()),
            _ => Err(failed(io::Error::other(
                "the folder was moved, removed or replaced, or its lock was, while the index was open",
            ))),
        }
    }
}

fn file_of(path: &str) -> PathBuf {
    Path::new(&path_of_text(path)).join("lock")
}

/// The store of a locked index. Before each change, and after each look, it compares the folder at the path with the one
/// that is locked:
///
/// ```text
/// serve seen         the lock is inode 7
/// mv seen old        "seen/lock" is missing: nothing is written any more
/// mv new seen        "seen/lock" is inode 9, or missing
/// ```
///
/// So a folder that has taken the name of the index is neither changed nor read. Cost: two calls of the system for each
/// file that is opened, created, renamed or removed. Writes and reads of an open file stay in their folder without it.
pub(super) struct HeldFolder {
    pub store: Arc<dyn Store>,
    pub lock: Arc<FolderLock>,
}

impl HeldFolder {
    /// Makes a change if the folder is the one that is locked.
    fn change<T>(&self, change: impl FnOnce(&dyn Store) -> Result<T, Error>) -> Result<T, Error> {
        self.lock.check()?;
        change(self.store.as_ref())
    }

    /// Makes a change of a store that can rename files if the folder is the one that is locked.
    fn by_rename(&self, change: impl FnOnce(&dyn Rename) -> Result<(), Error>) -> Result<(), Error> {
        self.change(|store| match store.showing() {
            Showing::Rename(renames) => change(renames),
            Showing::Uploads(_) => {
                Err(Error::io(&self.lock.path, "rename a file of", io::ErrorKind::Unsupported.into()))
            }
        })
    }

    /// Begins a file if the folder is the one that is locked.
    fn output(
        &self,
        begin: impl FnOnce(&dyn Store) -> Result<Box<dyn Output>, Error>,
    ) -> Result<Box<dyn Output>, Error> {
        let output = self.change(begin)?;
        Ok(Box::new(HeldOutput { output, lock: Arc::clone(&self.lock) }))
    }

    /// Returns what was seen if the folder is the one that is locked.
    fn look<T>(&self, look: impl FnOnce(&dyn Store) -> Result<T, Error>) -> Result<T, Error> {
        let seen = look(self.store.as_ref());
        self.lock.check()?;
        seen
    }
}

impl Store for HeldFolder {
    fn prefix(&self) -> &str {
        self.store.prefix()
    }

    fn open(&self, path: &str) -> Result<Arc<dyn Blob>, Error> {
        self.look(|store| store.open(path))
    }

    fn open_settled(&self, path: &str) -> Result<Arc<dyn Blob>, Error> {
        self.look(|store| store.open_settled(path))
    }

    fn children_and_hidden(&self, path: &str, hidden: &mut Vec<String>) -> Result<Vec<Entry>, Error> {
        self.look(|store| store.children_and_hidden(path, hidden))
    }

    fn create(&self, path: &str) -> Result<Box<dyn Output>, Error> {
        self.output(|store| store.create(path))
    }

    fn replace(&self, path: &str) -> Result<Box<dyn Output>, Error> {
        self.output(|store| store.replace(path))
    }

    fn create_new(&self, path: &str, contents: &[u8]) -> Result<bool, Error> {
        self.change(|store| store.create_new(path, contents))
    }

    fn create_dir(&self, path: &str) -> Result<(), Error> {
        self.change(|store| store.create_dir(path))
    }

    fn exists(&self, path: &str) -> Result<bool, Error> {
        self.look(|store| store.exists(path))
    }

    fn remove(&self, path: &str) -> Result<(), Error> {
        self.change(|store| store.remove(path))
    }

    fn everything(&self, path: &str) -> Result<Vec<Entry>, Error> {
        self.look(|store| store.everything(path))
    }

    /// Files are durable where they were written, so the folder is looked at afterwards.
    fn settle(&self, path: &str) -> Result<(), Error> {
        self.look(|store| store.settle(path))
    }

    fn showing(&self) -> Showing<'_> {
        match self.store.showing() {
            Showing::Rename(_) => Showing::Rename(self),
            uploads => uploads,
        }
    }
}

impl Rename for HeldFolder {
    fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        self.by_rename(|renames| renames.rename(from, to))
    }

    fn rename_over(&self, from: &str, to: &str) -> Result<(), Error> {
        self.by_rename(|renames| renames.rename_over(from, to))
    }

    fn remove_empty(&self, path: &str) -> Result<(), Error> {
        self.by_rename(|renames| renames.remove_empty(path))
    }
}

/// A file of a locked index that is being written.
struct HeldOutput {
    output: Box<dyn Output>,
    lock: Arc<FolderLock>,
}

impl Write for HeldOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

impl Output for HeldOutput {
    fn finish(self: Box<Self>) -> Result<(), Error> {
        self.lock.check()?;
        self.output.finish()
    }

    fn finish_durably(self: Box<Self>) -> Result<(), Error> {
        self.lock.check()?;
        self.output.finish_durably()
    }
}
