//! `demo`: a synthetic corpus with known duplicates.

use anyhow::Result;

/// x
#[derive(clap::Args)]
pub struct Args {}

/// x
pub fn run(_args: Args) -> Result<u8> {
    Ok(0)
}
