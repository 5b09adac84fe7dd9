//! This room is the store of the file system of this machine; it uses nothing but `stores`. `blob.rs` reads files.

mod blob;

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use log::trace;
use tempfile::NamedTempFile;

use self::blob::{LocalBlob, version};
use super::error::Error;
use super::left_out::is_hidden;
use super::name::{path_of_text, text_of_path};
use super::store::{Blob, Entry, Output, Rename, Showing, Store, everything, last_name, parent};

/// Length of the buffer of a file that is being written, in bytes.
const WRITE_BYTES: usize = 1 << 17;
/// Number of characters of its name that a temporary file keeps. File systems allow 255 bytes in all.
const TEMPORARY_NAME_CHARS: usize = 50;
/// Number of links that lead to nothing, one to the other, from which on they are taken for a circle.
const LINKS: u32 = 40;

/// The file system of this machine.
///
/// Paths are text as in `stores/name.rs`, so that a name may have any bytes.
///
/// Symbolic links are followed, except links to a directory that contains the link.
#[derive(Debug, Default)]
pub struct Local;

impl Store for Local {
    fn prefix(&self) -> &str {
        ""
    }

    fn open(&self, path: &str) -> Result<Arc<dyn Blob>, Error> {
        Ok(Arc::new(LocalBlob::open(path, false)?))
    }

    fn open_settled(&self, path: &str) -> Result<Arc<dyn Blob>, Error> {
        Ok(Arc::new(LocalBlob::open(path, true)?))
    }

    fn children_and_hidden(&self, path: &str, hidden: &mut Vec<String>) -> Result<Vec<Entry>, Error> {
        children(path, Some(hidden))
    }

    fn create(&self, path: &str) -> Result<Box<dyn Output>, Error> {
        trace!(target: "create", "{path}");
        let file = temporary(path).map_err(|source| Error::io(path, "create", source))?;
        let file = BufWriter::with_capacity(WRITE_BYTES, file);
        Ok(Box::new(LocalOutput { path: path.to_owned(), file }))
    }

    fn create_new(&self, path: &str, contents: &[u8]) -> Result<bool, Error> {
        trace!(target: "create", "{path}");
        let create = || {
            let mut file = temporary(path)?;
            file.write_all(contents)?;
            match file.persist_noclobber(path_of_text(path)) {
                Err(failure) if failure.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                created => created.map(|_| true).map_err(|failure| failure.error),
            }
        };
        create().map_err(|source| Error::io(path, "create", source))
    }

    fn create_dir(&self, path: &str) -> Result<(), Error> {
        fs::create_dir_all(path_of_text(path)).map_err(|source| Error::io(path, "create", source))
    }

    fn exists(&self, path: &str) -> Result<bool, Error> {
        match fs::symlink_metadata(path_of_text(path)) {
            Ok(_) => Ok(true),
            Err(error) if is_absent(&error) => Ok(false),
            Err(error) => Err(Error::io(path, "look for", error)),
        }
    }

    /// Flushes the whole file system that holds `path`, because a flush for each file takes some
    /// milliseconds.
    fn settle(&self, path: &str) -> Result<(), Error> {
        trace!(target: "settle", "{path}");
        let settle = || Ok(rustix::fs::syncfs(File::open(path_of_text(path))?)?);
        settle().map_err(|source| Error::io(path, "write", source))
    }

    fn remove(&self, path: &str) -> Result<(), Error> {
        trace!(target: "remove", "{path}");
        let remove = || {
            let path = path_of_text(path);
            if !fs::symlink_metadata(&path)?.is_dir() {
                return fs::remove_file(path);
            }
            // A file that another process was about to make when the folder was renamed may still appear in it.
            match fs::remove_dir_all(&path) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => fs::remove_dir_all(path),
                removed => removed,
            }
        };
        match remove() {
            Err(error) if !is_absent(&error) => Err(Error::io(path, "remove", error)),
            _ => Ok(()),
        }
    }

    fn everything(&self, path: &str) -> Result<Vec<Entry>, Error> {
        everything(path, |directory| children(directory, None))
    }

    fn showing(&self) -> Showing<'_> {
        Showing::Rename(self)
    }
}

impl Rename for Local {
    fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        trace!(target: "rename", "{from}");
        if self.exists(to)? {
            return Err(Error::io(to, "rename to", io::ErrorKind::AlreadyExists.into()));
        }
        rename(from, to)
    }

    fn rename_over(&self, from: &str, to: &str) -> Result<(), Error> {
        trace!(target: "rename", "{from}");
        rename(from, to)
    }

    fn remove_empty(&self, path: &str) -> Result<(), Error> {
        trace!(target: "remove", "{path}");
        match fs::remove_dir(path_of_text(path)) {
            Err(error) if !is_absent(&error) && error.kind() != io::ErrorKind::DirectoryNotEmpty => {
                Err(Error::io(path, "remove", error))
            }
            _ => Ok(()),
        }
    }
}

/// Moves a file or directory, in the place of a file of the new name.
fn rename(from: &str, to: &str) -> Result<(), Error> {
    // If the old name exists, the directory of the new name is missing.
    fs::rename(path_of_text(from), path_of_text(to)).map_err(|source| {
        match fs::symlink_metadata(path_of_text(from)) {
            Ok(_) => Error::io(to, "rename to", source),
            _ => Error::io(from, "rename", source),
        }
    })
}

/// Lists the entries of one directory. `hidden`: the list to which the paths of hidden entries go; `None` if they are listed as
/// all others. For a file, lists the file alone.
fn children(path: &str, mut hidden: Option<&mut Vec<String>>) -> Result<Vec<Entry>, Error> {
    let failed = |source| Error::io(path, "list", source);
    let folder = path_of_text(path);
    let metadata = fs::metadata(&folder).map_err(failed)?;
    if !metadata.is_dir() {
        return Ok(vec![child(path.to_owned(), &metadata)]);
    }
    let mut children = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let found = entry.path();
        let name = text_of_path(found.as_os_str());
        if let Some(hidden) = hidden.as_mut().filter(|_| is_hidden(entry.file_name().as_bytes())) {
            hidden.push(name);
            continue;
        }
        // This error is never "not found", which patterns skip.
        let failed = |source| Error::Io { path: name.clone(), action: "list", source };
        let metadata = match fs::metadata(&found) {
            // The entry was removed after it was listed, or is a link to nothing, which is listed as a FIFO is.
            Err(error) if is_absent(&error) => {
                if hidden.is_some() && fs::symlink_metadata(&found).is_ok() {
                    children.push(Entry { path: name, ..Entry::default() });
                }
                continue;
            }
            metadata => metadata.map_err(failed)?,
        };
        let link = entry.file_type().map_err(failed)?.is_symlink();
        if metadata.is_dir() && link && leads_back(&found).map_err(failed)? {
            continue;
        }
        // Other kinds of entries, such as a FIFO, are listed for inputs, whose caller reports them. Outputs
        // have none.
        if hidden.is_some() || metadata.is_dir() || metadata.is_file() {
            children.push(child(name, &metadata));
        }
    }
    Ok(children)
}

fn child(path: String, metadata: &Metadata) -> Entry {
    Entry { path, bytes: metadata.len(), version: version(metadata), directory: metadata.is_dir() }
}

/// Returns the kind of what lies at a path, if it is neither a file nor a directory.
fn special(path: &str) -> Result<Option<&'static str>, Error> {
    let metadata = match fs::metadata(path_of_text(path)) {
        Err(error) if is_absent(&error) => return Ok(Some("a link to nothing")),
        metadata => metadata.map_err(|source| Error::io(path, "look for", source))?,
    };
    let kind = metadata.file_type();
    Ok(match () {
        () if kind.is_fifo() => Some("a FIFO and not a file"),
        () if kind.is_socket() => Some("a socket and not a file"),
        () if kind.is_block_device() || kind.is_char_device() => Some("a device and not a file"),
        () => None,
    })
}

/// Removes from `files` whatever is neither a file nor a directory, and returns the path and kind of each.
pub(crate) fn take_special(files: &mut Vec<Entry>) -> Result<BTreeMap<String, &'static str>, Error> {
    let mut taken = BTreeMap::new();
    // All of them have length 0.
    for file in files.iter().filter(|file| file.bytes == 0) {
        if let Some(kind) = special(&file.path)? {
            taken.insert(file.path.clone(), kind);
        }
    }
    files.retain(|file| !taken.contains_key(&file.path));
    Ok(taken)
}

/// Creates a hidden temporary file beside the final one, and the directories above it.
fn temporary(path: &str) -> io::Result<NamedTempFile> {
    let folder = path_of_text(parent(path));
    let name: String = last_name(path).chars().take(TEMPORARY_NAME_CHARS).collect();
    let create = || {
        tempfile::Builder::new()
            .prefix(&path_of_text(&format!(".{name}.tmp")))
            // The permissions are those of an ordinary new file, to which the umask applies; those of a
            // temporary file would be private.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(&folder)
    };
    let create_below = || fs::create_dir_all(&folder).and_then(|()| create());
    // The directory is there for most files. Another process may remove an empty one that was just created.
    match create() {
        Err(error) if is_absent(&error) => match create_below() {
            Err(error) if is_absent(&error) => create_below(),
            created => created,
        },
        created => created,
    }
}

/// Returns whether the error means that nothing is there. This includes paths below a file.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns whether a link leads to a directory that contains it, by whatever name that directory was reached.
///
/// # Errors
/// When the link or its target cannot be looked up.
pub fn leads_back(link: &Path) -> io::Result<bool> {
    let target = fs::canonicalize(link)?;
    for above in link.ancestors().skip(1) {
        if fs::canonicalize(above)? == target {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns a path with all links followed, as far as it exists.
pub fn real_path(path: &Path) -> PathBuf {
    follow(path, LINKS)
}

/// Follows the links of a path, of which up to `links` may lead to nothing.
fn follow(path: &Path, links: u32) -> PathBuf {
    for above in path.ancestors() {
        let rest = || path.strip_prefix(above).unwrap_or(path);
        if let Ok(real) = above.canonicalize() {
            return real.join(rest());
        }
        if let Ok(target) = fs::read_link(above)
            && links > 0
        {
            return follow(&above.parent().unwrap_or(above).join(target).join(rest()), links - 1);
        }
    }
    path.to_owned()
}

/// A hidden temporary file beside the final one. Dropping it removes the file.
struct LocalOutput {
    path: String,
    file: BufWriter<NamedTempFile>,
}

impl Write for LocalOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        trace!(target: "write", "{}", self.path);
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Output for LocalOutput {
    fn finish(self: Box<Self>) -> Result<(), Error> {
        self.finish_after(|_| Ok(()))
    }

    fn finish_durably(self: Box<Self>) -> Result<(), Error> {
        self.finish_after(File::sync_all)
    }
}

impl LocalOutput {
    /// Gives the file its name after `before`.
    fn finish_after(self, before: impl FnOnce(&File) -> io::Result<()>) -> Result<(), Error> {
        let LocalOutput { path, file } = self;
        trace!(target: "finish", "{path}");
        let finish = || {
            let file = file.into_inner().map_err(|error| error.into_error())?;
            before(file.as_file())?;
            file.persist(path_of_text(&path)).map_err(|error| error.error)?;
            Ok(())
        };
        finish().map_err(|source| Error::io(&path, "write", source))
    }
}

#[cfg(test)]
mod tests;
