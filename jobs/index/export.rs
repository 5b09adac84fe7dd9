//! The documents of a topic as JSON lines.

use anyhow::Result;
use serde::Serialize;

use super::index_folder::IndexFolder;
use super::topics::{IndexedDoc, Topic, TopicReader};
use runtime::cli::terminal::print;
#[cfg(feature = "cli")]
use runtime::clock::seconds_now;

/// Number of documents of a part.
const AT_ONCE: usize = 1000;

/// Some documents of an export.
pub(super) struct ExportPart {
    pub lines: Vec<u8>,
    /// Number from which on the next part begins; `None` after the last one.
    pub next: Option<u64>,
}

/// A document of an export.
#[derive(Serialize)]
pub(super) struct DocLine {
    pub id: String,
    /// Time since the document was added, in seconds.
    pub age: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
}

/// Reads up to a thousand documents of a topic from a number on. `now`: seconds since 1970. `stays`: whether a document is printed.
pub(super) fn export_part(
    index: &IndexFolder,
    topic: &str,
    from: u64,
    now: u64,
    stays: impl Fn(u64) -> bool,
) -> Result<ExportPart> {
    let mut part = ExportPart { lines: Vec::new(), next: Some(from) };
    let Some(topic) = index.topic(topic) else { return Ok(ExportPart { next: None, ..part }) };
    let mut texts = TopicReader::new(topic)?;
    part.next = each_of_part(topic, from, u64::MAX, |doc| {
        if stays(doc.number) {
            let text = index.settings.texts.then(|| texts.text(doc.text)).transpose()?;
            let age = now.saturating_sub(doc.time);
            let priority = texts.priority(doc.number)?.number();
            let line = DocLine { id: doc.id, age, text, priority };
            serde_json::to_writer(&mut part.lines, &line)?;
            part.lines.push(b'\n');
        }
        Ok(())
    })?;
    Ok(part)
}

/// Prints the documents of a topic as JSON lines. `stays`: whether a document is printed.
#[cfg(feature = "cli")]
pub(super) fn print_docs(index: &IndexFolder, topic: &str, stays: impl Fn(u64) -> bool) -> Result<()> {
    let now = seconds_now();
    let mut from = Some(0);
    while let Some(number) = from {
        let part = export_part(index, topic, number, now, &stays)?;
        print(String::from_utf8(part.lines)?)?;
        from = part.next;
    }
    Ok(())
}

/// Calls `each` with up to a thousand documents of a topic from a number on, below `end`. Returns the number from which on the next part
/// begins; `None` after the last one.
pub(super) fn each_of_part(
    topic: &Topic,
    from: u64,
    end: u64,
    mut each: impl FnMut(IndexedDoc) -> Result<()>,
) -> Result<Option<u64>> {
    let mut docs = TopicReader::new(topic)?;
    let mut next = from;
    for _ in 0..AT_ONCE {
        let Some(doc) = docs.living_doc_from(next)?.filter(|doc| doc.number < end) else { return Ok(None) };
        next = doc.number + 1;
        each(doc)?;
    }
    Ok(Some(next))
}
