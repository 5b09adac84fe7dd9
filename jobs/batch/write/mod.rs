//! The last reading of the corpus, which writes its records.
//!
//! `options.rs` has what the user can say about it, `records.rs` divides the records, `ids.rs` writes their ids alone.

mod ids;
mod options;
mod records;

pub use self::options::WriteOptions;
pub use self::records::{WrittenSplits, keep_none, write, write_split};
