//! Fingerprints as keys that are kept.

use super::{BitSearch, FINGERPRINTS};
use crate::fingerprint::Bits;
use crate::fingerprint::block_tables::BlockTable;
use crate::record::{DocId, Row};
use crate::search::keyed_search::{FingerprintKeys, KeyedSearch};
use crate::sets::small_sketch::{SketchSieve, SmallSketch};

impl<W: Bits> KeyedSearch for BitSearch<W> {
    fn section(_table: &BlockTable<W>) -> usize {
        FINGERPRINTS
    }

    fn key_bits(table: &BlockTable<W>) -> u32 {
        table.equal.count_ones().min(u64::BITS)
    }

    fn kept_key(table: &BlockTable<W>, row: &Row<W>) -> u128 {
        let equal = gathered(row.fingerprint, table.equal);
        let rest = gathered(row.fingerprint, !table.equal);
        let bits = table.equal.count_ones();
        // Without other bits, or without chosen ones, a shift would be by the whole width.
        let first = equal.checked_shl(128 - bits).unwrap_or(0);
        first | rest.checked_shl(128 - W::BITS).unwrap_or(0)
    }

    fn sketch(_row: &Row<W>) -> SmallSketch {
        SmallSketch::default()
    }

    /// Fingerprints that are near leave few candidates, so no sketches are kept for them.
    fn sieve(&self) -> Option<&SketchSieve> {
        None
    }

    fn key_distance(&self, one: u128, other: u128) -> Option<u32> {
        Some((one ^ other).count_ones()).filter(|&distance| distance <= self.simhash.join.distance())
    }

    fn fingerprints(&self) -> Option<FingerprintKeys> {
        Some(FingerprintKeys {
            bits: self.simhash.bits(),
            distance: self.simhash.join.distance(),
            identify: self.by_text.is_none(),
        })
    }

    fn record_of(&self, fingerprint: u64) -> Option<Row<W>> {
        let is_whole = W::BITS == u64::BITS && self.by_text.is_none();
        is_whole.then(|| Row { fingerprint: W::from(fingerprint), doc: DocId(0), sketch: 0 })
    }

    fn fingerprint_of(&self, table: &BlockTable<W>, key: u128) -> Option<u64> {
        self.record_of(0)?;
        let equal = table.equal.halves()[0];
        let mut bits = (key >> u64::BITS) as u64;
        let mut fingerprint = 0;
        for chosen in [equal, !equal] {
            // The first bit of the key is the last one that was taken of the word, counted from its lowest.
            for place in (0..u64::BITS).filter(|place| chosen >> place & 1 == 1) {
                fingerprint |= (bits >> 63) << place;
                bits <<= 1;
            }
        }
        Some(fingerprint)
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
    use crate::hash::Secret;
    use crate::search::bits::{FingerprintDesign, SimHash, Weights};
    use crate::search::{CandidateSearch, SearchContext, SearchInputs};
    use crate::sets::Rule;
    use crate::sets::similarity::{Overlap, Similarity};
    use crate::text::document_frequencies::Statistics;
    use crate::text::features::Features;

    fn search(distance: u32, blocks: u32) -> BitSearch<u64> {
        let design = FingerprintDesign { bits: 64, distance, blocks, weights: Weights::Tf };
        let simhash = SimHash::new(design, Features::Chars(1), &Statistics::default());
        let rule = Rule::new(Features::Chars(1), Overlap::Jaccard, Similarity::LEAST);
        let inputs = SearchInputs::of_texts(Secret::of_words([0, 0]));
        BitSearch::new(simhash, &SearchContext { rule: &rule, verified: false, inputs })
    }

    proptest! {
        #[test]
        fn kept_fingerprints_meet_and_differ_as_the_fingerprints_do(
            one in any::<u64>(),
            flipped in proptest::collection::vec(0u32..64, 0..6),
            (distance, blocks) in (1u32..5).prop_flat_map(|k| (Just(k), k + 1..k + 3)),
        ) {
            let other = flipped.iter().fold(one, |word, bit| word ^ 1 << bit);
            let search = search(distance, blocks);
            let row = |fingerprint| Row { fingerprint, doc: DocId(0), sketch: 0 };
            let mut met = false;
            for table in search.passes() {
                let bits = BitSearch::<u64>::key_bits(&table);
                let keys = [one, other].map(|word| BitSearch::kept_key(&table, &row(word)));
                let meet = (keys[0] ^ keys[1]) >> (128 - bits) == 0;
                prop_assert_eq!(meet, table.key(one) == table.key(other));
                prop_assert_eq!(search.fingerprint_of(&table, keys[0]), Some(one));
                let apart = (one ^ other).count_ones();
                prop_assert_eq!(search.key_distance(keys[0], keys[1]), Some(apart).filter(|&n| n <= distance));
                met |= meet;
            }
            prop_assert!(met || (one ^ other).count_ones() > distance);
        }
    }
}
