//! Records: documents in batches and the positions by which all else names them, what travels between workers, and hashes.
//!
//! This is the lowest room: every other room may use it, and it uses none.

mod doc_batch;
pub mod hash;
mod merit;
mod rows;
mod sides;

pub use self::doc_batch::{Doc, DocBatch, Reject};
pub use self::merit::{Merit, Priority};
pub use self::rows::{DocId, Pair, Record, Row};
pub use self::sides::Sides;
