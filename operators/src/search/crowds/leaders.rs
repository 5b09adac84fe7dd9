//! Records of a bucket that the later ones may ask.

use foldhash::HashMap;

use super::met_before::Before;
use super::place::{KeepPlace, SetSketch};
use super::template_numbers::{NumberCounts, NumberIndex, TemplateNumbers};
use crate::fingerprint::sketch_list::SketchList;
use crate::sets::Rule;

/// Records that the later ones of their bucket may ask, in keep order. Memory: 130 bytes each, and 150 where numbers decide.
pub(super) struct Leaders<'a> {
    /// Counts of the numbers of the bucket, if they may tell its records apart.
    counts: Option<&'a NumberCounts>,
    /// Those that any other may match, by the earlier buckets in which they were; and those that others with numbers match only if
    /// they share some.
    all: Vec<(Before, SketchedRecords)>,
    with_buckets: HashMap<Before, usize>,
    numbered: SketchedRecords,
    by_numbers: NumberIndex,
    /// A place for each size of a set.
    sizes: Vec<KeepPlace>,
    /// Buffers: the largest distances of the sketches of sets of these sizes, and those that share numbers.
    largest: Vec<u32>,
    sharing: Vec<u32>,
}

/// Records with their sketches.
#[derive(Default)]
struct SketchedRecords {
    /// Their positions in the bucket.
    at: Vec<usize>,
    folded: SketchList<{ KeepPlace::FOLDED_WORDS }>,
    sketches: Vec<SetSketch>,
    /// For each, the position of the size of its set among the sizes.
    of_size: Vec<usize>,
}

impl<'a> Leaders<'a> {
    /// Begins without records.
    pub fn new(counts: Option<&'a NumberCounts>) -> Self {
        Leaders {
            counts,
            all: Vec::new(),
            with_buckets: HashMap::default(),
            numbered: SketchedRecords::default(),
            by_numbers: NumberIndex::default(),
            sizes: Vec::new(),
            largest: Vec::new(),
            sharing: Vec::new(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.numbered.at.is_empty()
    }

    /// Adds a record by its position in the bucket. Cost: a comparison with each size of a set.
    pub fn push(&mut self, at: usize, place: &KeepPlace, before: Before) {
        let size = place.sketch.size_and_kind();
        let known = self.sizes.iter().position(|other| other.sketch.size_and_kind() == size);
        let of_size = known.unwrap_or_else(|| {
            self.sizes.push(*place);
            self.sizes.len() - 1
        });
        let of_kind = match self.counts.filter(|_| place.numbers != TemplateNumbers::default()) {
            Some(counts) => {
                self.by_numbers.push(counts, &place.numbers, self.numbered.at.len() as u32);
                &mut self.numbered
            }
            None => {
                let known = *self.with_buckets.entry(before).or_insert(self.all.len());
                if known == self.all.len() {
                    self.all.push((before, SketchedRecords::default()));
                }
                &mut self.all[known].1
            }
        };
        of_kind.at.push(at);
        of_kind.folded.push(place.sketch.folded());
        of_kind.sketches.push(place.sketch);
        of_kind.of_size.push(of_size);
    }

    /// Calls `each` with the leaders that a document may match by the sketches and numbers, and the distances of the sketches; those
    /// that it has met before are passed over. Returns the number of leaders that were compared.
    ///
    /// Cost: .3 to 1 ns a leader, 1 ns for those with the same earlier buckets, 10 ns for each size of a set, and where numbers decide 100 ns for each that shares one.
    pub fn near(
        &mut self,
        (place, before): (&KeepPlace, Before),
        rule: &Rule,
        mut each: impl FnMut(usize, u32),
    ) -> u64 {
        let Leaders { counts, all, numbered, by_numbers, sizes, largest, sharing, .. } = self;
        // A distance of 0 is possible, so what may differ is kept plus one, and 0 says that nothing matches.
        let plus_one = |most: Option<u32>| most.map_or(0, |most| most.saturating_add(1));
        largest.clear();
        largest.extend(sizes.iter().map(|other| plus_one(place.distance_to_match(other, rule))));
        let Some(most) = largest.iter().max().and_then(|most| most.checked_sub(1)) else { return 0 };
        let mut take = |of: &SketchedRecords, leader: usize, folded_apart: u32| {
            let most = largest[of.of_size[leader]];
            if folded_apart >= most {
                return;
            }
            let apart = place.sketch.apart(&of.sketches[leader]);
            if apart < most {
                each(of.at[leader], if most == u32::MAX { 0 } else { apart });
            }
        };
        let folded = place.sketch.folded();
        let mut compared = 0;
        for (_, some) in all.iter().filter(|(other, _)| !other.met(before)) {
            some.folded.each_within(&folded, most, |leader, apart| take(some, leader, apart));
            compared += some.at.len();
        }
        match counts.filter(|_| place.numbers != TemplateNumbers::default()) {
            None => {
                numbered.folded.each_within(&folded, most, |leader, apart| {
                    take(numbered, leader, apart);
                });
                (compared + numbered.at.len()) as u64
            }
            Some(counts) => {
                by_numbers.near(counts, &place.numbers, sharing);
                for &leader in sharing.iter() {
                    take(numbered, leader as usize, 0);
                }
                (compared + sharing.len()) as u64
            }
        }
    }
}
