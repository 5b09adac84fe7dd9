//! The tool `index view`.

use anyhow::{Context, Result};
use cluster::one_line;
use operators::DocId;
use operators::text::features::Lexicon;
use serde::Serialize;
use serde_json::json;

use super::clean_set::{CleanSet, similarity};
use super::decided::clean_set;
use crate::answer_lines::print_line;
use crate::args::{IndexArgs, ViewArgs};
use crate::topics::TopicReader;
use runtime::Common;
use runtime::cli::terminal::{print, print_json};

/// Number of ids of a cluster that are printed for people.
const SHOWN: usize = 5;

/// The counters of a clean set and its largest clusters, as they are printed.
#[derive(Serialize)]
struct PrintedView<'t> {
    topic: &'t str,
    documents: u64,
    kept: u64,
    clusters: usize,
    largest: usize,
    /// Whether the texts were not compared, because the index keeps none.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unverified: bool,
    largest_clusters: Vec<PrintedCluster>,
}

/// A document that stays, and those that go for it.
#[derive(Serialize)]
struct PrintedCluster {
    id: String,
    removed: Vec<RemovedLine>,
}

/// A document that goes.
#[derive(Serialize)]
struct RemovedLine {
    id: String,
    /// Similarity to the one that stays; `None` if it was not measured.
    similarity: Option<f64>,
}

/// Prints which documents of a topic stay, and its clusters. Returns 0.
pub(crate) fn print_view(common: &Common, args: &IndexArgs, topic: &str, options: &ViewArgs) -> Result<u8> {
    let index = args.open_to_read(common, &Lexicon::default())?;
    let set = clean_set(&index, topic, &options.policy, common.workers())?;
    let mut reader = TopicReader::new(index.topic(topic).context("a topic that was read")?)?;
    if options.kept {
        reader.each_doc(|doc| match set.removed(DocId(doc.number)) {
            None => print_line(json!({ "id": doc.id })),
            Some(_) => Ok(()),
        })?;
        return Ok(0);
    }
    let mut printed = PrintedView::new(topic, &set, options.clusters, &mut reader)?;
    printed.unverified = index.is_unverified();
    match options.json {
        true => print_json(&printed)?,
        false => print(printed.for_people())?,
    }
    Ok(0)
}

impl<'t> PrintedView<'t> {
    fn new(topic: &'t str, set: &CleanSet, most: usize, reader: &mut TopicReader) -> Result<Self> {
        let clusters = set.clusters();
        let mut id = |doc: DocId| anyhow::Ok(reader.doc(doc.0)?.context("a document of the view")?.id);
        let mut largest_clusters = Vec::new();
        for &(_, kept) in clusters.iter().take(most) {
            let removed = set
                .members(kept)
                .map(|(doc, tie)| anyhow::Ok(RemovedLine { id: id(doc)?, similarity: similarity(tie) }));
            let removed = removed.collect::<Result<_>>()?;
            largest_clusters.push(PrintedCluster { id: id(kept)?, removed });
        }
        Ok(PrintedView {
            topic,
            documents: set.documents,
            kept: set.kept(),
            clusters: clusters.len(),
            largest: clusters.first().map_or(0, |(size, _)| *size),
            unverified: false,
            largest_clusters,
        })
    }

    fn for_people(&self) -> String {
        let PrintedView { topic, documents, kept, clusters, largest, .. } = self;
        let mut said = format!(
            "topic {topic}: {documents} documents, of which {kept} stay; {clusters} clusters, the largest of {largest} documents\n"
        );
        if self.unverified {
            said += "unverified: the index keeps no texts, so those that match were not compared\n";
        }
        for PrintedCluster { id, removed } in &self.largest_clusters {
            let shown = removed.iter().take(SHOWN).map(|of| of.id.as_str()).collect::<Vec<_>>().join(", ");
            let others = if removed.len() > SHOWN { ", …" } else { "" };
            // An id may hold what a terminal would obey.
            let line = format!("{id} stays, {} go: {shown}{others}", removed.len());
            said += &format!("    {}\n", one_line(&line));
        }
        said
    }
}
