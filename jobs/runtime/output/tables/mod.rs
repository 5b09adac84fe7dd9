//! The tables of an output: pairs, clusters, corrections, labels and what else a job lists.
//!
//! `output_table.rs` writes any table, `text_table.rs` those that are no Parquet, which it also reads; `pair_table.rs` and
//! `cluster_table.rs` have the columns.

mod cluster_table;
mod output_table;
mod pair_table;
mod text_table;

pub use self::cluster_table::{
    ClusterRow, ClusterTable, CorrectionRow, CorrectionTable, LabelRow, reason, similarity, write_labels,
};
pub use self::output_table::{OutputTable, TableColumn, TableFile, places, strings};
pub use self::pair_table::{PairTable, PairsOf, WrittenPair, write_no_clusters};
pub use self::text_table::{TableFormat, read_text_table};
