//! Inputs that can be read only once: the standard input, named pipes, and files of process substitution.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use cluster::{path_of_text, text_of_path};
use tempfile::TempDir;

use super::exit::WrongUse;

/// Name of the standard input and of the standard output on the command line.
pub(crate) const STANDARD: &str = "-";

/// Inputs of which those that can be read only once are copied to files, since a corpus is read more than once.
///
/// Disk: their bytes, until this is dropped.
pub(crate) struct PipedInputs {
    /// The inputs, with the copies in the place of pipes.
    pub inputs: Vec<String>,
    /// Folder of the copies; `None` without any.
    folder: Option<TempDir>,
}

impl PipedInputs {
    /// Copies the pipes among some inputs to a new folder in `local`.
    ///
    /// # Errors
    /// Those of the pipes and of the disk; [`WrongUse`] if the standard input is named twice.
    pub fn copy(inputs: &[String], local: &Path) -> Result<Self> {
        let mut piped = PipedInputs { inputs: inputs.to_vec(), folder: None };
        if inputs.iter().filter(|input| *input == STANDARD).count() > 1 {
            bail!(WrongUse("the standard input can be an input once".to_owned()));
        }
        for (number, input) in piped.inputs.iter_mut().enumerate().filter(|(_, input)| is_pipe(input)) {
            let folder = match &mut piped.folder {
                Some(folder) => folder,
                none => none.insert(tempfile::Builder::new().prefix("dedup-job-").tempdir_in(local)?),
            };
            let copied = match input == STANDARD {
                true => copy(io::stdin().lock(), &folder.path().join("stdin")),
                false => File::open(path_of_text(input))
                    .map_err(Into::into)
                    .and_then(|pipe| copy(pipe, &folder.path().join(format!("pipe-{number}")))),
            };
            let copied = copied
                .with_context(|| format!("could not read \"{input}\" into the folder for temporary files"))?;
            *input = text_of_path(copied.as_os_str());
        }
        Ok(piped)
    }

    /// Whether a file is a copy.
    pub fn is_copy(&self, path: &str) -> bool {
        self.folder.as_ref().is_some_and(|folder| path_of_text(path).starts_with(folder.path()))
    }

    /// Returns the folder of the copies, which is removed when it is dropped.
    pub fn into_folder(self) -> Option<TempDir> {
        self.folder
    }
}

/// Whether an input can be read only once.
pub(crate) fn is_pipe(input: &str) -> bool {
    let is_one_way = |file: fs::Metadata| file.file_type().is_fifo() || file.file_type().is_char_device();
    input == STANDARD || fs::metadata(path_of_text(input)).is_ok_and(is_one_way)
}

/// Copies a pipe to a file, whose name tells the format where the first line does. Returns the file.
fn copy(pipe: impl Read, file: &Path) -> Result<PathBuf> {
    let mut pipe = BufReader::with_capacity(1 << 16, pipe);
    let extension = extension(pipe.fill_buf()?);
    let file = file.with_extension(extension);
    io::copy(&mut pipe, &mut File::create(&file)?)?;
    Ok(file)
}

/// Returns the extension of a file that begins with `head`: that of lines, unless other formats may be told. Those that are told by
/// their contents are told by any extension, and CSV by the field `text` in its first line.
fn extension(head: &[u8]) -> &'static str {
    let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    let is_text = |field: &[u8]| field.trim_ascii() == b"text" || field.trim_ascii() == b"\"text\"";
    match head.trim_ascii_start().first() {
        Some(b'{') => "jsonl",
        _ if first.contains(&b',') && first.split(|byte| *byte == b',').any(is_text) => "csv",
        _ => "lines",
    }
}
