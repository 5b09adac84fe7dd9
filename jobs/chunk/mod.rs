//! The job `chunk`: block-level deduplication.
//!
//! `compare` measures block methods. This room uses `cli`, `corpus`, `output` and `progress`.

mod compare;

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
    Compare(Box<compare::Args>),
}

/// Runs the job, and returns its exit code.
pub fn run(common: &Common, args: Args) -> Result<u8> {
    match args.tool {
        ChunkTool::Compare(args) => compare::run(common, &args),
    }
}
