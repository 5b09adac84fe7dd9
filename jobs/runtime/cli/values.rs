//! Options that jobs share, and how they are read.

use std::fs;

use anyhow::{Result, bail};
#[cfg(feature = "cli")]
use clap::builder::{OsStringValueParser, TypedValueParser};
use cluster::path_of_text;
use datasets::{BadText, NullText};
use serde::{Deserialize, Serialize};

use crate::cli::exit::WrongUse;

/// Treatment of a text with bytes that its encoding does not allow.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum OnBadText {
    /// Reject the record.
    #[default]
    Reject,
    /// Read each illegal sequence as U+FFFD.
    Replace,
}

/// Treatment of a null in the place of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum OnNullText {
    /// Reject the record.
    Reject,
    /// Keep it as one without text.
    Keep,
    /// Leave it out, which is no fault: rejects/ lists it, and neither the exit code nor --max-rejects counts it.
    Drop,
}

/// Answer to a question of which one answer is the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the help would list the answers line by line")]
pub enum YesOrNo {
    Yes,
    No,
}

impl From<OnNullText> for NullText {
    fn from(how: OnNullText) -> Self {
        match how {
            OnNullText::Reject => NullText::Reject,
            OnNullText::Keep => NullText::Keep,
            OnNullText::Drop => NullText::Drop,
        }
    }
}

impl From<OnBadText> for BadText {
    fn from(how: OnBadText) -> Self {
        match how {
            OnBadText::Reject => BadText::Reject,
            OnBadText::Replace => BadText::Replace,
        }
    }
}

/// Splits the paths of a command line into the output, which is the last one, and the inputs.
pub fn output_and_inputs(paths: &[String]) -> Result<(&String, &[String])> {
    match paths.split_last() {
        Some((output, inputs @ [_, ..])) => Ok((output, inputs)),
        _ => bail!(WrongUse("expected <INPUT> <OUTPUT>: at least one input, and the output last, such as in.jsonl clean, or - - in a pipe".to_owned())),
    }
}

/// Returns a parser of file names, which may have any bytes.
#[cfg(feature = "cli")]
pub fn paths() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(|path| cluster::text_of_path(&path))
}

/// Reads a length that one record can have in memory: up to 1G.
pub fn record_size(text: &str) -> Result<u64, String> {
    let bytes = size(text)?;
    if bytes <= 1 << 30 { Ok(bytes) } else { Err("no more than 1G is possible".to_owned()) }
}

/// Reads a number of bytes: digits, then K, M, G or T for powers of 1,024, in either case, with B or iB behind it or not.
pub fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_lowercase();
    let unit = unit.strip_suffix("ib").or(unit.strip_suffix('b')).unwrap_or(&unit);
    let shift = match unit {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => 64,
    };
    let number = digits.trim_end().parse::<u64>().ok();
    let number = number.filter(|&number| number > 0 && number.leading_zeros() > shift);
    number.map(|number| number << shift).ok_or_else(|| "expected a size such as 500K, 32M or 1G".to_owned())
}

/// Returns the text of a local file, without a byte order mark.
pub fn text_of_file(file: &str) -> Result<String> {
    let bytes = fs::read(path_of_text(file))
        .map_err(|error| WrongUse(format!("could not read \"{file}\": {error}")))?;
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text).to_owned()),
        Err(error) => {
            let line = 1 + bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count();
            bail!(WrongUse(format!("\"{file}\", line {line}: not valid UTF-8")))
        }
    }
}

/// Reads the ids of a file, one a line, without the CR of a line break of Windows. Empty lines are left out.
pub fn ids_of_file(file: &str) -> Result<Vec<String>> {
    let mut ids: Vec<String> = id_lines(file)?.iter().map(|line| without_cr(line).to_owned()).collect();
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// Reads the lines of a list of ids as they are, each once. A CR at the end of one may belong to the id or to the line break.
/// Empty lines are left out.
pub fn id_lines(file: &str) -> Result<Vec<String>> {
    let text = text_of_file(file)?;
    let mut lines: Vec<String> =
        text.split('\n').filter(|line| !without_cr(line).is_empty()).map(str::to_owned).collect();
    lines.sort_unstable();
    lines.dedup();
    Ok(lines)
}

/// Returns a line without a CR at its end.
pub fn without_cr(line: &str) -> &str {
    line.strip_suffix('\r').unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for text in [
            "4g",
            "4G",
            "4GB",
            "4gb",
            "4GiB",
            "4096m",
            "4096M",
            "4 GB",
            "4194304k",
            "4294967296",
            "4294967296B",
        ] {
            assert_eq!(size(text), Ok(4 << 30), "{text}");
        }
        assert_eq!(size("2t"), Ok(2 << 40));
        for text in ["", "g", "0", "-1", "4x", "4gg", "1.5G", "99999999999T", "4i"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
