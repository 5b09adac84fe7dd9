//! Inputs that can be read only once: the standard input, named pipes, and files of process substitution.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use cluster::{path_of_text, text_of_path};
use datasets::FileHead;

use super::exit::WrongUse;
use super::temporary::TemporaryFolder;

/// Name of the standard input and of the standard output on the command line.
pub(crate) const STANDARD: &str = "-";

/// Inputs of which those that can be read only once are copied to files, since a corpus is read more than once.
///
/// Disk: their bytes, until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct PipedInputs {
    folder: Option<TemporaryFolder>,
    copies: usize,
    takes_stdin: bool,
    /// Whether a copy is of no format that its first bytes tell, so that it is read as plain lines.
    pub are_lines: bool,
}

impl PipedInputs {
    /// Returns inputs with copies in the place of pipes. `text_field`: the field of the text, by which CSV is told. `local`: folder for
    /// temporary files.
    ///
    /// # Errors
    /// Those of the pipes and of the disk; [`WrongUse`] if the standard input is named twice.
    pub fn copy(&mut self, inputs: &[String], text_field: &str, local: &Path) -> Result<Vec<String>> {
        inputs
            .iter()
            .map(
                |input| {
                    if is_pipe(input) { self.copy_one(input, text_field, local) } else { Ok(input.clone()) }
                },
            )
            .collect()
    }

    fn copy_one(&mut self, input: &str, text_field: &str, local: &Path) -> Result<String> {
        if input == STANDARD && std::mem::replace(&mut self.takes_stdin, true) {
            bail!(WrongUse("the standard input can be an input once".to_owned()));
        }
        let folder = match &mut self.folder {
            Some(folder) => folder,
            none => none.insert(TemporaryFolder::new(local)?),
        };
        self.copies += 1;
        let file = folder.path().join(format!("pipe-{}", self.copies));
        let copied = match input == STANDARD {
            true => copy(io::stdin().lock(), &file, text_field),
            false => File::open(path_of_text(input))
                .map_err(Into::into)
                .and_then(|pipe| copy(pipe, &file, text_field)),
        };
        let (file, is_told) = copied
            .with_context(|| format!("could not read \"{input}\" into the folder for temporary files"))?;
        self.are_lines |= !is_told;
        Ok(text_of_path(file.as_os_str()))
    }

    /// Whether there are copies.
    pub fn has_copies(&self) -> bool {
        self.copies > 0
    }
}

/// Whether an input can be read only once.
pub(crate) fn is_pipe(input: &str) -> bool {
    let is_one_way = |file: fs::Metadata| file.file_type().is_fifo() || file.file_type().is_char_device();
    input == STANDARD || fs::metadata(path_of_text(input)).is_ok_and(is_one_way)
}

/// Copies a pipe to a file, which gets an ending by its first bytes. Returns the file, and whether these tell a format.
fn copy(mut pipe: impl Read, path: &Path, text_field: &str) -> Result<(PathBuf, bool)> {
    let mut file = File::create(path)?;
    io::copy(&mut pipe, &mut file)?;
    let mut head = Vec::new();
    File::open(path)?.take(FileHead::BYTES as u64).read_to_end(&mut head)?;
    let FileHead { compression, text, .. } = FileHead::of("", &head);
    let ending = ending(&text, text_field);
    let named = path.with_extension(format!("{}{compression}", ending.unwrap_or("lines")));
    fs::rename(path, &named)?;
    Ok((named, ending.is_some() || head.is_empty()))
}

/// Returns the ending of a file whose text begins like this; `None` if it may be plain lines. Formats that are told by their contents have
/// that of lines, since they are told by any name.
fn ending(text: &str, text_field: &str) -> Option<&'static str> {
    if text.trim_start().starts_with('{') {
        return Some("jsonl");
    }
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next()?;
    if first.starts_with("PAR1") || first.starts_with("SEQ\u{6}") || first == "<doc>" || first == "<docs>" {
        return Some("lines");
    }
    let header = if first.starts_with("sep=") { lines.next()? } else { first };
    let is_text = |field: &str| field.trim().trim_matches(['"', '\'']) == text_field;
    let has_text = |delimiter: char| header.contains(delimiter) && header.split(delimiter).any(is_text);
    ['\t', ',', ';', '|'].into_iter().any(has_text).then_some("csv")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_told_by_its_first_bytes() {
        for (text, expected) in [
            ("{\"id\":1}", Some("jsonl")),
            ("\n {\"id\":1}", Some("jsonl")),
            ("id,text\n1,a\n", Some("csv")),
            ("\r\n\"id\";\"text\"\n", Some("csv")),
            ("sep=|\nid|text\n", Some("csv")),
            ("id\ttext\n", Some("csv")),
            ("<doc>\n<url>", Some("lines")),
            ("the text, as it is\n", None),
            ("text\n", None),
            ("", None),
        ] {
            assert_eq!(ending(text, "text"), expected, "{text:?}");
        }
        assert_eq!((ending("id,body\n", "body"), ending("id,body\n", "text")), (Some("csv"), None));
    }
}
