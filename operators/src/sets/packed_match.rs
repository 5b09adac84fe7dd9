//! The distance and the similarity of a match in one number, as it travels and as a state stores it.

use crate::sets::similarity::Similarity;

/// Number of bits of a packed match that hold the similarity in millionths plus one; 0 stands for none.
const SIMILARITY_BITS: u32 = 21;

/// Packs the distance and the similarity of a match into a number, which is not 0, and small for small distances.
pub fn pack_apart(distance: u32, similarity: Option<Similarity>) -> u64 {
    let similarity = similarity.map_or(0, |similarity| u64::from(similarity.as_millionths()) + 1);
    (u64::from(distance) << SIMILARITY_BITS | similarity) << 1 | 1
}

/// Returns the distance and the similarity of a match that [`pack_apart`] has packed.
pub fn unpack_apart(packed: u64) -> (u32, Option<Similarity>) {
    let packed = packed >> 1;
    let similarity = (packed & ((1 << SIMILARITY_BITS) - 1)).checked_sub(1);
    (
        (packed >> SIMILARITY_BITS) as u32,
        similarity.map(|millionths| Similarity::millionths(millionths as u32)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_match_holds_distance_and_similarity() {
        let similarities = [None, Some(Similarity::millionths(0)), Some(Similarity::ONE)];
        for (distance, similarity) in similarities.into_iter().flat_map(|s| [(0, s), (u32::MAX, s)]) {
            let packed = pack_apart(distance, similarity);
            assert!(packed > 0);
            assert_eq!(unpack_apart(packed), (distance, similarity));
        }
    }
}
