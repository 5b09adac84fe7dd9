//! Writes the documents of a state as Parquet.

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt64Array};
use operators::incremental::CorpusChange;
use operators::{DocId, Matches, Member, Merit, Reason, Similarity};
use parquet::arrow::ArrowWriter;

use super::options::{Policy, night_of};
use crate::state::{EarlierDocs, StateFolder, StateManifest, StateTable, doc_of, found, merit_of, number_of};
use runtime::cli::exit::WrongUse;
use runtime::output::tables::reason;

/// Number of rows that are written at once.
const BATCH_ROWS: usize = 1 << 13;

/// Row of the file.
struct ExportedDoc {
    number: u64,
    id: String,
    night: String,
    chars: u64,
    removed: Option<(String, Reason)>,
}

/// Writes all documents that are not withdrawn to a local file, in the order of nights, each with its decision.
/// Returns their number.
///
/// Memory: 40 bytes for each document that matches another one.
pub(super) fn export(folder: &StateFolder, manifest: &StateManifest, output: &str) -> Result<u64> {
    let docs = EarlierDocs::open(folder, manifest)?;
    let members = decisions(&docs, manifest)?;
    let mut documents = docs.cursor(StateTable::Documents);
    let mut names = docs.cursor(StateTable::Documents);
    let file = cluster::path_of_text(output);
    let file = File::create(&file).with_context(|| format!("could not create \"{output}\""))?;
    let mut writer = None;
    let mut rows = Vec::new();
    let mut count = 0;
    let mut file = Some(file);
    loop {
        let row = documents.next_row()?.map(|row| (row.words[0], row.words[1], row.bytes.to_vec()));
        if rows.len() == BATCH_ROWS || row.is_none() {
            let batch = batch(&rows)?;
            if let Some(file) = file.take() {
                writer = Some(ArrowWriter::try_new(file, batch.schema(), None)?);
            }
            if let Some(writer) = &mut writer {
                writer.write(&batch)?;
            }
            count += rows.len() as u64;
            rows.clear();
        }
        let Some((number, chars, id)) = row else { break };
        let doc = doc_of(number);
        if docs.withdrawn().binary_search(&doc).is_ok() {
            continue;
        }
        let at = members.binary_search_by_key(&doc, |member| member.doc).ok();
        let removed = at.and_then(|at| members[at].removed);
        let removed = match removed {
            // Documents that stay may come later, so their names are looked up from the start again.
            Some(removed) => Some((name_of(&docs, &mut names, removed.duplicate_of)?, removed.tie)),
            None => None,
        };
        let night = manifest.night_of(number).map_or(String::new(), |night| night.name.clone());
        rows.push(ExportedDoc { number, id: String::from_utf8(id)?, night, chars, removed });
    }
    writer.map(ArrowWriter::close).transpose()?;
    Ok(count)
}

/// Returns the id of a document. The cursor is replaced if the document lies before it.
fn name_of(docs: &EarlierDocs, names: &mut cluster::runs::MergedRuns, doc: DocId) -> Result<String> {
    let key = [number_of(doc)];
    if names.peek_row()?.is_none_or(|row| row.words[0] > key[0]) {
        *names = docs.cursor(StateTable::Documents);
    }
    let row = found(names, &key)?.context("the state lacks a document that it names")?;
    Ok(str::from_utf8(row.bytes)?.to_owned())
}

/// Returns the decision about each document that matches another one, in order.
fn decisions(docs: &EarlierDocs, manifest: &StateManifest) -> Result<Vec<Member>> {
    let policy = manifest.pinned.policy.parse::<Policy>();
    let policy = policy.map_err(|_| WrongUse(format!("unknown policy {}", manifest.pinned.policy)))?;
    let mut members = Vec::new();
    docs.each_star(|matches| {
        let merits = merits(docs, &matches)?;
        let rank = |doc: DocId| {
            let at = || merits.binary_search_by_key(&doc, |of| of.0);
            let merit = || at().map_or(Merit::default(), |at| merits[at].1);
            policy.rank(doc, || night_of(manifest, number_of(doc)), merit)
        };
        let change = CorpusChange {
            first_new: DocId(u64::MAX),
            gone_before: docs.withdrawn(),
            going: &[],
            reorders: false,
        };
        members.extend(change.decide(&matches, &HashMap::new(), rank).members);
        Ok(())
    })?;
    members.sort_unstable_by_key(|member| member.doc);
    Ok(members)
}

/// Returns the merits of the documents of some matches, in order.
fn merits(docs: &EarlierDocs, matches: &Matches) -> Result<Vec<(DocId, Merit)>> {
    let copies = matches.copies.iter().flat_map(|&(doc, text)| [doc, text]);
    let pairs = matches.pairs.iter().flat_map(|(pair, _)| [pair.low, pair.high]);
    let mut members: Vec<DocId> = copies.chain(pairs).collect();
    members.sort_unstable();
    members.dedup();
    let mut documents = docs.cursor(StateTable::Documents);
    let merit = |doc| {
        let row = found(&mut documents, &[number_of(doc)])?;
        Ok((doc, row.map_or(Merit::default(), |row| merit_of(&row))))
    };
    members.into_iter().map(merit).collect()
}

fn batch(rows: &[ExportedDoc]) -> Result<RecordBatch> {
    let text = |value: fn(&ExportedDoc) -> Option<&str>| -> ArrayRef {
        Arc::new(StringArray::from_iter(rows.iter().map(value)))
    };
    let number = |value: fn(&ExportedDoc) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(value)))
    };
    let kept = rows.iter().map(|row| Some(row.removed.is_none()));
    let similarity = rows.iter().map(|row| match row.removed {
        Some((_, Reason::Similar(similarity))) => similarity.map(Similarity::as_f64),
        _ => None,
    });
    Ok(RecordBatch::try_from_iter_with_nullable([
        ("id", text(|row| Some(&row.id)), false),
        ("night", text(|row| Some(&row.night)), false),
        ("kept", Arc::new(BooleanArray::from_iter(kept)) as ArrayRef, false),
        ("duplicate_of", text(|row| row.removed.as_ref().map(|removed| &*removed.0)), true),
        ("reason", text(|row| row.removed.as_ref().map(|removed| reason(removed.1))), true),
        ("similarity", Arc::new(Float64Array::from_iter(similarity)) as ArrayRef, true),
        ("characters", number(|row| row.chars), false),
        ("number", number(|row| row.number), false),
    ])?)
}
