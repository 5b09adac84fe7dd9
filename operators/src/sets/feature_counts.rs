//! Approximate counts of features: whether a feature was counted once, and about how much more often. A count
//! is never too low.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use parking_lot::Mutex;

use crate::SpillBudget;
use crate::hash::spread;
use crate::record::Record;

/// Counters of two bits, which the workers of a process share.
///
/// A feature has a counter on each of eight levels. The first level counts the feature in every document;
/// each further level counts it in a quarter of the documents of the level before, so that a feature that is
/// four times as frequent reaches one level higher. The documents of a level depend on the feature and the
/// document, not on the order of counting. Features that fall on one counter are counted together, and the
/// value 3 stands for all counts above it.
///
/// Example (a rank is the sum of a feature's counters, up to and including the first that is below 3):
///
/// ```text
/// documents with the feature   level 0   level 1   level 2   rank
/// 1                            1         -         -         1
/// 8                            3         2 of 8    -         5
/// 32                           3         3 (8)     2 of 32   8
/// ```
///
/// A region holds the counters of the features that begin with the same bits.
///
/// Memory: a third of a byte for each counter of the first level, see [`FeatureCounts::of_corpus`].
pub struct FeatureCounts {
    /// All counters, level after level.
    counters: Box<[AtomicU8]>,
    levels: [CounterLevel; LEVELS as usize],
    /// Locks that are held while the counters of a region are written. A region fits into the cache of a
    /// core.
    writing: Box<[Mutex<()>]>,
}

/// Counters that lie side by side, on their way to another process.
#[derive(Clone, Copy)]
pub(crate) struct CounterSlice {
    /// Number of the piece within all counters.
    pub at: u64,
    /// Counters, as they lie in memory.
    counts: [u8; CounterSlice::SIZE],
}

impl CounterSlice {
    /// Size in bytes.
    const SIZE: usize = 1 << 10;
}

impl Record for CounterSlice {
    const BYTES: usize = u64::BYTES + CounterSlice::SIZE;

    fn write(&self, to: &mut [u8]) {
        (self.at, self.counts).write(to);
    }

    fn read(from: &[u8]) -> Self {
        let (at, counts) = Record::read(from);
        CounterSlice { at, counts }
    }
}

/// Counts the features of one worker. Features wait in a buffer until there are enough for a region.
pub struct Counting {
    sketch: Arc<FeatureCounts>,
    /// For each region, `places` places for the [`CounterPosition`]s of its features, of which the first `lengths` are
    /// taken.
    waiting: Vec<CounterPosition>,
    places: usize,
    lengths: Vec<usize>,
}

/// A feature within its region. The last bits hold the number of further levels on which it is counted.
#[derive(Clone, Copy, Default)]
struct CounterPosition(u32);

#[derive(Clone, Copy)]
struct CounterLevel {
    /// Start within the counters, in bytes.
    start: usize,
    /// Number of counters in each region.
    counters: u64,
}

const REGION_BITS: u32 = 10;
const REGIONS: usize = 1 << REGION_BITS;
const LEVELS: u32 = 8;
const LEVEL_BITS: u32 = LEVELS.ilog2();
/// Number of features that wait for a region. It is so high that most cache lines of the region are met more
/// than once while they are in the cache.
const WAITING: usize = 1 << 12;
/// Number of counters in a byte.
const COUNTERS: u64 = 4;
/// Greatest value of a counter.
const FULL: u8 = 3;

impl FeatureCounts {
    /// Makes counters for a corpus of `bytes` bytes, with about one counter on the first level for each two
    /// bytes. A Chinese text has a feature for each three, so most features of a corpus are kept apart.
    ///
    /// The first level has from 64 Ki to 4 Gi counters; all levels together take a third as many bytes, and
    /// no more than `most`. With fewer counters more features are counted together, but no count is lower.
    pub fn of_corpus(bytes: u64, most: Option<usize>) -> Self {
        let counters =
            most.map_or(bytes / 2, |most| (bytes / 2).min(3 * most as u64)).clamp(1 << 16, 1 << 32);
        let mut bytes = 0;
        let levels = std::array::from_fn(|level| {
            // Whole bytes.
            let counters = (counters >> REGION_BITS >> (2 * level)).max(1).next_multiple_of(COUNTERS);
            let level = CounterLevel { start: bytes, counters };
            bytes += REGIONS * (counters / COUNTERS) as usize;
            level
        });
        FeatureCounts {
            counters: (0..bytes).map(|_| AtomicU8::new(0)).collect(),
            levels,
            writing: (0..REGIONS).map(|_| Mutex::new(())).collect(),
        }
    }

    /// Returns the number of [`CounterSlice`]s of all counters.
    pub(crate) fn pieces(&self) -> usize {
        self.counters.len() / CounterSlice::SIZE
    }

    /// Returns the counters of a piece, if any of them counted something.
    pub(crate) fn piece(&self, at: usize) -> Option<CounterSlice> {
        let counters = self.counters_of(at);
        let counts = std::array::from_fn(|i| counters[i].load(Relaxed));
        counts.iter().any(|&count| count > 0).then_some(CounterSlice { at: at as u64, counts })
    }

    /// Adds a piece of the counts of another process. Nobody else may write these counters meanwhile.
    pub(crate) fn add(&self, piece: &CounterSlice) {
        for (byte, counts) in self.counters_of(piece.at as usize).iter().zip(piece.counts) {
            let sum = (0..8).step_by(2).map(|bit| {
                let both = [byte.load(Relaxed), counts].map(|byte| byte >> bit & FULL);
                (both[0] + both[1]).min(FULL) << bit
            });
            byte.store(sum.sum(), Relaxed);
        }
    }

    /// Replaces the counters of a piece.
    pub(crate) fn put(&self, piece: &CounterSlice) {
        let counters = self.counters_of(piece.at as usize).iter();
        counters.zip(piece.counts).for_each(|(counter, count)| counter.store(count, Relaxed));
    }

    fn counters_of(&self, piece: usize) -> &[AtomicU8] {
        &self.counters[piece * CounterSlice::SIZE..][..CounterSlice::SIZE]
    }

    /// Returns how often the feature was counted: 0, 1, 2, or 3 for any higher count.
    pub fn count(&self, feature: u64) -> u8 {
        self.count_of(&self.levels[0], feature)
    }

    /// Raises the counts of features to ranks, which order features by frequency: a rank is one higher for
    /// each factor of some 1.6 in frequency. Stops as soon as at least `wanted` features have lower ranks
    /// than all others.
    pub fn rank(&self, counted: &mut [(u8, u64)], wanted: usize) {
        // The levels are looked up one after the other, so that the next memory access does not depend on the
        // current one.
        for (level, full) in self.levels[1..].iter().zip((FULL..).step_by(FULL.into())) {
            if counted.iter().filter(|(rank, _)| *rank < full).count() >= wanted {
                return;
            }
            for (rank, feature) in counted.iter_mut().filter(|(rank, _)| *rank == full) {
                *rank += self.count_of(level, *feature);
            }
        }
    }

    /// Returns the value of the feature's counter on a level.
    fn count_of(&self, level: &CounterLevel, feature: u64) -> u8 {
        let (byte, bit) = level.place(feature >> CounterPosition::CUT);
        self.counters[level.start + byte].load(Relaxed) >> bit & FULL
    }
}

impl CounterLevel {
    /// Returns the byte and the bit of a counter. `bits`: the first bits of a feature, for a place within the
    /// level, or the rest of them, for a place within the region.
    fn place(&self, bits: u64) -> (usize, u32) {
        let counter = (bits * self.counters) >> CounterPosition::BITS;
        ((counter / COUNTERS) as usize, (counter % COUNTERS * 2) as u32)
    }
}

impl CounterPosition {
    /// Number of bits of the feature.
    const BITS: u32 = u32::BITS - LEVEL_BITS;
    /// Number of the feature's last bits that are ignored.
    const CUT: u32 = u64::BITS - REGION_BITS - CounterPosition::BITS;

    /// Returns the region of a feature, and the feature within it.
    fn of(feature: u64, further: u32) -> (usize, CounterPosition) {
        let rest = (feature >> CounterPosition::CUT) as u32;
        ((feature >> (u64::BITS - REGION_BITS)) as usize, CounterPosition(rest << LEVEL_BITS | further))
    }

    fn further(self) -> usize {
        (self.0 & (LEVELS - 1)) as usize
    }

    fn rest(self) -> u64 {
        (self.0 >> LEVEL_BITS).into()
    }
}

impl Counting {
    /// Starts counting into `sketch`. Cost: 15 ns a feature. Memory: 16 MiB, or a quarter of the budget if
    /// that is less.
    pub fn new(sketch: Arc<FeatureCounts>, spill: &SpillBudget) -> Self {
        let fit = |bytes: usize| (bytes / 4 / REGIONS / size_of::<CounterPosition>()).clamp(1, WAITING);
        let places = spill.budget().map_or(WAITING, fit);
        Counting {
            sketch,
            waiting: vec![CounterPosition::default(); REGIONS * places],
            places,
            lengths: vec![0; REGIONS],
        }
    }

    /// Counts the features of a document.
    pub fn add(&mut self, features: impl Iterator<Item = u64> + Clone) {
        let document = spread(features.clone().fold(0, u64::wrapping_add));
        for feature in features {
            let further = ((feature ^ document).trailing_zeros() / 2).min(LEVELS - 1);
            let (region, at) = CounterPosition::of(feature, further);
            let length = &mut self.lengths[region];
            self.waiting[region * self.places + *length] = at;
            *length += 1;
            if *length == self.places {
                self.write(region);
            }
        }
    }

    /// Counts the features that still wait. Counts are complete only when all workers have done this.
    pub fn finish(mut self) {
        (0..REGIONS).for_each(|region| self.write(region));
    }

    fn write(&mut self, region: usize) {
        let sketch = &self.sketch;
        // Only the holder of the lock writes the region, so a load and a store lose no count.
        let _held = sketch.writing[region].lock();
        let mut waiting = &mut self.waiting[region * self.places..][..self.lengths[region]];
        for (number, level) in sketch.levels.iter().enumerate() {
            let bytes = (level.counters / COUNTERS) as usize;
            let counters = &sketch.counters[level.start + region * bytes..][..bytes];
            // The loop does as little as possible, so that many cache lines are fetched at once.
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

    /// Returns the counts made by two workers.
    fn counted(sketch: FeatureCounts, add: impl Fn(u64, &mut Counting) + Sync) -> Arc<FeatureCounts> {
        let sketch = Arc::new(sketch);
        std::thread::scope(|scope| {
            for worker in 0..2 {
                let (sketch, add) = (&sketch, &add);
                scope.spawn(move || {
                    let mut counting = Counting::new(Arc::clone(sketch), &SpillBudget::unused());
                    add(worker, &mut counting);
                    counting.finish();
                });
            }
        });
        sketch
    }

    fn rank(sketch: &FeatureCounts, i: u64) -> u8 {
        let mut counted = [(sketch.count(hash::spread(i)), hash::spread(i))];
        sketch.rank(&mut counted, 1);
        counted[0].0
    }

    #[test]
    fn what_was_counted_twice_is_known() {
        // There are few counters, so that many features share one.
        let sketch = counted(FeatureCounts::of_corpus(1 << 30, Some(1)), |worker, counting| {
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
        let sketch = counted(FeatureCounts::of_corpus(1 << 26, None), |worker, counting| {
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
