//! Pairs that were found a short while ago.

use std::mem;

use crate::record::{DocId, Pair};
use crate::{SpillBudget, hash};

/// Pairs that were found a short while ago, so that most pairs that several passes find are sorted once. There are places for
/// about as many as were found.
pub(super) struct RecentPairs {
    /// Pairs by their hash. The number of places is a power of two.
    places: Vec<Pair>,
    /// Largest number of places.
    most: usize,
    /// Number of pairs that were perhaps new.
    found: usize,
}

impl RecentPairs {
    /// Largest number of places without a budget: 6 MiB.
    const MOST: usize = 1 << 18;
    /// Number of places at the beginning: 24 KiB.
    const FIRST: usize = 1 << 10;
    /// Part of the budget of a holder that they may fill, as a divisor.
    const PARTS: usize = 8;
    /// No document is a pair with itself.
    const NO_PAIR: Pair = Pair { low: DocId(0), high: DocId(0), distance: 0 };

    /// Makes room for pairs, or for one alone if there is one pass.
    pub fn new(budget: &SpillBudget, passes: usize) -> Self {
        let room = budget.budget().map_or(Self::MOST, |bytes| bytes / Self::PARTS / size_of::<Pair>());
        let most = if passes > 1 { 1 << room.clamp(1, Self::MOST).ilog2() } else { 1 };
        RecentPairs { places: vec![Self::NO_PAIR; most.min(Self::FIRST)], most, found: 0 }
    }

    /// Whether a pair of two documents is perhaps new. Notes it in the place of another one.
    #[inline]
    pub fn is_new(&mut self, pair: Pair) -> bool {
        let hash = hash::spread(pair.low.0.rotate_left(32) ^ pair.high.0);
        let place = hash as usize & (self.places.len() - 1);
        if mem::replace(&mut self.places[place], pair) == pair {
            return false;
        }
        self.found += 1;
        if self.found > self.places.len() && self.places.len() < self.most {
            self.places = vec![Self::NO_PAIR; 2 * self.places.len()];
        }
        true
    }
}
