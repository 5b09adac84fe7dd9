//! `unpack`: makes files again of packed ones.

use std::collections::HashSet;
use std::env;
use std::io::{ErrorKind, Write};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use cluster::{Stores, path_of_text};
use datasets::{Packed, Piece, Reading};
use operators::DocBatch;
use parking_lot::Mutex;
use serde::Serialize;

use super::{Repack, RepackCounters, RepackUnit};
use runtime::Common;
use runtime::cli::configuration::{Configuration, text};
use runtime::cli::exit::WrongUse;
use runtime::cli::values::{output_and_inputs, paths, record_size, size};
use runtime::corpus::plan::Plan;
use runtime::corpus::run::Run;
use runtime::corpus::split::Split;
use runtime::corpus::splits;
use runtime::output::rejects::SplitRejectsWriter;
use runtime::output::{OutputArgs, OutputFolder, OutputJob};
use runtime::progress::{Stage, StageTimer};

/// Longest name of a file or folder on today's file systems, in bytes.
const NAME_BYTES: usize = 255;

/// Make files again of packed ones
///
/// Each record of SequenceFiles or Parquet becomes a file in OUTPUT/unpacked, called as its key or id says.
/// `pack` writes such files in packed/, `dedup` in kept/. Records with names that lead elsewhere are
/// rejected. On HDFS each file may wait half a second for the name node: take many --workers.
#[derive(clap::Args)]
#[command(override_usage = "dedup-job unpack [OPTIONS] <INPUT>... <OUTPUT>")]
pub struct Args {
    /// Files, folders, globs or comma lists of them, local, on HDFS or in an object store; the last one is
    /// the output folder
    #[arg(required = true, num_args = 1.., value_name = "INPUT> <OUTPUT", value_parser = paths())]
    paths: Vec<String>,
    #[command(flatten)]
    options: UnpackOptions,
    /// Stop with exit code 4 before anything is committed if more records than this are rejected
    #[arg(long, value_name = "N")]
    max_rejects: Option<u64>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Options that decide what is unpacked.
#[derive(Clone, clap::Args, Serialize)]
#[serde(rename_all = "kebab-case")]
struct UnpackOptions {
    /// Approximate number of bytes of a packed file that one worker reads at a time
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = size)]
    #[serde(with = "text")]
    split_size: u64,
    /// Reject records that are longer than this
    #[arg(long, value_name = "SIZE", default_value = "128M", value_parser = record_size)]
    #[serde(with = "text")]
    max_record_bytes: u64,
}

/// Runs the job; returns 0, or 3 if records were rejected.
pub fn run(common: &Common, args: Args) -> Result<u8> {
    let (output, inputs) = output_and_inputs(&args.paths)?;
    let reading = Reading { max_record_bytes: args.options.max_record_bytes as usize, ..Reading::default() };
    let start = Instant::now();
    let stores = Stores::new();
    let plan = Plan::new(&stores, &[], inputs, None, Some(args.options.split_size), &env::temp_dir())?;
    let job = OutputJob::alone(
        (common, &stores, start),
        Run::alone(plan, reading, common.workers(), &Arc::default()),
        Stage::Unpack.name(),
        (output, &args.output),
        serde_json::to_value(Configuration::here(&args.options, common.workers(), inputs)?)?,
    );
    let repack = Repack {
        job: &job,
        max_rejects: args.max_rejects,
        stage: Stage::Unpack,
        unit: RepackUnit::FilesUnpacked,
    };
    let names = Mutex::default();
    repack.run(|folder, at, number, split, rejects| {
        Unpacking { reading: &job.run.reading, names: &names, folder, at }.split(number, split, rejects)
    })
}

struct Unpacking<'a> {
    reading: &'a Reading,
    names: &'a Mutex<WrittenNames>,
    folder: &'a OutputFolder,
    at: &'a StageTimer<'a>,
}

impl Unpacking<'_> {
    /// Unpacks the files of one split.
    fn split(&self, number: u32, split: &Split, rejects: &mut SplitRejectsWriter) -> Result<RepackCounters> {
        let mut copied = RepackCounters::default();
        let mut next = 0;
        for unopened in &split.pieces {
            let piece = unopened.open()?;
            let mut batch = DocBatch::new(number, next);
            self.piece(split, &piece, unopened.speaks_for_file(), &mut batch, rejects, &mut copied)?;
            next = batch.next_record();
            rejects.take(&mut batch)?;
            self.at.done(unopened.bytes());
        }
        Ok(copied)
    }

    fn piece(
        &self,
        split: &Split,
        piece: &Piece,
        speaks_for_file: bool,
        batch: &mut DocBatch,
        rejects: &mut SplitRejectsWriter,
        copied: &mut RepackCounters,
    ) -> Result<()> {
        let path = piece.blob.path();
        let mut reader = match split.format.unpack(piece, self.reading) {
            Ok(Some(reader)) => reader,
            Ok(None) => bail!(WrongUse(format!(
                "\"{path}\" is {}, and only sequencefile and parquet hold files",
                split.format.name()
            ))),
            Err(error) => return splits::end(error, speaks_for_file.then_some(batch)).map(drop),
        };
        loop {
            rejects.take(batch)?;
            match reader.next() {
                Ok(None) => return Ok(()),
                Ok(Some(Packed::Lost { offset, reason, head })) => batch.reject(path, offset, reason, head),
                Ok(Some(Packed::File { offset, name, bytes })) => {
                    match self.file(path, offset, name, bytes)? {
                        None => {
                            copied.records += 1;
                            copied.bytes += bytes.len() as u64;
                            self.at.read(1, bytes.len() as u64);
                        }
                        Some(reason) => batch.reject(path, offset, reason, name.as_bytes()),
                    }
                }
                Err(error) => return splits::end(error, Some(batch)).map(drop),
            }
        }
    }

    /// Writes a file, or returns why its name cannot be used.
    fn file(&self, path: &str, offset: u64, name: &str, bytes: &[u8]) -> Result<Option<String>> {
        if bytes.len() > self.reading.max_record_bytes {
            return Ok(Some(format!("longer than {} bytes", self.reading.max_record_bytes)));
        }
        if let Some(reason) = wrong_name(name) {
            return Ok(Some(format!("the name {reason}")));
        }
        if !self.names.lock().add(name) {
            bail!(WrongUse(format!(
                "two files cannot both be called {name:?}, nor can it be the folder of another; one of them is in \
                 \"{path}\" at {offset}; give them other ids"
            )));
        }
        match self.write(name, bytes) {
            Ok(()) => Ok(None),
            Err(cluster::Error::BadName { reason, .. }) => {
                Ok(Some(format!("the name cannot be used: {reason}")))
            }
            Err(cluster::Error::Io { source, .. }) if source.kind() == ErrorKind::InvalidFilename => {
                Ok(Some("the name is too long".to_owned()))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), cluster::Error> {
        let mut output = self.folder.file(&format!("unpacked/{name}"))?;
        output.write_all(bytes).map_err(|error| match error.downcast::<cluster::Error>() {
            Ok(error) => error,
            Err(error) => cluster::Error::io(name, "write", error),
        })?;
        output.finish(1)
    }
}

/// Returns what is wrong with a name that is to lie below a folder.
fn wrong_name(name: &str) -> Option<&'static str> {
    if name.contains('\0') {
        return Some("holds a zero byte");
    }
    if name.starts_with('/') {
        return Some("begins with /");
    }
    name.split('/').find_map(|part| match part {
        "" => Some("has an empty part"),
        "." | ".." => Some("leads elsewhere"),
        part if path_of_text(part).as_os_str().len() > NAME_BYTES => {
            Some("has a part of more than 255 bytes")
        }
        _ => None,
    })
}

/// Names of all files that have been written, and of the folders that they lie in.
///
/// Memory: each name, and about 50 bytes.
#[derive(Default)]
struct WrittenNames {
    files: HashSet<String>,
    folders: HashSet<String>,
}

impl WrittenNames {
    /// Adds a name. Returns `false` if the name is taken, or would make a file of a folder or a folder of a
    /// file.
    fn add(&mut self, name: &str) -> bool {
        for (slash, _) in name.match_indices('/') {
            let folder = &name[..slash];
            if self.files.contains(folder) {
                return false;
            }
            if !self.folders.contains(folder) {
                self.folders.insert(folder.to_owned());
            }
        }
        !self.folders.contains(name) && self.files.insert(name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_known() {
        for name in ["", "/a", "..", "../a", "a/../b", "a/..", "a/./b", "a//b", "a/", "a\0b", "."] {
            assert!(wrong_name(name).is_some(), "{name:?}");
        }
        assert!(wrong_name(&"x".repeat(256)).is_some());
        for name in ["a", "...", "a..", ".a", "-a", "a\nb", "文/一.txt", "a\\..\\b", &"x".repeat(255)] {
            assert_eq!(wrong_name(name), None, "{name:?}");
        }
    }

    #[test]
    fn a_name_is_neither_taken_twice_nor_a_folder_of_another() {
        let added = |names: &[&str]| {
            let mut taken = WrittenNames::default();
            names.iter().map(|name| taken.add(name)).collect::<Vec<_>>()
        };
        assert_eq!(added(&["a/b", "a/c", "a/b"]), [true, true, false]);
        assert_eq!(added(&["a/b", "a"]), [true, false]);
        assert_eq!(added(&["a", "ab", "a/b/c"]), [true, true, false]);
    }
}
