//! The dataflow: shuffle and reduce on the workers of the engine.
//!
//! This is the only room that names the engine's dataflow. It moves records between workers with the
//! arithmetic of all other rooms, and only the jobs use it. Reading and writing happen in the worker loop of
//! `jobs`, where errors can be returned. The only errors here are those of records that are spilled to disk.

mod class_sums;
mod collapse;
mod exchange;
mod join;
mod skew;
mod verify;

pub use class_sums::ClassSums;
pub use collapse::collapse;
pub use exchange::shuffle::{Shuffle, shuffle};
pub use exchange::sum::sum;
pub use join::bands::BandJoin;
pub use join::fingerprints::{BlockLoad, Compared, RowSpool, compare};
pub use join::prefix::PrefixJoin;
pub use join::zhou::{Retrieve, Retrieved};
pub use skew::heavy::Skew;
pub use verify::wanted::WantedDocs;
pub use verify::{Matching, Verify};

use crate::record::DocId;

/// Returns the worker that reads a document's split, as a number to be taken modulo the number of workers.
fn owner(doc: DocId) -> u64 {
    doc.split().into()
}
