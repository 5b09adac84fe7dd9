//! Skew: finds keys that too many records for one worker share, and spreads their records over all workers.
//!
//! A counting pass finds heavy keys, and a grid of tiles spreads their pairs. This room uses `exchange`,
//! `spill` and the counters of `search`; the joins of `flow/join` use it, and the jobs pass its bounds.

pub(crate) mod heavy;
pub(crate) mod pair_grid;
