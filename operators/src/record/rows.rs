//! The records that travel between workers: positions of documents, rows of fingerprints, and pairs.

use serde::{Deserialize, Serialize};

/// Position of a document in the corpus: the ordinal of its split (24 bits), then its ordinal in the split
/// (40 bits).
///
/// Splits are numbered in path order whatever the number of workers, so the order of `DocId`s is the order of
/// the corpus. See docs/design/reading.md.
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
