//! Packing of many small files as the records of a few large ones. The key or id of a record is the name of a
//! file, its text the contents.
//!
//! Formats implement the traits of `packed.rs`, and `container.rs` names these formats.

mod container;
mod packed;

pub use self::container::Container;
pub use self::packed::{Content, PackReader, PackWriter, Packed};
