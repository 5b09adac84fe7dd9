//! `completions` and `man`: files that a shell and `man` want, made of the definition of the command line.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap_complete::Shell;

use runtime::cli::terminal::print;

/// Print the completions of a shell: bash, zsh or fish
#[derive(clap::Args)]
pub struct CompletionsArgs {
    /// Shell that completes
    shell: Shell,
}

/// Write the pages for man into a folder, one for each command
#[derive(clap::Args)]
pub struct ManArgs {
    /// Folder, which must exist
    folder: PathBuf,
}

/// Prints the completions of a command line. Returns the exit code, which is 0.
pub fn completions(args: &CompletionsArgs, mut command: clap::Command) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "dedup-job", &mut script);
    print(String::from_utf8(script)?)?;
    Ok(0)
}

/// Writes the pages of a command line. Returns the exit code, which is 0.
pub fn man(args: &ManArgs, command: clap::Command) -> Result<u8> {
    clap_mangen::generate_to(command.disable_help_subcommand(true), &args.folder)
        .with_context(|| format!("could not write the pages into \"{}\"", args.folder.display()))?;
    Ok(0)
}
