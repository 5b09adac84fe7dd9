//! Ids of documents that are to be deleted.

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::cli::exit::WrongUse;
use crate::cli::values::{ids_of_file, paths, text_of_file};

/// A file of ids.
#[derive(clap::Args)]
pub(super) struct IdsArgs {
    /// File of ids, one a line
    #[arg(value_name = "IDS", value_parser = paths())]
    ids: String,
    /// The file has JSON lines with "id", as export and query print them
    ///
    /// Only so can an id be deleted that is empty, has a line break, or ends with a carriage return.
    #[arg(long)]
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
