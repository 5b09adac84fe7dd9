//! `stats`: the documents and bytes of an index, in numbers.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Result;
use serde::Serialize;

use crate::index_folder::IndexFolder;
use crate::topics::{Topic, TopicReader};
use runtime::cli::terminal::{print, print_json};

/// Numbers that `stats` prints.
#[derive(Serialize)]
struct IndexStats<'a> {
    method: &'a str,
    texts: bool,
    topics: BTreeMap<&'a str, TopicStats>,
}

#[derive(Serialize)]
struct TopicStats {
    documents: u64,
    /// Documents that are in the log and in memory alone.
    in_log: u64,
    segments: usize,
    /// Deleted and expired documents whose rows are not gone yet.
    dead: u64,
    bytes: u64,
    bytes_by_table: BTreeMap<&'static str, u64>,
}

/// Prints what an index holds. `json`: as JSON.
pub(super) fn print_stats(index: &IndexFolder, json: bool) -> Result<()> {
    let topics = index.topics.iter().map(|(name, topic)| Ok((&**name, numbers(topic)?)));
    let topics = topics.collect::<Result<_>>()?;
    let stats = IndexStats { method: &index.settings.method, texts: index.settings.texts, topics };
    if json {
        return print_json(&stats);
    }
    let texts = if stats.texts { "kept" } else { "not kept" };
    let mut said = format!("method {}, texts {texts}\n", stats.method);
    let _ = writeln!(
        said,
        "{:<20} {:>12} {:>10} {:>10} {:>9} {:>14} {:>7}",
        "topic", "documents", "in log", "dead", "segments", "bytes", "each"
    );
    for (name, TopicStats { documents, in_log, segments, dead, bytes, .. }) in &stats.topics {
        let rows = (documents + dead - in_log).max(1);
        let each = *bytes as f64 / rows as f64;
        let _ = writeln!(
            said,
            "{name:<20} {documents:>12} {in_log:>10} {dead:>10} {segments:>9} {bytes:>14} {each:>7.1}"
        );
    }
    print(said)
}

fn numbers(topic: &Topic) -> Result<TopicStats> {
    let mut documents = 0;
    TopicReader::new(topic)?.each_doc(|_| {
        documents += 1;
        Ok(())
    })?;
    let rows: u64 = topic.segments.iter().map(|segment| segment.entry.documents).sum();
    let in_log = topic.docs_in_memory().count() as u64;
    let mut bytes_by_table = BTreeMap::new();
    for (table, bytes) in topic.segments.iter().flat_map(|segment| segment.entry.files()) {
        *bytes_by_table.entry(table).or_default() += bytes;
    }
    Ok(TopicStats {
        documents,
        in_log,
        segments: topic.segments.len(),
        dead: rows + in_log - documents,
        bytes: topic.segments.iter().map(|segment| segment.entry.bytes()).sum(),
        bytes_by_table,
    })
}
