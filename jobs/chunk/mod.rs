//! The job `chunk`: block-level deduplication.
//!
//! This room uses `cli`, `progress`, `corpus`, `output` and `dedup`.

mod clean;

use anyhow::Result;

use crate::Common;

/// Deduplicate below the level of documents
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    tool: Tool,
}

#[derive(clap::Subcommand)]
enum Tool {
    Clean(Box<clean::Args>),
}

/// Runs the job, and returns its exit code.
pub fn run(common: &Common, args: Args) -> Result<u8> {
    match args.tool {
        Tool::Clean(args) => clean::run(common, *args),
    }
}
