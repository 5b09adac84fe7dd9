//! Says of the files that an output may be, and refuses those that must not be replaced.

use std::fs;
use std::path::PathBuf;

use anyhow::{Result, bail};
use cluster::path_of_text;
use datasets::FileHead;

use crate::cli::exit::WrongUse;
use crate::cli::piped::{STANDARD, is_pipe};
use crate::cli::report_file::ReportFile;

/// Endings of names by which an output is a file, each with the formats that it may have.
const ENDINGS: [(&str, &[&str]); 14] = [
    ("jsonl", &["jsonl", "json-array"]),
    ("ndjson", &["jsonl", "json-array"]),
    ("json", &["jsonl", "json-array"]),
    ("csv", &["csv", "weibo-csv"]),
    ("tsv", &["tsv", "csv"]),
    ("txt", &["lines", "sogoucs", "wikiextractor"]),
    ("lines", &["lines"]),
    ("dat", &["sogoucs"]),
    ("xml", &["sogoucs", "mediawiki"]),
    ("warc", &["warc"]),
    ("wet", &["warc"]),
    ("parquet", &["parquet"]),
    ("seq", &["sequencefile"]),
    ("sequencefile", &["sequencefile"]),
];

/// Returns the formats that a file of this name may have, and the ending of its compression; `None` if the name tells no format.
pub(super) fn ending(name: &str) -> Option<(&'static [&'static str], &'static str)> {
    let compression =
        FileHead::COMPRESSIONS.into_iter().find(|compression| name.ends_with(compression)).unwrap_or("");
    let (_, last) = name[..name.len() - compression.len()].rsplit_once('.')?;
    let (_, formats) = ENDINGS.iter().find(|(ending, _)| ending.eq_ignore_ascii_case(last))?;
    Some((formats, compression))
}

/// Whether an output is a folder. It is a file if there is one input, a file or a pipe, and if its name has the ending of a format and no slash
/// at its end.
pub(super) fn is_folder(output: &str, inputs: &[String]) -> bool {
    if output == STANDARD {
        return false;
    }
    let is_file = |input: &String| is_pipe(input) || path_of_text(input).is_file();
    let is_one = matches!(inputs, [input] if is_file(input));
    !is_one || !is_named(output)
}

/// Whether an output has the name of a file, and is not there as a folder.
pub(super) fn is_named(output: &str) -> bool {
    let is_local = !output.contains("://") && !output.ends_with('/');
    is_local && ending(output).is_some() && !path_of_text(output).is_dir()
}

/// Checks the files that a run will write, before it does anything.
///
/// # Errors
/// [`WrongUse`] when two are the same, one is an input, one exists and is not to be replaced, or only the kept records may go to the
/// standard output; when one cannot be written.
pub(super) fn check_targets(
    kept: &str,
    others: [&Option<String>; 2],
    inputs: &[String],
    overwrite: bool,
) -> Result<()> {
    let mut seen: Vec<(PathBuf, &str)> = Vec::new();
    for (number, file) in [Some(kept)].into_iter().chain(others.map(Option::as_deref)).enumerate() {
        let Some(file) = file else { continue };
        if file == STANDARD {
            if number > 0 {
                bail!(WrongUse(
                    "only the kept records can go to the standard output: name a file".to_owned()
                ));
            }
            if rustix::io::fcntl_getfd(std::io::stdout()).is_err() {
                bail!(WrongUse("the standard output is closed".to_owned()));
            }
            continue;
        }
        let place = place_of(file);
        if let Some((_, other)) = seen.iter().find(|(other, _)| *other == place) {
            bail!(WrongUse(format!(
                "\"{file}\" and \"{other}\" are one file, to which different records would go"
            )));
        }
        if inputs.iter().any(|input| input != STANDARD && place_of(input) == place) {
            bail!(WrongUse(format!("the output \"{file}\" is the input")));
        }
        if path_of_text(file).is_file() && !overwrite {
            bail!(WrongUse(format!("\"{file}\" exists: --overwrite replaces it")));
        }
        ReportFile::check(file)?;
        seen.push((place, file));
    }
    Ok(())
}

/// Returns the path of a file with all links followed, whether it is there or not.
fn place_of(file: &str) -> PathBuf {
    let path = path_of_text(file);
    if let Ok(place) = fs::canonicalize(&path) {
        return place;
    }
    let path = std::path::absolute(&path).unwrap_or(path);
    match (path.parent().and_then(|folder| fs::canonicalize(folder).ok()), path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}
