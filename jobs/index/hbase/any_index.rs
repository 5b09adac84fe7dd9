//! Runs the tools for an index in HBase.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use hbase::HBaseAddress;
use operators::hash::Secret;
use operators::text::features::Lexicon;
use serde::Serialize;
use serde_json::json;

use super::layout::DocState;
use super::settings_row::HBaseIndex;
use super::writing::DocStamps;
use crate::answer_lines::{acknowledge, code, print_line};
use crate::args::{CorpusArgs, IndexTool};
use crate::export::DocLine;
use crate::load::{each_batch, open_corpus};
use crate::prepare::Preparer;
use crate::query::{QueryAnswer, QueryLimits};
use crate::settings;
use crate::tools::state_among;
use crate::topics::PreparedDoc;
use runtime::Common;
use runtime::cli::exit::WrongUse;
use runtime::cli::terminal::print;
use runtime::corpus::input::Input;
use runtime::progress::Progress;

/// Number of documents that are added together, and answered then.
const GROUP: usize = 500;

/// Returns the table that a tool is for; `None` if its index is a folder.
pub(crate) fn address(tool: &IndexTool) -> Option<Result<HBaseAddress>> {
    let name = match tool {
        IndexTool::Build { index, .. } | IndexTool::Snapshot { index, .. } => index,
        IndexTool::Serve(args) => &args.index,
        IndexTool::Insert { index, .. }
        | IndexTool::Query { index, .. }
        | IndexTool::Model { index, .. }
        | IndexTool::Delete { index, .. }
        | IndexTool::Expire { index, .. }
        | IndexTool::Stats { index, .. }
        | IndexTool::Check { index }
        | IndexTool::Compact { index }
        | IndexTool::View { index, .. }
        | IndexTool::Export { index, .. }
        | IndexTool::Drop { index, .. } => &index.index,
    };
    HBaseAddress::parse(name).map(|address| Ok(address?))
}

/// Runs a tool for an index in HBase. Returns the exit code: 0, or 3 if records were rejected.
pub(crate) fn run(tool: IndexTool, common: &Common, address: &HBaseAddress) -> Result<u8> {
    let none = Lexicon::default();
    match tool {
        IndexTool::Build { index: _, corpus, method, verify, no_text } => {
            if state_among(&corpus.inputs)?.is_some() {
                bail!(WrongUse("an index of a nightly state is a folder: name one".to_owned()));
            }
            let method = method.unwrap_or_default();
            common.warn_of(&method);
            let input = open_corpus(common, &corpus)?;
            let lexicon = corpus.input.lexicon(method.cuts_words())?;
            let settings = settings::new(&method, verify, no_text, &lexicon, Secret::random())?;
            let mut index = HBaseIndex::build(address, settings, &lexicon)?;
            let code = change(common, (address, &index), input, &corpus, Insertion { limits: None })?;
            index.finish_build()?;
            Ok(code)
        }
        IndexTool::Insert { corpus, .. } => {
            let (input, index) = open_both(common, address, &corpus)?;
            change(common, (address, &index), input, &corpus, Insertion { limits: None })
        }
        IndexTool::Query { corpus, insert: true, limit, within, .. } => {
            let limits = Some(QueryLimits { matches: limit, within });
            let (input, index) = open_both(common, address, &corpus)?;
            change(common, (address, &index), input, &corpus, Insertion { limits })
        }
        IndexTool::Query { corpus, insert: false, limit, within, .. } => {
            query(common, address, &corpus, QueryLimits { matches: limit, within })
        }
        IndexTool::Delete { ids, topic, .. } => {
            let ids = ids.read()?;
            let deleted = HBaseIndex::open(address, &none)?.delete(&topic, &ids)?;
            common.tell(format_args!("{deleted} documents of {} ids deleted", ids.len()));
            Ok(0)
        }
        IndexTool::Expire { older_than, topic, .. } => {
            let index = HBaseIndex::open(address, &none)?;
            let before = now().saturating_sub(u64::try_from(older_than.as_millis()).unwrap_or(u64::MAX));
            let topics = match topic {
                Some(topic) => vec![topic],
                None => index.topics()?.into_keys().collect(),
            };
            topics.iter().try_for_each(|topic| index.remove_before(topic, Some(before)).map(|_| ()))?;
            Ok(0)
        }
        IndexTool::Stats { json, .. } => print_stats(&HBaseIndex::open(address, &none)?, json),
        IndexTool::Check { .. } | IndexTool::Compact { .. } => {
            bail!(WrongUse("HBase checks and compacts its files by itself".to_owned()))
        }
        IndexTool::Snapshot { .. } | IndexTool::Serve(_) | IndexTool::Model { .. } => {
            bail!(WrongUse(
                "this is for an index in a folder; HBase has snapshots and servers of its own".to_owned()
            ))
        }
        IndexTool::View { .. } | IndexTool::Export { kept: true, .. } => {
            bail!(WrongUse("HBase keeps no texts, by which it is decided which documents stay".to_owned()))
        }
        IndexTool::Export { topic, .. } => export(common, &HBaseIndex::open(address, &none)?, &topic),
        IndexTool::Drop { topic, .. } => {
            if HBaseIndex::open(address, &none)?.remove_before(&topic, None)? == 0 {
                common.warn(format_args!("the index has no topic \"{topic}\""));
            }
            Ok(0)
        }
    }
}

/// Opens a corpus, and the index by the words that its texts are cut by.
fn open_both(common: &Common, address: &HBaseAddress, corpus: &CorpusArgs) -> Result<(Input, HBaseIndex)> {
    let input = open_corpus(common, corpus)?;
    let lexicon = corpus.input.words.lexicon_below("")?;
    let index = HBaseIndex::open(address, &lexicon)?;
    index.settings.check_words(&address.to_string(), &lexicon)?;
    Ok((input, index))
}

/// Way in which documents are added.
#[derive(Clone, Copy)]
struct Insertion {
    /// Limits of the answers, if only documents are added that nothing matches.
    limits: Option<QueryLimits>,
}

impl Insertion {
    fn add(
        self,
        index: &HBaseIndex,
        topic: &str,
        docs: &[PreparedDoc],
        stamps: &mut DocStamps,
    ) -> Result<()> {
        let now = now();
        match self.limits {
            Some(limits) => {
                let answers = index.query_and_insert(topic, docs, limits, stamps, now)?;
                answers.into_iter().try_for_each(acknowledge)
            }
            None => {
                let docs: Vec<_> = docs.iter().map(|doc| stamps.stamp(doc, now)).collect();
                index.insert(topic, &docs)
            }
        }
    }
}

/// Adds the documents of a corpus to the index. Returns the exit code.
fn change(
    common: &Common,
    (address, index): (&HBaseAddress, &HBaseIndex),
    input: Input,
    corpus: &CorpusArgs,
    insertion: Insertion,
) -> Result<u8> {
    let asked = json!({ "index": address.to_string(), "inputs": corpus.inputs, "topic": corpus.topic });
    let (watch, progress) = input.watch(&common.progress, "index", &asked)?;
    let rejected = watch.end(add_all(index, &corpus.topic, &input, insertion, &progress))?;
    Ok(code(common, rejected))
}

/// Adds all documents in order, group by group, and prints the answers of a group once it is durable. Returns the
/// number of rejected records.
fn add_all(
    index: &HBaseIndex,
    topic: &str,
    input: &Input,
    insertion: Insertion,
    progress: &Progress,
) -> Result<u64> {
    let mut stamps = DocStamps::new(index.process);
    let mut group: Vec<PreparedDoc> = Vec::new();
    let rejected = each_batch(
        input,
        progress,
        &preparer(index),
        |preparer, batch| Ok(preparer.prepare(&batch)),
        |docs| {
            group.extend(docs);
            while group.len() >= GROUP {
                let docs: Vec<PreparedDoc> = group.drain(..GROUP).collect();
                insertion.add(index, topic, &docs, &mut stamps)?;
            }
            Ok(())
        },
    )?;
    insertion.add(index, topic, &group, &mut stamps)?;
    Ok(rejected)
}

fn query(common: &Common, address: &HBaseAddress, corpus: &CorpusArgs, limits: QueryLimits) -> Result<u8> {
    let (input, index) = open_both(common, address, corpus)?;
    if !index.has_topic(&corpus.topic)? {
        common.warn(format_args!("the index has no topic \"{}\"", corpus.topic));
    }
    let asked = json!({ "index": address.to_string(), "inputs": corpus.inputs, "topic": corpus.topic });
    let (watch, progress) = input.watch(&common.progress, "index", &asked)?;
    let rejected = each_batch(
        &input,
        &progress,
        &preparer(&index),
        |preparer, batch| index.query(&corpus.topic, &preparer.prepare(&batch), limits, now()),
        |answers: Vec<QueryAnswer>| answers.into_iter().try_for_each(print_line),
    );
    Ok(code(common, watch.end(rejected)?))
}

fn preparer(index: &HBaseIndex) -> Preparer {
    Preparer::new(index.method.clone(), index.keys.clone(), index.settings.texts)
}

/// Numbers that `stats` prints.
#[derive(Serialize)]
struct HBaseStats<'a> {
    method: &'a str,
    topics: BTreeMap<String, HBaseTopicStats>,
}

#[derive(Serialize)]
struct HBaseTopicStats {
    documents: u64,
    /// Documents that are being added, or whose process has died before they were decided.
    pending: u64,
}

fn print_stats(index: &HBaseIndex, json: bool) -> Result<u8> {
    let numbers =
        |(topic, [documents, pending]): (String, [u64; 2])| (topic, HBaseTopicStats { documents, pending });
    let topics = index.topics()?.into_iter().map(numbers).collect();
    let stats = HBaseStats { method: &index.settings.method, topics };
    if json {
        print(serde_json::to_string_pretty(&stats)? + "\n")?;
        return Ok(0);
    }
    let mut said = format!("method {}, texts not kept\n", stats.method);
    let _ = writeln!(said, "{:<20} {:>12} {:>10}", "topic", "documents", "pending");
    for (name, HBaseTopicStats { documents, pending }) in &stats.topics {
        let _ = writeln!(said, "{name:<20} {documents:>12} {pending:>10}");
    }
    print(said)?;
    Ok(0)
}

fn export(common: &Common, index: &HBaseIndex, topic: &str) -> Result<u8> {
    let now = now();
    let mut printed = 0;
    index.each_docs(topic, None, |docs| {
        for (doc, _) in docs.into_iter().filter(|(_, state)| *state == DocState::Kept) {
            printed += 1;
            let age = now.saturating_sub(doc.time) / 1000;
            print_line(DocLine { id: doc.id, age, text: None, priority: None })?;
        }
        Ok(())
    })?;
    if printed == 0 {
        common.warn(format_args!("the index has no topic \"{topic}\""));
    }
    Ok(0)
}

/// Returns the time in milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
