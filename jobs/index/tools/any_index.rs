//! The trait by which the tools use an index, wherever it lies; an index in a folder implements it here, and one in HBase in `hbase`.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;

use super::stats::print_stats;
use crate::changes::GROUP;
use crate::export::print_docs;
use crate::index_folder::IndexFolder;
use crate::prepare::Preparer;
use crate::query::{QueryAnswer, QueryLimits};
use crate::settings::IndexSettings;
use crate::topics::PreparedDoc;
use runtime::clock::seconds_now;

/// An open index. Whether it can be changed is said when it is opened.
pub(crate) trait Index: Sync {
    /// Returns the settings that the index was made with.
    fn settings(&self) -> &IndexSettings;

    /// Makes what prepares documents for the index.
    fn preparer(&self) -> Preparer;

    /// Whether a topic has documents.
    fn has_topic(&self, topic: &str) -> Result<bool>;

    /// Returns the names of all topics.
    fn topic_names(&self) -> Result<Vec<String>>;

    /// Refuses limits that queries of this index cannot have.
    fn check_limits(&self, limits: QueryLimits) -> Result<()>;

    /// Answers for several documents.
    fn query(&self, topic: &str, docs: &[PreparedDoc], limits: QueryLimits) -> Result<Vec<QueryAnswer>>;

    /// Returns the greatest number of documents that are added together.
    fn docs_at_once(&self) -> usize;

    /// Adds documents and makes them durable. With `limits`, adds each that nothing matches, and returns the answers to the queries
    /// before that.
    fn add(
        &mut self,
        topic: &str,
        docs: &[PreparedDoc],
        limits: Option<QueryLimits>,
    ) -> Result<Vec<QueryAnswer>>;

    /// Ends the adding of documents.
    fn finish(&mut self) -> Result<()>;

    /// Ends the building of a new index: from now on others see it.
    fn finish_build(&mut self) -> Result<()>;

    /// Deletes the documents with some ids. Returns how many there were.
    fn delete(&mut self, topic: &str, ids: &BTreeSet<String>) -> Result<usize>;

    /// Removes the documents of topics that are older than `age`.
    fn expire(&mut self, topics: &[String], age: Duration) -> Result<()>;

    /// Removes a topic. Returns whether there was one.
    fn drop_topic(&mut self, topic: &str) -> Result<bool>;

    /// Prints the documents of a topic as JSON lines.
    fn print_docs(&self, topic: &str) -> Result<()>;

    /// Prints how many documents the index has, and what it takes for them. `json`: as JSON.
    fn print_stats(&self, json: bool) -> Result<()>;
}

impl Index for IndexFolder {
    fn settings(&self) -> &IndexSettings {
        &self.settings
    }

    fn preparer(&self) -> Preparer {
        Preparer::of(self)
    }

    fn has_topic(&self, topic: &str) -> Result<bool> {
        Ok(self.topic(topic).is_some())
    }

    fn topic_names(&self) -> Result<Vec<String>> {
        Ok(self.topics.keys().cloned().collect())
    }

    fn check_limits(&self, limits: QueryLimits) -> Result<()> {
        IndexFolder::check_limits(self, limits)
    }

    fn query(&self, topic: &str, docs: &[PreparedDoc], limits: QueryLimits) -> Result<Vec<QueryAnswer>> {
        self.query_all(topic, docs, limits, seconds_now())
    }

    fn docs_at_once(&self) -> usize {
        GROUP
    }

    fn add(
        &mut self,
        topic: &str,
        docs: &[PreparedDoc],
        limits: Option<QueryLimits>,
    ) -> Result<Vec<QueryAnswer>> {
        let mut answers = Vec::new();
        for doc in docs {
            match limits {
                Some(limits) => answers.push(self.query_and_insert(topic, doc, limits, seconds_now())?),
                None => self.insert(topic, doc, seconds_now())?,
            }
        }
        self.commit()?;
        Ok(answers)
    }

    fn finish(&mut self) -> Result<()> {
        IndexFolder::finish(self)
    }

    fn finish_build(&mut self) -> Result<()> {
        IndexFolder::finish_build(self)
    }

    fn delete(&mut self, topic: &str, ids: &BTreeSet<String>) -> Result<usize> {
        let deleted = IndexFolder::delete(self, topic, ids)?;
        self.commit()?;
        Ok(deleted)
    }

    fn expire(&mut self, topics: &[String], age: Duration) -> Result<()> {
        let before = seconds_now().saturating_sub(age.as_secs());
        topics.iter().try_for_each(|topic| IndexFolder::expire(self, topic, before))?;
        self.commit()
    }

    fn drop_topic(&mut self, topic: &str) -> Result<bool> {
        IndexFolder::drop_topic(self, topic)
    }

    fn print_docs(&self, topic: &str) -> Result<()> {
        print_docs(self, topic, |_| true)
    }

    fn print_stats(&self, json: bool) -> Result<()> {
        print_stats(self, json)
    }
}
