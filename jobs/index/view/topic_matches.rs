//! The matches of the documents of a topic, as `dedup` finds them.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use cluster::{Stores, text_of_path};
use datasets::Reading;
use operators::flow::LiveView;
use operators::hash::Identity;
use operators::method::Method;
use operators::text::{Clean, Cleaner};
use operators::{DocId, Matches, Merit, Pair, Priority};
use serde_json::json;

use super::index_policy::PRIORITY;
use crate::export::each_of_part;
use crate::topics::{Topic, TopicReader};
use batch::pipeline::{CorpusSearch, find_on_workers, map};
use nightly::Policy;
use runtime::corpus::plan::Plan;
use runtime::corpus::run::Run;

/// The documents of a topic in a file, so that they can be searched as any corpus is, while the index goes on.
///
/// Disk: the texts, and what a run of `dedup` maps of them.
pub(crate) struct TopicTexts {
    folder: PathBuf,
    file: BufWriter<File>,
    found: TopicMatches,
}

/// The matches of the documents of a topic, which are named by their numbers in the index.
#[derive(Default)]
pub(crate) struct TopicMatches {
    /// Each document that is there, and the number of characters of its text; 0 if the index keeps no texts.
    pub chars: Vec<(DocId, u32)>,
    /// Identities of documents whose matches are not looked for yet, in order.
    pub identities: Vec<(DocId, Identity)>,
    /// Priorities of the documents that have one, in order. The others have the least.
    pub priorities: Vec<(DocId, Priority)>,
    /// All matches of most documents, and of those with very many candidates the ones that decide.
    pub matches: Matches,
    /// Number of documents of which not all matches are known.
    pub led: u64,
}

impl TopicMatches {
    /// Notes that a document is there.
    pub fn note(&mut self, doc: DocId, chars: u32, priority: Priority) {
        self.chars.push((doc, chars));
        if priority != Priority::default() {
            self.priorities.push((doc, priority));
        }
    }

    /// Returns about how many bytes a live view of the documents takes at least.
    pub fn view_bytes(&self) -> u64 {
        let matches = (self.matches.copies.len() + self.matches.pairs.len()) as u64;
        matches * LiveView::MATCH_BYTES + self.identities.len() as u64 * LiveView::KEYED_DOC_BYTES
    }

    /// Returns the merit of a document.
    pub fn merit(&self, doc: DocId) -> Merit {
        let chars = self.chars.binary_search_by_key(&doc, |(other, _)| *other);
        let priority = self.priorities.binary_search_by_key(&doc, |(other, _)| *other);
        Merit {
            chars: chars.map_or(0, |at| self.chars[at].1.into()),
            priority: priority.map_or(Priority::LEAST, |at| self.priorities[at].1),
        }
    }
}

impl TopicTexts {
    /// Begins without documents. `folder`: an empty one, which the caller removes.
    pub fn new(folder: &Path) -> Result<Self> {
        let file = BufWriter::new(File::create(folder.join("documents.jsonl"))?);
        Ok(TopicTexts { folder: folder.to_path_buf(), file, found: TopicMatches::default() })
    }

    /// Adds up to a thousand documents from a number on, below `end`. Returns the number from which on the next call goes on; `None`
    /// after the last document.
    pub fn add(&mut self, topic: &Topic, from: u64, end: u64) -> Result<Option<u64>> {
        let TopicTexts { file, found, .. } = self;
        let mut texts = TopicReader::new(topic)?;
        each_of_part(topic, from, end, |doc| {
            let (text, priority) = (texts.text(doc.text)?, texts.priority(doc.number)?);
            found.note(DocId(doc.number), text.chars().count() as u32, priority);
            // The pipeline wants a number of each document.
            let id = doc.number.to_string();
            let priority = priority.number().unwrap_or(f64::MIN);
            serde_json::to_writer(&mut *file, &json!({ "id": id, "text": text, PRIORITY: priority }))?;
            Ok(file.write_all(b"\n")?)
        })
    }

    /// Finds the matches. `policy`: which of two matching documents stays; it says which matches decide. `threads`: number of
    /// threads of the search.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn matches(self, method: &Method, policy: &Policy, threads: usize) -> Result<TopicMatches> {
        let TopicTexts { folder, file, mut found } = self;
        file.into_inner().context("could not write the texts of a topic")?;
        if found.chars.is_empty() {
            return Ok(found);
        }
        let file = text_of_path(folder.join("documents.jsonl").as_os_str());
        let plan = Plan::new(&Stores::new(), &[], &[file], Some("jsonl"), None, &folder)?;
        let reading = Reading { priority: Some(PRIORITY.to_owned()), ..Reading::default() };
        let run = Run::alone(plan, reading, threads, &Arc::default());
        let maps = folder.join("maps");
        let order = policy.clone();
        // The texts of an index are cleaned, and have marks that would be cleaned away.
        let method = Method { cleaner: Cleaner::new(Clean::None), ..method.clone() };
        let search = CorpusSearch {
            leaders: Some(Arc::new(move |doc, merit: &dyn Fn() -> Merit| order.rank(doc, || doc.0, merit))),
            ..CorpusSearch::in_folder(&maps, run, method)
        };
        let (mapped, counts) = map(search)?;
        if counts.input.docs != found.chars.len() as u64 {
            bail!("{} of {} documents of a topic were read", counts.input.docs, found.chars.len());
        }
        let (counts, of_workers) = find_on_workers((mapped, counts), |worker, clusters| {
            let mut matches = Matches::default();
            clusters.decide(worker, |batch, _| {
                let number = |doc: DocId| anyhow::Ok(DocId(batch.id(doc).parse()?));
                for &(doc, first) in &batch.matches().copies {
                    matches.copies.push((number(doc)?, number(first)?));
                }
                for &(pair, similarity) in &batch.matches().pairs {
                    let pair = Pair::new(number(pair.low)?, number(pair.high)?, pair.distance);
                    matches.pairs.push((pair, similarity));
                }
                anyhow::Ok(())
            })?;
            Ok(matches)
        })?;
        found.led = counts.crowd;
        for matches in of_workers {
            found.matches.copies.extend(matches.copies);
            found.matches.pairs.extend(matches.pairs);
        }
        found.matches.copies.sort_unstable_by_key(|&(doc, first)| (first, doc));
        found.matches.pairs.sort_unstable_by_key(|(pair, _)| (pair.high, pair.low));
        Ok(found)
    }
}
