//! How many documents have a feature: never too few, sometimes too many.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use crate::Scratch;
use crate::record::Record;

/// A counter of one byte for every hash value's leading bits, which the workers of a process share.
///
/// Features that fall on one counter are counted together; 255 stands for all above it.
pub struct Sketch {
    counters: Box<[AtomicU8]>,
    shift: u32,
    /// Held while the counters of a region are written; a region fits into a core's cache.
    writing: Box<[Mutex<()>]>,
}

/// Counters side by side, on their way to another process.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    /// Which of the sketch's pieces.
    pub at: u64,
    counts: [u8; Piece::COUNTERS],
}

impl Piece {
    const COUNTERS: usize = 1 << 10;
}

impl Record for Piece {
    const BYTES: usize = u64::BYTES + Piece::COUNTERS;

    fn write(&self, to: &mut [u8]) {
        let (at, counts) = to.split_at_mut(u64::BYTES);
        self.at.write(at);
        counts.copy_from_slice(&self.counts);
    }

    fn read(from: &[u8]) -> Self {
        let (at, from) = from.split_at(u64::BYTES);
        let mut counts = [0; Piece::COUNTERS];
        counts.copy_from_slice(from);
        Piece { at: u64::read(at), counts }
    }
}

/// One worker's way to count: features wait until there are enough for a region.
pub struct Counting {
    sketch: Arc<Sketch>,
    /// For each region the numbers of counters in it: so many `places`, of which the first `lengths` are taken.
    waiting: Vec<u32>,
    places: usize,
    lengths: Vec<usize>,
}

const REGION_BITS: u32 = 10;
/// Of memory, in bytes.
const PAGE: usize = 4 << 10;
/// So many wait for a region that most lines of its memory are met more than once while it is in the cache.
const WAITING: usize = 1 << 12;

impl Sketch {
    /// One counter for each byte of the corpus, about: half as many features as counters keep most apart.
    /// Between 64 KiB and 4 GiB, and no more than `most` bytes: fewer counters tell less apart, and count no less.
    pub fn of_corpus(bytes: u64, most: Option<usize>) -> Self {
        let bytes = most.map_or(bytes, |most| bytes.min(most as u64));
        let bits = bytes.max(1).ilog2().clamp(16, 32);
        let counters: Box<[AtomicU8]> = (0..1_u64 << bits).map(|_| AtomicU8::new(0)).collect();
        // A page that is read before it is written costs the system twice.
        counters.iter().step_by(PAGE).for_each(|counter| counter.store(0, Relaxed));
        Sketch {
            counters,
            shift: 64 - bits,
            writing: (0..1 << REGION_BITS).map(|_| Mutex::new(())).collect(),
        }
    }

    /// How many [`Piece`]s it has.
    pub(crate) fn pieces(&self) -> usize {
        self.counters.len() / Piece::COUNTERS
    }

    /// The counters of a piece, if any of them counted something.
    pub(crate) fn piece(&self, at: usize) -> Option<Piece> {
        let counters = self.counters_of(at);
        let counts = std::array::from_fn(|i| counters[i].load(Relaxed));
        counts.iter().any(|&count| count > 0).then_some(Piece { at: at as u64, counts })
    }

    /// Adds a piece of another sketch. Nobody else may write these counters meanwhile.
    pub(crate) fn add(&self, piece: &Piece) {
        for (counter, count) in self.counters_of(piece.at as usize).iter().zip(piece.counts) {
            counter.store(counter.load(Relaxed).saturating_add(count), Relaxed);
        }
    }

    /// Replaces the counters of a piece.
    pub(crate) fn put(&self, piece: &Piece) {
        let counters = self.counters_of(piece.at as usize).iter();
        counters.zip(piece.counts).for_each(|(counter, count)| counter.store(count, Relaxed));
    }

    fn counters_of(&self, piece: usize) -> &[AtomicU8] {
        &self.counters[piece * Piece::COUNTERS..][..Piece::COUNTERS]
    }

    /// How often the feature was counted, or more.
    pub fn count(&self, feature: u64) -> u8 {
        self.counters[(feature >> self.shift) as usize].load(Relaxed)
    }
}

impl Counting {
    /// Counts into a sketch. Cost: 15 ns a feature; memory: 16 MiB, or a quarter of the budget if that is less.
    pub fn new(sketch: Arc<Sketch>, scratch: &Scratch) -> Self {
        let regions = 1 << REGION_BITS;
        let fit = |bytes: usize| (bytes / 4 / regions / size_of::<u32>()).clamp(1, WAITING);
        let places = scratch.budget().map_or(WAITING, fit);
        Counting { sketch, waiting: vec![0; regions * places], places, lengths: vec![0; regions] }
    }

    /// Counts a feature.
    pub fn add(&mut self, feature: u64) {
        let counter = feature >> self.sketch.shift;
        let bits = 64 - self.sketch.shift - REGION_BITS;
        let region = (counter >> bits) as usize;
        let length = &mut self.lengths[region];
        self.waiting[region * self.places + *length] = (counter & ((1 << bits) - 1)) as u32;
        *length += 1;
        if *length == self.places {
            self.write(region);
        }
    }

    /// Counts what still waits. Not before all workers did this are the counts complete.
    pub fn finish(mut self) {
        (0..self.lengths.len()).for_each(|region| self.write(region));
    }

    fn write(&mut self, region: usize) {
        let counters = self.sketch.counters.len() >> REGION_BITS;
        let counters = &self.sketch.counters[region * counters..][..counters];
        // Only who holds the region writes it, so a load and a store lose nothing.
        let _held = self.sketch.writing[region].lock().unwrap_or_else(PoisonError::into_inner);
        for &counter in &self.waiting[region * self.places..][..self.lengths[region]] {
            let counter = &counters[counter as usize];
            counter.store(counter.load(Relaxed).saturating_add(1), Relaxed);
        }
        self.lengths[region] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash;

    #[test]
    fn no_count_is_too_small_and_none_overflows() {
        let sketch = Arc::new(Sketch::of_corpus(1 << 30, Some(1)));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut counting = Counting::new(Arc::clone(&sketch), &Scratch::unused());
                    (0..200).for_each(|_| counting.add(7));
                    (0..100_000).for_each(|i| (0..=i % 3).for_each(|_| counting.add(hash::spread(i))));
                    counting.finish();
                });
            }
        });
        assert_eq!(sketch.count(7), 255);
        assert!((0..100_000).all(|i| u64::from(sketch.count(hash::spread(i))) >= 2 * (i % 3 + 1)));
    }
}
