//! The storage interface of a job: what it asks of a file system or an object store.

use std::io::{self, Read, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::error::Error;

/// A file system. Paths are absolute, with `/` between names, without scheme or host. Paths of local files
/// are text in the sense of [`text_of_path`](crate::text_of_path).
pub trait Store: Send + Sync {
    /// Returns the prefix of this store's paths in messages, such as `hdfs://host:8020`. It is empty for
    /// local files.
    fn prefix(&self) -> &str;
    /// Opens a file for reading.
    fn open(&self, path: &str) -> Result<Arc<dyn Blob>, Error>;
    /// Opens a file that nobody writes to any more, and whose checksums the caller compares, for many small reads. A store
    /// may look less often at whether it has changed.
    fn open_settled(&self, path: &str) -> Result<Arc<dyn Blob>, Error> {
        self.open(path)
    }
    /// Lists the entries of one directory, in any order, without hidden names (`_x`, `.x`). For a file, lists
    /// the file alone. Local entries that are neither file nor directory, such as a FIFO, are listed as files
    /// of 0 bytes.
    fn children(&self, path: &str) -> Result<Vec<Entry>, Error> {
        self.children_and_hidden(path, &mut Vec::new())
    }
    /// Does the same as [`Store::children`], and adds the paths of the hidden entries to `hidden`.
    fn children_and_hidden(&self, path: &str, hidden: &mut Vec<String>) -> Result<Vec<Entry>, Error>;
    /// Does the same as [`Store::children`], but a directory that does not exist has no entries.
    fn children_if_any(&self, path: &str) -> Result<Vec<Entry>, Error> {
        match self.children(path) {
            Err(Error::NotFound { .. }) => Ok(Vec::new()),
            children => children,
        }
    }
    /// Creates a file, and the directories above it. The file is whole only after [`Output::finish`]. Some
    /// stores show it before that, so callers write under a name that nobody reads and rename it afterwards.
    fn create(&self, path: &str) -> Result<Box<dyn Output>, Error>;
    /// Does what [`Store::create`] does, but nobody sees the file before [`Output::finish`], which puts it in the place of one
    /// of this name in one step. Until then readers see the earlier file, or none.
    ///
    /// Cost: on HDFS a rename; elsewhere that of [`Store::create`], which already does this.
    ///
    /// # Errors
    /// Those of [`Store::create`].
    fn replace(&self, path: &str) -> Result<Box<dyn Output>, Error> {
        self.create(path)
    }
    /// Creates a small file with `contents` if nothing has that name, and returns whether it did. Of several
    /// processes that try at once, one gets true. A process that gets false may find its own `contents`
    /// there, if the answer to an earlier attempt was lost.
    fn create_new(&self, path: &str, contents: &[u8]) -> Result<bool, Error>;
    /// Creates a directory and those above it. A directory that exists is no error.
    fn create_dir(&self, path: &str) -> Result<(), Error>;
    /// Returns whether a file or directory exists.
    fn exists(&self, path: &str) -> Result<bool, Error>;
    /// Removes a file, or a directory with everything in it. A missing file is no error.
    fn remove(&self, path: &str) -> Result<(), Error>;
    /// Removes files. Missing files are no error.
    fn remove_files(&self, paths: &[String]) -> Result<(), Error> {
        paths.iter().try_for_each(|path| self.remove(path))
    }
    /// Lists every file below a directory, including hidden names (`_x`, `.x`), in any order. A directory
    /// that does not exist has no files.
    fn everything(&self, path: &str) -> Result<Vec<Entry>, Error>;
    /// Lists the files of [`Store::everything`] with `after < path <= until`, compared as bytes.
    fn everything_between(
        &self,
        path: &str,
        after: Option<&str>,
        until: Option<&str>,
    ) -> Result<Vec<Entry>, Error> {
        let everything = self.everything(path)?.into_iter();
        Ok(everything.filter(|entry| is_between(&entry.path, after, until)).collect())
    }
    /// Returns how this store shows finished files to readers.
    fn showing(&self) -> Showing<'_>;

    /// Makes durable every finished file at or below `path`, which exists. Stores whose finished files are
    /// durable do nothing. One call covers all files, because a flush to disk after each of many small files
    /// takes most of the time.
    fn settle(&self, path: &str) -> Result<(), Error> {
        let _ = path;
        Ok(())
    }

    /// Lists every file at or below `path`, sorted by path. Hidden names (`_x`, `.x`) below `path` are left
    /// out.
    fn list(&self, path: &str) -> Result<Vec<Entry>, Error> {
        self.list_and_hidden(path, &mut Vec::new())
    }
    /// Does the same as [`Store::list`], and adds the paths of the hidden entries to `hidden`.
    fn list_and_hidden(&self, path: &str, hidden: &mut Vec<String>) -> Result<Vec<Entry>, Error> {
        let mut files = walk(path, |directory| self.children_and_hidden(directory, hidden))?;
        files.sort();
        Ok(files)
    }
}

/// Way in which a store shows the finished files of a job to readers, all of them at nearly one moment.
pub enum Showing<'a> {
    /// The files are written aside and renamed, folder by folder.
    Rename(&'a dyn Rename),
    /// The files are uploaded to their final names. Nobody sees them until the uploads are completed.
    Uploads(&'a dyn Uploads),
}

/// A store that can rename files: this machine's file system and HDFS.
pub trait Rename {
    /// Moves a file or directory. `to` must not exist.
    fn rename(&self, from: &str, to: &str) -> Result<(), Error>;
    /// Moves a file in the place of the one that `to` names, or to that name if nothing has it, in one step.
    fn rename_over(&self, from: &str, to: &str) -> Result<(), Error>;
    /// Removes a directory if it is empty. Anything else stays, and a missing directory is no error.
    fn remove_empty(&self, path: &str) -> Result<(), Error>;
}

/// A store that keeps an upload until it is completed: an object store. A rename would copy every object
/// there.
pub trait Uploads: Sync {
    /// Begins the upload of a file. Nobody sees it before [`Uploads::complete`].
    fn begin(&self, path: &str) -> Result<Box<dyn UploadOutput>, Error>;
    /// Completes an upload, which shows the file in one step and replaces a file of the same name. Returns
    /// false if the store no longer knows the upload, because it was completed or aborted before. The
    /// contents of the file tell which.
    fn complete(&self, upload: &Upload) -> Result<bool, Error>;
    /// Writes a small file in one step. Without `replaced`, no file of this name may exist; with it, the file
    /// must have that tag. A file that already has these contents is no error.
    ///
    /// # Errors
    /// [`Error::Io`] when a file with other contents is there.
    fn write(&self, path: &str, contents: &[u8], replaced: Option<&str>) -> Result<(), Error>;
    /// Aborts an upload and frees its space. An upload that is completed or no longer known is no error.
    fn abort(&self, upload: &Upload) -> Result<(), Error>;
    /// Returns the store's tag for the contents of a file, or `None` if there is no file. The tag changes
    /// when the file is replaced.
    fn tag(&self, path: &str) -> Result<Option<String>, Error>;
}

/// An upload, with what any process needs to complete it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Upload {
    /// Path at which the file will be seen.
    pub path: String,
    /// Name that the store gave to the upload.
    pub id: String,
    /// The store's names of the uploaded parts, in order. Empty until the upload is finished.
    pub parts: Vec<String>,
    /// Length of all parts together, in bytes.
    pub bytes: u64,
}

/// A file that is being uploaded. Dropping it without [`UploadOutput::finish`] aborts the upload.
pub trait UploadOutput: Write + Send {
    /// Returns the upload as it was begun, without parts. This is enough to abort it.
    fn begun(&self) -> Upload;
    /// Sends the rest of the file, so that the upload can be completed.
    fn finish(self: Box<Self>) -> Result<Upload, Error>;
}

/// Returns whether `after < path <= until`, compared as bytes. A missing bound holds always.
pub(crate) fn is_between(path: &str, after: Option<&str>, until: Option<&str>) -> bool {
    after.is_none_or(|after| path > after) && until.is_none_or(|until| path <= until)
}

/// Lists every file at or below a path, in any order; `children` lists one level.
pub(crate) fn walk(
    path: &str,
    mut children: impl FnMut(&str) -> Result<Vec<Entry>, Error>,
) -> Result<Vec<Entry>, Error> {
    let mut files = Vec::new();
    let mut directories = vec![path.to_owned()];
    while let Some(directory) = directories.pop() {
        for child in children(&directory)? {
            match child.directory {
                true => directories.push(child.path),
                false => files.push(child),
            }
        }
    }
    Ok(files)
}

/// Does the same as [`walk`], but a directory that does not exist has no files.
pub(crate) fn everything(
    path: &str,
    children: impl Fn(&str) -> Result<Vec<Entry>, Error>,
) -> Result<Vec<Entry>, Error> {
    walk(path, |directory| match children(directory) {
        Err(Error::NotFound { .. }) => Ok(Vec::new()),
        children => children,
    })
}

/// Returns the last part of a path.
pub(crate) fn last_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Returns the directory that holds an absolute path.
pub(crate) fn parent(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(slash) => &path[..slash],
    }
}

/// A file or directory of a [`Store`].
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Absolute path, as the store names it.
    pub path: String,
    /// Length in bytes. It has no meaning for a directory.
    pub bytes: u64,
    /// The store's version of the contents.
    pub version: Version,
    /// Whether it is a directory.
    pub directory: bool,
}

impl Entry {
    /// Returns the last name of the path.
    pub fn name(&self) -> &str {
        last_name(&self.path)
    }
}

/// Version of a file's contents, as the store reports it. Other contents that take their place have another
/// version. Versions are compared and never interpreted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Time of the last write, in milliseconds since 1970 by the store's own clock, if the store reports one.
    pub modified: Option<u64>,
    /// Hash of what else identifies the contents. For a local file it covers device, inode number and
    /// modification time in nanoseconds; for an object its ETag. HDFS has no tag.
    pub tag: Option<u64>,
}

impl Version {
    /// Returns whether nothing shows that the contents differ. Where both versions have a tag, the tag
    /// decides.
    pub fn agrees(&self, other: &Version) -> bool {
        let same = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a == b);
        same(self.tag, other.tag).or(same(self.modified, other.modified)).unwrap_or(true)
    }
}

/// An open file, which any number of threads read at any offset.
pub trait Blob: Send + Sync {
    /// Returns the name of the file for messages: the store's prefix and the path.
    fn path(&self) -> &str;
    /// Returns the length in bytes.
    fn bytes(&self) -> u64;
    /// Returns the version of the contents that were opened. This costs a request where opening did not tell.
    /// Unknown fields are not compared.
    ///
    /// # Errors
    /// Those of the store.
    fn version(&self) -> Result<Version, Error> {
        Ok(Version::default())
    }
    /// Reads up to `buffer.len()` bytes. Returns 0 only at or past the end of the file, or for an empty
    /// buffer.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error>;
    /// Fills `buffer` from `offset` on and returns true if that takes no waiting. Returns false if it would, or if the
    /// read fails; the store has then begun to fetch these bytes, if it can, so that a later read waits less. A store that
    /// has nothing at hand does nothing.
    fn read_at_hand(&self, _offset: u64, _buffer: &mut [u8]) -> bool {
        false
    }
    /// Returns how many bytes a sequential reader should request at once.
    fn read_ahead_bytes(&self) -> usize;

    /// Fills `buffer` from `offset` on, up to the end of the file, and returns the number of bytes read.
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

/// A file being written. A file that is dropped without [`Output::finish`] must not be taken for a whole one.
pub trait Output: Write + Send {
    /// Makes the written file visible. It is durable after [`Store::settle`].
    fn finish(self: Box<Self>) -> Result<(), Error>;
    /// Does what [`Output::finish`] does, but the contents are durable before the file has its name. So a file that takes
    /// the place of another one is whole, or still the other one, if the power goes before [`Store::settle`].
    fn finish_durably(self: Box<Self>) -> Result<(), Error> {
        self.finish()
    }
}

/// Number of bytes requested at once where only the end of a record is wanted.
const TAIL_BYTES: u64 = 1 << 16;

/// Sequential reader of the bytes `start..end` of a blob, with the blob's read-ahead.
pub struct BlobReader {
    blob: Arc<dyn Blob>,
    offset: u64,
    end: u64,
    /// Offset up to which requests are as long as the blob prefers.
    ahead: u64,
    buffer: Vec<u8>,
    used: usize,
}

impl BlobReader {
    /// Creates a reader of `start..end`. An `end` beyond the file's length means the end of the file.
    pub fn new(blob: Arc<dyn Blob>, start: u64, end: u64) -> Self {
        let end = end.min(blob.bytes());
        BlobReader { blob, offset: start, end, ahead: end, buffer: Vec::new(), used: 0 }
    }

    /// Limits read-ahead to `end`. A piece of a file ends there and only its last record continues behind it,
    /// so behind `end` the reader requests 64 KiB at a time.
    pub fn ahead_to(mut self, end: u64) -> Self {
        self.ahead = end;
        self
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

    use parking_lot::Mutex;

    use super::*;

    /// A megabyte of zeros that records which ranges are read.
    struct Noted(Mutex<Vec<(u64, usize)>>);

    impl Blob for Noted {
        fn path(&self) -> &str {
            ""
        }

        fn bytes(&self) -> u64 {
            1 << 20
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
            self.0.lock().push((offset, buffer.len()));
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
        let one = 100 + (1 << 19);
        let two = 600_000;
        let expected = [(100, 1 << 19), (one, two - one as usize), (two as u64, 1 << 16), (665_536, 1 << 16)];
        assert_eq!(*noted.0.lock(), expected);
    }
}
