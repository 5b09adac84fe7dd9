//! The text of `_SUCCESS`: the summary of a run, the name of its folder, and the list of its files.

use anyhow::{Result, anyhow};
use serde::{Deserialize, Serialize};

use super::files::FileList;

/// File in the list of `_SUCCESS`: an [`OutputFile`](super::OutputFile) without its upload and place.
#[derive(Serialize)]
struct ListedFile<'a> {
    bytes: u64,
    records: u64,
    blake3: &'a str,
}

/// The part of `_SUCCESS` that this program reads back.
#[derive(Debug, Deserialize)]
pub struct SuccessList {
    /// `None` if the output was written by a version that did not list its files.
    pub files: Option<FileList>,
}

/// Returns the JSON object `summary` with two more members: `run`, which is unique to a run, and `files`.
pub(super) fn success_text(summary: &impl Serialize, run: &str, files: &FileList) -> Result<String> {
    let text = serde_json::to_string_pretty(summary)?;
    let body = text.trim_end().strip_suffix('}').map(str::trim_end);
    let body = body.ok_or_else(|| anyhow!("the summary of a run is no JSON object"))?;
    let mut success = format!("{body},\n  \"run\": {},\n  \"files\": {{", serde_json::to_string(run)?);
    let mut separator = "\n";
    for (name, file) in &files.0 {
        let bytes = file.bytes;
        let records = file.records;
        let blake3 = file.blake3.as_str();
        // Each file gets a line of its own, because there may be very many.
        success.push_str(separator);
        success.push_str(&format!("    {}: ", serde_json::to_string(name)?));
        success.push_str(&serde_json::to_string(&ListedFile { bytes, records, blake3 })?);
        separator = ",\n";
    }
    success.push_str("\n  }\n}\n");
    Ok(success)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::files::OutputFile;
    use super::*;

    #[test]
    fn the_list_is_read_back_beside_what_the_run_says() {
        let file = OutputFile { bytes: 5, records: 2, blake3: "ab".to_owned(), ..OutputFile::default() };
        let files = FileList([("kept/\"文\"".to_owned(), file)].into());
        let text = success_text(&json!({"version": "1", "counters": {"kept": 2}}), "7-x", &files).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&value["counters"]["kept"], &value["run"]), (&json!(2), &json!("7-x")));
        let SuccessList { files } = serde_json::from_str(&text).unwrap();
        let listed = OutputFile { bytes: 5, records: 2, blake3: "ab".to_owned(), ..OutputFile::default() };
        assert_eq!(files, Some(FileList([("kept/\"文\"".to_owned(), listed)].into())));
    }

    #[test]
    fn an_output_without_files_has_an_empty_list() {
        let text = success_text(&json!({"a": 1}), "r", &FileList::default()).unwrap();
        let SuccessList { files } = serde_json::from_str(&text).unwrap();
        assert_eq!(files, Some(FileList::default()));
    }
}
