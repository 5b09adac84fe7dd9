//! The pairs of a bucket of the block join that are within the distance.

use super::bits::Bits;
use super::hamming::Kernel;
use crate::record::Row;
use crate::record::Sides;

/// Number of rows of a bucket that are compared with the rest at once; bounds the list of hits.
const STRIP: usize = 256;

/// Rows that are not split any further. A pair belongs to the bucket if it is within the distance, agrees on `equal`, and
/// differs in each of `differ`.
pub(super) struct RowBucket<'a, W> {
    pub rows: &'a [Row<W>],
    pub equal: W,
    pub differ: &'a [W],
}

/// Takes the pairs that a block join finds.
pub trait PairTaker<W> {
    /// Takes the two rows of a pair that is within the distance.
    fn take(&mut self, one: &Row<W>, other: &Row<W>);
    /// Whether this row may be passed over. A pair of two rows that may be passed over need not be found.
    fn passes_over(&self, _row: &Row<W>) -> bool {
        false
    }
}

impl<W, F: FnMut(&Row<W>, &Row<W>)> PairTaker<W> for F {
    fn take(&mut self, one: &Row<W>, other: &Row<W>) {
        self(one, other);
    }
}

/// Compares the rows of buckets. Memory: buffers that are kept between calls, with one copy of the rows of a bucket.
#[derive(Clone, Debug)]
pub(super) struct BucketPairs<W> {
    kernel: Kernel,
    distance: u32,
    rows: Vec<Row<W>>,
    fingerprints: Vec<W>,
    hits: Vec<(u32, u32)>,
}

impl<W: Bits> BucketPairs<W> {
    /// Makes a comparison of fingerprints that may differ in up to `distance` bits.
    pub fn new(kernel: Kernel, distance: u32) -> Self {
        BucketPairs { kernel, distance, rows: Vec::new(), fingerprints: Vec::new(), hits: Vec::new() }
    }

    /// Compares all pairs of a bucket that are looked for, and gives those that belong to it to `to`. Returns the number of
    /// pairs compared.
    pub fn compare(&mut self, bucket: RowBucket<W>, sides: Sides, to: &mut impl PairTaker<W>) -> u64 {
        let inputs = sides.inputs(bucket.rows);
        if inputs == bucket.rows.len() && inputs > STRIP {
            return self.compare_large(&bucket, to);
        }
        let rows = bucket.rows;
        let within = sides.within();
        self.fingerprints.clear();
        self.fingerprints.extend(rows.iter().map(|row| row.fingerprint));
        let mut start = 0;
        while start < inputs {
            let end = inputs.min(start + STRIP);
            // Without `within`, the rows of the reference are placed directly behind those of the strip.
            let ahead = if within { 0 } else { inputs - end };
            let many = &mut self.fingerprints[ahead..];
            if !within {
                many[start..end]
                    .iter_mut()
                    .zip(&rows[start..end])
                    .for_each(|(to, row)| *to = row.fingerprint);
            }
            self.kernel.pairs_within(many, start..end, self.distance, &mut self.hits);
            for &(one, other) in &self.hits {
                let other = other as usize;
                if !within && other < end {
                    continue;
                }
                let one = &rows[one as usize];
                let other = &rows[other + ahead];
                if bucket.has(one, other) {
                    to.take(one, other);
                }
            }
            start = end;
        }
        let of_input = if within { inputs * inputs.saturating_sub(1) / 2 } else { 0 };
        (of_input + inputs * (rows.len() - inputs)) as u64
    }

    /// Does the same as `compare` for many rows of the input. Rows that are passed over go to the end, and are not
    /// compared with each other.
    fn compare_large(&mut self, bucket: &RowBucket<W>, to: &mut impl PairTaker<W>) -> u64 {
        let BucketPairs { kernel, distance, rows, fingerprints, hits } = self;
        rows.clear();
        rows.extend(bucket.rows);
        let mut start = 0;
        let mut open = rows.len();
        let mut compared = 0;
        loop {
            let mut at = start;
            while at < open {
                if to.passes_over(&rows[at]) {
                    open -= 1;
                    rows.swap(at, open);
                } else {
                    at += 1;
                }
            }
            if start == open {
                return compared;
            }
            let rest = &rows[start..];
            fingerprints.clear();
            fingerprints.extend(rest.iter().map(|row| row.fingerprint));
            let strip = STRIP.min(open - start);
            kernel.pairs_within(fingerprints, 0..strip, *distance, hits);
            compared += (strip * (rest.len() - strip) + strip * (strip - 1) / 2) as u64;
            for &(one, other) in &*hits {
                let (one, other) = (&rest[one as usize], &rest[other as usize]);
                if bucket.has(one, other) {
                    to.take(one, other);
                }
            }
            start += strip;
        }
    }
}

impl<W: Bits> RowBucket<'_, W> {
    /// Whether two rows that are within the distance belong to the bucket.
    fn has(&self, one: &Row<W>, other: &Row<W>) -> bool {
        let differing = one.fingerprint ^ other.fingerprint;
        let none = W::default();
        differing & self.equal == none && self.differ.iter().all(|&bits| differing & bits != none)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::record::DocId;

    /// Passes over rows that are in many pairs.
    #[derive(Default)]
    struct Crowding {
        pairs: Vec<(DocId, DocId)>,
        of_row: HashMap<DocId, usize>,
        most: usize,
    }

    impl PairTaker<u64> for Crowding {
        fn take(&mut self, one: &Row<u64>, other: &Row<u64>) {
            self.pairs.push((one.doc.min(other.doc), one.doc.max(other.doc)));
            for row in [one, other] {
                *self.of_row.entry(row.doc).or_default() += 1;
            }
        }

        fn passes_over(&self, row: &Row<u64>) -> bool {
            self.of_row.get(&row.doc).is_some_and(|&pairs| pairs > self.most)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        #[test]
        fn every_pair_is_taken_once_unless_both_rows_are_passed_over(
            fingerprints in prop::collection::vec(0..512_u64, 0..900),
            distance in 0..3_u32,
            most in prop::sample::select(vec![3_usize, 30, 300, 10_000]),
        ) {
            let rows: Vec<Row<u64>> =
                (0..).map(DocId).zip(fingerprints).map(|(doc, fingerprint)| Row { fingerprint, doc, sketch: 0 }).collect();
            let mut to = Crowding { most, ..Crowding::default() };
            let mut pairs = BucketPairs::new(Kernel::widest(), distance);
            pairs.compare(RowBucket { rows: &rows, equal: 0, differ: &[] }, Sides::default(), &mut to);
            let count = to.pairs.len();
            to.pairs.sort_unstable();
            to.pairs.dedup();
            prop_assert_eq!(to.pairs.len(), count);
            let mut expected = 0;
            for (at, one) in rows.iter().enumerate() {
                for other in &rows[..at] {
                    let near = (one.fingerprint ^ other.fingerprint).count_ones() <= distance;
                    let taken = to.pairs.binary_search(&(other.doc, one.doc)).is_ok();
                    prop_assert!(near || !taken);
                    expected += usize::from(near);
                    prop_assert!(!near || taken || to.passes_over(one) && to.passes_over(other));
                }
            }
            // Many rows make many pairs, most of which need not be taken.
            prop_assert!(rows.len() < 800 || distance < 2 || most > 3 || 3 * count < 2 * expected);
        }
    }
}
