//! Records that have met in an earlier bucket of a round, which later buckets do not compare again.
//!
//! Two near-equal documents share many keys, so they meet in many buckets: two texts of one template in four to eight of 25 bands.

use foldhash::HashMap;

use crate::record::DocId;

/// Least number of records of a bucket that is worth remembering. Those of a smaller one are compared sooner than looked up.
const LARGE: usize = 1024;
/// Largest number of buckets that are remembered for a record.
const MOST: usize = 12;
/// Largest number of earlier buckets that are told apart among the records of one bucket. With more, those with the same earlier
/// buckets are too few to be compared fast.
const TOLD_APART: usize = 8;

/// Name by which two records are compared, so that the same two give the same answer in each bucket.
pub type ComparedAs = (DocId, u64);

/// Some of the earlier buckets of a record, as bits. Two records of a bucket have met before if they have a bit in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Before(u8);

impl Before {
    /// Whether two records of the same bucket have met in an earlier one.
    pub fn met(self, other: Before) -> bool {
        self.0 & other.0 != 0
    }
}

/// Large buckets that a worker has walked through, by their records. Memory: some 60 bytes a record.
#[derive(Default)]
pub(super) struct EarlierBuckets {
    /// The numbers of the first buckets of each record; 0 where there is none.
    of_record: HashMap<ComparedAs, [u16; MOST]>,
    /// Number of buckets.
    count: u16,
}

impl EarlierBuckets {
    /// Returns for each record of a bucket the earlier buckets in which it was, of those in which most of these records were, and
    /// remembers the bucket. `is_whole`: whether all pairs of its records are taken. Cost: some 100 ns a record.
    pub fn enter(
        &mut self,
        records: impl ExactSizeIterator<Item = ComparedAs>,
        is_whole: bool,
    ) -> Vec<Before> {
        if records.len() < LARGE {
            return vec![Before::default(); records.len()];
        }
        let next = self.count.checked_add(1).filter(|_| is_whole);
        self.count = next.unwrap_or(self.count);
        let of_records: Vec<[u16; MOST]> = records.map(|record| self.add(record, next)).collect();
        let mut counts: HashMap<u16, usize> = HashMap::default();
        for bucket in of_records.iter().flatten().filter(|bucket| **bucket != 0) {
            *counts.entry(*bucket).or_default() += 1;
        }
        let mut most: Vec<(usize, u16)> = counts.into_iter().map(|(bucket, count)| (count, bucket)).collect();
        most.sort_unstable_by(|a, b| b.cmp(a));
        most.truncate(TOLD_APART);
        let bits: HashMap<u16, u8> = (0..).zip(most).map(|(bit, (_, bucket))| (bucket, 1 << bit)).collect();
        let before = |buckets: &[u16; MOST]| buckets.iter().filter_map(|bucket| bits.get(bucket)).sum();
        of_records.iter().map(|buckets| Before(before(buckets))).collect()
    }

    /// Returns the earlier buckets of a record, and adds this one.
    fn add(&mut self, record: ComparedAs, bucket: Option<u16>) -> [u16; MOST] {
        let Some(bucket) = bucket else { return self.of_record.get(&record).copied().unwrap_or_default() };
        let buckets = self.of_record.entry(record).or_default();
        let before = *buckets;
        if let Some(room) = buckets.iter_mut().find(|bucket| **bucket == 0) {
            *room = bucket;
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::spread;

    #[test]
    fn only_records_that_shared_a_bucket_have_met() {
        let mut buckets = EarlierBuckets::default();
        let (mut whole, mut told, mut shared) = (HashMap::<ComparedAs, Vec<u64>>::default(), 0, 0);
        for round in 0..20_u64 {
            let of_bucket = (0..3_000_u64).filter(|record| spread(record << 8 | round) % 5 < 2);
            let records: Vec<ComparedAs> = of_bucket.map(|record| (DocId(record / 2), record % 2)).collect();
            let before = buckets.enter(records.iter().copied(), round % 4 > 0);
            for one in (0..records.len()).step_by(7) {
                for other in (0..one).step_by(7) {
                    let of = |at: usize| whole.get(&records[at]).map_or(&[][..], Vec::as_slice);
                    let met = of(one).iter().any(|bucket| of(other).contains(bucket));
                    shared += usize::from(met);
                    if before[one].met(before[other]) {
                        assert!(met, "{:?} and {:?} in bucket {round}", records[other], records[one]);
                        told += 1;
                    }
                }
            }
            if round % 4 > 0 {
                records.iter().for_each(|record| whole.entry(*record).or_default().push(round));
            }
        }
        assert!(told > shared / 2, "{told} of {shared}");
    }
}
