//! Documents and rejected records in batches, which stay with the worker that reads them.

use serde::{Deserialize, Serialize};

use crate::record::DocId;
use crate::record::{Merit, Priority};

/// A record that could not be read: its position, the reason, and its first bytes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Reject {
    /// Position that the record would have had as a document.
    pub doc: DocId,
    /// Path of the file.
    pub path: String,
    /// Offset in bytes from the start of the file, counted in decompressed bytes where the file is
    /// compressed. For Parquet, the number of the row.
    pub offset: u64,
    /// Reason in lower case, without a full stop.
    pub reason: String,
    /// First bytes of the record as text, at most [`Reject::HEAD_BYTES`].
    pub head: String,
}

impl Reject {
    /// End of a reason where the offset is no number of bytes, so that no line of it can be told.
    pub const BY_RECORD: &str = "; the offset is the number of the record in its split";
    /// Reason of a record that the user wants to leave out, so that it counts as no fault of the input.
    pub const DROPPED: &str = "the text is null, and such records are dropped";
    /// Number of bytes of a record that are kept so that a person can recognise it.
    pub const HEAD_BYTES: usize = 80;
    /// Length of the longest reason, in bytes. A parser's message may contain a name or a value of the
    /// record.
    pub const REASON_BYTES: usize = 1000;

    /// Whether the user wants to leave the record out.
    pub fn is_dropped(&self) -> bool {
        self.reason_without_line().starts_with(Reject::DROPPED)
    }

    /// Returns the reason without the number of the line with which it begins in a file of lines, such as `line 7: `.
    pub fn reason_without_line(&self) -> &str {
        let numbered = self.reason.strip_prefix("line ").and_then(|rest| rest.split_once(": "));
        let numbered = numbered.filter(|(line, _)| line.bytes().all(|byte| byte.is_ascii_digit()));
        numbered.map_or(&self.reason, |(_, reason)| reason)
    }
}

/// Some documents of one split, in order. A batch never leaves its worker.
///
/// Every record of the input takes one ordinal, a rejected one too, so that a second reading of the split
/// gives every document the same [`DocId`].
#[derive(Debug, Default)]
pub struct DocBatch {
    split: u32,
    next_record: u64,
    ids: String,
    text: String,
    ends: Vec<TextEnds>,
    rejects: Vec<Reject>,
    /// Approximate memory of the rejects, in bytes.
    reject_bytes: usize,
    replaced: u64,
}

#[derive(Debug)]
struct TextEnds {
    record: u64,
    id: usize,
    text: usize,
    priority: Priority,
}

/// One document of a [`DocBatch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doc<'a> {
    /// Position in the corpus.
    pub doc: DocId,
    /// Name that users know the document by: the value of the id field, or file and position.
    pub id: &'a str,
    /// Text as it was read, not cleaned.
    pub text: &'a str,
    /// Priority, if a keep order asks for it.
    pub priority: Priority,
}

impl Doc<'_> {
    /// Returns what keep orders compare. Cost: counts the characters.
    pub fn merit(&self) -> Merit {
        Merit { chars: self.text.chars().count() as u64, priority: self.priority }
    }
}

impl DocBatch {
    /// Number of bytes of text that a reader puts into a batch before it returns.
    pub const BYTES: usize = 1 << 20;

    /// Makes an empty batch whose first record is number `next_record` of `split`.
    pub fn new(split: u32, next_record: u64) -> Self {
        DocBatch { split, next_record, ..DocBatch::default() }
    }

    /// Adds the next record of the input as a document.
    pub fn push(&mut self, id: &str, text: &str) {
        self.ids.push_str(id);
        self.text.push_str(text);
        let record = self.next_record;
        let priority = Priority::default();
        self.ends.push(TextEnds { record, id: self.ids.len(), text: self.text.len(), priority });
        self.next_record += 1;
    }

    /// Adds the next record of the input as a document. `replaced` says whether illegal bytes were replaced
    /// by U+FFFD; such documents are counted.
    pub fn push_decoded(&mut self, id: &str, text: &str, replaced: bool) {
        self.push(id, text);
        self.replaced += u64::from(replaced);
    }

    /// Gives the last document a priority.
    pub fn set_priority(&mut self, priority: Priority) {
        if let Some(last) = self.ends.last_mut() {
            last.priority = priority;
        }
    }

    /// Adds the next record of the input as one that could not be read. Too long a `reason` or `head` is cut.
    pub fn reject(&mut self, path: &str, offset: u64, reason: impl ToString, head: &[u8]) {
        let head = &head[..head.len().min(Reject::HEAD_BYTES)];
        let mut reason = reason.to_string();
        if reason.len() > Reject::REASON_BYTES {
            reason.truncate(reason.floor_char_boundary(Reject::REASON_BYTES));
            reason.push('…');
            reason.shrink_to_fit();
        }
        let reject = Reject {
            doc: DocId::new(self.split, self.next_record),
            path: path.to_owned(),
            offset,
            reason,
            head: String::from_utf8_lossy(head).into_owned(),
        };
        self.reject_bytes += size_of::<Reject>() + path.len() + reject.reason.len() + reject.head.len();
        self.rejects.push(reject);
        self.next_record += 1;
    }

    /// Whether the batch holds as much as a reader should put into it.
    pub fn full(&self) -> bool {
        let bytes = self.text.len() + self.ids.len();
        bytes >= Self::BYTES || self.reject_bytes >= Self::BYTES || self.ends.len() >= 1 << 16
    }

    /// Returns the ordinal that the next record will take.
    pub fn next_record(&self) -> u64 {
        self.next_record
    }

    /// Returns the number of documents in which illegal bytes were replaced.
    pub fn replaced(&self) -> u64 {
        self.replaced
    }

    /// Returns the number of bytes of text in the batch.
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// Returns the documents, in order.
    pub fn docs(&self) -> impl ExactSizeIterator<Item = Doc<'_>> {
        let mut start = (0, 0);
        self.ends.iter().map(move |ends| {
            let doc = Doc {
                doc: DocId::new(self.split, ends.record),
                id: &self.ids[start.0..ends.id],
                text: &self.text[start.1..ends.text],
                priority: ends.priority,
            };
            start = (ends.id, ends.text);
            doc
        })
    }

    /// Drops the documents for which `keep` is false. The others keep their ids.
    pub fn retain(&mut self, mut keep: impl FnMut(&Doc) -> bool) {
        let mut kept = DocBatch::new(self.split, 0);
        for doc in self.docs().filter(|doc| keep(doc)) {
            kept.next_record = doc.doc.record();
            kept.push(doc.id, doc.text);
            kept.set_priority(doc.priority);
        }
        let (next_record, replaced) = (self.next_record, self.replaced);
        *self = DocBatch { next_record, rejects: self.take_rejects(), replaced, ..kept };
    }

    /// Gives all documents this id and this priority, where there is one. Places and texts stay.
    pub fn give_all(&mut self, id: Option<&str>, priority: Option<Priority>) {
        if let Some(id) = id {
            self.ids = id.repeat(self.ends.len());
        }
        for (count, ends) in (1..).zip(&mut self.ends) {
            ends.id = id.map_or(ends.id, |id| count * id.len());
            ends.priority = priority.unwrap_or(ends.priority);
        }
    }

    /// Takes the rejected records out of the batch, in order.
    pub fn take_rejects(&mut self) -> Vec<Reject> {
        self.reject_bytes = 0;
        std::mem::take(&mut self.rejects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_full_of_rejects_too_and_none_is_longer_than_its_bounds() {
        let mut batch = DocBatch::new(0, 0);
        let (path, reason) = ("p".repeat(4000), "因".repeat(100_000));
        while !batch.full() {
            batch.reject(&path, 0, &reason, &[b'x'; 10_000]);
        }
        let rejects = batch.take_rejects();
        assert!((150..250).contains(&rejects.len()), "{}", rejects.len());
        assert_eq!((rejects[0].reason.chars().count(), rejects[0].head.len()), (334, Reject::HEAD_BYTES));
        assert!(!batch.full());
    }

    #[test]
    fn documents_that_stay_in_a_batch_keep_their_places_and_priorities() {
        let mut batch = DocBatch::new(3, 7);
        batch.push("a", "one");
        batch.reject("file", 9, "bad", b"");
        batch.push("b", "two");
        batch.push("c", "three");
        batch.set_priority(Priority(5));
        let place = |record| DocId::new(3, record);
        batch.retain(|doc| doc.doc != place(9));
        let docs: Vec<_> = batch.docs().collect();
        let doc = |record, id, text, bits| Doc { doc: place(record), id, text, priority: Priority(bits) };
        assert_eq!(docs, [doc(7, "a", "one", 0), doc(10, "c", "three", 5)]);
        assert_eq!((batch.text_bytes(), batch.next_record(), batch.take_rejects().len()), (8, 11, 1));

        batch.give_all(Some("2026"), Some(Priority(2026)));
        let docs: Vec<_> = batch.docs().collect();
        assert_eq!(docs, [doc(7, "2026", "one", 2026), doc(10, "2026", "three", 2026)]);
    }
}
