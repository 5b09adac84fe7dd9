//! Decisions: which documents of a cluster stay, and what changes when documents come in and others are withdrawn.
//!
//! This room uses `record` and the similarity of `sets`. The jobs call it on one cluster at a time.

pub mod incremental;
mod survivors;

pub(crate) use self::survivors::find;
pub use self::survivors::{Matches, Member, NearPair, Reason, Removed, Resolve, survivors};
