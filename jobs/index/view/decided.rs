//! Decides once which documents of a topic stay.

use std::env;

use anyhow::{Result, bail};
use operators::{DocId, Resolve, Sides, survivors};

use super::clean_set::CleanSet;
use super::topic_matches::TopicTexts;
use crate::cli::exit::WrongUse;
use crate::cli::temporary::TemporaryFolder;
use crate::index::index_folder::IndexFolder;
use crate::nightly::Policy;

/// Reason why an index has no clean set.
pub(in crate::index) const NO_TEXTS: &str =
    "the index keeps no texts, by which it is decided which documents stay";

/// Decides which documents of a topic stay, as `dedup` of its export does.
///
/// Cost: that of `dedup`, on all threads. Disk: the texts, and their map output, in the system's folder for temporary files.
///
/// # Errors
/// Those of the disk; [`WrongUse`] for a topic that is not there, and for an index without texts.
pub(in crate::index) fn clean_set(
    index: &IndexFolder,
    topic: &str,
    policy: &Policy,
    threads: usize,
) -> Result<CleanSet> {
    let Some(topic) = index.topic(topic) else {
        bail!(WrongUse(format!("the index has no topic \"{topic}\"")));
    };
    if !index.settings.texts {
        bail!(WrongUse(NO_TEXTS.to_owned()));
    }
    let folder = TemporaryFolder::new(&env::temp_dir())?;
    let (mut texts, mut next) = (TopicTexts::new(folder.path())?, Some(0));
    while let Some(from) = next {
        next = texts.add(topic, from, u64::MAX)?;
    }
    let found = texts.matches(&index.method, policy, threads)?;
    let rank = |doc: DocId| policy.rank(doc, || doc.0, || found.merit(doc));
    let mut set = CleanSet::default();
    set.documents = found.chars.len() as u64;
    for member in survivors(&found.matches, Resolve::Greedy, Sides::default(), rank) {
        set.decide(member.doc, member.removed);
    }
    Ok(set)
}
