//! Reads a log.

use std::path::{Path, PathBuf};
use std::{fmt, fs};

use super::record_group::{MAGIC, RecordGroup, first_record_of};
use crate::{Error, text_of_path};

/// Files and numbers of a log that was read.
#[derive(Debug, Default)]
pub struct LogContents {
    /// Number of the next record.
    pub next: u64,
    /// The last bytes, if a crash has torn them.
    pub torn: Option<TornTail>,
    /// Each file with the number of its first record.
    pub(super) files: Vec<(PathBuf, u64)>,
    /// Length of the whole groups of the last file.
    pub(super) last_bytes: u64,
}

/// Bytes of a group at the end of a log that was not written whole. Nobody was told that its records are durable.
#[derive(Debug, PartialEq, Eq)]
pub struct TornTail {
    /// File of the log.
    pub path: String,
    /// Offset of the first byte of the group.
    pub offset: u64,
    /// Number of bytes that are there.
    pub bytes: u64,
}

impl fmt::Display for TornTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TornTail { path, offset, bytes } = self;
        write!(f, "\"{path}\": the last {bytes} bytes, from {offset} on, are no whole group")
    }
}

/// Reads the records of the log in `folder` from number `from` on, and gives each with its number to `each`. Files
/// that end before that record are not read.
///
/// Bytes at the end that are no whole group count as torn by a crash if no whole group follows them. The log is not
/// changed. Memory: one file, of some 64 MiB.
///
/// # Errors
/// [`Error::Damaged`] where there is no file, where a group is damaged and another one follows, where a file does not
/// begin with the record behind the last one of the file before, and where the log begins or ends without `from`;
/// [`Error::Io`]; those of `each`.
pub fn read_log<E: From<Error>>(
    folder: &Path,
    from: u64,
    mut each: impl FnMut(u64, &[u8]) -> Result<(), E>,
) -> Result<LogContents, E> {
    let mut files = files_of(folder)?;
    let needed = files.iter().skip(1).take_while(|(_, first)| *first <= from).count();
    files.drain(..needed);
    let Some((path, first)) = files.first() else {
        return Err(damage(folder, 0, "the log has no file").into());
    };
    if *first > from {
        let reason = format!("the log begins with record {first}, but {from} is wanted");
        return Err(damage(path, 0, &reason).into());
    }
    let mut contents = LogContents { next: *first, ..LogContents::default() };
    for (at, (path, first)) in files.iter().enumerate() {
        if *first != contents.next {
            let reason = format!("the file begins with record {first} instead of {}", contents.next);
            return Err(damage(path, 0, &reason).into());
        }
        let bytes = fs::read(path).map_err(|source| Error::io(&text(path), "read", source))?;
        let mut end = if bytes.starts_with(MAGIC) { MAGIC.len() } else { 0 };
        while let Some(group) =
            RecordGroup::read(&bytes[end..]).filter(|group| end > 0 && group.first == contents.next)
        {
            for record in group.records() {
                if contents.next >= from {
                    each(contents.next, record)?;
                }
                contents.next += 1;
            }
            end += group.bytes();
        }
        if end < bytes.len() {
            let is_last = at + 1 == files.len();
            let follows = (end + 1..bytes.len()).any(|start| RecordGroup::read(&bytes[start..]).is_some());
            if !is_last || follows {
                return Err(damage(path, end as u64, "the checksum or the number of a group is wrong").into());
            }
            let bytes = (bytes.len() - end) as u64;
            contents.torn = Some(TornTail { path: text(path), offset: end as u64, bytes });
        }
        contents.last_bytes = end as u64;
    }
    if contents.next < from {
        let reason = format!("the log ends before record {}, but {from} is wanted", contents.next);
        return Err(damage(folder, 0, &reason).into());
    }
    contents.files = files;
    Ok(contents)
}

/// Returns the files of a log in order, each with the number of its first record.
fn files_of(folder: &Path) -> Result<Vec<(PathBuf, u64)>, Error> {
    let failed = |source| Error::io(&text(folder), "list", source);
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let first = path.file_name().and_then(|name| first_record_of(&name.to_string_lossy()));
        files.extend(first.map(|first| (path, first)));
    }
    files.sort_unstable_by_key(|(_, first)| *first);
    Ok(files)
}

fn damage(path: &Path, offset: u64, reason: &str) -> Error {
    Error::Damaged { path: text(path), offset, reason: reason.to_owned() }
}

pub(super) fn text(path: &Path) -> String {
    text_of_path(path.as_os_str())
}
