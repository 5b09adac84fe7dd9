//! Finds outputs of this program inside an input folder, finished or not, which are no corpus.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use cluster::{BlobReader, InputFile, Store, one_line};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::output_layout::{FOLDERS, RECORDS, SUCCESS, is_begun};
use crate::cli::exit::WrongUse;
use crate::cli::terminal::say;

/// Members that a `_SUCCESS` of this program has. One of Spark is empty or has no configuration.
#[derive(Deserialize)]
struct OwnSuccess {
    #[serde(rename = "counters")]
    _counters: BTreeMap<String, IgnoredAny>,
    #[serde(rename = "configuration")]
    _configuration: BTreeMap<String, IgnoredAny>,
}

/// Leaves out files that lie in an output of this program below a folder that an input names, and says so.
///
/// | the file lies in | done with it |
/// |---|---|
/// | a finished output below a named folder | left out |
/// | an output that a killed run has shown in part, also that of this run | left out |
/// | an output that is itself named as an input | its [records](take_records) are read |
/// | any, if a pattern of an input writes out a folder such as `kept` | read |
///
/// Cost: for each folder that has one of [`FOLDERS`], `_SUCCESS` is read in little memory and `_temporary` is
/// listed.
pub(crate) fn leave_out(inputs: &[String], files: &mut Vec<InputFile>) -> Result<()> {
    if inputs.iter().any(|input| writes_out_folder(input)) {
        return Ok(());
    }
    // The prefix of the store, and the path of the folder, which ends with a slash.
    let candidates: BTreeSet<(String, String)> = files
        .iter()
        .flat_map(|file| {
            let named = file.path.len() - file.name.len();
            let parts = file.name.match_indices('/').map(|(at, _)| at);
            let starts = parts.clone().map(|at| at + 1).zip(parts.skip(1));
            let outputs = starts.filter(|&(start, end)| FOLDERS.contains(&&file.name[start..end]));
            let prefix = file.store.prefix();
            outputs.map(move |(start, _)| (prefix.to_owned(), file.path[..named + start].to_owned()))
        })
        .collect();
    for (prefix, folder) in candidates {
        let Some(store) =
            files.iter().find(|file| file.store.prefix() == prefix).map(|file| file.store.clone())
        else {
            continue; // all of it lies in an output that is left out already
        };
        if !is_output(store.as_ref(), &folder)? {
            continue;
        }
        let before = files.len();
        files.retain(|file| !(file.store.prefix() == prefix && file.path.starts_with(&folder)));
        if files.len() < before {
            log::warn!(
                "\"{prefix}{folder}\" is an output of this program inside of the input: its {} files are left out; \
                 to read it, name it as an input",
                before - files.len()
            );
        }
    }
    Ok(())
}

/// Whether a pattern writes out a folder of outputs, so that the user knows what is in them.
fn writes_out_folder(input: &str) -> bool {
    input.contains(['*', '?', '[', '{'])
        && input.split(['/', '{', ',', '}']).any(|name| FOLDERS.contains(&name))
}

/// Takes of each finished output that is itself named its [records](RECORDS) alone, and says so: not those that it has removed, nor its
/// tables and its page.
///
/// Cost: for each named folder with one of [`FOLDERS`], `_SUCCESS` is read in little memory and `_temporary` is
/// listed.
pub(crate) fn take_records(inputs: &[String], files: &mut Vec<InputFile>) -> Result<()> {
    if inputs.iter().any(|input| writes_out_folder(input)) {
        return Ok(());
    }
    let below = |file: &InputFile| FOLDERS.iter().any(|folder| is_below(&file.name, folder));
    let folder = |file: &InputFile| format!("{}{}", file.store.prefix(), named(file));
    // Whether each named folder is an output, asked once for each.
    let mut outputs = BTreeMap::<String, bool>::new();
    for file in files.iter().filter(|file| below(file)) {
        if let Entry::Vacant(entry) = outputs.entry(folder(file)) {
            entry.insert(is_output(file.store.as_ref(), named(file))?);
        }
    }
    outputs.retain(|_, is_output| *is_output);
    if outputs.is_empty() {
        return Ok(());
    }
    let are_records = |file: &InputFile| RECORDS.iter().any(|folder| is_below(&file.name, folder));
    let mut of_others = BTreeSet::new();
    files.retain(|file| {
        let stays = are_records(file) || !outputs.contains_key(&folder(file));
        if !stays {
            of_others.insert(folder(file));
        }
        stays
    });
    for output in of_others {
        say(one_line(&format!(
            "of \"{}\", an output of this program, the records alone are read: not what it has removed, its tables and its page",
            output.trim_end_matches('/')
        )));
    }
    Ok(())
}

/// Returns the named folder that a file was found below, with a slash at its end.
fn named(file: &InputFile) -> &str {
    &file.path[..file.path.len() - file.name.len()]
}

fn is_below(name: &str, folder: &str) -> bool {
    name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns an error if a file lies in an output that a run of this program has begun and not finished: it
/// would be read as if it were whole.
///
/// Cost: for each folder that has one of [`FOLDERS`], `_temporary` is listed.
pub(crate) fn refuse_unfinished(files: &[InputFile]) -> Result<()> {
    let mut seen = BTreeSet::new();
    for file in files {
        for (at, _) in file.path.match_indices('/') {
            let name = file.path[at + 1..].split('/').next().unwrap_or_default();
            let prefix = file.store.prefix();
            let output = &file.path[..at];
            if FOLDERS.contains(&name)
                && seen.insert((prefix, output))
                && is_begun(file.store.as_ref(), output)?
                && !file.store.exists(&format!("{output}/{SUCCESS}"))?
            {
                bail!(WrongUse(format!(
                    "the input \"{prefix}{}\" lies in \"{prefix}{output}\", an output that is not finished: run that job again first",
                    file.path
                )));
            }
        }
    }
    Ok(())
}

/// Whether a folder is an output of this program. `folder` ends with a slash.
pub fn is_output(store: &dyn Store, folder: &str) -> Result<bool> {
    if is_begun(store, folder.trim_end_matches('/'))? {
        return Ok(true);
    }
    let path = format!("{folder}{SUCCESS}");
    let blob = match store.open(&path) {
        Err(cluster::Error::NotFound { .. }) => return Ok(false),
        blob => blob?,
    };
    // The list of files may be longer than memory, so the file is not read whole.
    match serde_json::from_reader::<_, OwnSuccess>(BlobReader::new(blob, 0, u64::MAX)) {
        Err(error) if error.is_io() => Err(error).with_context(|| format!("could not read \"{path}\"")),
        success => Ok(success.is_ok()),
    }
}
