//! Searches whose keys outlive their run: a state keeps them, and documents of later runs meet them.

use super::CandidateSearch;
use super::bands::BandSearch;
use super::blocks::BlockSearch;
use crate::fingerprint::Bits;
use crate::hash;
use crate::sets::small_sketch::{SketchSieve, SmallSketch};

/// A search whose records can be kept as numbers, for documents that come later.
///
/// A *kept key* is a number of 128 bits. Records meet in a pass if their keys begin with the same bits, and
/// the rest says how far two that meet are apart. Kept keys are sorted, so that all keys that a new document
/// meets lie behind each other. Bands and blocks implement it; the search by prefixes cannot, because the rarest
/// features of a text change with the corpus.
///
/// ```text
/// search    first bits, which must be equal     the rest
/// bands     64: the hash of the band            none
/// blocks    the chosen blocks                   the other bits of the fingerprint
/// ```
pub trait KeptSearch: CandidateSearch {
    /// Returns the number of first bits on which the keys of records must agree to meet, from 1 to 64.
    fn key_bits(pass: &Self::Pass) -> u32;
    /// Returns the kept key of a record.
    fn kept_key(pass: &Self::Pass, record: &Self::Record) -> u128;
    /// Returns the sketch of the set that the record stands for.
    fn sketch(record: &Self::Record) -> SmallSketch;
    /// Returns the number of bits in which the fingerprints of two keys that meet differ, or `None` if these are
    /// too many for a candidate. It is 0 where records have no fingerprint.
    fn distance(&self, one: u128, other: u128) -> Option<u32>;
    /// Returns the sieve by which sketches drop candidates; `None` if candidates are not verified.
    fn sieve(&self) -> Option<&SketchSieve>;
}

impl KeptSearch for BandSearch {
    fn key_bits(_band: &u32) -> u32 {
        u64::BITS
    }

    fn kept_key(_band: &u32, record: &Self::Record) -> u128 {
        // Hashes of bands are spread over all bits, so a range of keys has as many records as any other.
        u128::from(hash::spread(record.0)) << 64
    }

    fn sketch(record: &Self::Record) -> SmallSketch {
        record.1.1
    }

    fn distance(&self, _one: u128, _other: u128) -> Option<u32> {
        Some(0)
    }

    fn sieve(&self) -> Option<&SketchSieve> {
        Some(&self.sieve)
    }
}

impl<W: Bits> KeptSearch for BlockSearch<W> {
    fn key_bits(table: &Self::Pass) -> u32 {
        table.equal.count_ones().min(u64::BITS)
    }

    fn kept_key(table: &Self::Pass, record: &Self::Record) -> u128 {
        let equal = gathered(record.fingerprint, table.equal);
        let rest = gathered(record.fingerprint, !table.equal);
        let bits = table.equal.count_ones();
        // Without other bits, or without chosen ones, a shift would be by the whole width.
        let first = equal.checked_shl(128 - bits).unwrap_or(0);
        first | rest.checked_shl(128 - W::BITS).unwrap_or(0)
    }

    fn sketch(record: &Self::Record) -> SmallSketch {
        SmallSketch::of_bits(record.sketch)
    }

    fn distance(&self, one: u128, other: u128) -> Option<u32> {
        Some((one ^ other).count_ones()).filter(|&distance| distance <= self.join.distance())
    }

    /// Fingerprints that are near leave few candidates, so no sketches are kept for them.
    fn sieve(&self) -> Option<&SketchSieve> {
        None
    }
}

/// Returns the bits of a word that are set in `chosen`, behind each other.
fn gathered<W: Bits>(word: W, chosen: W) -> u128 {
    let (mut rest, mut gathered) = (chosen, 0);
    for _ in 0..chosen.count_ones() {
        gathered = gathered << 1 | u128::from(word & rest.take_lowest(1) != W::default());
    }
    gathered
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fingerprint::block_join::BlockJoin;
    use crate::fingerprint::hamming::Kernel;
    use crate::record::{DocId, Row};

    proptest! {
        #[test]
        fn kept_fingerprints_meet_and_differ_as_the_fingerprints_do(
            one in any::<u64>(),
            flipped in proptest::collection::vec(0u32..64, 0..6),
            (distance, blocks) in (1u32..5).prop_flat_map(|k| (Just(k), k + 1..k + 3)),
        ) {
            let other = flipped.iter().fold(one, |word, bit| word ^ 1 << bit);
            let search = BlockSearch::<u64>::new(BlockJoin::new(64, distance, blocks, Kernel::widest()), None);
            let row = |fingerprint| Row { fingerprint, doc: DocId(0), sketch: 0 };
            let mut met = false;
            for table in search.passes() {
                let bits = BlockSearch::<u64>::key_bits(&table);
                let keys = [one, other].map(|word| BlockSearch::kept_key(&table, &row(word)));
                let meet = (keys[0] ^ keys[1]) >> (128 - bits) == 0;
                prop_assert_eq!(meet, table.key(one) == table.key(other));
                let apart = (one ^ other).count_ones();
                prop_assert_eq!(search.distance(keys[0], keys[1]), Some(apart).filter(|&n| n <= distance));
                met |= meet;
            }
            prop_assert!(met || (one ^ other).count_ones() > distance);
        }
    }
}
