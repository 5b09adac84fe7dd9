//! How many documents have a feature: never too few, sometimes too many.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// A counter of one byte for every hash value's leading bits. Workers of a process share one.
///
/// Features that fall on one counter are counted together; 255 stands for all above it.
pub struct Sketch {
    counters: Box<[AtomicU8]>,
    shift: u32,
}

impl Sketch {
    /// One counter for each byte of the corpus, about: half as many features as counters keep most apart.
    /// Between 64 KiB and 4 GiB.
    pub fn of_corpus(bytes: u64) -> Self {
        let bits = bytes.max(1).ilog2().clamp(16, 32);
        Sketch { counters: (0..1_u64 << bits).map(|_| AtomicU8::new(0)).collect(), shift: 64 - bits }
    }

    /// Counts one document that has the feature.
    pub fn add(&self, feature: u64) {
        let counter = self.counter(feature);
        // Common features reach the end soon; reading is cheaper than writing. Nothing else is read behind a
        // counter, so order does not matter.
        if counter.load(Relaxed) < u8::MAX {
            let _ = counter.fetch_update(Relaxed, Relaxed, |count| count.checked_add(1));
        }
    }

    /// How many documents were counted, or more.
    pub fn count(&self, feature: u64) -> u8 {
        self.counter(feature).load(Relaxed)
    }

    fn counter(&self, feature: u64) -> &AtomicU8 {
        &self.counters[(feature >> self.shift) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash;

    #[test]
    fn no_count_is_too_small_and_none_overflows() {
        let sketch = Sketch::of_corpus(1);
        for _ in 0..300 {
            sketch.add(7);
        }
        (0..1000).for_each(|i| (0..=i % 3).for_each(|_| sketch.add(hash::spread(i))));
        assert_eq!(sketch.count(7), 255);
        assert!((0..1000).all(|i| u64::from(sketch.count(hash::spread(i))) > i % 3));
        assert_eq!(sketch.count(u64::MAX), 0);
    }
}
