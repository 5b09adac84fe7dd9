//! The program `dedup-job`: parses the command line, runs the job or launches its processes, and returns the
//! exit code.

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use jobs::commands::repack::{pack, unpack};
use jobs::commands::{
    check, compare, demo, eval, explain, fingerprint, label, report, rethreshold, show, tune, why,
};
use jobs::{BOUND, Common, advice, become_bound, chunk, dedup, exit_code, index, nightly, reproduce, say};

/// Finds near-duplicate documents in a corpus of any size and leaves a clean corpus behind
#[derive(Parser)]
#[command(version, arg_required_else_help = false)]
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
    Dedup(Box<dedup::Args>),
    Demo(demo::Args),
    Eval(eval::Args),
    Explain(explain::Args),
    Fingerprint(fingerprint::Args),
    Index(Box<index::Args>),
    Label(label::Args),
    Nightly(Box<nightly::Args>),
    Pack(pack::Args),
    Report(report::Args),
    Reproduce(reproduce::Args),
    Rethreshold(rethreshold::Args),
    Show(show::Args),
    Tune(tune::Args),
    Unpack(unpack::Args),
    Why(why::Args),
}

/// Serves as the child process that reads documents for the process that started it, and does nothing else.
fn extract() -> ExitCode {
    let Some(bounds) = datasets::Bounds::of_arguments(std::env::args().skip(2)) else {
        say("error: this is for dedup-job itself");
        return ExitCode::from(2);
    };
    match datasets::serve(std::io::stdin().lock(), std::io::stdout().lock(), bounds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(format_args!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    // Names in an error may hold any characters, but an error is one line.
    say(cluster::one_line(&format!("error: {error:#}{}", advice(error))));
    ExitCode::from(exit_code(error))
}

fn main() -> ExitCode {
    cluster::exit_on_panic();
    let first = std::env::args_os().nth(1);
    if first.as_ref().is_some_and(|first| first == datasets::EXTRACT) {
        return extract();
    }
    if first.is_some_and(|first| first == BOUND) {
        return fail(&become_bound());
    }
    let mut command = match Command::try_parse() {
        Ok(command) => command,
        Err(error) if error.use_stderr() => {
            // The paragraphs that name the mistake and a remedy are shown; `--help` shows the usage.
            let text = error.to_string();
            let mut paragraphs = text.split("\n\n");
            let mistake = paragraphs.next().unwrap_or_default();
            let mistake = mistake.lines().map(str::trim).collect::<Vec<_>>().join(" ");
            let similar = paragraphs.map(str::trim).find(|paragraph| paragraph.starts_with("tip: a similar"));
            say(similar.map_or(mistake.clone(), |tip| format!("{mistake}; {tip}")));
            return ExitCode::from(2);
        }
        Err(help) => {
            // A reader that stops early, such as `head`, is no failure.
            let _ = write!(std::io::stdout(), "{help}");
            return ExitCode::SUCCESS;
        }
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
    jobs::launch::faults::arm(command.common.index());
    let result = match command.job {
        Job::Check(args) => check::run(&command.common, &args),
        Job::Chunk(args) => chunk::run(&command.common, *args),
        Job::Compare(args) => compare::run(&command.common, *args),
        Job::Dedup(args) => dedup::run(&command.common, *args),
        Job::Demo(args) => demo::run(args),
        Job::Eval(args) => eval::run(args),
        Job::Label(args) => label::run(&command.common, &args),
        Job::Explain(args) => explain::run(&command.common, args),
        Job::Fingerprint(args) => fingerprint::run(&command.common, args),
        Job::Index(args) => index::run(&command.common, *args),
        Job::Nightly(args) => nightly::run(&command.common, *args),
        Job::Pack(args) => pack::run(&command.common, args),
        Job::Report(args) => report::run(&command.common, args),
        Job::Reproduce(args) => reproduce::run(args),
        Job::Rethreshold(args) => rethreshold::run(&command.common, args),
        Job::Show(args) => show::run(&command.common, args),
        Job::Tune(args) => tune::run(&command.common, args),
        Job::Unpack(args) => unpack::run(&command.common, args),
        Job::Why(args) => why::run(&command.common, args),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => fail(&error),
    }
}
