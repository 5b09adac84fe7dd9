//! The files that say what an index is made of: its settings, and a manifest for each topic.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use cluster::Store;
use cluster::runs::RunSummary;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::table::IndexTable;

/// Version of the format of an index.
const FORMAT: u32 = 1;
/// Largest length of a settings file or a manifest, in bytes.
const MOST_BYTES: u64 = 1 << 30;

/// Settings that an index is made with and that never change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct IndexSettings {
    format: u32,
    /// Version of the program that made the index.
    program: String,
    /// Method with all parameters.
    pub method: String,
    /// Verification of matching fingerprints; empty if the method measures similarity itself.
    pub verify: String,
    /// Hash of the user's stop words and dictionary.
    pub words: String,
    /// Whether cleaned texts are kept, so that answers are verified.
    pub texts: bool,
    /// Secret by which texts are hashed to find equal ones.
    pub secret: [u64; 2],
}

impl IndexSettings {
    /// Makes the settings of a new index.
    pub fn new(method: String, verify: String, words: String, texts: bool, secret: [u64; 2]) -> Self {
        let program = env!("CARGO_PKG_VERSION").to_owned();
        IndexSettings { format: FORMAT, program, method, verify, words, texts, secret }
    }
}

/// The state of a topic on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct TopicManifest {
    /// Number behind the last document that is in a segment.
    pub end: u64,
    /// Documents with lower numbers have expired.
    pub oldest: u64,
    /// Changes of the topic with lower numbers in the log are in the segments.
    pub flushed: u64,
    /// Time of the last document, in seconds since 1970.
    pub last_time: u64,
    /// Number of the next segment.
    pub next_segment: u64,
    /// Segments in the order of their documents.
    pub segments: Vec<SegmentEntry>,
    /// Documents of segments that were deleted and whose rows are not gone yet, sorted.
    pub deleted: Vec<u64>,
}

/// Files of a segment: some documents of a topic that follow each other.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct SegmentEntry {
    /// Number of the segment, which is the name of its folder.
    pub number: u64,
    /// Number of its first document, and that behind its last one.
    pub first: u64,
    pub end: u64,
    /// Number of documents that it has.
    pub documents: u64,
    pub tables: BTreeMap<IndexTable, RunSummary>,
}

impl SegmentEntry {
    /// Returns the number of bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.tables.values().map(|summary| summary.bytes).sum()
    }
}

/// Beginning of the log that is still wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct LogFloor {
    /// Changes with lower numbers are in the segments of all topics.
    pub from: u64,
}

/// Writes `value` as JSON with its hash on the last line, in one step, and makes it durable. `settle`: the folder of the
/// file.
pub(super) fn write_sealed(
    store: &dyn Store,
    path: &str,
    settle: &str,
    value: &impl Serialize,
) -> Result<()> {
    let mut text = serde_json::to_vec(value)?;
    let hash = blake3::hash(&text).to_hex();
    text.push(b'\n');
    text.extend(hash.as_bytes());
    text.push(b'\n');
    let mut output = store.create(path)?;
    output.write_all(&text).with_context(|| format!("could not write \"{path}\""))?;
    output.finish()?;
    Ok(store.settle(settle)?)
}

/// Reads what [`write_sealed`] has written; `None` if there is no file.
///
/// # Errors
/// When the hash is wrong, or the contents are of another version.
pub(super) fn read_sealed<T: DeserializeOwned>(store: &dyn Store, path: &str) -> Result<Option<T>> {
    let blob = match store.open(path) {
        Err(cluster::Error::NotFound { .. }) => return Ok(None),
        blob => blob?,
    };
    let mut text = vec![0; blob.bytes().min(MOST_BYTES) as usize];
    let read = blob.read_full_at(0, &mut text)?;
    text.truncate(read);
    let body = text.strip_suffix(b"\n").and_then(|text| {
        let line = text.iter().rposition(|&byte| byte == b'\n')?;
        (blake3::hash(&text[..line]).to_hex().as_bytes() == &text[line + 1..]).then_some(&text[..line])
    });
    let Some(body) = body else { bail!("\"{path}\" is damaged: its hash is wrong") };
    let value = serde_json::from_slice(body);
    Ok(Some(value.with_context(|| format!("\"{path}\" is of another version of this program"))?))
}

/// Reads the settings of an index; `None` if there is none.
pub(super) fn read_settings(store: &dyn Store, path: &str) -> Result<Option<IndexSettings>> {
    let settings: Option<IndexSettings> = read_sealed(store, path)?;
    if let Some(IndexSettings { format, .. }) = settings.as_ref().filter(|settings| settings.format != FORMAT)
    {
        bail!("\"{path}\" has format {format}, and this program knows {FORMAT}");
    }
    Ok(settings)
}
