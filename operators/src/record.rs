//! The records of a job: documents in batches, which stay with their worker; rows of fingerprints and pairs,
//! which travel between workers.

use serde::{Deserialize, Serialize};

use crate::merit::{Merit, Priority};

/// Position of a document in the corpus: the ordinal of its split (24 bits), then its ordinal in the split
/// (40 bits).
///
/// Splits are numbered in path order whatever the number of workers, so the order of `DocId`s is the order of
/// the corpus. See docs/design/0001.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub struct DocId(pub u64);

impl DocId {
    const RECORD_BITS: u32 = 40;
    /// Greatest number of splits in a corpus.
    pub const MAX_SPLITS: usize = 1 << 24;

    /// Makes the id of document number `record` of split number `split`.
    pub fn new(split: u32, record: u64) -> Self {
        debug_assert!((split as usize) < Self::MAX_SPLITS && record >> Self::RECORD_BITS == 0);
        DocId(u64::from(split) << Self::RECORD_BITS | record)
    }

    /// Returns the ordinal of the split that holds the document.
    pub fn split(self) -> u32 {
        (self.0 >> Self::RECORD_BITS) as u32
    }

    /// Returns the ordinal of the document within its split.
    pub fn record(self) -> u64 {
        self.0 & ((1 << Self::RECORD_BITS) - 1)
    }
}

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
    /// Number of bytes of a record that are kept so that a person can recognise it.
    pub const HEAD_BYTES: usize = 80;
    /// Length of the longest reason, in bytes. A parser's message may contain a name or a value of the
    /// record.
    pub const REASON_BYTES: usize = 1000;
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
        let (record, priority) = (self.next_record, Priority::default());
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

    /// Takes the rejected records out of the batch, in order.
    pub fn take_rejects(&mut self) -> Vec<Reject> {
        self.reject_bytes = 0;
        std::mem::take(&mut self.rejects)
    }
}

/// A value that the exchange carries in a fixed number of bytes, which are the same on every machine.
pub trait Record: Copy + Send + Sync + 'static {
    /// Size in bytes.
    const BYTES: usize;
    /// Writes the value into exactly `BYTES` bytes.
    fn write(&self, to: &mut [u8]);
    /// Reads the value back from exactly `BYTES` bytes.
    fn read(from: &[u8]) -> Self;
}

impl Record for u8 {
    const BYTES: usize = 1;

    #[inline]
    fn write(&self, to: &mut [u8]) {
        to[0] = *self;
    }

    #[inline]
    fn read(from: &[u8]) -> Self {
        from[0]
    }
}

impl Record for u64 {
    const BYTES: usize = 8;

    #[inline]
    fn write(&self, to: &mut [u8]) {
        to.copy_from_slice(&self.to_le_bytes());
    }

    #[inline]
    fn read(from: &[u8]) -> Self {
        let mut bytes = [0; Self::BYTES];
        bytes.copy_from_slice(from);
        u64::from_le_bytes(bytes)
    }
}

impl Record for DocId {
    const BYTES: usize = u64::BYTES;

    #[inline]
    fn write(&self, to: &mut [u8]) {
        self.0.write(to);
    }

    #[inline]
    fn read(from: &[u8]) -> Self {
        DocId(u64::read(from))
    }
}

impl Record for u128 {
    const BYTES: usize = 16;

    #[inline]
    fn write(&self, to: &mut [u8]) {
        to.copy_from_slice(&self.to_le_bytes());
    }

    #[inline]
    fn read(from: &[u8]) -> Self {
        let mut bytes = [0; Self::BYTES];
        bytes.copy_from_slice(from);
        u128::from_le_bytes(bytes)
    }
}

impl<T: Record, const N: usize> Record for [T; N] {
    const BYTES: usize = N * T::BYTES;

    fn write(&self, to: &mut [u8]) {
        to.chunks_exact_mut(T::BYTES).zip(self).for_each(|(to, value)| value.write(to));
    }

    fn read(from: &[u8]) -> Self {
        std::array::from_fn(|i| T::read(&from[i * T::BYTES..][..T::BYTES]))
    }
}

impl<A: Record, B: Record> Record for (A, B) {
    const BYTES: usize = A::BYTES + B::BYTES;

    fn write(&self, to: &mut [u8]) {
        let (first, second) = to.split_at_mut(A::BYTES);
        self.0.write(first);
        self.1.write(second);
    }

    fn read(from: &[u8]) -> Self {
        let (first, second) = from.split_at(A::BYTES);
        (A::read(first), B::read(second))
    }
}

/// Fingerprint of a document together with the document's id: the record that the blocks are joined on. With it
/// travels a sketch of the text, which the join of blocks does not look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row<F> {
    /// Fingerprint, of the method's own type.
    pub fingerprint: F,
    /// Document that has the fingerprint.
    pub doc: DocId,
    /// Bits of a [`SmallSketch`](crate::sets::small_sketch::SmallSketch), or 0.
    pub sketch: u64,
}

impl<F: Record> Record for Row<F> {
    const BYTES: usize = F::BYTES + DocId::BYTES + u64::BYTES;

    fn write(&self, to: &mut [u8]) {
        (self.fingerprint, (self.doc, self.sketch)).write(to);
    }

    fn read(from: &[u8]) -> Self {
        let (fingerprint, (doc, sketch)) = Record::read(from);
        Row { fingerprint, doc, sketch }
    }
}

/// Two documents judged near-duplicates, or candidates for it; `low < high` always.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub struct Pair {
    /// The earlier document.
    pub low: DocId,
    /// The later document.
    pub high: DocId,
    /// Distance in the method's own unit, which is bits for SimHash.
    pub distance: u32,
}

impl Pair {
    /// Makes a pair and puts the two documents in order.
    pub fn new(a: DocId, b: DocId, distance: u32) -> Self {
        Pair { low: a.min(b), high: a.max(b), distance }
    }
}

impl Record for Pair {
    const BYTES: usize = 24;

    fn write(&self, to: &mut [u8]) {
        (self.low, (self.high, u64::from(self.distance))).write(to);
    }

    fn read(from: &[u8]) -> Self {
        let (low, (high, distance)) = <(DocId, (DocId, u64))>::read(from);
        Pair { low, high, distance: distance as u32 }
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
    }
}
