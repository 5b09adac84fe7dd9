//! `model`: what an index of more documents would take, on paper.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use serde::Serialize;

use super::asking::ask;
use crate::answer_lines::warn_of_rejects;
use crate::args::{CorpusArgs, IndexArgs};
use crate::fingerprints::PAGE_ENTRIES;
use crate::load::open_corpus;
use crate::prepare::Preparer;
use crate::query::QueryLimits;
use crate::topics::{PreparedDoc, QueryWork};
use runtime::Common;
use runtime::cli::exit::WrongUse;
use runtime::cli::terminal::{print, print_json};
use runtime::clock::seconds_now;

/// Number of keys that a query reads at once, about: a leaf of a run has so many.
const KEYS_OF_A_READ: f64 = 100.0;

/// An index of some number of documents. Numbers of queries are those of one query, on average, in one segment.
#[derive(Debug, Serialize)]
struct ModelledIndex {
    documents: u64,
    bytes: u64,
    /// Keys that agree with one of the query in the first bits.
    keys_met: f64,
    /// Texts that are compared, or answers if texts are not compared.
    candidates: f64,
    /// Pieces of files that are read.
    reads: f64,
    machines: u64,
}

/// Measurements in an index as it is.
struct MeasuredIndex {
    documents: u64,
    bytes: u64,
    segments: u64,
    work: QueryWork,
    /// Number of keys that one read brings at most.
    keys_of_a_read: f64,
}

impl MeasuredIndex {
    /// Scales to a number of documents. `disk`: the bytes that a machine keeps.
    ///
    /// Bytes, keys and candidates grow with the number of documents. Reads of keys grow by those of the further keys, as
    /// many of which come with one read as possible.
    fn scaled(&self, documents: u64, disk: u64) -> ModelledIndex {
        let factor = documents as f64 / self.documents as f64;
        let each = |sum: u64| sum as f64 / self.work.queries.max(1) as f64;
        let bytes = (self.bytes as f64 * factor).ceil() as u64;
        let keys_met = each(self.work.met) * factor;
        let further = (keys_met - each(self.work.met)).max(0.0);
        let key_reads =
            each(self.work.key_reads) / self.segments.max(1) as f64 + further / self.keys_of_a_read;
        ModelledIndex {
            documents,
            bytes,
            keys_met,
            candidates: each(self.work.candidates) * factor,
            reads: key_reads + each(self.work.other_reads) * factor,
            machines: bytes.div_ceil(disk.max(1)),
        }
    }
}

/// Asks about the documents of a corpus, and prints what an index of each number of `documents` would take. `disk`: the
/// bytes that a machine keeps. `json`: whether to print JSON.
///
/// # Errors
/// [`WrongUse`] when the topic has no documents in segments.
pub(super) fn model(
    common: &Common,
    args: &IndexArgs,
    corpus: &CorpusArgs,
    documents: &[u64],
    (disk, json): (u64, bool),
) -> Result<u8> {
    let input = open_corpus(common, corpus)?;
    let lexicon = corpus.input.words.lexicon_below("")?;
    let index = args.open_to_read(common, &lexicon)?;
    index.settings.check_words(&args.index, &lexicon)?;
    let entries = index.topic(&corpus.topic).into_iter().flat_map(|topic| &topic.segments);
    let entries: Vec<_> = entries.map(|segment| &segment.entry).collect();
    let rows: u64 = entries.iter().map(|entry| entry.documents).sum();
    if rows == 0 {
        bail!(WrongUse(format!(
            "the topic \"{}\" has no documents in segments, from which a larger index could be told: index compact \
             writes them",
            corpus.topic
        )));
    }
    let mut work = QueryWork::default();
    let limits = QueryLimits { matches: 10, within: None };
    let answer = |docs: &[PreparedDoc]| index.query_work(&corpus.topic, docs, limits, seconds_now());
    let rejects = ask(common, (&args.index, &Preparer::of(&index)), corpus, &input, answer, |of_batch| {
        work += of_batch;
        Ok(())
    })?;
    let has_tables = entries.iter().any(|entry| entry.fingerprints.is_some());
    let measured = MeasuredIndex {
        documents: rows,
        bytes: entries.iter().map(|entry| entry.bytes()).sum(),
        segments: entries.len() as u64,
        work,
        keys_of_a_read: if has_tables { PAGE_ENTRIES as f64 } else { KEYS_OF_A_READ },
    };
    let sizes = [&[rows], documents].concat();
    let modelled: Vec<ModelledIndex> = sizes.iter().map(|size| measured.scaled(*size, disk)).collect();
    print_model(&modelled, work.queries, json)?;
    Ok(warn_of_rejects(&rejects, &input))
}

/// Prints the index as it is, which comes first, and those of other sizes.
fn print_model(modelled: &[ModelledIndex], asked: u64, json: bool) -> Result<()> {
    if json {
        return print_json(&modelled);
    }
    let mut said = format!("asked about {asked} documents; the first line is the index as it is\n");
    let _ = writeln!(
        said,
        "{:>15} {:>18} {:>14} {:>12} {:>12} {:>9}",
        "documents", "bytes", "keys met", "candidates", "reads", "machines"
    );
    for ModelledIndex { documents, bytes, keys_met, candidates, reads, machines } in modelled {
        let _ = writeln!(
            said,
            "{documents:>15} {bytes:>18} {keys_met:>14.1} {candidates:>12.1} {reads:>12.1} {machines:>9}"
        );
    }
    print(said)
}
