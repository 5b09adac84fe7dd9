//! The documents of a topic, from which a view begins.

use std::path::Path;

use anyhow::Result;
use operators::DocId;
use operators::flow::KeyRule;
use operators::method::Method;

use super::topic_matches::{TopicMatches, TopicTexts};
use crate::export::each_of_part;
use crate::index_folder::IndexFolder;
use crate::topics::{TextIdentities, Topic, TopicReader};
use batch::keep::Keep;
use nightly::Policy;

/// The documents of a topic, which are read a thousand at a time while the index goes on.
pub(crate) enum TopicDocs {
    /// With their texts.
    Texts(TopicTexts),
    /// With their identities, in an index that keeps no texts.
    Identities(TextIdentities, TopicMatches),
}

impl TopicDocs {
    /// Begins without documents. `folder`: an empty one, which the caller removes.
    pub fn new(index: &IndexFolder, folder: &Path) -> Result<Self> {
        Ok(match index.settings.texts {
            true => TopicDocs::Texts(TopicTexts::new(folder)?),
            false => TopicDocs::Identities(TextIdentities::new(index.keys.clone()), TopicMatches::default()),
        })
    }

    /// Adds up to a thousand documents from a number on, below `end`. Returns the number from which on the next call goes on; `None`
    /// after the last document.
    ///
    /// # Errors
    /// Those of the store and of the disk.
    pub fn add(&mut self, topic: &Topic, from: u64, end: u64) -> Result<Option<u64>> {
        let (identities, found) = match self {
            TopicDocs::Texts(texts) => return texts.add(topic, from, end),
            TopicDocs::Identities(identities, found) => (identities, found),
        };
        let mut reader = TopicReader::new(topic)?;
        each_of_part(topic, from, end, |doc| {
            let number = DocId(doc.number);
            found.note(number, 0, reader.priority(doc.number)?);
            found.identities.extend(identities.of(topic, doc.text)?.map(|identity| (number, identity)));
            Ok(())
        })
    }

    /// Finds the matches of documents with texts. `policy`: which of two matching documents stays; it says which matches decide.
    /// `threads`: number of threads of the search.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn matches(self, method: &Method, policy: &Policy, threads: usize) -> Result<TopicMatches> {
        match self {
            TopicDocs::Texts(texts) => texts.matches(method, policy, threads),
            TopicDocs::Identities(_, found) => Ok(found),
        }
    }
}

/// Returns the rule by which the dataflow finds the matches of documents; `None` if the index compares their texts.
///
/// # Errors
/// The reason why there is no view by a policy.
pub(crate) fn key_rule(index: &IndexFolder, policy: &Policy) -> Result<Option<KeyRule>, String> {
    if index.settings.texts {
        return Ok(None);
    }
    if *policy == Policy::Keep(Keep::Longest) {
        return Err("the index keeps no texts, so it is not known which one is the longest".to_owned());
    }
    let rule = KeyRule::of(&index.keys).ok_or_else(|| {
        format!(
            "the index keeps no texts, and {} does not say by a fingerprint of 64 bits what matches: make one that keeps them",
            index.settings.method
        )
    })?;
    Ok(Some(rule))
}
