//! Texts of the documents that the page shows.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Result, bail};
use cluster::Group;
use datasets::Reading;
use operators::DocId;

use crate::corpus::plan::Plan;
use crate::corpus::splits::{self, SplitReader};
use crate::progress::{Progress, Stage};

/// Number of characters of a text that are shown at most.
const MOST_CHARS: usize = 2_000;

/// The same of an id or a name.
const MOST_OF_NAME: usize = 200;

/// Texts by their places. Memory: at most 8 KB each.
#[derive(Debug, Default)]
pub struct ShownTexts(HashMap<DocId, ShownText>);

/// The beginning of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ShownText {
    pub text: String,
    /// Number of characters that are left out.
    pub left_out: usize,
}

impl ShownTexts {
    /// Reads the documents at some places, each with its id. Those of other corpora have no text.
    ///
    /// Cost: a reading of the splits in which the documents are, up to the last of them.
    ///
    /// # Errors
    /// When a document is not where it was.
    pub fn read(
        (plan, reading): (&Plan, &Reading),
        workers: usize,
        ids: &BTreeMap<DocId, String>,
        progress: &Progress,
    ) -> Result<Self> {
        let places: Vec<DocId> = ids.keys().copied().collect();
        let read = splits::each_split(
            plan,
            &Group::alone(workers),
            (progress, Stage::Report),
            |at, number, split| {
                let begin = places.partition_point(|place| place.split() < number);
                let end = places.partition_point(|place| place.split() <= number);
                let wanted = &places[begin..end];
                let mut texts = Vec::new();
                let mut reader = SplitReader::new(number, split, reading, at);
                while texts.len() < wanted.len() {
                    reader.pass_files_before(wanted[texts.len()]);
                    let Some(batch) = reader.next_batch()? else { break };
                    for doc in batch.docs().filter(|doc| wanted.binary_search(&doc.doc).is_ok()) {
                        if ids.get(&doc.doc).is_none_or(|id| id != doc.id) {
                            bail!("\"{}\" is not where it was; did the input change since?", doc.id);
                        }
                        texts.push((doc.doc, ShownText::of(doc.text)));
                    }
                }
                if texts.len() < wanted.len() {
                    bail!("a document of the output was not found again; did the input change since?");
                }
                Ok(texts)
            },
        )?;
        Ok(ShownTexts(read.into_iter().flatten().collect()))
    }

    /// Returns the text at a place; an empty one if it was not read.
    pub(super) fn at(&self, place: DocId) -> ShownText {
        self.0.get(&place).cloned().unwrap_or_default()
    }
}

impl ShownText {
    /// Cuts a text.
    pub fn of(text: &str) -> Self {
        let (shown, rest) = match text.char_indices().nth(MOST_CHARS) {
            Some((end, _)) => text.split_at(end),
            None => (text, ""),
        };
        ShownText { text: visible(shown), left_out: rest.chars().count() }
    }
}

/// Returns a text without characters that a page cannot show, or that would turn the direction of what follows.
pub(super) fn visible(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' => c,
        '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => '\u{FFFD}',
        '\u{FFFE}' | '\u{FFFF}' => '\u{FFFD}',
        c if c.is_control() => '\u{FFFD}',
        c => c,
    };
    text.chars().map(shown).collect()
}

/// Returns a name as the page shows it: cut, if it is very long.
pub(super) fn name(text: &str) -> String {
    match text.char_indices().nth(MOST_OF_NAME) {
        Some((end, _)) => visible(&text[..end]) + "…",
        None => visible(text),
    }
}
