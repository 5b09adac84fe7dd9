//! The files of the input, and those of a reference that it is compared against.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;

use anyhow::{Result, bail};
use cluster::{InputFile, Stores, TablePartition, path_of_text, real_path};

use super::own_outputs;
use crate::cli::exit::WrongUse;

/// Words in the names of training data.
const TRAINING: [&str; 2] = ["train", "training"];
/// Words in the names of data on which a model is tested.
const TEST: [&str; 8] = ["test", "tests", "testing", "val", "valid", "validation", "dev", "eval"];

/// The files of a job, each side in the order of their paths.
pub struct InputFiles {
    /// Files of the reference, then those of the input.
    pub files: Vec<InputFile>,
    /// Number of files of the reference.
    pub reference: usize,
}

impl InputFiles {
    /// Finds the files that the reference (`against`) and the input name.
    ///
    /// # Errors
    /// [`WrongUse`] when a file is on both sides: all of its records would be identical to themselves.
    pub fn find(stores: &Stores, against: &[String], inputs: &[String]) -> Result<Self> {
        let mut files = stores.expand(against)?;
        let mut of_input = stores.expand(inputs)?;
        say_passed_over(&stores.passed_over());
        if !against.is_empty() {
            check(against, &mut files, "reference")?;
        }
        check(inputs, &mut of_input, "input")?;
        say_joined_tables(&of_input);
        refuse_shared(&files, &of_input)?;
        name_reference_apart(&mut files, &of_input)?;
        let reference = files.len();
        files.append(&mut of_input);
        Ok(InputFiles { files, reference })
    }
}

/// Says what is passed over, in one line for each kind.
fn say_passed_over(passed_over: &BTreeMap<String, &str>) {
    let mut by_kind: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (path, kind) in passed_over {
        by_kind.entry(kind).or_default().push(path);
    }
    for (kind, paths) in by_kind {
        let more = match paths.len() - 1 {
            0 => String::new(),
            more => format!(", with {more} more of its kind"),
        };
        log::warn!("\"{}\" is {kind}: it is passed over{more}", paths[0]);
    }
}

/// Warns if the partitions of different tables will lie in one folder of the output.
fn say_joined_tables(files: &[InputFile]) {
    let mut tables = BTreeMap::new();
    for file in files {
        let (name, path) = (TablePartition::of(&file.name), TablePartition::of(&file.path));
        if !name.folders().is_empty() {
            let table = format!("{}{}", file.store.prefix(), path.table());
            let first = tables.entry(name.folders()).or_insert_with(|| table.clone());
            if *first != table {
                log::warn!(
                    "\"{first}\" and \"{table}\" both have a partition \"{}\": the documents of both will lie in \
                     one folder of the output",
                    name.folders()
                );
                return;
            }
        }
    }
}

/// Leaves out outputs of this program, refuses those that are not finished, and names the files of one side apart.
fn check(named: &[String], files: &mut Vec<InputFile>, side: &str) -> Result<()> {
    own_outputs::leave_out(named, files)?;
    own_outputs::refuse_unfinished(files)?;
    own_outputs::take_records(named, files)?;
    if files.is_empty() {
        bail!(WrongUse(format!(
            "the {side} holds nothing but finished outputs, or one without records: name a folder of records, such as OUTPUT/kept"
        )));
    }
    name_apart(files)
}

/// Returns two files that look like the training and the test data of one data set: in their names, one has a word such as
/// `train` where the other has one such as `test`.
///
/// ```text
/// data/train-00000-of-00005.parquet   data/test-00000-of-00001.parquet
/// cnews.train.txt                     cnews.val.txt
/// ```
pub(super) fn training_and_test(files: &[InputFile]) -> Option<(&InputFile, &InputFile)> {
    let find = |words: &[&str]| {
        files.iter().find(|file| {
            let mut parts = file.name.split(|c: char| !c.is_alphabetic());
            parts.any(|part| words.contains(&&*part.to_ascii_lowercase()))
        })
    };
    find(&TRAINING).zip(find(&TEST)).filter(|(one, other)| !std::ptr::eq(*one, *other))
}

/// Returns an error if a file is on both sides, perhaps by a link.
fn refuse_shared(reference: &[InputFile], input: &[InputFile]) -> Result<()> {
    let mut paths = RealPaths::default();
    let mut place = |file: &InputFile| match file.store.prefix() {
        "" => paths.of(&file.path),
        _ => PathBuf::from(file.full_path()),
    };
    let reference: HashSet<PathBuf> = reference.iter().map(&mut place).collect();
    if reference.is_empty() {
        return Ok(());
    }
    match input.iter().find(|file| reference.contains(&place(file))) {
        Some(file) => bail!(WrongUse(format!(
            "\"{}\" is in the input and in the reference, where each of its records would match itself: leave it out of \
             one of them",
            file.full_path()
        ))),
        None => Ok(()),
    }
}

/// Real paths of local files, where links and `..` are followed.
#[derive(Default)]
pub(super) struct RealPaths {
    /// Folder of the last file, and its real path.
    above: Option<(PathBuf, PathBuf)>,
}

impl RealPaths {
    /// Returns the real path of a file whose path is absolute.
    ///
    /// Neighbours lie in one folder, and following each part of each path would take long.
    pub fn of(&mut self, path: &str) -> PathBuf {
        let path = path_of_text(path);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return real_path(&path) };
        if path.is_symlink() {
            return real_path(&path);
        }
        match &self.above {
            Some((above, itself)) if above == parent => itself.join(name),
            _ => {
                let itself = real_path(parent);
                let path = itself.join(name);
                self.above = Some((parent.to_owned(), itself));
                path
            }
        }
    }
}

/// Gives files of different inputs different names. If two would have one name, all files are named by their paths below the
/// deepest folder that holds them all: ids and parts are named after these names.
fn name_apart(files: &mut [InputFile]) -> Result<()> {
    if first_meeting(files).is_none() {
        return Ok(());
    }
    let paths: BTreeSet<String> = files.iter().map(InputFile::full_path).collect();
    name_below_shared_folder(files, &paths)?;
    match first_meeting(files) {
        Some(name) => {
            bail!(WrongUse(format!("two input files would both be called \"{name}\", or lie in it")))
        }
        None => Ok(()),
    }
}

/// Returns the first name that two files have, or that one file has and the folder of another.
fn first_meeting(files: &[InputFile]) -> Option<&str> {
    let mut names = HashSet::new();
    if let Some(twice) = files.iter().find(|file| !names.insert(&*file.name)) {
        return Some(&twice.name);
    }
    let mut folders =
        files.iter().flat_map(|file| file.name.match_indices('/').map(|(at, _)| &file.name[..at]));
    folders.find(|folder| names.contains(folder))
}

/// Gives the files of the reference other names than those of the input. If two would have one name, those of the
/// reference are named by their paths below the deepest folder that holds all files of both sides. The names of
/// the input stay, since its parts are named after them.
fn name_reference_apart(reference: &mut [InputFile], input: &[InputFile]) -> Result<()> {
    let names: HashSet<&str> = input.iter().map(|file| &*file.name).collect();
    if !reference.iter().any(|file| names.contains(&*file.name)) {
        return Ok(());
    }
    let paths = reference.iter().chain(input).map(InputFile::full_path).collect();
    name_below_shared_folder(reference, &paths)
}

/// Names files by their paths below the deepest folder that holds all of `paths`.
fn name_below_shared_folder(files: &mut [InputFile], paths: &BTreeSet<String>) -> Result<()> {
    // The paths are sorted, so all share what the first and the last share.
    let (Some(first), Some(last)) = (paths.first(), paths.last()) else { return Ok(()) };
    let same =
        first.split_inclusive('/').zip(last.split_inclusive('/')).take_while(|(one, other)| one == other);
    let shared: usize = same.map(|(one, _)| one.len()).sum();
    for file in files {
        file.name = InputFile::name_below(&file.full_path(), shared)?;
    }
    Ok(())
}
