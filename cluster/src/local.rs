//! Files of this machine.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use log::trace;
use tempfile::NamedTempFile;
use xxhash_rust::xxh3::xxh3_64;

use crate::name::{path_of_text, text_of_path};
use crate::store::{
    Blob, Child, Entry, Error, Output, Rename, Showing, Store, Version, everything, is_hidden, parent,
};

const READ_AHEAD_BYTES: usize = 1 << 20;
const WRITE_BYTES: usize = 1 << 17;
/// How much of its name a file keeps while it is temporary: file systems allow 255 bytes in all.
const TEMPORARY_NAME_CHARS: usize = 50;

/// The file system of this machine.
///
/// Paths are text as in `name.rs`, so that a name may have any bytes.
///
/// Links are followed, those to a directory only where that does not lead back to where one came from.
#[derive(Debug, Default)]
pub struct Local;

impl Store for Local {
    fn prefix(&self) -> &str {
        ""
    }

    fn open(&self, path: &str) -> Result<Arc<dyn Blob>, Error> {
        let open = || {
            let file = path_of_text(path);
            // Before opening: a pipe would wait for its other end.
            let metadata = fs::metadata(&file)?;
            if metadata.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            if !metadata.is_file() {
                return Err(io::Error::other("it is not a regular file"));
            }
            let file = File::open(file)?;
            let metadata = file.metadata()?;
            Ok(LocalBlob { path: path.to_owned(), bytes: metadata.len(), version: version(&metadata), file })
        };
        let blob = open().map_err(|source| Error::io(path, "open", source))?;
        Ok(Arc::new(blob))
    }

    fn children(&self, path: &str) -> Result<Vec<Child>, Error> {
        children(path, false)
    }

    fn create(&self, path: &str) -> Result<Box<dyn Output>, Error> {
        trace!(target: "create", "{path}");
        let file = temporary(path).map_err(|source| Error::io(path, "create", source))?;
        let file = BufWriter::with_capacity(WRITE_BYTES, file);
        Ok(Box::new(LocalOutput { path: path.to_owned(), file }))
    }

    fn create_new(&self, path: &str, contents: &[u8]) -> Result<bool, Error> {
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

    /// Of the whole file system that it lies on: a flush for each file takes some milliseconds.
    fn settle(&self, path: &str) -> Result<(), Error> {
        trace!(target: "settle", "{path}");
        let settle = || Ok(rustix::fs::syncfs(File::open(path_of_text(path))?)?);
        settle().map_err(|source| Error::io(path, "write", source))
    }

    fn remove(&self, path: &str) -> Result<(), Error> {
        trace!(target: "remove", "{path}");
        let remove = || {
            let path = path_of_text(path);
            if fs::symlink_metadata(&path)?.is_dir() {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            }
        };
        match remove() {
            Err(error) if !is_absent(&error) => Err(Error::io(path, "remove", error)),
            _ => Ok(()),
        }
    }

    fn everything(&self, path: &str) -> Result<Vec<Entry>, Error> {
        everything(path, |directory| children(directory, true))
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
        // It is the new name's directory that is missing when the old name is there.
        fs::rename(path_of_text(from), path_of_text(to)).map_err(|source| match self.exists(from) {
            Ok(true) => Error::io(to, "rename to", source),
            _ => Error::io(from, "rename", source),
        })
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

/// What lies directly in a directory, with hidden names if they are asked for; of a file, the file alone.
fn children(path: &str, hidden: bool) -> Result<Vec<Child>, Error> {
    let failed = |source| Error::io(path, "list", source);
    let folder = path_of_text(path);
    let metadata = fs::metadata(&folder).map_err(failed)?;
    if !metadata.is_dir() {
        return Ok(vec![child(path.to_owned(), &metadata)]);
    }
    let mut children = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !hidden && is_hidden(entry.file_name().as_bytes()) {
            continue;
        }
        let found = entry.path();
        let name = text_of_path(found.as_os_str());
        // Never "not found", which patterns pass over: a link to nothing is input that is lost.
        let failed = |source| Error::Io { path: name.clone(), action: "list", source };
        let metadata = match fs::metadata(&found) {
            // It was removed after it was listed, as if it had been before. A link to nothing is still there.
            Err(error)
                if is_absent(&error)
                    && fs::symlink_metadata(&found).is_err_and(|error| is_absent(&error)) =>
            {
                continue;
            }
            metadata => metadata.map_err(failed)?,
        };
        let link = entry.file_type().map_err(failed)?.is_symlink();
        if metadata.is_dir() && link && leads_back(&found).map_err(failed)? {
            continue;
        }
        // What is no file is for whoever asks for inputs to speak of, and nothing that an output has.
        if !hidden || metadata.is_dir() || metadata.is_file() {
            children.push(child(name, &metadata));
        }
    }
    Ok(children)
}

fn child(path: String, metadata: &Metadata) -> Child {
    Child { path, bytes: metadata.len(), version: version(metadata), directory: metadata.is_dir() }
}

/// What lies at a path, if it is neither a file nor a directory.
pub(crate) fn special(path: &str) -> Result<Option<&'static str>, Error> {
    let metadata = fs::metadata(path_of_text(path)).map_err(|source| Error::io(path, "look for", source))?;
    let kind = metadata.file_type();
    Ok(match () {
        () if kind.is_fifo() => Some("a FIFO"),
        () if kind.is_socket() => Some("a socket"),
        () if kind.is_block_device() || kind.is_char_device() => Some("a device"),
        () => None,
    })
}

/// Without the time of the last change (ctime), which a chmod or a backup by hard links also moves: where a time was set
/// back, what was read tells (`checked.rs`).
fn version(metadata: &Metadata) -> Version {
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let numbers = [metadata.dev(), metadata.ino(), metadata.mtime() as u64, metadata.mtime_nsec() as u64];
    Version {
        modified: modified.map(|since| since.as_millis() as u64),
        tag: Some(xxh3_64(&numbers.map(u64::to_le_bytes).concat())),
    }
}

/// A hidden file beside the one that it will be, and the directories above it.
fn temporary(path: &str) -> io::Result<NamedTempFile> {
    let folder = path_of_text(parent(path));
    let name = path.rsplit('/').next().unwrap_or_default();
    let name: String = name.chars().take(TEMPORARY_NAME_CHARS).collect();
    let create = || {
        fs::create_dir_all(&folder)?;
        tempfile::Builder::new()
            .prefix(&path_of_text(&format!(".{name}.tmp")))
            // As any other new file, and not private as temporary files are: the umask still applies.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(&folder)
    };
    // Another process may remove an empty directory that this one wants to use.
    match create() {
        Err(error) if is_absent(&error) => create(),
        created => created,
    }
}

/// Below a file there is nothing either.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Whether the link names a directory that it lies in, by whatever names one came there.
fn leads_back(link: &Path) -> io::Result<bool> {
    let target = fs::canonicalize(link)?;
    for above in link.ancestors().skip(1) {
        if fs::canonicalize(above)? == target {
            return Ok(true);
        }
    }
    Ok(false)
}

struct LocalBlob {
    path: String,
    file: File,
    bytes: u64,
    version: Version,
}

impl Blob for LocalBlob {
    fn path(&self) -> &str {
        &self.path
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn version(&self) -> Result<Version, Error> {
        Ok(self.version)
    }

    /// Looks at the file after each reading: what was written to it meanwhile is part of what it was not.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let wanted = self.bytes.saturating_sub(offset).min(buffer.len() as u64) as usize;
        if wanted == 0 {
            return Ok(0); // the system refuses offsets past 2^63
        }
        let read = loop {
            match self.file.read_at(&mut buffer[..wanted], offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A file cut short under our hands must not pass for one that ends there.
                Ok(0) => break Err(io::ErrorKind::UnexpectedEof.into()),
                read => break read,
            }
        };
        let failed = |source| Error::io(&self.path, "read", source);
        let now = self.file.metadata().map_err(failed)?;
        if now.len() != self.bytes || version(&now) != self.version {
            let reason = "it was written to while it was open".to_owned();
            return Err(Error::Changed { path: self.path.clone(), reason });
        }
        read.map_err(failed)
    }

    fn read_ahead_bytes(&self) -> usize {
        READ_AHEAD_BYTES
    }
}

/// A hidden file beside the one it will be; it is removed when dropped.
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
        let LocalOutput { path, file } = *self;
        trace!(target: "finish", "{path}");
        let finish = || {
            let file = file.into_inner().map_err(|error| error.into_error())?;
            file.persist(path_of_text(&path)).map_err(|error| error.error)?;
            Ok(())
        };
        finish().map_err(|source| Error::io(&path, "write", source))
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    fn folder() -> (TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap().to_owned();
        (folder, path)
    }

    fn write(path: &str, text: &str) {
        let mut output = Local.create(path).unwrap();
        output.write_all(text.as_bytes()).unwrap();
        output.finish().unwrap();
    }

    fn listed(path: &str) -> Vec<String> {
        let entries = Local.list(path).unwrap();
        entries.iter().map(|entry| entry.path[path.len()..].to_owned()).collect()
    }

    #[test]
    fn a_file_is_seen_only_when_it_is_finished() {
        let (_guard, folder) = folder();
        let path = format!("{folder}/a/b/part");
        let mut output = Local.create(&path).unwrap();
        output.write_all(&[7; 1 << 18]).unwrap();
        assert!(!Local.exists(&path).unwrap());
        assert_eq!(listed(&folder), [""; 0]);
        output.finish().unwrap();
        assert_eq!(Local.list(&folder).unwrap()[0].bytes, 1 << 18);
        assert_eq!(fs::read_dir(format!("{folder}/a/b")).unwrap().count(), 1);
    }

    #[test]
    fn an_unfinished_file_leaves_nothing_behind() {
        let (_guard, folder) = folder();
        let mut output = Local.create(&format!("{folder}/part")).unwrap();
        output.write_all(b"half").unwrap();
        drop(output);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }

    #[test]
    fn a_new_file_is_as_readable_as_any_other() {
        let (_guard, folder) = folder();
        fs::write(format!("{folder}/other"), "").unwrap();
        write(&format!("{folder}/part"), "x");
        let mode = |name| fs::metadata(format!("{folder}/{name}")).unwrap().permissions().mode();
        assert_eq!(mode("part"), mode("other"));
    }

    #[test]
    fn the_longest_name_can_be_written() {
        let (_guard, folder) = folder();
        let path = format!("{folder}/{}", "重".repeat(85));
        write(&path, "x");
        assert!(Local.exists(&path).unwrap());
    }

    #[test]
    fn lists_are_sorted_by_byte_and_leave_out_hidden_names() {
        let (_guard, folder) = folder();
        for name in ["b/x", "b-x", "a", "中/文", ".hidden", "_SUCCESS", "_temporary/0/part", "b/.crc"] {
            write(&format!("{folder}/{name}"), name);
        }
        assert_eq!(listed(&folder), ["/a", "/b-x", "/b/x", "/中/文"]);
        assert_eq!(listed(&format!("{folder}/_temporary")), ["/0/part"]);
        assert_eq!(listed(&format!("{folder}/_SUCCESS")), [""]);
    }

    #[test]
    fn links_are_followed_but_never_in_a_circle() {
        let (_guard, folder) = folder();
        write(&format!("{folder}/a/one"), "1");
        write(&format!("{folder}/b/two"), "2");
        symlink(format!("{folder}/a/one"), format!("{folder}/b/file")).unwrap();
        symlink(format!("{folder}/b"), format!("{folder}/a/to-b")).unwrap();
        symlink(format!("{folder}/a"), format!("{folder}/b/to-a")).unwrap();
        symlink("..", format!("{folder}/a/up")).unwrap();
        let expected = ["/file", "/to-a/one", "/two"];
        assert_eq!(listed(&format!("{folder}/b")), expected);
    }

    #[test]
    fn names_of_any_bytes_are_listed_opened_written_and_renamed() {
        let (_guard, folder) = folder();
        let at = |name: &[u8]| Path::new(&folder).join(OsStr::from_bytes(name));
        let long = [[0xE9; 251].as_slice(), b".txt"].concat();
        let names: [&[u8]; 4] = [b"caf\xe9", b"new\nline", b"-dash", &long];
        for name in names {
            fs::write(at(name), name).unwrap();
        }
        for entry in Local.list(&folder).unwrap() {
            let name = entry.path[folder.len() + 1..].to_owned();
            let mut bytes = vec![0; entry.bytes as usize];
            Local.open(&entry.path).unwrap().read_full_at(0, &mut bytes).unwrap();
            assert_eq!(at(&bytes), path_of_text(&entry.path));
            write(&format!("{folder}/new/{name}/x"), &name);
            Local.rename(&format!("{folder}/new/{name}"), &format!("{folder}/moved-{}", name.len())).unwrap();
            assert!(Local.exists(&format!("{folder}/moved-{}/x", name.len())).unwrap());
            Local.remove(&entry.path).unwrap();
        }
        assert_eq!(Local.list(&folder).unwrap().len(), names.len());
        assert!(names.iter().all(|name| !at(name).exists()));
    }

    #[test]
    fn reads_are_cut_at_the_end_and_a_file_cut_short_is_an_error() {
        let (_guard, folder) = folder();
        let path = format!("{folder}/x");
        write(&path, "0123456789");
        let blob = Local.open(&path).unwrap();
        let mut buffer = [0; 4];
        assert_eq!(blob.bytes(), 10);
        assert_eq!((blob.read_at(8, &mut buffer).unwrap(), &buffer[..2]), (2, &b"89"[..]));
        assert_eq!(blob.read_at(10, &mut buffer).unwrap(), 0);
        assert_eq!(blob.read_at(u64::MAX, &mut buffer).unwrap(), 0);
        fs::write(&path, "012").unwrap();
        assert!(matches!(blob.read_at(5, &mut buffer), Err(Error::Changed { .. })));
    }

    #[test]
    fn a_file_that_is_written_to_while_it_is_open_is_an_error_however_long_it_is() {
        let (_guard, folder) = folder();
        let path = format!("{folder}/x");
        write(&path, "0123456789");
        let file = File::options().append(true).open(&path).unwrap();
        file.set_modified(UNIX_EPOCH).unwrap();
        let blob = Local.open(&path).unwrap();
        assert_eq!(blob.read_at(0, &mut [0; 4]).unwrap(), 4);
        fs::write(&path, "9876543210").unwrap();
        assert!(matches!(blob.read_at(4, &mut [0; 4]), Err(Error::Changed { .. })));
    }

    #[test]
    fn rename_never_replaces_and_remove_takes_trees_links_and_nothing() {
        let (_guard, folder) = folder();
        let path = |name: &str| format!("{folder}/{name}");
        write(&path("a/x"), "1");
        write(&path("b"), "2");
        assert!(Local.rename(&path("a"), &path("b")).is_err());
        Local.rename(&path("a"), &path("c")).unwrap();
        symlink(path("c"), path("link")).unwrap();
        Local.remove(&path("link")).unwrap();
        assert_eq!(listed(&folder), ["/b", "/c/x"]);
        Local.remove(&path("c")).unwrap();
        Local.remove(&path("b")).unwrap();
        Local.remove(&path("b")).unwrap();
        Local.create_dir(&path("d/e")).unwrap();
        Local.create_dir(&path("d/e")).unwrap();
        assert!(Local.exists(&path("d/e")).unwrap());
        assert!(!Local.exists(&path("b")).unwrap());
        for name in ["d", "d/e", "d", "none"] {
            Local.remove_empty(&path(name)).unwrap();
        }
        write(&path("d/x"), "1");
        Local.remove_empty(&path("d")).unwrap();
        assert_eq!(listed(&folder), ["/d/x"]);
        Local.remove_empty(&path("d/x")).unwrap();
        assert_eq!(listed(&folder), ["/d/x"]);
    }

    #[test]
    fn of_many_who_create_a_file_at_once_one_does() {
        let (_guard, folder) = folder();
        for round in 0..50 {
            let path = format!("{folder}/a/{round}");
            let create = |me: u8| Local.create_new(&path, &[me; 100]).unwrap();
            let created: Vec<u8> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|me| (me, scope.spawn(move || create(me)))).collect();
                threads.into_iter().filter_map(|(me, thread)| thread.join().unwrap().then_some(me)).collect()
            });
            let [winner] = created[..] else { panic!("{created:?}") };
            assert_eq!(fs::read(&path).unwrap(), [winner; 100]);
        }
        assert_eq!(fs::read_dir(format!("{folder}/a")).unwrap().count(), 50);
        fs::create_dir(format!("{folder}/b")).unwrap();
        assert!(!Local.create_new(&format!("{folder}/b"), b"x").unwrap());
    }

    #[test]
    fn a_file_is_listed_with_the_time_of_its_last_writing() {
        let (_guard, folder) = folder();
        write(&format!("{folder}/x"), "1");
        let file = File::options().append(true).open(format!("{folder}/x")).unwrap();
        file.set_modified(UNIX_EPOCH + std::time::Duration::from_millis(1_234_567)).unwrap();
        assert_eq!(Local.list(&folder).unwrap()[0].version.modified, Some(1_234_567));
    }

    #[test]
    fn missing_files_and_directories_are_told_apart() {
        let (_guard, folder) = folder();
        assert!(matches!(Local.open(&format!("{folder}/x")), Err(Error::NotFound { .. })));
        assert!(matches!(Local.list(&format!("{folder}/x")), Err(Error::NotFound { .. })));
        assert!(matches!(Local.rename(&format!("{folder}/x"), "/y"), Err(Error::NotFound { .. })));
        assert!(matches!(Local.open(&folder), Err(Error::Io { .. })));
    }
}
