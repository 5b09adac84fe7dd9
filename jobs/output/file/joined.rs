//! The parts of a folder as one file.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use cluster::path_of_text;

use crate::cli::piped::STANDARD;

/// The parts of a folder of an output, in the order of their splits.
pub(super) struct Joined(Vec<PathBuf>);

impl Joined {
    /// Finds the parts of a folder, of which there are none if it is not there.
    pub fn of(folder: &Path) -> Result<Self> {
        let mut parts = Vec::new();
        match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            entries => {
                for entry in entries? {
                    let entry = entry?;
                    // A file that readers skip says that there is nothing.
                    if !entry.file_name().as_encoded_bytes().starts_with(b"_") {
                        parts.push(entry.path());
                    }
                }
            }
        }
        parts.sort_unstable();
        Ok(Joined(parts))
    }

    /// Writes the parts, one behind the other, to a file in one step, or to the standard output, whose reader may leave early.
    /// `aside`: a folder on the disk of the file.
    pub fn write(&self, file: &str, aside: &Path) -> Result<()> {
        if file == STANDARD {
            let written = self.copy(&mut io::stdout().lock());
            return match written {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                written => Ok(written?),
            };
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
        File::open(&whole)?.sync_all()?;
        match fs::rename(&whole, path_of_text(file)) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                self.copy(&mut File::create(path_of_text(file))?)?;
                Ok(())
            }
            renamed => Ok(renamed?),
        }
    }

    fn copy(&self, to: &mut impl Write) -> io::Result<()> {
        for part in &self.0 {
            io::copy(&mut File::open(part)?, to)?;
        }
        to.flush()
    }
}
