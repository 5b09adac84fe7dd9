//! Skew: finds keys that too many records for one worker share, and spreads their records over all workers.
//!
//! A counting pass finds heavy keys, a grid of tiles spreads their pairs, and the join by key does both. This
//! room uses `exchange`; the joins of `flow/join` use it.

pub(crate) mod heavy;
pub(crate) mod keyed_join;
pub(crate) mod pair_grid;
