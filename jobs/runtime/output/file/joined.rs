//! The parts of a folder as one file.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use cluster::path_of_text;
use datasets::FileHead;

use crate::cli::piped::STANDARD;
use crate::cli::report_file::ReportFile;

/// The parts of a folder of an output, in the order of their splits.
pub(super) struct JoinedParts(Vec<PathBuf>);

impl JoinedParts {
    /// Finds the parts of a folder and of the partitions in it. There are none if it is not there.
    pub fn of(folder: &Path) -> Result<Self> {
        let mut parts = Vec::new();
        if folder.exists() {
            find(folder, &mut parts)?;
        }
        parts.sort_unstable();
        Ok(JoinedParts(parts))
    }

    /// Writes the parts, one behind the other, to a file in one step, or to the standard output, whose reader may leave early. What is no
    /// file, such as a pipe, is written in place. Without parts the file is empty if it may be, and else there is none. `aside`: a folder on the
    /// disk of most files.
    pub fn write(&self, file: &str, aside: &Path) -> Result<()> {
        if file == STANDARD {
            let written = self.copy(&mut io::stdout().lock());
            return match written {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                written => Ok(written?),
            };
        }
        let path = path_of_text(file);
        let path = fs::canonicalize(&path).unwrap_or(path);
        let before = fs::metadata(&path).ok();
        if self.0.is_empty()
            && [".parquet", ".seq", ".sequencefile"]
                .iter()
                .chain(&FileHead::COMPRESSIONS)
                .any(|ending| file.ends_with(ending))
        {
            return if before.is_some() { Ok(fs::remove_file(&path)?) } else { Ok(()) };
        }
        if before.as_ref().is_some_and(|before| !before.is_file()) {
            return ReportFile::new(file).replace_with(|file| self.copy(file));
        }
        let whole = match &self.0[..] {
            [part] => part.clone(),
            _ => aside.join("joined"),
        };
        if self.0.len() != 1 {
            let mut joined = BufWriter::new(File::create(&whole)?);
            self.copy(&mut joined)?;
            joined.into_inner().map_err(io::IntoInnerError::into_error)?;
        }
        if let Some(before) = before {
            fs::set_permissions(&whole, before.permissions())?;
        }
        File::open(&whole)?.sync_all()?;
        match fs::rename(&whole, &path) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                ReportFile::new(file).replace_with(|file| self.copy(file))
            }
            renamed => Ok(renamed?),
        }
    }

    fn copy(&self, mut to: &mut dyn Write) -> io::Result<()> {
        for part in &self.0 {
            io::copy(&mut File::open(part)?, &mut to)?;
        }
        to.flush()
    }
}

/// Adds the parts of a folder. A file that readers skip says that there is nothing.
fn find(folder: &Path, parts: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            find(&entry.path(), parts)?;
        } else if !entry.file_name().as_encoded_bytes().starts_with(b"_") {
            parts.push(entry.path());
        }
    }
    Ok(())
}
