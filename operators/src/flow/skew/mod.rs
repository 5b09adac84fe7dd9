//! Skew: keys of too many records for one worker, and the join by key that spreads them.
//!
//! Uses `exchange`; the joins of `flow/join` use it.

pub(crate) mod heavy;
pub(crate) mod keyed_join;
pub(crate) mod pair_grid;
