//! Runs the tools for an index in a folder. `asking.rs` opens an index and a corpus, `from_state.rs` makes an index of a
//! nightly state; `stats.rs`, `model.rs` and `snapshot.rs` are tools of their own.

mod asking;
mod from_state;
mod model;
mod snapshot;
mod stats;

use anyhow::Result;
use operators::DocId;
use operators::hash::Secret;
use operators::text::features::Lexicon;
use serde_json::json;

use self::asking::ask;
use self::from_state::{build_from_state, refuse_options};
use self::model::model;
use self::snapshot::snapshot;
use self::stats::print_stats;
use crate::answer_lines::{acknowledge, code, print_line};
use crate::args::{CorpusArgs, IndexArgs, IndexTool};
use crate::changes::GroupSize;
use crate::export::export_part;
use crate::index_folder::IndexFolder;
use crate::load::{each_batch, open_corpus};
use crate::prepare::{Preparer, now};
use crate::query::{QueryAnswer, QueryLimits};
use crate::serve::serve;
use crate::settings;
use crate::topics::PreparedDoc;
use crate::view::{clean_set, print_view};
use nightly::Policy;
use runtime::Common;
use runtime::cli::terminal::print;
use runtime::corpus::input::Input;
use runtime::progress::Progress;

pub(super) use self::from_state::state_among;

impl IndexTool {
    /// Runs the tool. Returns the exit code: 0; 3 if records were rejected; 1 if a check has found faults.
    pub fn run(self, common: &Common) -> Result<u8> {
        match self {
            IndexTool::Build { index, corpus, method, verify, no_text } => {
                if let Some(state) = state_among(&corpus.inputs)? {
                    refuse_options(method.as_ref(), verify)?;
                    build_from_state(common, &index, &state, &corpus, no_text)?;
                    return Ok(0);
                }
                let method = method.unwrap_or_default();
                common.warn_of(&method);
                let input = open_corpus(common, &corpus)?;
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
                let ids = ids.read()?.into_iter().collect();
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
            IndexTool::Model { index, corpus, documents, disk, json } => {
                model(common, &index, &corpus, &documents, (disk, json))
            }
            IndexTool::Compact { index } => {
                index.open(common, &Lexicon::default())?.compact()?;
                Ok(0)
            }
            IndexTool::Snapshot { index, folder } => snapshot(&index, &folder).map(|()| 0),
            IndexTool::Serve(args) => serve(common, &args),
            IndexTool::View { index, topic, view } => print_view(common, &index, &topic, &view),
            IndexTool::Export { index, topic, kept, policy } => {
                export(common, &index, &topic, kept.then(|| policy.unwrap_or_default()).as_ref())
            }
            IndexTool::Drop { index, topic } => {
                if !index.open(common, &Lexicon::default())?.drop_topic(&topic)? {
                    common.warn(format_args!("the index has no topic \"{topic}\""));
                }
                Ok(0)
            }
        }
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
    index.check_limits(limits)?;
    let code = change(common, (&args.index, &mut index), input, corpus, |index, topic, doc, now| {
        index.query_and_insert(topic, doc, limits, now).map(Some)
    })?;
    index.finish()?;
    Ok(code)
}

/// Calls `each` with every document of a corpus, which changes the index. Returns the exit code.
fn change(
    common: &Common,
    (path, index): (&str, &mut IndexFolder),
    input: Input,
    corpus: &CorpusArgs,
    each: impl FnMut(&mut IndexFolder, &str, &PreparedDoc, u64) -> Result<Option<QueryAnswer>>,
) -> Result<u8> {
    let asked = json!({ "index": path, "inputs": corpus.inputs, "topic": corpus.topic });
    let (watch, progress) = input.watch(&common.progress, "index", &asked)?;
    let rejected = watch.end(change_by_groups(index, &corpus.topic, &input, each, &progress))?;
    Ok(code(common, rejected))
}

/// Calls `each` with every document in order, makes the changes durable group by group, and prints the answers of a
/// group once they are. Returns the number of rejected records.
fn change_by_groups(
    index: &mut IndexFolder,
    topic: &str,
    input: &Input,
    mut each: impl FnMut(&mut IndexFolder, &str, &PreparedDoc, u64) -> Result<Option<QueryAnswer>>,
    progress: &Progress,
) -> Result<u64> {
    let mut answers: Vec<QueryAnswer> = Vec::new();
    let mut group = GroupSize::default();
    let rejected = each_batch(
        input,
        progress,
        &Preparer::of(index),
        |preparer, batch| Ok(preparer.prepare(&batch)),
        |docs| {
            for doc in &docs {
                answers.extend(each(index, topic, doc, now())?);
                group.add(doc);
                if group.is_full() {
                    group = GroupSize::default();
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
}

fn query(common: &Common, args: &IndexArgs, corpus: &CorpusArgs, limits: QueryLimits) -> Result<u8> {
    let (input, index) = args.open_both(common, corpus, IndexArgs::open_to_read)?;
    index.check_limits(limits)?;
    warn_of_topic(common, &index, &corpus.topic);
    let answer = |docs: &[PreparedDoc]| index.query_all(&corpus.topic, docs, limits, now());
    let print = |answers: Vec<QueryAnswer>| answers.into_iter().try_for_each(print_line);
    let rejected = ask(common, (args, &index), corpus, input, answer, print)?;
    Ok(code(common, rejected))
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
            (files, bytes) = (files + segment.entry.files().count(), bytes + segment.entry.bytes());
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

/// Prints the documents of a topic. `policy`: decides which of them stay; `None` if all are printed.
fn export(common: &Common, args: &IndexArgs, topic: &str, policy: Option<&Policy>) -> Result<u8> {
    let index = args.open_to_read(common, &Lexicon::default())?;
    warn_of_topic(common, &index, topic);
    let set = policy.map(|policy| clean_set(&index, topic, policy, common.workers())).transpose()?;
    let stays = |number| set.as_ref().is_none_or(|set| set.removed(DocId(number)).is_none());
    let mut from = Some(0);
    let now = now();
    while let Some(number) = from {
        let part = export_part(&index, topic, number, now, stays)?;
        print(String::from_utf8(part.lines)?)?;
        from = part.next;
    }
    Ok(0)
}
