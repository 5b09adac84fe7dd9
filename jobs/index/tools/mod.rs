//! Runs the tools. `any_index.rs` is what most of them ask of an index, wherever it lies, and `asking.rs` opens it with a corpus;
//! `from_state.rs` makes an index of a nightly state; `stats.rs`, `model.rs` and `snapshot.rs` are tools of an index in a folder.

pub(crate) mod any_index;
mod asking;
mod from_state;
mod model;
mod snapshot;
mod stats;

use anyhow::Result;
use operators::DocId;
use operators::hash::Secret;
use operators::method::Spec;
use operators::text::features::Lexicon;

use self::any_index::Index;
use self::asking::{Use, ask, with_progress};
use self::from_state::{build_from_state, refuse_options, state_among};
use self::model::model;
use self::snapshot::snapshot;
use crate::answer_lines::{acknowledge, print_line, warn_of_rejects};
use crate::args::{CorpusArgs, IndexArgs, IndexTool};
use crate::changes::GroupSize;
use crate::export::print_docs;
#[cfg(feature = "hbase")]
use crate::hbase;
use crate::index_folder::IndexFolder;
use crate::load::{each_batch, open_corpus};
use crate::query::{QueryAnswer, QueryLimits};
use crate::serve::serve;
use crate::settings;
use crate::topics::PreparedDoc;
use crate::view::{clean_set, print_view};
#[cfg(feature = "hbase")]
use ::hbase::HBaseAddress;
use batch::options::Verification;
use nightly::Policy;
use runtime::Common;
#[cfg(feature = "hbase")]
use runtime::cli::exit::WrongUse;
use runtime::cli::terminal::print;
use runtime::corpus::input::Input;
use runtime::output::rejects::Rejects;
use runtime::progress::Progress;

impl IndexTool {
    /// Runs the tool. Returns the exit code: 0; 3 if records were rejected; 1 if a check has found faults.
    pub fn run(self, common: &Common) -> Result<u8> {
        #[cfg(feature = "hbase")]
        self.refuse_in_hbase()?;
        let none = Lexicon::default();
        match self {
            IndexTool::Build { index, corpus, method, verify, no_text } => {
                build(common, &index, &corpus, (method, verify, no_text))
            }
            IndexTool::Insert { index, corpus } => change(common, &index, &corpus, None),
            IndexTool::Query { index, corpus, insert, limit, within } => {
                let limits = QueryLimits { matches: limit, within };
                if insert {
                    change(common, &index, &corpus, Some(limits))
                } else {
                    query(common, &index, &corpus, limits)
                }
            }
            IndexTool::Delete { index, ids, topic } => {
                let ids = ids.read()?.into_iter().collect();
                let mut index = index.open(common, &none, Use::Change)?;
                warn_of_topic(common, index.as_ref(), &topic)?;
                let deleted = index.delete(&topic, &ids)?;
                common.tell(format_args!("{deleted} documents of {} ids deleted", ids.len()));
                Ok(0)
            }
            IndexTool::Expire { index, older_than, topic } => {
                let mut index = index.open(common, &none, Use::Change)?;
                if let Some(topic) = &topic {
                    warn_of_topic(common, index.as_ref(), topic)?;
                }
                let topics = topic.map_or_else(|| index.topic_names(), |topic| Ok(vec![topic]))?;
                index.expire(&topics, older_than).map(|()| 0)
            }
            IndexTool::Stats { index, json } => {
                index.open(common, &none, Use::Read)?.print_stats(json).map(|()| 0)
            }
            IndexTool::Check { index } => check(&index),
            IndexTool::Model { index, corpus, documents, disk, json } => {
                model(common, &index, &corpus, &documents, (disk, json))
            }
            IndexTool::Compact { index } => {
                index.open_to_change(common, &none)?.compact()?;
                Ok(0)
            }
            IndexTool::Snapshot { index, folder } => snapshot(&index, &folder).map(|()| 0),
            IndexTool::Serve(args) => serve(common, &args),
            IndexTool::View { index, topic, view } => print_view(common, &index, &topic, &view),
            IndexTool::Export { index, topic, kept: true, policy } => {
                export_kept(common, &index, &topic, &policy.unwrap_or_default())
            }
            IndexTool::Export { index, topic, .. } => {
                let index = index.open(common, &none, Use::Read)?;
                warn_of_topic(common, index.as_ref(), &topic)?;
                index.print_docs(&topic).map(|()| 0)
            }
            IndexTool::Drop { index, topic } => {
                if !index.open(common, &none, Use::Change)?.drop_topic(&topic)? {
                    common.warn(format_args!("the index has no topic \"{topic}\""));
                }
                Ok(0)
            }
        }
    }

    /// Refuses tools that an index in HBase does not have.
    ///
    /// # Errors
    /// [`WrongUse`].
    #[cfg(feature = "hbase")]
    fn refuse_in_hbase(&self) -> Result<()> {
        let (index, why) = match self {
            IndexTool::Check { index } | IndexTool::Compact { index } => {
                (&index.index, "HBase checks and compacts its files by itself")
            }
            IndexTool::Snapshot { index, .. } => (index, FOLDERS_ALONE),
            IndexTool::Serve(args) => (&args.index, FOLDERS_ALONE),
            IndexTool::Model { index, .. } => (&index.index, FOLDERS_ALONE),
            IndexTool::View { index, .. } | IndexTool::Export { index, kept: true, .. } => {
                (&index.index, "HBase keeps no texts, by which it is decided which documents stay")
            }
            _ => return Ok(()),
        };
        match HBaseAddress::parse(index).transpose()? {
            Some(_) => anyhow::bail!(WrongUse(why.to_owned())),
            None => Ok(()),
        }
    }
}

#[cfg(feature = "hbase")]
const FOLDERS_ALONE: &str = "this is for an index in a folder; HBase has snapshots and servers of its own";

/// Makes an index of a corpus, or of a nightly state.
fn build(
    common: &Common,
    name: &str,
    corpus: &CorpusArgs,
    (method, verify, no_text): (Option<Spec>, Option<Verification>, bool),
) -> Result<u8> {
    #[cfg(feature = "hbase")]
    let address = HBaseAddress::parse(name).transpose()?;
    if let Some(state) = state_among(&corpus.inputs)? {
        #[cfg(feature = "hbase")]
        if address.is_some() {
            anyhow::bail!(WrongUse("an index of a nightly state is a folder: name one".to_owned()));
        }
        refuse_options(method.as_ref(), verify)?;
        return build_from_state(common, name, &state, corpus, no_text).map(|()| 0);
    }
    let method = method.unwrap_or_default();
    common.warn_of(&method);
    let input = open_corpus(common, corpus)?;
    let lexicon = corpus.input.lexicon(method.cuts_words())?;
    let settings = settings::new(&method, verify, no_text, &lexicon, Secret::random())?;
    #[cfg(feature = "hbase")]
    if let Some(address) = address {
        let mut index = hbase::build(&address, settings, &lexicon)?;
        return fill(common, (name, index.as_mut()), input, corpus);
    }
    let mut index = IndexFolder::build(name, &settings, &lexicon)?;
    fill(common, (name, &mut index), input, corpus)
}

/// Adds a corpus to a new index. Returns the exit code.
fn fill(
    common: &Common,
    (name, index): (&str, &mut dyn Index),
    input: Input,
    corpus: &CorpusArgs,
) -> Result<u8> {
    let add = |progress: &Progress| add_by_groups(index, &corpus.topic, &input, None, progress);
    let rejects = with_progress(common, name, corpus, &input, add)?;
    index.finish_build()?;
    Ok(warn_of_rejects(&rejects, &input))
}

/// Adds a corpus to an index. `limits`: as for [`Index::add`]. Returns the exit code.
fn change(common: &Common, args: &IndexArgs, corpus: &CorpusArgs, limits: Option<QueryLimits>) -> Result<u8> {
    let (input, mut index) = args.open_both(common, corpus, Use::Change)?;
    limits.map_or(Ok(()), |limits| index.check_limits(limits))?;
    let add = |progress: &Progress| add_by_groups(index.as_mut(), &corpus.topic, &input, limits, progress);
    let rejects = with_progress(common, &args.index, corpus, &input, add)?;
    index.finish()?;
    Ok(warn_of_rejects(&rejects, &input))
}

/// Adds all documents in order, group by group, and prints the answers of a group once it is durable. Returns the rejected
/// records.
fn add_by_groups(
    index: &mut dyn Index,
    topic: &str,
    input: &Input,
    limits: Option<QueryLimits>,
    progress: &Progress,
) -> Result<Rejects> {
    let at_once = index.docs_at_once();
    let mut group: Vec<PreparedDoc> = Vec::new();
    let mut size = GroupSize::default();
    let preparer = index.preparer();
    let mut add = |group: &mut Vec<PreparedDoc>| {
        let answers = index.add(topic, group, limits)?;
        group.clear();
        answers.into_iter().try_for_each(acknowledge)
    };
    let rejects = each_batch(
        input,
        progress,
        &preparer,
        |preparer, batch| Ok(preparer.prepare(&batch)),
        |docs| {
            for doc in docs {
                size.add(&doc);
                group.push(doc);
                if size.is_full() || group.len() >= at_once {
                    size = GroupSize::default();
                    add(&mut group)?;
                }
            }
            Ok(())
        },
    )?;
    add(&mut group)?;
    Ok(rejects)
}

fn query(common: &Common, args: &IndexArgs, corpus: &CorpusArgs, limits: QueryLimits) -> Result<u8> {
    let (input, index) = args.open_both(common, corpus, Use::Read)?;
    index.check_limits(limits)?;
    warn_of_topic(common, index.as_ref(), &corpus.topic)?;
    let answer = |docs: &[PreparedDoc]| index.query(&corpus.topic, docs, limits);
    let print = |answers: Vec<QueryAnswer>| answers.into_iter().try_for_each(print_line);
    let rejects = ask(common, (&args.index, &index.preparer()), corpus, &input, answer, print)?;
    Ok(warn_of_rejects(&rejects, &input))
}

fn warn_of_topic(common: &Common, index: &dyn Index, topic: &str) -> Result<()> {
    if !index.has_topic(topic)? {
        common.warn(format_args!("the index has no topic \"{topic}\""));
    }
    Ok(())
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

/// Prints the documents of a topic that stay by a policy.
fn export_kept(common: &Common, args: &IndexArgs, topic: &str, policy: &Policy) -> Result<u8> {
    let index = args.open_to_read(common, &Lexicon::default())?;
    warn_of_topic(common, &index, topic)?;
    let set = clean_set(&index, topic, policy, common.workers())?;
    print_docs(&index, topic, |number| set.removed(DocId(number)).is_none())?;
    Ok(0)
}
