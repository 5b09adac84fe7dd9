//! A list of documents with values of each, such as features, which is read in order as often as wanted and
//! spilled to disk beyond a budget.

use super::budget::{FRAME_BYTES, FrameFile, SpillBudget};
use crate::Error;
use crate::record::{DocId, Record};

/// A list of documents with values of each. Documents are added at its end and never removed.
///
/// Memory: 16 bytes a document and the values, for the first documents, as many as fit into the budget. The
/// other documents are on disk; for them one frame is held (a quarter of the budget but between 4 and 64 KiB,
/// or the largest document if that is larger), and twice as much again while they are read.
///
/// Adding cannot fail: the first error is kept, the documents after it are dropped, and [`Spool::check`] and
/// [`Spool::scan`] return the error.
#[must_use = "only `check` and `scan` say whether all documents are there"]
pub struct Spool<T> {
    spill: SpillBudget,
    /// Least size of a frame, in bytes.
    frame_bytes: usize,
    /// The first documents.
    first: DocValues<T>,
    frames: Option<FrameFile>,
    /// The last documents, since the last frame was written.
    last: DocValues<T>,
    failed: Option<Error>,
}

/// Documents with their values, in memory.
struct DocValues<T> {
    /// For each document its id and the number of its values.
    docs: Vec<(DocId, usize)>,
    /// Values of all documents, one document after the other.
    values: Vec<T>,
}

/// Length of the shortest frame, in bytes. Each frame costs a write and a read.
const LEAST_FRAME_BYTES: usize = 4 << 10;

impl<T: Record> Spool<T> {
    /// Makes an empty list.
    pub fn new(spill: &SpillBudget) -> Self {
        let frame_bytes = spill.budget().map_or(FRAME_BYTES, |bytes| bytes / 4);
        Spool {
            spill: spill.clone(),
            frame_bytes: frame_bytes.clamp(LEAST_FRAME_BYTES, FRAME_BYTES),
            first: DocValues::default(),
            frames: None,
            last: DocValues::default(),
            failed: None,
        }
    }

    /// Adds a document.
    pub fn push(&mut self, doc: DocId, values: &[T]) {
        let most = self.spill.budget().map_or(usize::MAX, |bytes| bytes.saturating_sub(self.frame_bytes));
        let fits = self.frames.is_none()
            && self.last.docs.is_empty()
            && self.first.bytes() + DocValues::bytes_of(values) <= most;
        if fits {
            return self.first.push(doc, values);
        }
        self.last.push(doc, values);
        if self.last.bytes() >= self.frame_bytes {
            if self.failed.is_none() {
                self.failed = self.spill_last().err();
            }
            self.last.clear(self.frame_bytes);
        }
    }

    /// Returns the first error so far.
    pub fn check(&self) -> Result<(), Error> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Calls `each` with all documents, in the order in which they were added. Stops at the first error.
    pub fn scan<E: From<Error>>(&self, mut each: impl FnMut(DocId, &[T]) -> Result<(), E>) -> Result<(), E> {
        self.check()?;
        self.first.scan(&mut each)?;
        if let Some(frames) = &self.frames {
            let (mut bytes, mut read) = (Vec::new(), DocValues::default());
            let mut offset = 0;
            while offset < frames.end() {
                offset = frames.read(offset, &mut bytes)?;
                read.decode(&bytes);
                read.scan(&mut each)?;
            }
        }
        self.last.scan(&mut each)
    }

    fn spill_last(&mut self) -> Result<(), Error> {
        let frames = match &mut self.frames {
            Some(frames) => frames,
            none => none.insert(self.spill.frames()?),
        };
        let bytes = self.last.encoded_bytes();
        frames.append(bytes, bytes, |bytes| self.last.encode(bytes))
    }
}

impl<T> Default for DocValues<T> {
    fn default() -> Self {
        DocValues { docs: Vec::new(), values: Vec::new() }
    }
}

impl<T: Record> DocValues<T> {
    /// Bytes of a document without its values, in memory and encoded.
    const DOC_BYTES: usize = 2 * u64::BYTES;

    fn bytes_of(values: &[T]) -> usize {
        Self::DOC_BYTES + size_of_val(values)
    }

    fn bytes(&self) -> usize {
        self.docs.len() * Self::DOC_BYTES + size_of_val(&self.values[..])
    }

    fn push(&mut self, doc: DocId, values: &[T]) {
        self.docs.push((doc, values.len()));
        self.values.extend_from_slice(values);
    }

    /// Drops all documents. The memory of a long document is given back.
    fn clear(&mut self, frame_bytes: usize) {
        self.docs.clear();
        self.values.clear();
        self.values.shrink_to(2 * frame_bytes / size_of::<T>());
    }

    fn scan<E>(&self, each: &mut impl FnMut(DocId, &[T]) -> Result<(), E>) -> Result<(), E> {
        let mut rest = &self.values[..];
        self.docs.iter().try_for_each(|&(doc, count)| {
            let (values, after) = rest.split_at(count);
            rest = after;
            each(doc, values)
        })
    }

    fn encoded_bytes(&self) -> usize {
        self.docs.len() * Self::DOC_BYTES + self.values.len() * T::BYTES
    }

    /// Writes each document as its id, the number of its values, and the values.
    fn encode(&self, mut to: &mut [u8]) {
        let mut put = |bytes: usize| to.split_off_mut(..bytes).unwrap_or_default();
        let mut values = self.values.iter();
        for &(doc, count) in &self.docs {
            (doc, count as u64).write(put(Self::DOC_BYTES));
            values.by_ref().take(count).for_each(|value| value.write(put(T::BYTES)));
        }
    }

    /// Replaces the documents by those of a frame.
    fn decode(&mut self, mut from: &[u8]) {
        self.docs.clear();
        self.values.clear();
        while let Some((head, rest)) = from.split_at_checked(Self::DOC_BYTES) {
            let (doc, count) = <(DocId, u64)>::read(head);
            let (values, rest) = rest.split_at(count as usize * T::BYTES);
            self.docs.push((doc, count as usize));
            self.values.extend(values.chunks_exact(T::BYTES).map(T::read));
            from = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::budget::twins::Twin;
    use super::*;

    type Docs = Vec<(u64, Vec<u64>)>;

    fn spool(docs: &Docs, spill: &SpillBudget) -> Spool<u64> {
        let mut spool = Spool::new(spill);
        docs.iter().for_each(|(doc, numbers)| spool.push(DocId(*doc), numbers));
        spool
    }

    fn scanned(spool: &Spool<u64>) -> Result<Docs, Error> {
        let mut docs = Vec::new();
        spool.scan(|doc, numbers| {
            docs.push((doc.0, numbers.to_vec()));
            Ok::<(), Error>(())
        })?;
        Ok(docs)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn documents_come_back_in_order_as_often_as_wanted(
            sizes in proptest::collection::vec(prop_oneof![0_usize..3, 0_usize..3000, 9000..20_000_usize], 0..30),
            budget in prop_oneof![Just(None), (0_usize..1_000_000).prop_map(Some)],
        ) {
            let docs: Docs = sizes.iter().zip(1..).map(|(&size, doc)| (doc, (doc..).take(size).collect())).collect();
            let spill = Twin::default().budget(budget);
            let spool = spool(&docs, &spill);
            prop_assert_eq!(scanned(&spool).unwrap(), &docs[..]);
            prop_assert_eq!(scanned(&spool).unwrap(), docs);
            prop_assert!(spool.first.bytes() <= budget.unwrap_or(usize::MAX));
            prop_assert!(budget.is_some() || spill.spilled().files == 0);
        }
    }

    #[test]
    fn a_full_disk_or_a_damaged_file_is_an_error() {
        let docs: Docs = (0..200).map(|doc| (doc, vec![doc; 300])).collect();
        let full = spool(&docs, &Twin::full_after(100_000).budget(400_000));
        assert!(matches!(full.check(), Err(Error::DiskFull { bytes: 65_536.., .. })));
        assert!(full.scan(|_, _| -> Result<(), Error> { panic!("not all documents") }).is_err());
        let damaged = spool(&docs, &Twin { damaged: Some(70_000), ..Twin::default() }.budget(400_000));
        damaged.check().unwrap();
        assert!(matches!(scanned(&damaged), Err(Error::SpillLost { .. })));
    }
}
