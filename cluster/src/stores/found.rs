//! An input file, as it was found when the job was planned.

use std::sync::Arc;

use percent_encoding::percent_decode_str;

use super::checked::Checked;
use super::error::Error;
use super::name::NameBelow;
use super::store::{Blob, Store, Version};
use super::sums::{Noted, Sums};

/// An input file. Every open checks that the file is still the one that was found.
#[derive(Clone)]
pub struct InputFile {
    /// Store that holds the file.
    pub store: Arc<dyn Store>,
    /// Absolute path, as the store names it.
    pub path: String,
    /// Path relative to the input that led to the file, or to the part of a pattern before any `*`, `?`, `[`
    /// or `{`. For an input that is a file, this is its last name. The folders of a partition are always in it, as are
    /// those below them.
    pub name: NameBelow,
    /// Length in bytes.
    pub bytes: u64,
    /// The store's version of the contents.
    pub version: Version,
    /// Name for people, if that is not its path.
    pub(crate) shown: Option<Arc<str>>,
    /// Checksums of the contents, shared by all who open the file.
    pub(crate) sums: Arc<Sums>,
}

impl InputFile {
    /// Returns the name of the file with this path below a folder, whose path are its first `folder` bytes. If the file's
    /// partition begins above the folder, the name begins there.
    ///
    /// # Errors
    /// Those of [`NameBelow::new`].
    pub fn name_below(path: &str, folder: usize) -> Result<NameBelow, Error> {
        let partition = TablePartition::of(path);
        let start = match partition.folders() {
            "" => folder,
            _ => folder.min(partition.table().len()),
        };
        // The part after a scheme is empty.
        let names: Vec<_> = path[start..].split('/').filter(|name| !name.is_empty()).collect();
        NameBelow::new(&names.join("/"))
    }

    /// Returns the store's prefix and the path, or the name by which the file is [shown](crate::Stores::show_as). This name is unique, and
    /// messages show it.
    pub fn full_path(&self) -> String {
        self.shown.as_deref().map_or_else(|| format!("{}{}", self.store.prefix(), self.path), str::to_owned)
    }

    /// Opens the file. It must be the file that was found, and its bytes are compared with those read before
    /// through this [`InputFile`] or a clone of it. The cells that are read are added to `noted`.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Changed`].
    pub fn open(&self, noted: Option<Arc<Noted>>) -> Result<Arc<dyn Blob>, Error> {
        Ok(Arc::new(Checked::open(&self.store, (&self.path, self.shown.as_deref()), &self.sums, noted)?))
    }

    /// Returns the sums of the noted cells. Another process that gives them to [`InputFile::restore`] compares
    /// its own readings with them.
    pub fn sums(&self, noted: &Noted) -> Vec<(u64, u64)> {
        noted.take(&self.sums)
    }

    /// Takes the sums of what an earlier process has read.
    ///
    /// # Errors
    /// [`Error::Changed`] when this process has read other bytes.
    pub fn restore(&self, sums: &[(u64, u64)]) -> Result<(), Error> {
        match self.sums.restore(sums) {
            true => Ok(()),
            false => Err(Error::Changed {
                path: self.full_path(),
                reason: "its bytes differ from those that an earlier run has read".to_owned(),
            }),
        }
    }
}

/// Folders of a partition of a table, as Hive and Spark lay it out: `dt=2026-11-27/country=cn`. They hold the values of
/// columns that the files do not have.
#[derive(Clone, Copy)]
pub struct TablePartition<'a> {
    /// Path of the table.
    table: &'a str,
    /// The folders, without a `/` at either end.
    folders: &'a str,
}

impl<'a> TablePartition<'a> {
    /// Returns the partition of a file with this path. It is the last of the runs of folders `column=value` in the path, and
    /// empty if there is none.
    pub fn of(path: &'a str) -> Self {
        let (mut start, mut end, mut at) = (0, 0, 0);
        let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
        for folder in folders.split('/') {
            if is_partition(folder) {
                start = if end + 1 == at && end > start { start } else { at };
                end = at + folder.len();
            }
            at += folder.len() + 1;
        }
        TablePartition { table: &path[..start], folders: &path[start..end] }
    }

    /// Returns the path of the file's table: all before the partition.
    pub fn table(self) -> &'a str {
        self.table
    }

    /// Returns the folders, such as `dt=2026-11-27/country=cn`, or an empty text.
    pub fn folders(self) -> &'a str {
        self.folders
    }

    /// Returns the value of a column. Escapes such as `%3A` are undone. There is none if the partition has no such column or
    /// holds the rows in which it is null.
    pub fn value(self, column: &str) -> Option<String> {
        let mut columns = self.folders.split('/').filter_map(|folder| folder.split_once('='));
        let value = columns.find_map(|(name, value)| (unescaped(name) == column).then_some(value));
        value.filter(|value| *value != "__HIVE_DEFAULT_PARTITION__").map(unescaped)
    }
}

/// Returns whether a folder of this name holds a partition of a table.
fn is_partition(name: &str) -> bool {
    name.split_once('=').is_some_and(|(column, value)| !column.is_empty() && !value.is_empty())
}

/// Returns the text with each `%XX` replaced by the byte that it stands for, as Hive escapes it.
fn unescaped(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_the_last_run_of_folders_that_name_a_column() {
        for (path, table, folders) in [
            ("dt=1/a.parquet", "", "dt=1"),
            ("/t/dt=1/country=cn/a", "/t/", "dt=1/country=cn"),
            ("_p=0/b/c", "", "_p=0"),
            ("env=x/t/dt=1/b/a", "env=x/t/", "dt=1"),
            ("a=b", "", ""),
            ("t/=1/dt=/a=b", "", ""),
            ("", "", ""),
        ] {
            let partition = TablePartition::of(path);
            assert_eq!((partition.table(), partition.folders()), (table, folders), "{path}");
        }
    }

    #[test]
    fn values_are_unescaped_and_null_is_none() {
        let partition =
            TablePartition::of("at=10%3A30/n%20m=50%/name=%E4%B8%AD文/x=__HIVE_DEFAULT_PARTITION__/f");
        let values = ["at", "n m", "name", "x", "y"].map(|column| partition.value(column));
        assert_eq!(values.map(Option::unwrap_or_default), ["10:30", "50%", "中文", "", ""]);
    }
}
