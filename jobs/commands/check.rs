//! `check`: compares finished outputs with the lists of files that they were committed with.

use anyhow::{Context, Result, bail};
use cluster::{Store, Stores, one_line};

use runtime::Common;
use runtime::cli::exit::WrongUse;
use runtime::cli::terminal::{print, say};
use runtime::cli::values::paths;
use runtime::corpus::at_once::each;
use runtime::corpus::output_layout::{SUCCESS, is_begun};
use runtime::corpus::own_outputs::is_output;
use runtime::output::{Difference, OutputFile, SuccessList, found_below, hash, read};

/// Compare finished outputs with the lists of files in their _SUCCESS
///
/// Each file that is missing, was added, or has another length is named. The exit code is 1 if there is such
/// a file, else 0.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Outputs of dedup, pack, unpack, compare or rethreshold
    #[arg(required = true, value_name = "OUTPUT", value_parser = paths())]
    outputs: Vec<String>,
    /// Read every file, and compare the hash of its contents too
    #[arg(long)]
    full: bool,
}

/// Checks each output; returns 0 if all are whole, else 1.
pub fn run(common: &Common, args: &Args) -> Result<u8> {
    let stores = Stores::new();
    let mut code = 0;
    for output in &args.outputs {
        let differences = check(&stores, output, args.full, common.workers())?;
        for difference in &differences {
            print(format_args!("{}\n", one_line(&format!("{output}: {difference}"))))?;
            code = 1;
        }
    }
    Ok(code)
}

/// Returns how an output differs from its list. `full`: the contents of the files too.
fn check(stores: &Stores, output: &str, full: bool, workers: usize) -> Result<Vec<Difference>> {
    let (store, path) = stores.locate(output)?;
    let path = path.trim_end_matches('/');
    if store.children_if_any(path)?.first().is_some_and(|entry| entry.path == path) {
        bail!(WrongUse(format!("\"{output}\" is a file, and an output is a folder")));
    }
    let success = read(store.as_ref(), &format!("{path}/{SUCCESS}"))?;
    let Some(success) = success else {
        if !store.exists(path)? {
            bail!(cluster::Error::NotFound { path: output.to_owned() });
        }
        if is_begun(store.as_ref(), path)? {
            bail!("\"{output}\" has no {SUCCESS}: its job has not ended, or was interrupted");
        }
        let above = path.rsplit_once('/').map(|(above, _)| above).unwrap_or_default();
        let of_output = is_output(store.as_ref(), &format!("{above}/"))?;
        let advice = if of_output { ", but a part of one: name the folder above it" } else { "" };
        bail!(WrongUse(format!("\"{output}\" has no {SUCCESS}, so it is no finished output{advice}")));
    };
    let SuccessList { files } = serde_json::from_slice(&success)
        .with_context(|| format!("the {SUCCESS} of \"{output}\" is damaged"))?;
    let Some(files) = files else {
        bail!(WrongUse(format!(
            "the {SUCCESS} of \"{output}\" lists no files: an earlier version has written it"
        )));
    };
    let found = found_below(store.as_ref(), path)?;
    let mut differences = files.differences(&found);
    let bytes: u64 = files.0.values().map(|file| file.bytes).sum();
    let mut said = format!("{output}: {} files, {bytes} bytes", files.0.len());
    if full {
        let of_length: Vec<_> =
            files.0.iter().filter(|(name, file)| found.get(*name) == Some(&file.bytes)).collect();
        differences.extend(changed(store.as_ref(), path, &of_length, workers)?);
        said.push_str(", all read");
    }
    if differences.is_empty() {
        say(one_line(&format!("{said}: as they were written")));
    }
    Ok(differences)
}

/// Returns the files whose contents are not those that were written.
fn changed(
    store: &dyn Store,
    path: &str,
    files: &[(&String, &OutputFile)],
    workers: usize,
) -> Result<Vec<Difference>> {
    let changed = each(workers, files, |&(name, file)| {
        let changed = hash(store, &format!("{path}/{name}"))? != file.blake3;
        let what = "has other contents than were written".to_owned();
        Ok(changed.then(|| Difference { name: name.clone(), what }))
    })?;
    Ok(changed.into_iter().flatten().collect())
}
