//! Decides which documents of a topic stay.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::thread;

use anyhow::{Result, anyhow, bail};
use operators::hash::Identity;
use operators::method::KeptKeys;
use operators::{DocId, Reason, Removed, Similarity};

use super::asked_doc::AskedDoc;
use super::clean_set::CleanSet;
use crate::cli::exit::WrongUse;
use crate::index::index_folder::IndexFolder;
use crate::index::topics::{IndexedDoc, Topic, TopicReader};
use crate::nightly::Policy;

/// Reason why an index has no clean set.
pub(in crate::index) const NO_TEXTS: &str =
    "the index keeps no texts, by which it is decided which documents stay";

/// Number of documents that a thread asks about at a time.
const AT_ONCE: usize = 64;

/// Decides which documents of a topic stay, as [`operators::survivors`] does by all matches.
///
/// Documents are taken in keep order, so each one is decided when it comes: it goes for the most similar of those before it that match
/// and stay. So a document with many candidates is compared only with those that stay.
///
/// Cost: for each document that of a query of the index, on all threads. Memory: some 100 bytes a document.
///
/// # Errors
/// Those of the store; [`WrongUse`] for a topic that is not there, and for an index without texts.
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
    let mut askers = Vec::new();
    for _ in 0..threads {
        askers.push((TopicReader::new(topic)?, index.keys.clone()));
    }
    let mut reader = TopicReader::new(topic)?;
    let mut decided = GreedyDocs::default();
    for numbers in in_keep_order(topic, policy)?.chunks(threads * AT_ONCE) {
        let docs = numbers.iter().map(|number| reader.doc(*number)).collect::<Result<Vec<_>>>()?;
        let docs: Vec<IndexedDoc> = docs.into_iter().flatten().collect();
        for asked in ask_all(index, &mut askers, &docs)? {
            decided.decide(index, &mut reader, &asked)?;
        }
    }
    Ok(decided.set)
}

/// Returns the numbers of all documents in keep order.
fn in_keep_order(topic: &Topic, policy: &Policy) -> Result<Vec<u64>> {
    let (mut docs, mut texts) = (TopicReader::new(topic)?, TopicReader::new(topic)?);
    let mut ranked = Vec::new();
    docs.each_doc(|doc| {
        let chars = match policy.keeps_longest() {
            true => texts.text(doc.text)?.chars().count(),
            false => 0,
        };
        ranked.push((Reverse(chars), doc.number));
        Ok(())
    })?;
    match *policy == Policy::Newest {
        true => ranked.reverse(),
        false => ranked.sort_unstable(),
    }
    Ok(ranked.into_iter().map(|(_, number)| number).collect())
}

/// Asks about documents on several threads. Returns the answers in their order.
fn ask_all(
    index: &IndexFolder,
    askers: &mut [(TopicReader, KeptKeys)],
    docs: &[IndexedDoc],
) -> Result<Vec<AskedDoc>> {
    let part = docs.len().div_ceil(askers.len()).max(1);
    thread::scope(|scope| {
        let parts = docs.chunks(part).zip(askers).map(|(docs, (reader, keys))| {
            scope.spawn(move || {
                docs.iter().map(|doc| AskedDoc::ask(index, reader, keys, doc)).collect::<Result<Vec<_>>>()
            })
        });
        let parts: Vec<_> = parts.collect();
        let mut asked = Vec::new();
        for part in parts {
            asked.extend(part.join().map_err(|_| anyhow!("a thread that asks has panicked"))??);
        }
        Ok(asked)
    })
}

/// The first document of some identical ones, and its place in keep order.
#[derive(Clone, Copy)]
struct FirstDoc {
    place: u64,
    doc: DocId,
}

/// Documents that are decided.
#[derive(Default)]
struct GreedyDocs {
    set: CleanSet,
    by_identity: HashMap<Identity, FirstDoc>,
    /// The first document that is identical to those of a text. The index may have equal texts several times.
    by_text: HashMap<u64, FirstDoc>,
}

impl GreedyDocs {
    /// Decides about the next document in keep order.
    fn decide(&mut self, index: &IndexFolder, reader: &mut TopicReader, asked: &AskedDoc) -> Result<()> {
        let this = FirstDoc { place: self.set.documents, doc: asked.doc };
        self.set.documents += 1;
        self.set.cut += u64::from(asked.is_cut);
        if asked.is_empty {
            return Ok(());
        }
        let first = *self.by_identity.entry(asked.identity).or_insert(this);
        self.by_text.entry(asked.text).or_insert(first);
        if first.doc != asked.doc {
            let identical = Removed { duplicate_of: first.doc, tie: Reason::Identical };
            self.set.decide(asked.doc, self.set.removed(first.doc).or(Some(identical)));
            return Ok(());
        }
        let near = asked.near.iter();
        let near = near.filter_map(|(text, similarity)| Some((self.staying(*text)?, *similarity)));
        let mut staying: Vec<(FirstDoc, Option<Similarity>)> = near.collect();
        for &candidate in &asked.many {
            if let Some(first) = self.staying(candidate.text) {
                let matching = asked.matches(index, reader, candidate)?;
                staying.extend(matching.map(|similarity| (first, similarity)));
            }
        }
        let nearness = |of: &(FirstDoc, Option<Similarity>)| (of.1, Reverse(of.0.place));
        if let Some((nearest, similarity)) = staying.into_iter().max_by_key(nearness) {
            let removed = Removed { duplicate_of: nearest.doc, tie: Reason::Similar(similarity) };
            self.set.decide(asked.doc, Some(removed));
        }
        Ok(())
    }

    /// Returns the first document of a text, if it has come and stays.
    fn staying(&self, text: u64) -> Option<FirstDoc> {
        self.by_text.get(&text).copied().filter(|first| self.set.removed(first.doc).is_none())
    }
}
