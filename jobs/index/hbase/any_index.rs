//! Implements the trait by which the tools use an index, for one in HBase.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use super::layout::DocState;
use super::settings_row::HBaseIndex;
use crate::answer_lines::print_line;
use crate::export::DocLine;
use crate::prepare::Preparer;
use crate::query::{QueryAnswer, QueryLimits};
use crate::settings::IndexSettings;
use crate::tools::any_index::Index;
use crate::topics::PreparedDoc;
use runtime::cli::terminal::{print, print_json};
use runtime::clock::milliseconds_now;

impl Index for HBaseIndex {
    fn settings(&self) -> &IndexSettings {
        &self.settings
    }

    fn preparer(&self) -> Preparer {
        Preparer::new(self.method.clone(), self.keys.clone(), self.settings.texts)
    }

    fn has_topic(&self, topic: &str) -> Result<bool> {
        HBaseIndex::has_topic(self, topic)
    }

    fn topic_names(&self) -> Result<Vec<String>> {
        Ok(self.topics()?.into_keys().collect())
    }

    /// Refuses none: the method of an index in HBase has fingerprints.
    fn check_limits(&self, _limits: QueryLimits) -> Result<()> {
        Ok(())
    }

    fn query(&self, topic: &str, docs: &[PreparedDoc], limits: QueryLimits) -> Result<Vec<QueryAnswer>> {
        HBaseIndex::query(self, topic, docs, limits, milliseconds_now())
    }

    fn docs_at_once(&self) -> usize {
        500
    }

    fn add(
        &mut self,
        topic: &str,
        docs: &[PreparedDoc],
        limits: Option<QueryLimits>,
    ) -> Result<Vec<QueryAnswer>> {
        if let Some(limits) = limits {
            return self.query_and_insert(topic, docs, limits, milliseconds_now());
        }
        let now = milliseconds_now();
        let docs: Vec<_> = docs.iter().map(|doc| self.stamps.stamp(doc, now)).collect();
        self.put(topic, &docs, DocState::Kept)?;
        Ok(Vec::new())
    }

    /// Does nothing: what was added is durable.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn finish_build(&mut self) -> Result<()> {
        HBaseIndex::finish_build(self)
    }

    fn delete(&mut self, topic: &str, ids: &BTreeSet<String>) -> Result<usize> {
        let ids: Vec<String> = ids.iter().cloned().collect();
        HBaseIndex::delete(self, topic, &ids)
    }

    fn expire(&mut self, topics: &[String], age: Duration) -> Result<()> {
        let before = milliseconds_now().saturating_sub(u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        topics.iter().try_for_each(|topic| self.remove_before(topic, Some(before)).map(|_| ()))
    }

    fn drop_topic(&mut self, topic: &str) -> Result<bool> {
        Ok(self.remove_before(topic, None)? > 0)
    }

    fn print_docs(&self, topic: &str) -> Result<()> {
        let now = milliseconds_now();
        self.each_docs(topic, None, |docs| {
            let mut kept = docs.into_iter().filter(|(_, state)| *state == DocState::Kept);
            kept.try_for_each(|(doc, _)| {
                let age = now.saturating_sub(doc.time) / 1000;
                print_line(DocLine { id: doc.id, age, text: None, priority: None })
            })
        })
    }

    fn print_stats(&self, json: bool) -> Result<()> {
        let numbers = |(topic, [documents, pending]): (String, [u64; 2])| {
            (topic, HBaseTopicStats { documents, pending })
        };
        let topics = self.topics()?.into_iter().map(numbers).collect();
        let stats = HBaseStats { method: &self.settings.method, topics };
        if json {
            return print_json(&stats);
        }
        let mut said = format!("method {}, texts not kept\n", stats.method);
        let _ = writeln!(said, "{:<20} {:>12} {:>10}", "topic", "documents", "pending");
        for (name, HBaseTopicStats { documents, pending }) in &stats.topics {
            let _ = writeln!(said, "{name:<20} {documents:>12} {pending:>10}");
        }
        print(said)
    }
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
