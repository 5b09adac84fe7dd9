//! `report`: writes the page about a finished output again, with removal by date (`dates.rs`), or its tables without Parquet (`tables.rs`).

mod dates;
mod tables;

use anyhow::{Result, bail};
use cluster::{Stores, path_of_text, text_of_path};
use serde_json::json;

use batch::finished::Finished;
use runtime::Common;
use runtime::cli::exit::WrongUse;
use runtime::cli::piped::STANDARD;
use runtime::cli::report_file::ReportFile;
use runtime::cli::terminal::print;
use runtime::cli::values::paths;
use runtime::output::summary::RemovedShare;
use runtime::output::tables::PairsOf;
use runtime::report::{ReportSource, ShownTexts};

/// Write the page about a finished output again, or its tables as CSV or JSON
///
/// Every output has the page as report.html: one HTML file that needs no network. It shows what was read, found and removed, how
/// similar the pairs are, how large the clusters, samples with the differences marked, why records were rejected, and what to do
/// next. The input is read again for the texts; if it is gone, the page has none.
#[derive(clap::Args)]
pub struct Args {
    /// A finished output of dedup or rethreshold
    #[arg(value_parser = paths())]
    output: String,
    /// File of the page [default: report.html in the working directory]
    #[arg(long, value_name = "FILE", value_parser = paths())]
    to: Option<String>,
    /// Show removal by the date in this field as well, which takes another reading of the input
    ///
    /// Dates are recognised as 2008-06-30, 2008/6/30, 2008年6月30日, 20080630, seconds or milliseconds since 1970, or as e-mail has them.
    #[arg(long, value_name = "FIELD")]
    date_field: Option<String>,
    /// Write pairs, clusters and counters as CSV into this folder, and no page unless --to is there
    #[arg(long, value_name = "FOLDER", value_parser = paths())]
    csv: Option<String>,
    /// The same as JSON lines
    #[arg(long, value_name = "FOLDER", value_parser = paths())]
    json: Option<String>,
}

/// Runs the job; returns 0.
pub fn run(common: &Common, args: Args) -> Result<u8> {
    let finished = Finished::open(&Stores::new(), &args.output)?;
    for path in [&args.to, &args.csv, &args.json] {
        refuse_inside(path.as_deref().unwrap_or("report.html"), &args.output)?;
    }
    if let Some(folder) = &args.csv {
        tables::write_csv(&finished, folder)?;
        common.tell(format_args!("pairs.csv, clusters.csv and counters.csv are in {folder}"));
    }
    if let Some(folder) = &args.json {
        tables::write_json(&finished, folder)?;
        common.tell(format_args!("pairs.jsonl, clusters.jsonl and counters.json are in {folder}"));
    }
    let to = args.to.as_deref();
    let alone = args.csv.is_none() && args.json.is_none();
    let Some(to) = to.or(alone.then_some("report.html")) else { return Ok(0) };
    let file = ReportFile::check(to)?;
    let source = ReportSource {
        output: &finished.uri,
        removed_by_date: removed_by_date(&finished, args.date_field.as_deref(), common)?,
        summary: finished.summary()?,
        threshold: finished.options().threshold().map(|least| u64::from(least.as_millionths() / 10_000)),
        lists_all: finished.options().pairs != PairsOf::Deciding,
        measures: finished.options().has_threshold(),
    };
    let texts = texts(&finished, &source, common).unwrap_or_else(|error| {
        common.warn(format_args!("the page has no texts: {error:#}"));
        ShownTexts::default()
    });
    file.replace(source.page(&texts)?)?;
    if to != STANDARD {
        print(format_args!("{to}\n"))?;
    }
    Ok(0)
}

/// Refuses to write into the output, whose files are listed.
fn refuse_inside(path: &str, output: &str) -> Result<()> {
    if path == STANDARD {
        return Ok(());
    }
    let path = text_of_path(std::path::absolute(path_of_text(path))?.as_os_str());
    if Stores::new().lies_in(&path, output)? {
        bail!(WrongUse(format!("\"{path}\" lies in the output, whose files are listed: name another place")));
    }
    Ok(())
}

/// Reads the dates in a field, if one is given.
fn removed_by_date(finished: &Finished, field: Option<&str>, common: &Common) -> Result<Vec<RemovedShare>> {
    let Some(field) = field else { return Ok(Vec::new()) };
    let input = finished.input(common.workers())?;
    let (watch, progress) = input.watch(&common.progress, "report", &json!({"date-field": field}))?;
    let by_date = watch.end(dates::removed_by_date(finished, input, field, &progress))?;
    if by_date.iter().all(|class| class.name == dates::NONE) {
        bail!(WrongUse(format!("no document has a date in the field \"{field}\"")));
    }
    Ok(by_date)
}

/// Reads the texts that the page shows.
fn texts(finished: &Finished, source: &ReportSource, common: &Common) -> Result<ShownTexts> {
    let input = finished.input(common.workers())?;
    let (watch, progress) = input.watch(&common.progress, "report", &json!({"output": finished.uri}))?;
    let corpus = (&input.plan, &input.reading);
    watch.end(ShownTexts::read(corpus, input.workers, &source.shown()?, &progress))
}
