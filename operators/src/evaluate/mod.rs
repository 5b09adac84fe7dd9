//! Figures of quality: precision and recall of pairs and removals against labels.
//!
//! Uses `record` and `sets` alone; the jobs `eval` and `tune` use it.

mod precision_recall;
mod score;
mod truth_groups;

pub use precision_recall::{Point, Ranking};
pub use score::{Core2020, Removals, Score};
pub use truth_groups::TruthGroups;
