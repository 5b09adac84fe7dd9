//! The job `chunk`: block-level deduplication.
//!
//! This room uses `corpus` and `output`.

use anyhow::Result;

use crate::Common;

/// Deduplicate below the level of documents
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    tool: Tool,
}

#[derive(clap::Subcommand)]
enum Tool {}

/// Runs the job, and returns its exit code.
pub fn run(_common: &Common, args: Args) -> Result<u8> {
    match args.tool {}
}
