//! An output that is one file or the standard output, in the place of a folder.
//!
//! The run writes a folder as ever, beside the file and with a hidden name. At its end the kept records are taken out of it
//! (`joined.rs`), and the folder is removed. So a run that is killed can be resumed, and the file is there whole or not at all.
//! `targets.rs` says which files may be written.

mod joined;
mod targets;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use cluster::{path_of_text, text_of_path};
use datasets::FileHead;
use xxhash_rust::xxh3::xxh3_64;

use self::joined::JoinedParts;
use self::targets::{check_targets, ending, is_folder, is_named};
use crate::cli::exit::{Locked, WrongUse};
#[cfg(feature = "cli")]
use crate::cli::headings::OUTPUT;
use crate::cli::piped::STANDARD;
use crate::cli::temporary::TemporaryFolder;
#[cfg(feature = "cli")]
use crate::cli::values::paths;
use crate::corpus::output_layout::{REPORT, SUCCESS};
use crate::corpus::plan::Plan;

/// Formats whose files may follow each other.
const LINES: [&str; 7] = ["jsonl", "json-array", "lines", "sogoucs", "wikiextractor", "mediawiki", "warc"];
/// Names of what a run may leave in the folder that it writes.
const OF_A_RUN: [&str; 12] = [
    "_temporary",
    SUCCESS,
    REPORT,
    "kept",
    "removed",
    "annotated",
    "rejected",
    "rejects",
    "pairs",
    "clusters",
    "statistics",
    "ignored-lines",
];
/// Largest number of bytes of a file name.
const NAME_BYTES: usize = 255;

/// Options of an output that is a file.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct FileTargets {
    /// Where OUTPUT is a file or -: also write the removed records to this file, with the reasons
    #[cfg_attr(feature = "cli", arg(help_heading = OUTPUT, hide_short_help = true, long, value_name = "FILE", value_parser = paths()))]
    removed: Option<String>,
    /// Where OUTPUT is a file or -: also write the rejected records to this file as JSON lines, with the reasons
    #[cfg_attr(feature = "cli", arg(help_heading = OUTPUT, hide_short_help = true, long, value_name = "FILE", value_parser = paths()))]
    rejected: Option<String>,
}

/// An output that is one file or the standard output.
#[derive(Clone, Debug)]
pub struct FileOutput {
    held: Arc<HiddenFolder>,
    /// The file, or `-`.
    kept: String,
    /// Folder of the output that has the records of the file.
    of_records: &'static str,
    others: FileTargets,
    /// Whether files may be replaced.
    overwrite: bool,
}

/// The folder that a run writes.
#[derive(Debug)]
struct HiddenFolder {
    folder: PathBuf,
    /// The folder that it lies in, if no other run knows it.
    temporary: Option<TemporaryFolder>,
    /// The folder itself, which is locked as long as it is open: another run into the same file would write it, too.
    _lock: Option<File>,
}

impl Drop for HiddenFolder {
    /// Removes a folder in which nothing is left.
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

impl FileOutput {
    /// Whether an output is one file or the standard output.
    pub fn is_file(output: &str, inputs: &[String]) -> bool {
        !is_folder(output, inputs)
    }

    /// Whether an output has the name of a file, and is not there as a folder.
    pub fn is_named(output: &str) -> bool {
        is_named(output)
    }

    /// Returns the file that an output is; `None` if it is a folder. `local`: folder for temporary files.
    ///
    /// # Errors
    /// Those of `check_targets`; [`Locked`] when another run is writing the file; [`WrongUse`] when a folder would have options for
    /// files, and when the folder to be written is one of the user's.
    pub fn of(
        output: &str,
        inputs: &[String],
        others: &FileTargets,
        (overwrite, local): (bool, &Path),
    ) -> Result<Option<Self>> {
        if is_folder(output, inputs) {
            if others.removed.is_some() || others.rejected.is_some() {
                bail!(WrongUse(format!(
                    "--removed and --rejected are for an output that is a file or -, and \"{output}\" is a folder, which has removed/ \
                     and rejects/"
                )));
            }
            return Ok(None);
        }
        check_targets(output, [&others.removed, &others.rejected], inputs, overwrite)?;
        let held = match output == STANDARD {
            true => {
                let temporary = TemporaryFolder::new(local)?;
                let folder = temporary.path().join("output");
                HiddenFolder { folder, temporary: Some(temporary), _lock: None }
            }
            false => {
                // The file that a link leads to is written, and the link stays.
                let path = path_of_text(output);
                let folder = hidden_beside(&fs::canonicalize(&path).unwrap_or(path));
                let lock = lock_folder(&folder, output)?;
                HiddenFolder { folder, temporary: None, _lock: Some(lock) }
            }
        };
        let kept = output.to_owned();
        Ok(Some(FileOutput {
            held: Arc::new(held),
            kept,
            of_records: "kept",
            others: others.clone(),
            overwrite,
        }))
    }

    /// Returns the folder that the run writes.
    pub fn folder(&self) -> String {
        text_of_path(self.held.folder.as_os_str())
    }

    /// Returns a file that has all records, kept and removed ones, each with what was decided about it.
    ///
    /// # Errors
    /// [`WrongUse`] when removed records would go to another file.
    pub fn annotated(self) -> Result<Self> {
        if self.others.removed.is_some() {
            bail!(WrongUse(
                "--annotate leaves removed records with the others: leave --removed out".to_owned()
            ));
        }
        Ok(FileOutput { of_records: "annotated", ..self })
    }

    /// Returns what a line for people says of the place of rejected records.
    pub fn place_of_rejects(&self) -> String {
        let place = |file: &String| format!("see {file}");
        self.others.rejected.as_ref().map_or_else(|| "--rejected FILE keeps them".to_owned(), place)
    }

    /// Whether no other run knows the folder.
    pub fn is_temporary(&self) -> bool {
        self.held.temporary.is_some()
    }

    /// Returns how the output is called in a line for people.
    pub fn name(&self) -> &str {
        if self.kept == STANDARD { "the standard output" } else { &self.kept }
    }

    /// Whether the input must be one split, since files of its format cannot follow each other.
    ///
    /// # Errors
    /// Those of the input; [`WrongUse`] when the name of a file is that of another format than the input's.
    pub fn wants_one_split(&self, plan: &Plan) -> Result<bool> {
        let Some(split) = plan.input_splits().first() else { return Ok(false) };
        let format = split.format.name();
        let uri = split.uri();
        if split.format.file_is_record() {
            bail!(WrongUse(format!(
                "\"{uri}\" is read as one document: --format lines reads each of its lines as one"
            )));
        }
        let mut head = vec![0; FileHead::BYTES];
        let blob = split.pieces.first().context("a split without files")?.whole_file()?.blob;
        let length = blob.read_full_at(0, &mut head)?;
        let head = FileHead::of(&uri, &head[..length]);
        for file in [Some(&self.kept), self.others.removed.as_ref()].into_iter().flatten() {
            let Some((formats, compression)) = ending(file) else { continue };
            if !formats.contains(&format) || compression != head.compression {
                let like = if head.compression.is_empty() { "" } else { ", compressed as " };
                bail!(WrongUse(format!(
                    "records come out as they went in, which is {format}{like}{} here, and \"{file}\" has the name of another format: \
                     name it alike, or take a folder, with / at its end",
                    head.compression.trim_start_matches('.')
                )));
            }
        }
        // Each part of UTF-16 begins with a mark.
        Ok((!LINES.contains(&format) || head.is_utf16) && plan.input_splits().len() > 1)
    }

    /// Puts the records of the folder, which is finished, where the user wants them, and removes the folder.
    ///
    /// # Errors
    /// Those of the files. The folder stays then.
    pub fn take(&self) -> Result<()> {
        let parts = [
            ("removed", self.others.removed.as_ref()),
            ("rejects", self.others.rejected.as_ref()),
            (self.of_records, Some(&self.kept)),
        ];
        for (name, file) in parts {
            let Some(file) = file else { continue };
            let path = path_of_text(file);
            let is_new = file == STANDARD || !path.exists();
            if !is_new && !self.overwrite && path.is_file() {
                bail!(WrongUse(format!("\"{file}\" has come meanwhile: --overwrite replaces it")));
            }
            let joined = JoinedParts::of(&self.held.folder.join(name))?;
            joined.write(file, &self.held.folder).with_context(|| format!("could not write \"{file}\""))?;
        }
        fs::remove_dir_all(&self.held.folder).or_else(|_| fs::remove_dir_all(&self.held.folder))?;
        Ok(())
    }
}

/// Returns the hidden folder beside a file.
fn hidden_beside(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default();
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(".dedup-job");
    if hidden.len() > NAME_BYTES {
        hidden = format!(".{:016x}.dedup-job", xxh3_64(name.as_encoded_bytes())).into();
    }
    file.with_file_name(hidden)
}

/// Makes a folder, unless a run has left it, and locks it as long as the file is open.
fn lock_folder(folder: &Path, output: &str) -> Result<File> {
    loop {
        match fs::create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(error).with_context(|| format!("could not write \"{output}\""));
            }
            _ => {}
        }
        let Ok(lock) = File::open(folder) else { continue };
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!(Locked(format!("another run is writing \"{output}\""))),
            // Some file systems have no locks.
            Err(TryLockError::Error(_)) => {}
        }
        // A run that has ended meanwhile has removed the folder.
        let inode = |file: fs::Metadata| (file.dev(), file.ino());
        if !fs::metadata(folder)
            .is_ok_and(|now| lock.metadata().is_ok_and(|locked| inode(now) == inode(locked)))
        {
            continue;
        }
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name();
            if !OF_A_RUN.iter().any(|of_run| OsStr::new(of_run) == name) {
                bail!(WrongUse(format!(
                    "\"{}\", which the run would write, holds \"{}\", which is of no run: move the folder away",
                    folder.display(),
                    name.display()
                )));
            }
        }
        return Ok(lock);
    }
}
