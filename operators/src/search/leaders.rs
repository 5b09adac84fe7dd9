//! Records of a bucket that the later ones may ask.

use super::place::KeepPlace;
use crate::fingerprint::hamming;
use crate::sets::Rule;

/// Records that the later ones of their bucket may ask, in keep order. Memory: 60 bytes each.
#[derive(Default)]
pub(super) struct Leaders {
    /// Their positions in the bucket.
    at: Vec<usize>,
    sketches: Vec<[u64; KeepPlace::WORDS]>,
    /// For each, the position of the size of its set among the sizes.
    of_size: Vec<usize>,
    /// A place for each size of a set.
    sizes: Vec<KeepPlace>,
    /// Buffer for the largest distances of the sketches of sets of these sizes.
    largest: Vec<u32>,
}

impl Leaders {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// Adds a record by its position in the bucket. Cost: a comparison with each size of a set.
    pub fn push(&mut self, at: usize, place: &KeepPlace) {
        let size = place.sketch.size_and_kind();
        let of_size =
            self.sizes.iter().position(|other| other.sketch.size_and_kind() == size).unwrap_or_else(|| {
                self.sizes.push(*place);
                self.sizes.len() - 1
            });
        self.at.push(at);
        self.sketches.push(place.sketch.bits());
        self.of_size.push(of_size);
    }

    /// Calls `each` with the leaders that a document may match by the sketches, and the distances of these. Returns the number of
    /// all leaders. Cost: 1 ns a leader, and 10 ns for each size of a set.
    pub fn near(&mut self, place: &KeepPlace, rule: &Rule, mut each: impl FnMut(usize, u32)) -> u64 {
        let Leaders { at, sketches, of_size, sizes, largest } = self;
        largest.clear();
        // A distance of 0 is always possible, so those that cannot match are told by what they may differ in less one.
        largest.extend(
            sizes
                .iter()
                .map(|other| place.largest_distance(other, rule).map_or(0, |most| most.saturating_add(1))),
        );
        if let Some(most) = largest.iter().max().and_then(|most| most.checked_sub(1)) {
            hamming::each_within(&place.sketch.bits(), sketches, most, |leader, apart| {
                let most = largest[of_size[leader]];
                if apart < most {
                    each(at[leader], if most == u32::MAX { 0 } else { apart });
                }
            });
        }
        at.len() as u64
    }
}
