//! Fingerprints of bits: how they are counted together, compared, and joined within a Hamming distance.
//!
//! Uses `hash` and `record` alone; `method` makes fingerprints with it, `flow` joins them.

pub(crate) mod bit_counts;
pub(crate) mod bits;
pub mod block_join;
pub mod block_tables;
pub mod hamming;

pub use bits::Bits;
