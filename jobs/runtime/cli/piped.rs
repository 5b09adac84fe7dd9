//! Inputs that can be read only once: the standard input, named pipes, and files of process substitution.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use cluster::{Stores, path_of_text, text_of_path};
use datasets::{FileHead, format_named};

use super::exit::{Failure, WrongUse};
use super::temporary::TemporaryFolder;

/// Name of the standard input and of the standard output on the command line.
pub const STANDARD: &str = "-";

/// Inputs of which those that can be read only once are copied to files, since a corpus is read more than once.
///
/// Disk: their bytes, until this is dropped.
#[derive(Debug, Default)]
pub struct PipedInputs {
    folder: Option<TemporaryFolder>,
    /// Copies, and the inputs that they are of.
    copies: Vec<(String, String)>,
    takes_stdin: bool,
    /// Whether a copy is of no format that its first bytes tell, so that it is read as plain lines.
    pub are_lines: bool,
}

impl PipedInputs {
    /// Returns inputs with copies in the place of pipes. `text_field`: the field of the text, by which CSV is told; `None` if the user has named
    /// the format. `local`: folder for temporary files.
    ///
    /// # Errors
    /// Those of the pipes and of the disk; [`WrongUse`] if the standard input is named twice.
    pub fn copy(&mut self, inputs: &[String], text_field: Option<&str>, local: &Path) -> Result<Vec<String>> {
        inputs
            .iter()
            .map(
                |input| {
                    if is_pipe(input) { self.copy_one(input, text_field, local) } else { Ok(input.clone()) }
                },
            )
            .collect()
    }

    fn copy_one(&mut self, input: &str, text_field: Option<&str>, local: &Path) -> Result<String> {
        if input == STANDARD && std::mem::replace(&mut self.takes_stdin, true) {
            bail!(WrongUse("the standard input can be an input once".to_owned()));
        }
        let folder = match &mut self.folder {
            Some(folder) => folder,
            none => none.insert(TemporaryFolder::new(local)?),
        };
        let file = folder.path().join(format!("pipe-{}", self.copies.len() + 1));
        let copied = match input == STANDARD {
            true => copy(io::stdin().lock(), &file, text_field),
            false => File::open(path_of_text(input))
                .map_err(Into::into)
                .and_then(|pipe| copy(pipe, &file, text_field)),
        };
        let (file, is_told) = copied.map_err(|error| match error.is::<Failure>() {
            true => error,
            false => error.context(format!("could not read \"{input}\" into the folder for temporary files")),
        })?;
        self.are_lines |= !is_told;
        let file = text_of_path(file.as_os_str());
        self.copies.push((file.clone(), input.to_owned()));
        Ok(file)
    }

    /// Whether there are copies.
    pub fn has_copies(&self) -> bool {
        !self.copies.is_empty()
    }

    /// Gives the copies the names of the inputs that they are of.
    pub fn name_in(&self, stores: &Stores) {
        self.copies.iter().for_each(|(copy, input)| stores.show_as(copy, input));
    }
}

/// Whether an input can be read only once.
pub fn is_pipe(input: &str) -> bool {
    let is_one_way = |file: fs::Metadata| file.file_type().is_fifo() || file.file_type().is_char_device();
    input == STANDARD || fs::metadata(path_of_text(input)).is_ok_and(is_one_way)
}

/// Copies a pipe to a file, which gets an ending by its first bytes. Returns the file, and whether its format is told, by these or by the user.
fn copy(mut pipe: impl Read, path: &Path, text_field: Option<&str>) -> Result<(PathBuf, bool)> {
    let mut file = File::create(path)?;
    io::copy(&mut pipe, &mut file)?;
    let mut head = Vec::new();
    File::open(path)?.take(FileHead::BYTES as u64).read_to_end(&mut head)?;
    let FileHead { compression, text, .. } = FileHead::of("", &head);
    let Some(text_field) = text_field else {
        let named = path.with_extension(compression.trim_start_matches('.'));
        fs::rename(path, &named)?;
        return Ok((named, true));
    };
    let ending =
        ending(&head, &text, text_field).map_err(|why| WrongUse(format!("what is piped in {why}")))?;
    let named = path.with_extension(format!("{}{compression}", ending.unwrap_or("lines")));
    fs::rename(path, &named)?;
    Ok((named, ending.is_some() || head.is_empty()))
}

/// Delimiters of CSV.
const DELIMITERS: [char; 4] = ['\t', ',', ';', '|'];
/// Beginnings of files that are not read, and what makes them readable.
const OTHERS: [(&[u8], &str); 4] = [
    (b"PK\x03\x04", "is a ZIP archive, which is not read: unpack it, and name the folder"),
    (b"\xfd7zXZ\0", "is compressed by xz, which is not read: put xz -d before"),
    (b"\x04\"M\x18", "is compressed by lz4, which is not read: put lz4 -d before"),
    (b"7z\xbc\xaf", "is a 7z archive, which is not read: unpack it, and name the folder"),
];

/// Returns the ending of a file that begins like this; `None` if it is plain lines by all that can be told. Formats that are told by
/// their contents have that of lines, since they are told by any name. `text`: the same decompressed and decoded.
///
/// # Errors
/// The reason why it is not read, and what to do.
fn ending(head: &[u8], text: &str, text_field: &str) -> Result<Option<&'static str>, String> {
    if let Some((_, why)) = OTHERS.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Err((*why).to_owned());
    }
    // The names of those do not matter that begin as no text does.
    if ["parquet", "sequencefile", "warc"]
        .into_iter()
        .filter_map(format_named)
        .any(|format| format.recognises("", head))
    {
        return Ok(Some("lines"));
    }
    let begin = text.trim_start();
    let is_array =
        format_named("json-array").is_some_and(|format| format.recognises(".json", begin.as_bytes()));
    match begin.strip_prefix(['{', '[']).map(str::trim_start) {
        Some(_) if begin.starts_with('{') => return Ok(Some(if is_array { "json" } else { "jsonl" })),
        // A line of a log may begin with a bracket.
        Some(rest) if is_array && rest.starts_with(['{', '"', ']']) => return Ok(Some("json")),
        _ => {}
    }
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(5).collect();
    let Some(first) = lines.first() else { return Ok(None) };
    // A line of JSON lines may be damaged.
    if lines.iter().filter(|line| line.starts_with("{\"")).count() * 2 >= lines.len() {
        return Ok(Some("jsonl"));
    }
    if *first == "<doc>" || *first == "<docs>" {
        return Ok(Some("lines"));
    }
    let header = if first.starts_with("sep=") { lines.get(1).unwrap_or(first) } else { first };
    let is_text = |field: &str| field.trim().trim_matches(['"', '\'']) == text_field;
    let has_text = |delimiter: char| header.contains(delimiter) && header.split(delimiter).any(is_text);
    if DELIMITERS.into_iter().any(has_text) {
        return Ok(Some("csv"));
    }
    let fields = |delimiter: char| lines.iter().map(move |line| line.matches(delimiter).count());
    let is_table = |delimiter: char| {
        let (least, most) = (fields(delimiter).min(), fields(delimiter).max());
        lines.len() > 1 && least == most && most > Some(0)
    };
    match DELIMITERS.into_iter().any(is_table) {
        true => Err(format!(
            "looks like a table without the field \"{text_field}\": name the field by --text-field, or the format by --format csv, tsv or lines"
        )),
        false => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_told_by_its_first_bytes() {
        let told = |text: &str| ending(text.as_bytes(), text, "text");
        for (text, expected) in [
            ("{\"id\":1}", Some("jsonl")),
            ("\n {\"id\":1}", Some("jsonl")),
            ("[\n  {\"id\": 1}", Some("json")),
            ("[\"a\",\"b\"]", Some("json")),
            ("{\n  \"id\": 1}", Some("json")),
            ("id,text\n1,a\n", Some("csv")),
            ("\r\n\"id\";\"text\"\n", Some("csv")),
            ("sep=|\nid|text\n", Some("csv")),
            ("id\ttext\n", Some("csv")),
            ("<doc>\n<url>", Some("lines")),
            ("the text, as it is\nand more", None),
            ("[INFO] a line of a log\n", None),
            ("text\n", None),
            ("one, line", None),
            ("", None),
            ("damaged\n{\"id\":1}\n{\"id\":2}", Some("jsonl")),
        ] {
            assert_eq!(told(text), Ok(expected), "{text:?}");
        }
        for (text, word) in
            [("编号,正文\n1,\"一\n", "--text-field"), ("1\ta\n2\tb\n", "--format"), ("PK\u{3}\u{4}xx", "ZIP")]
        {
            assert!(told(text).is_err_and(|why| why.contains(word)), "{text:?}");
        }
        assert_eq!(ending(b"id,body\n", "id,body\n", "body"), Ok(Some("csv")));
    }
}
