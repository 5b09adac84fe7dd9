//! The dataflow: shuffle and reduce on the workers of the engine.
//!
//! This is the only folder that names the engine's dataflow. It moves records between workers; all arithmetic
//! is in the modules beside it. Reading and writing happen in the worker loop of `jobs`, where errors can be
//! returned. The only errors here are those of records that are spilled to disk.

mod bands;
mod buffer;
mod bundles;
mod class_sums;
mod collapse;
mod compare;
mod meet;
mod needs;
mod parts;
mod prefix;
mod shuffle;
mod skew;
mod sum;
mod tiles;
mod verify;
mod way;
mod zhou;

pub use bands::BandJoin;
pub use class_sums::ClassSums;
pub use collapse::collapse;
pub use compare::{BlockLoad, Compared, RowSpool, compare};
pub use needs::Needs;
pub use prefix::PrefixJoin;
pub use shuffle::{Shuffle, shuffle};
pub use skew::Skew;
pub use sum::sum;
pub use verify::{Matching, Verify};
pub use zhou::{Retrieve, Retrieved};

use crate::record::DocId;

/// Returns the worker that reads a document's split, as a number to be taken modulo the number of workers.
fn owner(doc: DocId) -> u64 {
    doc.split().into()
}
