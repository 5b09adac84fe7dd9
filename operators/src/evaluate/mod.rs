//! Quality of a result: precision and recall of pairs and removals, measured against labels.
//!
//! This room uses the similarity of `sets` and the groups of `survivors.rs`; `eval` and `tune` use it.

mod bootstrap;
mod kappa;
mod precision_recall;
mod score;
mod truth_groups;

pub use bootstrap::intervals;
pub use kappa::fleiss_kappa;
pub use precision_recall::{Point, RankedPair, Ranking};
pub use score::{Core2020, Removals, Score};
pub use truth_groups::TruthGroups;
