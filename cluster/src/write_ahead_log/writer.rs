//! Appends to a log.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use log::trace;
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};

use super::reader::{LogContents, TornTail, read_log, text};
use super::record_group::{self, HEADER_BYTES, MAGIC, file_name};
use crate::Error;

/// Number of bytes of a file from which on another one is begun.
const FILE_BYTES: u64 = 1 << 26;
/// Largest number of bytes of the records of a group.
const GROUP_BYTES: usize = 1 << 30;

/// The one writer of a log. Its owner keeps other writers away by a lock.
///
/// ```text
/// append a, append b, commit      one write and one sync: record 0 is a, record 1 is b
/// append c, crash                 c is gone, and nobody was told that it is durable
/// ```
///
/// After a failed write or sync nobody knows what the disk holds. The writer then cuts off what it has tried to write, so
/// that records which were refused do not come back, and refuses everything until the log is opened again.
///
/// The folder may be renamed or removed while the log is open. The writer goes on in the folder that it has opened, and never
/// in another one that has taken its name. A commit fails if its records are durable, but not in a file that is found
/// by the path of the log.
///
/// Memory: the records of a group.
pub struct LogWriter {
    folder: PathBuf,
    /// The folder itself, whatever name it has.
    opened_folder: File,
    /// Each file with the number of its first record.
    files: Vec<(PathBuf, u64)>,
    /// The last of them.
    file: File,
    file_bytes: u64,
    next: u64,
    group: Vec<u8>,
    group_first: u64,
    failed: bool,
    /// Returns an error if the log is no longer that of its owner.
    check_owner: Box<dyn Fn() -> Result<(), Error> + Send>,
    /// Makes the bytes of a file durable. Tests replace it.
    pub(super) sync: fn(&File) -> io::Result<()>,
}

impl LogWriter {
    /// Makes an empty log in `folder`, with a file.
    ///
    /// # Errors
    /// [`Error::Io`], also when the log exists.
    pub fn create(folder: &Path) -> Result<(), Error> {
        fs::create_dir_all(folder).map_err(|source| Error::io(&text(folder), "create", source))?;
        create_file(folder, &open_folder(folder)?, 0).map(|_| ())
    }

    /// Opens the log in `folder`. Gives the records from number `from` on to `each`, and cuts off a torn group, which is
    /// returned.
    ///
    /// # Errors
    /// Those of [`read_log`].
    pub fn open<E: From<Error>>(
        folder: &Path,
        from: u64,
        each: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(Self, Option<TornTail>), E> {
        let opened_folder = open_folder(folder)?;
        let LogContents { next, torn, files, last_bytes } = read_log(folder, from, each)?;
        let path = files.last().map(|(path, _)| path.clone()).unwrap_or_default();
        let failed = |source| Error::io(&text(&path), "write", source);
        let mut file = OpenOptions::new().append(true).open(&path).map_err(failed)?;
        let mut file_bytes = last_bytes;
        if torn.is_some() || last_bytes == 0 {
            file.set_len(last_bytes).map_err(failed)?;
            if last_bytes == 0 {
                file.write_all(MAGIC).map_err(failed)?;
                file_bytes = MAGIC.len() as u64;
            }
            file.sync_data().map_err(failed)?;
        }
        let mut group = Vec::new();
        record_group::begin(&mut group);
        let writer = LogWriter {
            folder: folder.to_owned(),
            opened_folder,
            files,
            file,
            file_bytes,
            next,
            group,
            group_first: next,
            failed: false,
            check_owner: Box::new(|| Ok(())),
            sync: File::sync_data,
        };
        Ok((writer, torn))
    }

    /// Calls `check` before and after each write from now on. If `check` fails, so does the write. So a log that its owner
    /// has lost takes no more records.
    pub fn set_owner_check(&mut self, check: impl Fn() -> Result<(), Error> + Send + 'static) {
        self.check_owner = Box::new(check);
    }

    /// Returns the number that the next record gets.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Returns the number of the first record in the last `files` files.
    pub fn first_of_last(&self, files: usize) -> u64 {
        self.files[self.files.len().saturating_sub(files)..].first().map_or(self.next, |(_, first)| *first)
    }

    /// Adds a record to the group of the next commit, and returns its number.
    ///
    /// # Errors
    /// [`Error::Io`] when an earlier commit has failed, and when the records of the group are more than 1 GiB.
    pub fn append(&mut self, record: &[u8]) -> Result<u64, Error> {
        self.check_whole()?;
        if self.group.len() + record.len() > GROUP_BYTES {
            let source = io::Error::other("the records of one commit are more than 1 GiB");
            return Err(Error::io(&text(&self.folder), "write", source));
        }
        record_group::push(&mut self.group, record);
        self.next += 1;
        Ok(self.next - 1)
    }

    /// Makes all records durable that were appended. Costs one write and one sync, or nothing without new records.
    ///
    /// # Errors
    /// [`Error::Io`] now and at every later call, also when the log is no longer found by its path.
    pub fn commit(&mut self) -> Result<(), Error> {
        self.check_whole()?;
        if self.group.len() == HEADER_BYTES {
            return Ok(());
        }
        let written = self.write_group();
        if written.is_err() {
            self.failed = true;
            // Another owner may have written behind what is known here.
            if (self.check_owner)().is_ok() {
                // It is a try, since the disk has failed already. A group that is torn is passed over by readers anyway.
                let _ = self.file.set_len(self.file_bytes).and_then(|()| self.file.sync_data());
            }
        }
        written
    }

    /// Begins another file, so that all earlier ones can be removed. A file without records goes on.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn begin_file(&mut self) -> Result<(), Error> {
        self.check_whole()?;
        let has_records = self.files.last().is_some_and(|(_, first)| *first < self.group_first);
        if has_records { self.next_file() } else { Ok(()) }
    }

    fn next_file(&mut self) -> Result<(), Error> {
        self.check_place()?;
        let (path, file) = create_file(&self.folder, &self.opened_folder, self.group_first)?;
        (self.file, self.file_bytes) = (file, MAGIC.len() as u64);
        self.files.push((path, self.group_first));
        Ok(())
    }

    /// Removes the files all of whose records have numbers less than `from`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove_before(&mut self, from: u64) -> Result<(), Error> {
        // The last file stays, since its name tells the number of the next record.
        let gone = self.files.iter().skip(1).take_while(|(_, first)| *first <= from).count();
        for (path, first) in self.files.drain(..gone) {
            let removed = unlinkat(&self.opened_folder, file_name(first), AtFlags::empty());
            removed.map_err(|source| Error::io(&text(&path), "remove", source.into()))?;
        }
        Ok(())
    }

    fn write_group(&mut self) -> Result<(), Error> {
        self.check_place()?;
        record_group::seal(&mut self.group, self.group_first);
        if self.file_bytes >= FILE_BYTES {
            self.next_file()?;
        }
        let path = self.files.last().map(|(path, _)| text(path)).unwrap_or_default();
        trace!(target: "write", "{path}");
        self.file.write_all(&self.group).map_err(|source| Error::io(&path, "write", source))?;
        trace!(target: "sync", "{path}");
        (self.sync)(&self.file).map_err(|source| Error::io(&path, "sync", source))?;
        trace!(target: "synced", "{path}");
        self.check_place()?;
        self.file_bytes += self.group.len() as u64;
        self.group_first = self.next;
        record_group::begin(&mut self.group);
        Ok(())
    }

    /// Returns an error if the log has another owner, or if the path of the last file names another file or none. An inode has
    /// no second file as long as it is open, so device and inode tell.
    fn check_place(&self) -> Result<(), Error> {
        (self.check_owner)()?;
        let path = self.files.last().map(|(path, _)| path.clone()).unwrap_or_default();
        let open = self.file.metadata().map_err(|source| Error::io(&text(&path), "look for", source))?;
        match fs::metadata(&path) {
            Ok(found) if (found.dev(), found.ino()) == (open.dev(), open.ino()) => Ok(()),
            _ => {
                let reason = "the log was moved, removed or replaced while it was open";
                Err(Error::Io { path: text(&path), action: "write", source: io::Error::other(reason) })
            }
        }
    }

    fn check_whole(&self) -> Result<(), Error> {
        if self.failed {
            let source = io::Error::other("an earlier write has failed, so the log must be opened again");
            return Err(Error::io(&text(&self.folder), "write", source));
        }
        Ok(())
    }
}

fn open_folder(folder: &Path) -> Result<File, Error> {
    File::open(folder).map_err(|source| Error::io(&text(folder), "open", source))
}

/// Makes the file of a log that begins with record `first`, and makes it durable.
fn create_file(folder: &Path, opened_folder: &File, first: u64) -> Result<(PathBuf, File), Error> {
    let name = file_name(first);
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC;
    let create = || {
        let mut file = File::from(openat(opened_folder, &name, flags, Mode::from_raw_mode(0o666))?);
        file.write_all(MAGIC)?;
        file.sync_data()?;
        opened_folder.sync_all()?;
        Ok(file)
    };
    let path = folder.join(name.as_str());
    let file = create().map_err(|source| Error::io(&text(&path), "create", source))?;
    Ok((path, file))
}
