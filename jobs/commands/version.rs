//! `version`: which program this is.

use std::env::consts::{ARCH, OS};

use anyhow::Result;
use operators::fingerprint::hamming::Kernel;

use runtime::Common;
use runtime::cli::terminal::print;

/// Print the version; with --verbose also the commit, the date, the features and the kernels in use
#[derive(clap::Args)]
pub struct Args {}

/// Prints the version. `commit`: commit and date of the program, if it was built with them. Returns the exit code, which is 0.
pub fn run(common: &Common, commit: Option<&str>) -> Result<u8> {
    let mut text = format!("dedup-job {}\n", env!("CARGO_PKG_VERSION"));
    if common.is_verbose() {
        let commit = commit.unwrap_or("unknown: scripts/install builds it with its name");
        let features = if cfg!(feature = "faults") { "faults" } else { "none" };
        let kernel = format!("{:?}", Kernel::widest()).to_lowercase();
        text += &format!(
            "commit    {commit}\nfeatures  {features}\nkernel    {kernel}\nmachine   {ARCH}, {OS}\n"
        );
    }
    print(text)?;
    Ok(0)
}
