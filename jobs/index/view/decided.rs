//! Decides once which documents of a topic stay.

use std::env;
use std::rc::Rc;

use anyhow::{Result, bail};
use operators::flow::{KeyRule, LiveView, ViewChange};
use operators::{DocId, Resolve, Sides, survivors};

use super::clean_set::CleanSet;
use super::topic_docs::{TopicDocs, key_rule};
use super::topic_matches::TopicMatches;
use crate::index_folder::IndexFolder;
use nightly::Policy;
use runtime::cli::exit::WrongUse;
use runtime::cli::temporary::TemporaryFolder;

/// Decides which documents of a topic stay, as `dedup` of its export does.
///
/// Cost: that of `dedup`, on all threads; without texts that of a [`LiveView`] by keys. Disk: the texts, and their map output, in the
/// system's folder for temporary files.
///
/// # Errors
/// Those of the disk; [`WrongUse`] for a topic that is not there, and where [`key_rule`] refuses.
pub(crate) fn clean_set(
    index: &IndexFolder,
    topic: &str,
    policy: &Policy,
    threads: usize,
) -> Result<CleanSet> {
    let Some(topic) = index.topic(topic) else {
        bail!(WrongUse(format!("the index has no topic \"{topic}\"")));
    };
    let rule = key_rule(index, policy).map_err(WrongUse)?;
    let folder = TemporaryFolder::new(&env::temp_dir())?;
    let mut docs = TopicDocs::new(index, folder.path())?;
    let mut next = Some(0);
    while let Some(from) = next {
        next = docs.add(topic, from, u64::MAX)?;
    }
    let found = docs.matches(&index.method, policy, threads)?;
    let mut set = CleanSet::default();
    set.documents = found.chars.len() as u64;
    match rule {
        Some(rule) => {
            decide_by_keys(found, rule, policy.clone())
                .into_iter()
                .for_each(|of| set.decide(of.doc, of.after));
        }
        None => {
            let rank = |doc: DocId| policy.rank(doc, || doc.0, || found.merit(doc));
            for member in survivors(&found.matches, Resolve::Greedy, Sides::default(), rank) {
                set.decide(member.doc, member.removed);
            }
        }
    }
    Ok(set)
}

/// Decides about documents whose matches are found by their identities.
fn decide_by_keys(mut found: TopicMatches, rule: KeyRule, policy: Policy) -> Vec<ViewChange> {
    let identities = std::mem::take(&mut found.identities);
    timely::execute_directly(move |worker| {
        let rank = move |doc: DocId| policy.rank(doc, || doc.0, || found.merit(doc));
        let mut view = LiveView::by_keys(worker, Rc::new(rank), rule);
        identities.into_iter().for_each(|(doc, identity)| view.insert_key(doc, identity));
        let changes = view.commit(worker);
        view.end(worker);
        changes
    })
}
