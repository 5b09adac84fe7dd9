//! Ids of documents that are to be deleted.

use anyhow::{Context, Result};
use serde::Deserialize;

use runtime::cli::exit::WrongUse;
#[cfg(feature = "cli")]
use runtime::cli::values::paths;
use runtime::cli::values::{ids_of_file, text_of_file};

/// A file of ids.
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub(super) struct IdsArgs {
    /// File of ids, one a line
    #[cfg_attr(feature = "cli", arg(value_name = "IDS", value_parser = paths()))]
    ids: String,
    /// The file has JSON lines with "id", as export and query print them
    ///
    /// Only so can an id be deleted that is empty, has a line break, or ends with a carriage return.
    #[cfg_attr(feature = "cli", arg(long))]
    json: bool,
}

/// The part of a JSON line that is read.
#[derive(Deserialize)]
struct IdLine {
    id: String,
}

impl IdsArgs {
    /// Reads the ids, sorted and each once.
    ///
    /// # Errors
    /// [`WrongUse`] when the file cannot be read, and for a line that is no JSON with an id.
    pub fn read(&self) -> Result<Vec<String>> {
        if !self.json {
            return ids_of_file(&self.ids);
        }
        let text = text_of_file(&self.ids)?;
        let lines = (1..).zip(text.split('\n')).filter(|(_, line)| !line.trim().is_empty());
        let id = |(number, line): (usize, &str)| {
            let wrong = || WrongUse(format!("\"{}\", line {number}: expected JSON with \"id\"", self.ids));
            serde_json::from_str::<IdLine>(line).map(|line| line.id).with_context(wrong)
        };
        let mut ids = lines.map(id).collect::<Result<Vec<_>>>()?;
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }
}
