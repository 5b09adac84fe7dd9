//! Fingerprints of bits: made from the hashes of features, compared by Hamming distance, and joined.
//!
//! The block join finds all pairs of fingerprints within a distance, with a compare kernel that uses the
//! widest instructions of the machine. This room uses `hash`, `record` and `sides`
//! alone; `search` and `method` use it.

pub(crate) mod bit_counts;
mod bit_positions;
pub(crate) mod bits;
pub mod block_join;
pub mod block_tables;
pub mod bucket_pairs;
pub mod hamming;
pub(crate) mod sketch_list;
mod split_level;

pub(crate) use bits::Bits;
