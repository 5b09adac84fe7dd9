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
    tool: ChunkTool,
}

#[derive(clap::Subcommand)]
enum ChunkTool {
    Clean(Box<clean::Args>),
}

/// Runs the job, and returns its exit code.
pub fn run(common: &Common, args: Args) -> Result<u8> {
    match args.tool {
        ChunkTool::Clean(args) => clean::run(common, *args),
    }
}
