//! Where bytes live: what a job asks of a file system.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A file system. Paths are absolute, with `/` between names, without scheme or host. Those of local files are text
/// in the sense of [`text_of_path`](crate::text_of_path).
pub trait Store: Send + Sync {
    /// What a path of this store begins with when a person reads it, such as `hdfs://host:8020`; empty for local files.
    fn prefix(&self) -> &str;
    /// Opens a file for reading.
    fn open(&self, path: &str) -> Result<Arc<dyn Blob>, Error>;
    /// What lies directly in a directory, in any order, without hidden names (`_x`, `.x`); of a file, the file alone. What
    /// this machine has beside files and directories, such as a FIFO, is listed as a file of no bytes.
    fn children(&self, path: &str) -> Result<Vec<Child>, Error>;
    /// Creates a file, and the directories above it. It is whole only after [`Output::finish`]; some stores show
    /// it before, so write where nobody looks and rename.
    fn create(&self, path: &str) -> Result<Box<dyn Output>, Error>;
    /// Creates a small file with `contents` if nothing is there, and says whether it did: of several who try at once
    /// one gets true. Who gets false may find its own `contents` there, if an earlier answer was lost.
    fn create_new(&self, path: &str, contents: &[u8]) -> Result<bool, Error>;
    /// Creates a directory and those above it; one that exists is fine.
    fn create_dir(&self, path: &str) -> Result<(), Error>;
    /// Whether a file or directory is there.
    fn exists(&self, path: &str) -> Result<bool, Error>;
    /// Removes a file, or a directory with all in it; nothing there is fine.
    fn remove(&self, path: &str) -> Result<(), Error>;
    /// Removes files; those that are not there are fine.
    fn remove_files(&self, paths: &[String]) -> Result<(), Error> {
        paths.iter().try_for_each(|path| self.remove(path))
    }
    /// Every file below a directory, those with hidden names (`_x`, `.x`) too, in any order. A directory that does not
    /// exist has none.
    fn everything(&self, path: &str) -> Result<Vec<Entry>, Error>;
    /// Those of [`Store::everything`] whose paths come after `after`, if it is given, and not after `until`, by their bytes.
    fn everything_between(
        &self,
        path: &str,
        after: Option<&str>,
        until: Option<&str>,
    ) -> Result<Vec<Entry>, Error> {
        let everything = self.everything(path)?.into_iter();
        Ok(everything.filter(|entry| is_between(&entry.path, after, until)).collect())
    }
    /// How finished files are shown to readers.
    fn showing(&self) -> Showing<'_>;

    /// Makes durable whatever was finished at or below `path`, which exists; for stores where finished files are not. One
    /// call for all: waiting for the disk after each of many small files takes most of the time.
    fn settle(&self, path: &str) -> Result<(), Error> {
        let _ = path;
        Ok(())
    }

    /// Every file at or below `path`, sorted by path. Hidden names (`_x`, `.x`) below `path` are left out.
    fn list(&self, path: &str) -> Result<Vec<Entry>, Error> {
        let mut files = Vec::new();
        let mut directories = vec![path.to_owned()];
        while let Some(directory) = directories.pop() {
            for child in self.children(&directory)? {
                if child.directory {
                    directories.push(child.path);
                } else {
                    files.push(Entry { path: child.path, bytes: child.bytes, version: child.version });
                }
            }
        }
        files.sort();
        Ok(files)
    }
}

/// How a store shows the finished files of a job to readers, all of them at nearly one moment.
pub enum Showing<'a> {
    /// The files are written aside and renamed, folder by folder.
    Rename(&'a dyn Rename),
    /// The files are uploaded to their final names, where nobody sees them until the uploads are completed.
    Uploads(&'a dyn Uploads),
}

/// A store that can rename: this machine's files and HDFS.
pub trait Rename {
    /// Moves a file or directory; `to` must not exist.
    fn rename(&self, from: &str, to: &str) -> Result<(), Error>;
    /// Removes a directory in which nothing lies. Anything else stays, and nothing there is fine.
    fn remove_empty(&self, path: &str) -> Result<(), Error>;
}

/// A store that keeps an upload until it is completed: object stores. There a rename would be a copy of every object.
pub trait Uploads: Sync {
    /// Begins the upload of a file. Nobody sees it before [`Uploads::complete`].
    fn begin(&self, path: &str) -> Result<Box<dyn UploadOutput>, Error>;
    /// Shows an uploaded file in one step, in place of one that has its name. False if the store does not know the upload
    /// any more: it was completed before, or given up; what the file holds tells which.
    fn complete(&self, upload: &Upload) -> Result<bool, Error>;
    /// Writes a small file in one step: where there is none, or in place of the one that has the tag `replaced`. One with
    /// these contents that is there already is fine.
    ///
    /// # Errors
    /// [`Error::Io`] when another file is there.
    fn write(&self, path: &str, contents: &[u8], replaced: Option<&str>) -> Result<(), Error>;
    /// Gives up an upload and the space that it takes. One that is completed, or not known any more, is fine.
    fn abort(&self, upload: &Upload) -> Result<(), Error>;
    /// The store's tag for the contents of a file, which differs when the file is replaced; `None` where there is no file.
    fn tag(&self, path: &str) -> Result<Option<String>, Error>;
}

/// An upload: what is needed to complete it, by this process or by another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Upload {
    /// The path at which the file will be seen.
    pub path: String,
    /// The name that the store gave to the upload.
    pub id: String,
    /// The store's names of the uploaded parts, in order. Empty until the upload is finished.
    pub parts: Vec<String>,
    /// The length of all parts together.
    pub bytes: u64,
}

/// A file that is being uploaded. Dropped without [`UploadOutput::finish`], the upload is given up.
pub trait UploadOutput: Write + Send {
    /// The upload as it was begun, without parts: enough to abort it.
    fn begun(&self) -> Upload;
    /// Sends the rest. The upload can then be completed.
    fn finish(self: Box<Self>) -> Result<Upload, Error>;
}

/// Whether names like this one are skipped where they were not asked for.
pub(crate) fn is_hidden(name: &[u8]) -> bool {
    matches!(name.first(), Some(b'_' | b'.'))
}

/// Whether readers of a folder skip the file with this path below it: a part of the path begins with `_` or `.`.
pub fn has_hidden_part(path: &str) -> bool {
    path.split('/').any(|part| is_hidden(part.as_bytes()))
}

/// Whether a path comes after `after`, if it is given, and not after `until`, by their bytes.
pub(crate) fn is_between(path: &str, after: Option<&str>, until: Option<&str>) -> bool {
    after.is_none_or(|after| path > after) && until.is_none_or(|until| path <= until)
}

/// Every file below a directory, of which `children` lists one level. A directory that does not exist has none.
pub(crate) fn everything(
    path: &str,
    children: impl Fn(&str) -> Result<Vec<Child>, Error>,
) -> Result<Vec<Entry>, Error> {
    let (mut files, mut directories) = (Vec::new(), vec![path.to_owned()]);
    while let Some(directory) = directories.pop() {
        let children = match children(&directory) {
            Err(Error::NotFound { .. }) => Vec::new(),
            children => children?,
        };
        for Child { path, bytes, version, directory } in children {
            match directory {
                true => directories.push(path),
                false => files.push(Entry { path, bytes, version }),
            }
        }
    }
    Ok(files)
}

/// The directory that holds an absolute path.
pub(crate) fn parent(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(slash) => &path[..slash],
    }
}

/// A file or directory in a directory of a [`Store`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    /// Absolute, as the store names it.
    pub path: String,
    /// Length in bytes; of a directory, nothing of use.
    pub bytes: u64,
    /// What the store says of its contents.
    pub version: Version,
    /// Whether it is a directory.
    pub directory: bool,
}

/// A file of a [`Store`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Absolute, as the store names it.
    pub path: String,
    /// Length in bytes.
    pub bytes: u64,
    /// As in [`Child`].
    pub version: Version,
}

/// What a store says of the contents of a file, and would not say of others that take their place. It is compared and
/// never understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// When the file was last written, in milliseconds since 1970, by the store's own clock; where it says so.
    pub modified: Option<u64>,
    /// A hash of what else tells it: of a local file the device, the number and the time to the nanosecond, of an object
    /// its ETag; nothing of a file of HDFS.
    pub tag: Option<u64>,
}

impl Version {
    /// Whether nothing says that the contents are others. Where both have a tag, it decides.
    pub fn agrees(&self, other: &Version) -> bool {
        let same = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a == b);
        same(self.tag, other.tag).or(same(self.modified, other.modified)).unwrap_or(true)
    }
}

/// An open file, read at any offset by any number of threads.
pub trait Blob: Send + Sync {
    /// The file's name for people: the store's prefix and the path.
    fn path(&self) -> &str;
    /// Length in bytes.
    fn bytes(&self) -> u64;
    /// What the store says of what was opened; a call where opening did not tell. What is not known is not compared.
    ///
    /// # Errors
    /// Those of the store.
    fn version(&self) -> Result<Version, Error> {
        Ok(Version::default())
    }
    /// Reads up to `buffer.len()` bytes; 0 only at or past the end.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error>;
    /// How much a sequential reader should ask for at once, in bytes.
    fn read_ahead_bytes(&self) -> usize;

    /// Fills `buffer` from `offset` on, as far as the file goes; returns how far.
    fn read_full_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read_at(offset + filled as u64, &mut buffer[filled..])? {
                0 => break,
                read => filled += read,
            }
        }
        Ok(filled)
    }
}

/// A file being written. Dropped without [`Output::finish`], it must not be taken for a whole one.
pub trait Output: Write + Send {
    /// Makes what was written visible; it is durable after [`Store::settle`].
    fn finish(self: Box<Self>) -> Result<(), Error>;
}

/// Why a store could not do what it was asked.
#[derive(Debug)]
pub enum Error {
    /// There is no such file or directory, or no file matches the pattern.
    NotFound {
        /// The path or pattern.
        path: String,
    },
    /// It is there and may not be read or written.
    Denied {
        /// The path.
        path: String,
    },
    /// The name cannot be used: an unknown scheme, a bad pattern.
    BadName {
        /// As it was given.
        name: String,
        /// Lower case, no full stop.
        reason: String,
    },
    /// The processes of the job could not meet, or one of them was lost or failed.
    Processes {
        /// The whole line: which process, and why.
        reason: String,
    },
    /// An input is not what it was when the job was planned, or when it was read before.
    Changed {
        /// The path, for people.
        path: String,
        /// Lower case, no full stop.
        reason: String,
    },
    /// Everything else.
    Io {
        /// The path.
        path: String,
        /// What was being done to it, such as `read` or `rename`.
        action: &'static str,
        /// The cause.
        source: io::Error,
    },
}

impl Error {
    /// Sorts an I/O error into the variants that callers treat differently.
    pub fn io(path: &str, action: &'static str, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Error::NotFound { path },
            io::ErrorKind::PermissionDenied => Error::Denied { path },
            _ => Error::Io { path, action, source },
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotFound { path } => write!(f, "\"{path}\" does not exist"),
            Error::Denied { path } => write!(f, "no permission for \"{path}\""),
            Error::BadName { name, reason } => write!(f, "cannot use \"{name}\": {reason}"),
            Error::Processes { reason } => f.write_str(reason),
            Error::Changed { path, reason } => {
                write!(
                    f,
                    "the input \"{path}\" changed while the job ran: {reason}; \
                     run the job again, and if it says so once more, remove OUTPUT/_temporary before"
                )
            }
            Error::Io { path, action, .. } => write!(f, "could not {action} \"{path}\""),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        io::Error::other(error)
    }
}

/// How much is read at a time where only the end of a record is wanted.
const TAIL_BYTES: u64 = 1 << 16;

/// Reads the bytes `start..end` of a blob one after the other, with the blob's read-ahead.
pub struct BlobReader {
    blob: Arc<dyn Blob>,
    offset: u64,
    end: u64,
    /// Up to here, reads are as long as the blob likes them.
    ahead: u64,
    buffer: Vec<u8>,
    used: usize,
}

impl BlobReader {
    /// `end` beyond the file's length means its end.
    pub fn new(blob: Arc<dyn Blob>, start: u64, end: u64) -> Self {
        let end = end.min(blob.bytes());
        BlobReader { blob, offset: start, end, ahead: end, buffer: Vec::new(), used: 0 }
    }

    /// Reads ahead no farther than `end`, where a piece ends of which only the last record goes on: after
    /// it come 64 KiB at a time.
    pub fn ahead_to(mut self, end: u64) -> Self {
        self.ahead = end;
        self
    }

    /// Offset in the blob of the next byte that will be read.
    pub fn offset(&self) -> u64 {
        self.offset - (self.buffer.len() - self.used) as u64
    }
}

impl io::BufRead for BlobReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.used == self.buffer.len() {
            let ahead = self.ahead.saturating_sub(self.offset).max(TAIL_BYTES);
            let most = ahead.min(self.blob.read_ahead_bytes() as u64);
            let want = self.end.saturating_sub(self.offset).min(most) as usize;
            self.buffer.resize(want, 0);
            self.used = want;
            let read = if want == 0 { 0 } else { self.blob.read_at(self.offset, &mut self.buffer)? };
            self.buffer.truncate(read);
            self.used = 0;
            self.offset += read as u64;
        }
        Ok(&self.buffer[self.used..])
    }

    fn consume(&mut self, bytes: usize) {
        self.used += bytes;
    }
}

impl Read for BlobReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = io::BufRead::fill_buf(self)?;
        let read = available.len().min(buffer.len());
        buffer[..read].copy_from_slice(&available[..read]);
        io::BufRead::consume(self, read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A megabyte of zeros that notes what is read of it.
    struct Noted(Mutex<Vec<(u64, usize)>>);

    impl Blob for Noted {
        fn path(&self) -> &str {
            ""
        }

        fn bytes(&self) -> u64 {
            1 << 20
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
            self.0.lock().unwrap().push((offset, buffer.len()));
            Ok(buffer.len())
        }

        fn read_ahead_bytes(&self) -> usize {
            1 << 19
        }
    }

    #[test]
    fn behind_the_end_of_a_piece_little_is_read_at_a_time() {
        let noted = Arc::new(Noted(Mutex::default()));
        let mut reader = BlobReader::new(noted.clone(), 100, u64::MAX).ahead_to(600_000);
        reader.read_exact(&mut vec![0; 700_000]).unwrap();
        let (one, two) = (100 + (1 << 19), 600_000);
        let expected = [(100, 1 << 19), (one, two - one as usize), (two as u64, 1 << 16), (665_536, 1 << 16)];
        assert_eq!(*noted.0.lock().unwrap(), expected);
    }
}
