//! Help that is more than the usage of one command: topics, and suggestions for words that are not known.
//!
//! This room uses the names of methods; `main.rs` uses it.

pub mod suggestions;
pub mod topics;
