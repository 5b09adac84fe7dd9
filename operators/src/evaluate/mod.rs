//! Quality of a result: precision and recall of pairs and removals, measured against labels; and the classes of documents.
//!
//! This room uses the similarity of `sets` and the clusters of `decide`; `eval`, `tune` and `compare` use it.

mod bootstrap;
pub mod classify;
mod kappa;
mod precision_recall;
mod score;
mod truth_groups;

pub use bootstrap::intervals;
pub use kappa::fleiss_kappa;
pub use precision_recall::{Point, RankedPair, Ranking};
pub use score::{Core2020, Removals, Score};
pub use truth_groups::TruthGroups;
