//! Quality of a result: precision and recall of pairs and removals, measured against labels.
//!
//! This room uses the similarity of `sets` and the groups of `survivors.rs`; `eval` and `tune` use it.

mod precision_recall;
mod score;
mod truth_groups;

pub use precision_recall::{Point, Ranking};
pub use score::{Core2020, Removals, Score};
pub use truth_groups::TruthGroups;
