//! `stats`: what a state holds, in numbers.

use std::fmt::Write as _;

use anyhow::Result;
use serde::Serialize;

use crate::state::{StateManifest, StateTable};
use runtime::cli::terminal::{print, print_json};

/// Numbers that `stats` prints.
#[derive(Serialize)]
struct Stats<'a> {
    version: u64,
    made_by: &'a str,
    method: &'a str,
    policy: &'a str,
    /// Number of documents that all nights brought, withdrawn ones included.
    documents: u64,
    withdrawn: u64,
    nights: usize,
    last_night: Option<&'a str>,
    /// Nights that were lost to damage and are not back yet.
    lost: Vec<&'a str>,
    tables: Vec<TableStats>,
}

#[derive(Serialize)]
struct TableStats {
    table: StateTable,
    runs: usize,
    rows: u64,
    bytes: u64,
}

/// Prints what a version of a state holds. `json`: as JSON.
pub(super) fn print_stats(manifest: &StateManifest, json: bool) -> Result<()> {
    let table = |table| {
        let runs = || manifest.runs_of(table);
        TableStats {
            table,
            runs: runs().count(),
            rows: runs().map(|run| run.summary.rows).sum(),
            bytes: runs().map(|run| run.summary.bytes).sum(),
        }
    };
    let documents = manifest.nights.iter().map(|night| night.documents).sum();
    let stats = Stats {
        version: manifest.version,
        made_by: &manifest.made_by,
        method: &manifest.pinned.method,
        policy: &manifest.pinned.policy,
        documents,
        withdrawn: manifest.nights.iter().map(|night| night.withdrawn).sum(),
        nights: manifest.nights.len(),
        last_night: manifest.nights.last().map(|night| &*night.name),
        lost: manifest.lost.iter().map(|night| &*night.name).collect(),
        tables: StateTable::ALL.map(table).into_iter().collect(),
    };
    if json {
        return print_json(&stats);
    }
    let mut out = String::new();
    writeln!(out, "version {} of the state, made by {}", stats.version, stats.made_by)?;
    writeln!(out, "method {}, policy {}", stats.method, stats.policy)?;
    let (nights, withdrawn) = (stats.nights, stats.withdrawn);
    writeln!(out, "{documents} documents of {nights} nights, {withdrawn} of them withdrawn")?;
    if !stats.lost.is_empty() {
        writeln!(out, "lost to damage: {}", stats.lost.join(", "))?;
    }
    writeln!(out, "{:<12} {:>5} {:>12} {:>14} {:>9}", "table", "files", "rows", "bytes", "a document")?;
    for TableStats { table, runs, rows, bytes } in &stats.tables {
        let each = *bytes as f64 / documents.max(1) as f64;
        writeln!(out, "{:<12} {runs:>5} {rows:>12} {bytes:>14} {each:>9.1}", table.name())?;
    }
    print(out)
}
