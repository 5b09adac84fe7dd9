//! How often a feature was counted: whether once, and about how much more often; never too little.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use crate::Scratch;
use crate::hash::spread;
use crate::record::Record;

/// Counters of two bits, which the workers of a process share.
///
/// A feature has a counter on each of eight levels; the first level counts it in every document, each further one in a quarter
/// of those, so that four times as often is a level more. Which documents these are depends on the feature and the document, not on
/// their order. Features that fall on one counter are counted together, and 3 stands for all above it.
///
/// A region has the counters of the features that begin with the same bits.
pub struct Sketch {
    /// One level after the other.
    counters: Box<[AtomicU8]>,
    levels: [Level; LEVELS as usize],
    /// Held while the counters of a region are written; a region fits into a core's cache.
    writing: Box<[Mutex<()>]>,
}

/// Counters side by side, on their way to another process.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    /// Which of the sketch's pieces.
    pub at: u64,
    /// As they lie in memory.
    counts: [u8; Piece::SIZE],
}

impl Piece {
    /// In bytes.
    const SIZE: usize = 1 << 10;
}

impl Record for Piece {
    const BYTES: usize = u64::BYTES + Piece::SIZE;

    fn write(&self, to: &mut [u8]) {
        let (at, counts) = to.split_at_mut(u64::BYTES);
        self.at.write(at);
        counts.copy_from_slice(&self.counts);
    }

    fn read(from: &[u8]) -> Self {
        let (at, from) = from.split_at(u64::BYTES);
        let mut counts = [0; Piece::SIZE];
        counts.copy_from_slice(from);
        Piece { at: u64::read(at), counts }
    }
}

/// One worker's way to count: features wait until there are enough for a region.
pub struct Counting {
    sketch: Arc<Sketch>,
    /// For each region the [`At`]s of features in it: so many `places`, of which the first `lengths` are taken.
    waiting: Vec<At>,
    places: usize,
    lengths: Vec<usize>,
}

/// A feature within its region, and on how many further levels it is counted in the last bits.
#[derive(Clone, Copy, Default)]
struct At(u32);

#[derive(Clone, Copy)]
struct Level {
    /// In bytes.
    start: usize,
    /// In each region.
    counters: u64,
}

const REGION_BITS: u32 = 10;
const REGIONS: usize = 1 << REGION_BITS;
const LEVELS: u32 = 8;
const LEVEL_BITS: u32 = LEVELS.ilog2();
/// So many wait for a region that most lines of its memory are met more than once while it is in the cache.
const WAITING: usize = 1 << 12;
/// In a byte.
const COUNTERS: u64 = 4;
/// Of a counter.
const FULL: u8 = 3;

impl Sketch {
    /// One counter for each byte of the corpus, about, on the first level: half as many features as counters keep most apart.
    /// From 64 Ki to 4 Gi of them, in a third as many bytes, and no more than `most` bytes: fewer counters tell less apart,
    /// and count no less.
    pub fn of_corpus(bytes: u64, most: Option<usize>) -> Self {
        let counters = most.map_or(bytes, |most| bytes.min(3 * most as u64)).clamp(1 << 16, 1 << 32);
        let mut bytes = 0;
        let levels = std::array::from_fn(|level| {
            // Whole bytes.
            let counters = (counters >> REGION_BITS >> (2 * level)).max(1).next_multiple_of(COUNTERS);
            let level = Level { start: bytes, counters };
            bytes += REGIONS * (counters / COUNTERS) as usize;
            level
        });
        Sketch {
            counters: (0..bytes).map(|_| AtomicU8::new(0)).collect(),
            levels,
            writing: (0..REGIONS).map(|_| Mutex::new(())).collect(),
        }
    }

    /// How many [`Piece`]s it has.
    pub(crate) fn pieces(&self) -> usize {
        self.counters.len() / Piece::SIZE
    }

    /// The counters of a piece, if any of them counted something.
    pub(crate) fn piece(&self, at: usize) -> Option<Piece> {
        let counters = self.counters_of(at);
        let counts = std::array::from_fn(|i| counters[i].load(Relaxed));
        counts.iter().any(|&count| count > 0).then_some(Piece { at: at as u64, counts })
    }

    /// Adds a piece of another sketch. Nobody else may write these counters meanwhile.
    pub(crate) fn add(&self, piece: &Piece) {
        for (byte, counts) in self.counters_of(piece.at as usize).iter().zip(piece.counts) {
            let sum = (0..8).step_by(2).map(|bit| {
                let both = [byte.load(Relaxed), counts].map(|byte| byte >> bit & FULL);
                (both[0] + both[1]).min(FULL) << bit
            });
            byte.store(sum.sum(), Relaxed);
        }
    }

    /// Replaces the counters of a piece.
    pub(crate) fn put(&self, piece: &Piece) {
        let counters = self.counters_of(piece.at as usize).iter();
        counters.zip(piece.counts).for_each(|(counter, count)| counter.store(count, Relaxed));
    }

    fn counters_of(&self, piece: usize) -> &[AtomicU8] {
        &self.counters[piece * Piece::SIZE..][..Piece::SIZE]
    }

    /// How often the feature was counted: 0, 1, 2, or 3 for all above it.
    pub fn count(&self, feature: u64) -> u8 {
        self.count_of(&self.levels[0], feature)
    }

    /// Adds to the counts of features, so that they order them: one more for each time that a feature was counted some 1.6 times as
    /// often. Stops when so many are `wanted`, the rarest, as have less than all others.
    pub fn rank(&self, counted: &mut [(u8, u64)], wanted: usize) {
        // Level by level, so that what is to be fetched next does not depend on what is being fetched.
        for (level, full) in self.levels[1..].iter().zip((FULL..).step_by(FULL.into())) {
            if counted.iter().filter(|(rank, _)| *rank < full).count() >= wanted {
                return;
            }
            for (rank, feature) in counted.iter_mut().filter(|(rank, _)| *rank == full) {
                *rank += self.count_of(level, *feature);
            }
        }
    }

    /// By the counter of a level.
    fn count_of(&self, level: &Level, feature: u64) -> u8 {
        let (byte, bit) = level.place(feature >> At::CUT);
        self.counters[level.start + byte].load(Relaxed) >> bit & FULL
    }
}

impl Level {
    /// The byte and the bit of a counter: of the level by the first bits of a feature, of a region by the rest of them.
    fn place(&self, bits: u64) -> (usize, u32) {
        let counter = (bits * self.counters) >> At::BITS;
        ((counter / COUNTERS) as usize, (counter % COUNTERS * 2) as u32)
    }
}

impl At {
    /// Of the feature.
    const BITS: u32 = u32::BITS - LEVEL_BITS;
    /// So many of its last bits do not matter.
    const CUT: u32 = u64::BITS - REGION_BITS - At::BITS;

    /// The region of a feature, and the rest of it.
    fn of(feature: u64, further: u32) -> (usize, At) {
        let rest = (feature >> At::CUT) as u32;
        ((feature >> (u64::BITS - REGION_BITS)) as usize, At(rest << LEVEL_BITS | further))
    }

    fn further(self) -> usize {
        (self.0 & (LEVELS - 1)) as usize
    }

    fn rest(self) -> u64 {
        (self.0 >> LEVEL_BITS).into()
    }
}

impl Counting {
    /// Counts into a sketch. Cost: 15 ns a feature; memory: 16 MiB, or a quarter of the budget if that is less.
    pub fn new(sketch: Arc<Sketch>, scratch: &Scratch) -> Self {
        let fit = |bytes: usize| (bytes / 4 / REGIONS / size_of::<At>()).clamp(1, WAITING);
        let places = scratch.budget().map_or(WAITING, fit);
        Counting { sketch, waiting: vec![At::default(); REGIONS * places], places, lengths: vec![0; REGIONS] }
    }

    /// Counts the features of a document.
    pub fn add(&mut self, features: impl Iterator<Item = u64> + Clone) {
        let document = spread(features.clone().fold(0, u64::wrapping_add));
        for feature in features {
            let further = ((feature ^ document).trailing_zeros() / 2).min(LEVELS - 1);
            let (region, at) = At::of(feature, further);
            let length = &mut self.lengths[region];
            self.waiting[region * self.places + *length] = at;
            *length += 1;
            if *length == self.places {
                self.write(region);
            }
        }
    }

    /// Counts what still waits. Not before all workers did this are the counts complete.
    pub fn finish(mut self) {
        (0..REGIONS).for_each(|region| self.write(region));
    }

    fn write(&mut self, region: usize) {
        let sketch = &self.sketch;
        // Only who holds the region writes it, so a load and a store lose nothing.
        let _held = sketch.writing[region].lock().unwrap_or_else(PoisonError::into_inner);
        let mut waiting = &mut self.waiting[region * self.places..][..self.lengths[region]];
        for (number, level) in sketch.levels.iter().enumerate() {
            let bytes = (level.counters / COUNTERS) as usize;
            let counters = &sketch.counters[level.start + region * bytes..][..bytes];
            // As little as can be, so that many lines of memory are fetched at once.
            for at in &*waiting {
                let (byte, bit) = level.place(at.rest());
                let byte = &counters[byte];
                let counts = byte.load(Relaxed);
                byte.store(counts + (u8::from(counts >> bit & FULL < FULL) << bit), Relaxed);
            }
            let mut further = 0;
            for i in 0..waiting.len() {
                waiting[further] = waiting[i];
                further += usize::from(waiting[i].further() > number);
            }
            waiting = &mut waiting[..further];
        }
        self.lengths[region] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash;

    /// Counts made by two workers.
    fn counted(sketch: Sketch, add: impl Fn(u64, &mut Counting) + Sync) -> Arc<Sketch> {
        let sketch = Arc::new(sketch);
        std::thread::scope(|scope| {
            for worker in 0..2 {
                let (sketch, add) = (&sketch, &add);
                scope.spawn(move || {
                    let mut counting = Counting::new(Arc::clone(sketch), &Scratch::unused());
                    add(worker, &mut counting);
                    counting.finish();
                });
            }
        });
        sketch
    }

    fn rank(sketch: &Sketch, i: u64) -> u8 {
        let mut counted = [(sketch.count(hash::spread(i)), hash::spread(i))];
        sketch.rank(&mut counted, 1);
        counted[0].0
    }

    #[test]
    fn what_was_counted_twice_is_known() {
        // In few counters, so that many features share one.
        let sketch = counted(Sketch::of_corpus(1 << 30, Some(1)), |worker, counting| {
            let features = (0..60_000).filter(|i| i % 2 == 0 || i % 4 == 1 + 2 * worker);
            features.for_each(|i| counting.add([hash::spread(i)].into_iter()));
        });
        assert!((0..60_000).step_by(2).all(|i| sketch.count(hash::spread(i)) > 1 && rank(&sketch, i) >= 2));
        let once = (1..60_000).step_by(2).filter(|&i| sketch.count(hash::spread(i)) == 1).count();
        assert!((5_000..20_000).contains(&once), "{once}");
    }

    #[test]
    fn what_was_counted_more_often_has_a_higher_rank() {
        let times = |i: u64| 1_u64 << (2 * i);
        let sketch = counted(Sketch::of_corpus(1 << 26, None), |worker, counting| {
            for document in (0..times(8)).filter(|document| document % 2 == worker) {
                let often = (0..9).filter(|&i| document < times(i)).map(hash::spread);
                counting.add(often.chain([hash::spread(1_000 + document)]));
            }
        });
        let ranks: Vec<_> = (0..9).map(|i| rank(&sketch, i)).collect();
        assert_eq!(ranks[..2], [1, 3 + u8::from(ranks[1] > 3)], "{ranks:?}");
        assert!(ranks.is_sorted() && ranks.windows(3).all(|three| three[0] < three[2]), "{ranks:?}");
    }
}
