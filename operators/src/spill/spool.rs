//! A list of documents with numbers of each, such as features, which is read in order as often as wanted and
//! spilled to disk beyond a budget.

use super::budget::{FRAME_BYTES, FrameFile, SpillBudget};
use crate::Error;
use crate::record::{DocId, Record};

/// A list of documents with numbers of each. Documents are added at its end and never removed.
///
/// Memory: 8 bytes a number and 16 a document for the first documents, as many as fit into the budget. The
/// other documents are on disk; for them one frame is held (a quarter of the budget but between 4 and 64 KiB,
/// or the largest document if that is larger), and twice as much again while they are read.
///
/// Adding cannot fail: the first error is kept, the documents after it are dropped, and [`Spool::check`] and
/// [`Spool::scan`] return the error.
#[must_use = "only `check` and `scan` say whether all documents are there"]
pub struct Spool {
    spill: SpillBudget,
    /// Least number of numbers in a frame.
    frame: usize,
    /// The first documents: the id of each, the count of its numbers, and the numbers.
    held: Vec<u64>,
    frames: Option<FrameFile>,
    /// The last documents, since the last frame was written, in the same layout.
    last: Vec<u64>,
    failed: Option<Error>,
}

/// Length of the shortest frame, in bytes. Each frame costs a write and a read.
const LEAST_FRAME_BYTES: usize = 4 << 10;

impl Spool {
    /// Makes an empty list.
    pub fn new(spill: &SpillBudget) -> Self {
        let frame_bytes = spill.budget().map_or(FRAME_BYTES, |bytes| bytes / 4);
        Spool {
            spill: spill.clone(),
            frame: frame_bytes.clamp(LEAST_FRAME_BYTES, FRAME_BYTES) / u64::BYTES,
            held: Vec::new(),
            frames: None,
            last: Vec::new(),
            failed: None,
        }
    }

    /// Adds a document.
    pub fn push(&mut self, doc: DocId, numbers: &[u64]) {
        let most =
            self.spill.budget().map_or(usize::MAX, |bytes| (bytes / u64::BYTES).saturating_sub(self.frame));
        let fits =
            self.frames.is_none() && self.last.is_empty() && self.held.len() + numbers.len() + 2 <= most;
        let to = if fits { &mut self.held } else { &mut self.last };
        to.extend([doc.0, numbers.len() as u64]);
        to.extend_from_slice(numbers);
        if self.last.len() >= self.frame {
            if self.failed.is_none() {
                self.failed = self.spill().err();
            }
            self.last.clear();
            // The memory of a long document is given back.
            self.last.shrink_to(2 * self.frame);
        }
    }

    /// Returns the first error so far.
    pub fn check(&self) -> Result<(), Error> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Calls `each` with all documents, in the order in which they were added. Stops at the first error.
    pub fn scan<E: From<Error>>(
        &self,
        mut each: impl FnMut(DocId, &[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.check()?;
        scan(&self.held, &mut each)?;
        if let Some(frames) = &self.frames {
            let (mut bytes, mut numbers) = (Vec::new(), Vec::new());
            let mut offset = 0;
            while offset < frames.end() {
                offset = frames.read(offset, &mut bytes)?;
                numbers.clear();
                numbers.extend(bytes.chunks_exact(u64::BYTES).map(u64::read));
                scan(&numbers, &mut each)?;
            }
        }
        scan(&self.last, &mut each)
    }

    fn spill(&mut self) -> Result<(), Error> {
        let frames = match &mut self.frames {
            Some(frames) => frames,
            none => none.insert(self.spill.frames()?),
        };
        let bytes = self.last.len() * u64::BYTES;
        frames.append(bytes, bytes, |bytes| {
            bytes.chunks_exact_mut(u64::BYTES).zip(&self.last).for_each(|(to, number)| number.write(to));
        })
    }
}

fn scan<E>(mut packed: &[u64], each: &mut impl FnMut(DocId, &[u64]) -> Result<(), E>) -> Result<(), E> {
    while let [doc, count, rest @ ..] = packed {
        let (numbers, rest) = rest.split_at(*count as usize);
        each(DocId(*doc), numbers)?;
        packed = rest;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::budget::twins::Twin;
    use super::*;

    type Docs = Vec<(u64, Vec<u64>)>;

    fn spool(docs: &Docs, spill: &SpillBudget) -> Spool {
        let mut spool = Spool::new(spill);
        docs.iter().for_each(|(doc, numbers)| spool.push(DocId(*doc), numbers));
        spool
    }

    fn scanned(spool: &Spool) -> Result<Docs, Error> {
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
            let spill = Twin::default().scratch(budget);
            let spool = spool(&docs, &spill);
            prop_assert_eq!(scanned(&spool).unwrap(), &docs[..]);
            prop_assert_eq!(scanned(&spool).unwrap(), docs);
            prop_assert!(spool.held.len() * 8 <= budget.unwrap_or(usize::MAX));
            prop_assert!(budget.is_some() || spill.spilled().files == 0);
        }
    }

    #[test]
    fn a_full_disk_or_a_damaged_file_is_an_error() {
        let docs: Docs = (0..200).map(|doc| (doc, vec![doc; 300])).collect();
        let full = spool(&docs, &Twin::full_after(100_000).scratch(400_000));
        assert!(matches!(full.check(), Err(Error::DiskFull { bytes: 65_536.., .. })));
        assert!(full.scan(|_, _| -> Result<(), Error> { panic!("not all documents") }).is_err());
        let damaged = spool(&docs, &Twin { damaged: Some(70_000), ..Twin::default() }.scratch(400_000));
        damaged.check().unwrap();
        assert!(matches!(scanned(&damaged), Err(Error::SpillLost { .. })));
    }
}
