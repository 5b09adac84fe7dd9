//! Runs the tools for an index.

use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use operators::DocBatch;
use operators::hash::Secret;
use operators::method::{KeptKeys, Method};
use operators::text::features::Lexicon;
use serde::Serialize;
use serde_json::json;

use super::args::{CorpusArgs, IndexArgs, IndexTool};
use super::index_folder::IndexFolder;
use super::load::each_batch;
use super::query::{QueryAnswer, QueryLimits};
use super::settings;
use super::stats::print_stats;
use super::topics::{PreparedDoc, TopicReader};
use crate::Common;
use crate::cli::exit::WrongUse;
use crate::cli::terminal::print;
use crate::cli::values::ids_of_file;
use crate::corpus::input::Input;

/// Number of documents after which changes are made durable.
const GROUP: usize = 1000;
/// Number of bytes of ids and texts after which they are, too.
const GROUP_BYTES: usize = 1 << 26;

/// Prepares documents as the index does that they come to.
#[derive(Clone)]
pub(super) struct Preparer {
    method: Method,
    keys: KeptKeys,
    keeps_texts: bool,
}

impl Preparer {
    pub fn new(method: Method, keys: KeptKeys, keeps_texts: bool) -> Self {
        Preparer { method, keys, keeps_texts }
    }

    pub fn of(index: &IndexFolder) -> Self {
        let (method, keys) = (index.method.clone(), index.keys.clone());
        Preparer::new(method, keys, index.settings.texts)
    }

    pub fn prepare(&mut self, batch: &DocBatch) -> Vec<PreparedDoc> {
        let doc = |doc: operators::Doc| {
            let text = self.method.cleaner.clean(doc.text);
            let keys = self.keys.of(text);
            let text = if self.keeps_texts { text.to_owned() } else { String::new() };
            PreparedDoc { id: doc.id.to_owned(), keys, text }
        };
        batch.docs().map(doc).collect()
    }
}

impl IndexTool {
    /// Runs the tool. Returns the exit code: 0; 3 if records were rejected; 1 if a check has found faults.
    pub fn run(self, common: &Common) -> Result<u8> {
        match self {
            IndexTool::Build { index, corpus, method, verify, no_text } => {
                let input = corpus.input.open(&corpus.inputs, common.workers())?;
                let lexicon = corpus.input.lexicon(method.cuts_words())?;
                let settings = settings::new(&method, verify, no_text, &lexicon, Secret::random())?;
                let mut folder = IndexFolder::build(&index, &settings, &lexicon)?;
                let code = change(common, (&index, &mut folder), input, &corpus, insert_one)?;
                folder.finish_build()?;
                Ok(code)
            }
            IndexTool::Insert { index, corpus } => insert(common, &index, &corpus),
            IndexTool::Query { index, corpus, insert: false, limit, within } => {
                query(common, &index, &corpus, QueryLimits { matches: limit, within })
            }
            IndexTool::Query { index, corpus, insert: true, limit, within } => {
                query_and_insert(common, &index, &corpus, QueryLimits { matches: limit, within })
            }
            IndexTool::Delete { index, ids, topic } => {
                let ids = ids_of_file(&ids)?.into_iter().collect();
                let mut folder = index.open(common, &Lexicon::default())?;
                let deleted = folder.delete(&topic, &ids)?;
                folder.commit()?;
                common.tell(format_args!("{deleted} documents of {} ids deleted", ids.len()));
                Ok(0)
            }
            IndexTool::Expire { index, older_than, topic } => {
                let mut folder = index.open(common, &Lexicon::default())?;
                let before = now().saturating_sub(older_than.as_secs());
                let topics =
                    topic.map_or_else(|| folder.topics.keys().cloned().collect(), |topic| vec![topic]);
                topics.iter().try_for_each(|topic| folder.expire(topic, before))?;
                folder.commit()?;
                Ok(0)
            }
            IndexTool::Stats { index, json } => {
                print_stats(&IndexFolder::open_to_read(&index.index, &Lexicon::default())?, json)?;
                Ok(0)
            }
            IndexTool::Check { index } => check(&index),
            IndexTool::Compact { index } => {
                index.open(common, &Lexicon::default())?.compact()?;
                Ok(0)
            }
            IndexTool::Export { index, topic } => export(common, &index, &topic),
            IndexTool::Drop { index, topic } => {
                if !index.open(common, &Lexicon::default())?.drop_topic(&topic)? {
                    common.warn(format_args!("the index has no topic \"{topic}\""));
                }
                Ok(0)
            }
        }
    }
}

impl IndexArgs {
    /// Opens the index to change it.
    fn open(&self, common: &Common, lexicon: &Lexicon) -> Result<IndexFolder> {
        let index = IndexFolder::open(&self.index, lexicon, Duration::from_secs(self.wait))?;
        if let Some(torn) = &index.torn {
            common.warn(format_args!("{torn} and are cut off: a crash has torn them, or they are damaged"));
        }
        Ok(index)
    }

    /// Opens the index to read it.
    fn open_to_read(&self, common: &Common, lexicon: &Lexicon) -> Result<IndexFolder> {
        let index = IndexFolder::open_to_read(&self.index, lexicon)?;
        if let Some(torn) = &index.torn {
            common.warn(format_args!(
                "{torn} and are passed over: they are being written, a crash has torn them, or they are damaged"
            ));
        }
        Ok(index)
    }

    /// Opens a corpus, and the index by the words that its texts are cut by. `open`: opens the index.
    fn open_both(
        &self,
        common: &Common,
        corpus: &CorpusArgs,
        open: impl FnOnce(&Self, &Common, &Lexicon) -> Result<IndexFolder>,
    ) -> Result<(Input, IndexFolder)> {
        let input = corpus.input.open(&corpus.inputs, common.workers())?;
        let lexicon = corpus.input.lexicon_below("")?;
        let index = open(self, common, &lexicon)?;
        index.settings.check_words(&self.index, &lexicon)?;
        Ok((input, index))
    }
}

fn insert_one(
    index: &mut IndexFolder,
    topic: &str,
    doc: &PreparedDoc,
    now: u64,
) -> Result<Option<QueryAnswer>> {
    index.insert(topic, doc, now).map(|()| None)
}

fn insert(common: &Common, args: &IndexArgs, corpus: &CorpusArgs) -> Result<u8> {
    let (input, mut index) = args.open_both(common, corpus, IndexArgs::open)?;
    let code = change(common, (&args.index, &mut index), input, corpus, insert_one)?;
    index.finish()?;
    Ok(code)
}

fn query_and_insert(
    common: &Common,
    args: &IndexArgs,
    corpus: &CorpusArgs,
    limits: QueryLimits,
) -> Result<u8> {
    let (input, mut index) = args.open_both(common, corpus, IndexArgs::open)?;
    check_within(&index, limits)?;
    let code = change(common, (&args.index, &mut index), input, corpus, |index, topic, doc, now| {
        index.query_and_insert(topic, doc, limits, now).map(Some)
    })?;
    index.finish()?;
    Ok(code)
}

/// Calls `each` with every document of a corpus in order, makes the changes durable group by group, and prints the
/// answers of a group once they are.
fn change(
    common: &Common,
    (path, index): (&str, &mut IndexFolder),
    input: Input,
    corpus: &CorpusArgs,
    mut each: impl FnMut(&mut IndexFolder, &str, &PreparedDoc, u64) -> Result<Option<QueryAnswer>>,
) -> Result<u8> {
    let preparer = Preparer::of(index);
    let asked = json!({ "index": path, "inputs": corpus.inputs, "topic": corpus.topic });
    let rejected = input.watch(&common.progress, "index", &asked, |input, progress| {
        let mut answers: Vec<QueryAnswer> = Vec::new();
        let (mut docs_of_group, mut bytes_of_group) = (0, 0);
        let rejected = each_batch(
            &input,
            progress,
            &preparer,
            |preparer, batch| Ok(preparer.prepare(&batch)),
            |docs| {
                for doc in &docs {
                    answers.extend(each(index, &corpus.topic, doc, now())?);
                    docs_of_group += 1;
                    bytes_of_group += doc.id.len() + doc.text.len();
                    if docs_of_group == GROUP || bytes_of_group >= GROUP_BYTES {
                        (docs_of_group, bytes_of_group) = (0, 0);
                        index.commit()?;
                        answers.drain(..).try_for_each(acknowledge)?;
                    }
                }
                Ok(())
            },
        )?;
        index.commit()?;
        answers.drain(..).try_for_each(acknowledge)?;
        Ok(rejected)
    })?;
    Ok(code(common, rejected))
}

fn query(common: &Common, args: &IndexArgs, corpus: &CorpusArgs, limits: QueryLimits) -> Result<u8> {
    let (input, index) = args.open_both(common, corpus, IndexArgs::open_to_read)?;
    check_within(&index, limits)?;
    warn_of_topic(common, &index, &corpus.topic);
    let preparer = Preparer::of(&index);
    let asked = json!({ "index": args.index, "inputs": corpus.inputs, "topic": corpus.topic });
    let rejected = input.watch(&common.progress, "index", &asked, |input, progress| {
        each_batch(
            &input,
            progress,
            &preparer,
            |preparer, batch| {
                let docs = preparer.prepare(&batch);
                index.query_all(&corpus.topic, &docs, limits, now())
            },
            |answers| answers.into_iter().try_for_each(print_line),
        )
    })?;
    Ok(code(common, rejected))
}

/// Returns an error if the fingerprints of a method that has none are to be near.
///
/// # Errors
/// [`WrongUse`].
fn check_within(index: &IndexFolder, limits: QueryLimits) -> Result<()> {
    if limits.within.is_some() && index.keys.distance().is_none() {
        bail!(WrongUse(format!(
            "--within is for fingerprints, which {} does not have",
            index.settings.method
        )));
    }
    Ok(())
}

fn warn_of_topic(common: &Common, index: &IndexFolder, topic: &str) {
    if index.topic(topic).is_none() {
        common.warn(format_args!("the index has no topic \"{topic}\""));
    }
}

fn check(args: &IndexArgs) -> Result<u8> {
    let index = IndexFolder::open_to_read(&args.index, &Lexicon::default())?;
    let (mut faults, mut files, mut bytes) = (0, 0, 0);
    if let Some(torn) = &index.torn {
        faults += 1;
        print(format_args!("{torn}: a crash has torn them, or they are damaged\n"))?;
    }
    for topic in index.topics.values() {
        for segment in &topic.segments {
            (files, bytes) = (files + segment.entry.tables.len(), bytes + segment.entry.bytes());
            if let Err(error) = segment.check() {
                faults += 1;
                print(cluster::one_line(&format!("{error:#}")) + "\n")?;
            }
        }
    }
    if faults == 0 {
        print(format_args!("{}: {files} files, {bytes} bytes, all as they were written\n", args.index))?;
    }
    Ok(u8::from(faults > 0))
}

/// A document of an export.
#[derive(Serialize)]
pub(super) struct DocLine {
    pub id: String,
    /// Time since the document was added, in seconds.
    pub age: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

fn export(common: &Common, args: &IndexArgs, topic: &str) -> Result<u8> {
    let index = args.open_to_read(common, &Lexicon::default())?;
    warn_of_topic(common, &index, topic);
    let Some(topic) = index.topic(topic) else { return Ok(0) };
    let (mut texts, now) = (TopicReader::new(topic), now());
    TopicReader::new(topic).each_doc(|doc| {
        let text = index.settings.texts.then(|| texts.text(doc.text)).transpose()?;
        print_line(DocLine { id: doc.id, age: now.saturating_sub(doc.time), text })
    })?;
    Ok(0)
}

pub(super) fn print_line(line: impl Serialize) -> Result<()> {
    print(serde_json::to_string(&line)? + "\n")
}

/// Prints the answer about a document that may have been added. Whoever reads the answers must not go before the end.
pub(super) fn acknowledge(answer: QueryAnswer) -> Result<()> {
    let mut line = serde_json::to_string(&answer)?;
    line.push('\n');
    let written = std::io::stdout().write_all(line.as_bytes());
    written.context("could not write an answer, though its document may have been added")
}

/// Says how many records were rejected, and returns the exit code.
pub(super) fn code(common: &Common, rejected: u64) -> u8 {
    if rejected == 0 {
        return 0;
    }
    common.warn(format_args!("{rejected} records were rejected"));
    3
}

/// Returns the time in seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
