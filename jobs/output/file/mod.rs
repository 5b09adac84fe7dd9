//! An output that is one file or the standard output, in the place of a folder.
//!
//! The run writes a folder as ever, beside the file and with a hidden name. At its end the kept records are taken out of it
//! (`joined.rs`), and the folder is removed. So a run that is killed can be resumed, and the file is there whole or not at all.

mod joined;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use cluster::{path_of_text, text_of_path};
use tempfile::TempDir;

use self::joined::Joined;
use crate::cli::exit::WrongUse;
use crate::cli::piped::{STANDARD, is_pipe};
use crate::corpus::plan::Plan;

/// Endings of names by which an output is a file, each with the formats that it may have.
const ENDINGS: [(&str, &[&str]); 12] = [
    ("jsonl", &["jsonl"]),
    ("ndjson", &["jsonl"]),
    ("json", &["jsonl"]),
    ("csv", &["csv", "weibo-csv"]),
    ("tsv", &["tsv", "csv"]),
    ("txt", &["lines", "sogoucs"]),
    ("lines", &["lines"]),
    ("dat", &["sogoucs"]),
    ("xml", &["sogoucs"]),
    ("parquet", &["parquet"]),
    ("seq", &["sequencefile"]),
    ("sequencefile", &["sequencefile"]),
];
/// Endings of compressed files.
const COMPRESSIONS: [&str; 3] = ["gz", "zst", "bz2"];
/// Formats whose files may follow each other, as long as they are not compressed.
const LINES: [&str; 3] = ["jsonl", "lines", "sogoucs"];

/// Options of an output that is a file.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct FileArgs {
    /// Where OUTPUT is a file or -: also write the removed records to this file, with the reasons
    #[arg(help_heading = crate::cli::headings::OUTPUT, hide_short_help = true, long, value_name = "FILE")]
    #[arg(value_parser = crate::cli::values::paths())]
    removed: Option<String>,
    /// Where OUTPUT is a file or -: also write the rejected records to this file, with the reasons
    #[arg(help_heading = crate::cli::headings::OUTPUT, hide_short_help = true, long, value_name = "FILE")]
    #[arg(value_parser = crate::cli::values::paths())]
    rejected: Option<String>,
}

/// An output that is one file or the standard output.
#[derive(Clone, Debug)]
pub(crate) struct FileOutput {
    /// Folder that the run writes.
    folder: PathBuf,
    /// The same, if it is a temporary one.
    _temporary: Option<Arc<TempDir>>,
    /// The file, or `-`.
    kept: String,
    others: FileArgs,
}

impl FileOutput {
    /// Returns the file that an output is; `None` if it is a folder. `local`: folder for temporary files.
    ///
    /// An output is a file if there is one input, a file or a pipe, and its name has the ending of a format, and no slash at its end.
    ///
    /// # Errors
    /// [`WrongUse`] when the file exists and is not to be replaced, when it is the input, and when a folder would have options for
    /// files.
    pub fn of(
        output: &str,
        inputs: &[String],
        others: &FileArgs,
        (overwrite, local): (bool, &Path),
    ) -> Result<Option<Self>> {
        let path = path_of_text(output);
        if output == STANDARD {
            let folder = tempfile::Builder::new().prefix("dedup-job-").tempdir_in(local)?;
            let (path, temporary) = (folder.path().join("output"), Some(Arc::new(folder)));
            return Ok(Some(FileOutput {
                folder: path,
                _temporary: temporary,
                kept: output.to_owned(),
                others: others.clone(),
            }));
        }
        let is_file = |input: &String| is_pipe(input) || path_of_text(input).is_file();
        let is_one = matches!(inputs, [input] if is_file(input));
        if !is_one
            || output.contains("://")
            || output.ends_with('/')
            || path.is_dir()
            || ending(output).is_none()
        {
            if others.removed.is_some() || others.rejected.is_some() {
                bail!(WrongUse(format!(
                    "--removed and --rejected are for an output that is a file or -, and \"{output}\" is a folder, which has removed/ \
                     and rejects/"
                )));
            }
            return Ok(None);
        }
        if let (Ok(one), Ok(other)) = (path_of_text(&inputs[0]).canonicalize(), path.canonicalize())
            && one == other
        {
            bail!(WrongUse(format!("the output \"{output}\" is the input")));
        }
        if path.exists() && !overwrite {
            bail!(WrongUse(format!("\"{output}\" exists: --overwrite replaces it")));
        }
        let name = path.file_name().unwrap_or_default();
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(".dedup-job");
        let folder = path.with_file_name(hidden);
        Ok(Some(FileOutput { folder, _temporary: None, kept: output.to_owned(), others: others.clone() }))
    }

    /// Returns the folder that the run writes.
    pub fn folder(&self) -> String {
        text_of_path(self.folder.as_os_str())
    }

    /// Returns how the output is called in a line for people.
    pub fn name(&self) -> &str {
        if self.kept == STANDARD { "the standard output" } else { &self.kept }
    }

    /// Whether the input must be one split, since files of its format cannot follow each other.
    ///
    /// # Errors
    /// [`WrongUse`] when the name of the file is that of another format than the input's.
    pub fn wants_one_split(&self, plan: &Plan) -> Result<bool> {
        let Some(split) = plan.input_splits().first() else { return Ok(false) };
        let (format, uri) = (split.format.name(), split.uri());
        let compression = compression(&uri);
        if split.format.file_is_record() {
            bail!(WrongUse(format!(
                "\"{uri}\" is one document, and a clean corpus of one file is a folder: name one"
            )));
        }
        if let Some((formats, of_output)) = ending(&self.kept)
            && (!formats.contains(&format) || of_output != compression)
        {
            let like = compression
                .map_or(format.to_owned(), |compression| format!("{format}, compressed as {compression}"));
            bail!(WrongUse(format!(
                "kept records come out as they went in, which is {like} here, and \"{}\" has the name of another format: name it \
                 alike, or end it with / for a folder",
                self.kept
            )));
        }
        Ok(!LINES.contains(&format) && plan.input_splits().len() > 1)
    }

    /// Puts the records of the folder, which is finished, where the user wants them, and removes the folder.
    ///
    /// # Errors
    /// Those of the files. The folder stays then.
    pub fn take(&self) -> Result<()> {
        let parts = [
            ("kept", Some(&self.kept)),
            ("removed", self.others.removed.as_ref()),
            ("rejects", self.others.rejected.as_ref()),
        ];
        for (name, file) in parts {
            if let Some(file) = file {
                let joined = Joined::of(&self.folder.join(name))?;
                joined.write(file, &self.folder).with_context(|| format!("could not write \"{file}\""))?;
            }
        }
        fs::remove_dir_all(&self.folder)?;
        Ok(())
    }
}

/// Returns the formats that a file of this name may have, and its compression; `None` if the name tells no format.
fn ending(name: &str) -> Option<(&'static [&'static str], Option<&str>)> {
    let compression = compression(name);
    let plain = compression.map_or(name, |compression| &name[..name.len() - compression.len() - 1]);
    let (_, last) = plain.rsplit_once('.')?;
    let (_, formats) = ENDINGS.iter().find(|(ending, _)| ending.eq_ignore_ascii_case(last))?;
    Some((formats, compression))
}

/// Returns the compression that the name of a file tells.
fn compression(name: &str) -> Option<&str> {
    let (_, last) = name.rsplit_once('.')?;
    COMPRESSIONS.contains(&last).then_some(last)
}
