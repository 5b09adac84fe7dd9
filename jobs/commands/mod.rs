//! Every command but `dedup`, a file or folder each, and what several of them share: labels, plots and pairs shown side by side.
//!
//! Uses all other rooms; only `main.rs` uses it.

pub mod check;
pub mod compare;
pub mod demo;
pub mod eval;
pub mod explain;
mod labels;
pub mod pack;
mod pair_trace;
mod plot;
mod repack;
pub mod rethreshold;
pub mod show;
mod side_by_side;
pub mod tune;
pub mod unpack;
pub mod why;
