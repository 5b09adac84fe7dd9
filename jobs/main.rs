//! The program `dedup-job`: parses the command line, runs the job or launches its processes, and returns the
//! exit code.

use std::env;
use std::ffi::OsString;
use std::fmt::Display;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use jobs::commands::repack::{pack, unpack};
use jobs::commands::{
    check, compare, compare_methods, demo, eval, explain, fingerprint, label, report, rethreshold,
    shell_files, show, tune, version, why,
};
use jobs::help::{suggestions, topics};
use jobs::reproduce;
use runtime::{Common, fail, print, say, serve_as_child};

/// Finds near-duplicate documents in a corpus of any size and leaves a clean corpus behind
#[derive(Parser)]
#[command(version, arg_required_else_help = false)]
#[command(
    after_help = "help TOPIC tells more: methods, formats, memory or exit-codes. --version --verbose tells how it was built."
)]
struct Command {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    job: Job,
}

#[derive(Subcommand)]
enum Job {
    Check(check::Args),
    Chunk(Box<chunk::Args>),
    Compare(Box<compare::Args>),
    CompareMethods(Box<compare_methods::Args>),
    Completions(shell_files::CompletionsArgs),
    Dedup(Box<batch::Args>),
    Demo(demo::Args),
    Eval(eval::Args),
    Explain(explain::Args),
    Fingerprint(fingerprint::Args),
    Index(Box<index::Args>),
    Label(label::Args),
    #[command(hide = true)]
    Man(shell_files::ManArgs),
    Nightly(Box<nightly::Args>),
    Pack(pack::Args),
    Report(report::Args),
    Reproduce(reproduce::Args),
    Rethreshold(rethreshold::Args),
    Show(show::Args),
    Tune(tune::Args),
    Unpack(unpack::Args),
    Version(version::Args),
    Why(why::Args),
}

/// Commit and date of the program, which `scripts/install` gives.
const COMMIT: Option<&str> = option_env!("DEDUP_JOB_COMMIT");

/// Returns the command line, in which `--version --verbose` is the command `version`.
fn command_line() -> Vec<OsString> {
    let mut line: Vec<OsString> = env::args_os().collect();
    let is = |names: [&str; 2]| line[1..].iter().any(|word| names.iter().any(|name| word == name));
    if line.len() == 3 && is(["--version", "-V"]) && is(["--verbose", "-v"]) {
        line.splice(1.., ["version".into(), "--verbose".into()]);
    }
    line
}

/// Returns the text of `help TOPIC`, and the short help of a command line without words.
fn help(line: &[OsString]) -> Option<String> {
    match line.get(1..) {
        None | Some([]) => Some(Command::command().render_help().to_string()),
        Some([help, topic]) if help == "help" => topics::topic(topic.to_str()?),
        Some(_) => None,
    }
}

/// Returns the line that says what is wrong with a command line, and what may be meant.
fn mistake(error: &clap::Error, line: &[OsString]) -> String {
    // The paragraphs that name the mistake and a remedy are shown; `--help` shows the usage.
    let text = error.to_string();
    let mut paragraphs = text.split("\n\n");
    let mistake = paragraphs.next().unwrap_or_default();
    let mistake = mistake.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    let of = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    let words = || line[1..].iter().filter_map(|word| word.to_str());
    let commands = Command::command();
    let command = words().find(|word| commands.find_subcommand(word).is_some()).unwrap_or_default();
    let typed = of(ContextKind::InvalidArg);
    let here = typed.and_then(|option| suggestions::of_option(command, option));
    let here = here.or_else(|| of(ContextKind::InvalidSubcommand).and_then(suggestions::of_command));
    // The first input of a night may be a word that was meant as its command.
    let of_night = || words().filter(|word| command == "nightly" && !word.contains(['.', '/']));
    if let Some(here) = here.or_else(|| of_night().find_map(suggestions::of_command)) {
        return format!("{mistake}; {here}");
    }
    if words().next() == Some("help") {
        return format!("{mistake}; help knows the commands, and {}", topics::TOPICS.join(", "));
    }
    let is_near = |tip: &&str| {
        let there = tip.rsplit('\'').nth(1).unwrap_or_default();
        typed.is_none_or(|typed| suggestions::is_near(typed, there))
    };
    let similar = paragraphs.map(str::trim).find(|paragraph| paragraph.starts_with("tip: a similar"));
    similar.filter(is_near).map_or(mistake.clone(), |tip| format!("{mistake}; {tip}"))
}

/// Prints help. Returns the exit code.
fn print_help(help: impl Display) -> ExitCode {
    print(help).map_or_else(|error| fail(&error), |()| ExitCode::SUCCESS)
}

fn main() -> ExitCode {
    cluster::exit_on_panic();
    let line = command_line();
    if let Some(code) = serve_as_child() {
        return code;
    }
    if let Some(help) = help(&line) {
        return print_help(help);
    }
    let mut command = match Command::try_parse_from(&line) {
        Ok(command) => command,
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            say(error);
            return ExitCode::from(2);
        }
        Err(error) if error.use_stderr() => {
            say(cluster::one_line(&mistake(&error, &line)));
            return ExitCode::from(2);
        }
        Err(help) => return print_help(help),
    };
    let several = match &command.job {
        Job::Compare(_) | Job::Dedup(_) => true,
        Job::Nightly(args) => args.several(),
        _ => false,
    };
    let launch = match command.common.start(several) {
        Ok(launch) => launch,
        Err(error) => return fail(&error),
    };
    if let Some(launch) = launch {
        return launch.run().map_or_else(|error| fail(&error), ExitCode::from);
    }
    #[cfg(feature = "faults")]
    runtime::launch::faults::arm(command.common.index());
    let result = match command.job {
        Job::Check(args) => check::run(&command.common, &args),
        Job::Chunk(args) => chunk::run(&command.common, *args),
        Job::Compare(args) => compare::run(&command.common, *args),
        Job::CompareMethods(args) => compare_methods::run(&command.common, &args),
        Job::Completions(args) => shell_files::completions(&args, Command::command()),
        Job::Dedup(args) => batch::run(&command.common, *args),
        Job::Demo(args) => demo::run(&command.common, args),
        Job::Eval(args) => eval::run(args),
        Job::Label(args) => label::run(&command.common, &args),
        Job::Explain(args) => explain::run(&command.common, args),
        Job::Fingerprint(args) => fingerprint::run(&command.common, args),
        Job::Index(args) => index::run(&command.common, *args),
        Job::Man(args) => shell_files::man(&args, Command::command()),
        Job::Nightly(args) => nightly::run(&command.common, *args),
        Job::Pack(args) => pack::run(&command.common, args),
        Job::Report(args) => report::run(&command.common, args),
        Job::Reproduce(args) => reproduce::run(args),
        Job::Rethreshold(args) => rethreshold::run(&command.common, args),
        Job::Show(args) => show::run(&command.common, args),
        Job::Tune(args) => tune::run(&command.common, args),
        Job::Unpack(args) => unpack::run(&command.common, args),
        Job::Version(_) => version::run(&command.common, COMMIT),
        Job::Why(args) => why::run(&command.common, args),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => fail(&error),
    }
}
