//! The protocol by which a run claims the folder of an output, writes files, and makes them visible.
//!
//! `output_folder.rs` claims and releases the folder, `take_over.rs` deals with earlier runs, `parts.rs`
//! writes files, `commit.rs` decides and shows them. These use `by_rename.rs` or `by_upload.rs`, as the store
//! requires, and `bundles.rs` for small files in a bucket; they reach the lock (`lock.rs`) through
//! `run_folder.rs`. `fence.rs` has the changes that only the owner of a lock can make, for other rooms too. This room uses the lists and manifests of `output`; the jobs use it as `OutputFolder`.

mod bundles;
mod by_rename;
mod by_upload;
mod commit;
mod fence;
mod lock;
mod output_folder;
mod parts;
mod run_folder;
mod take_over;
#[cfg(test)]
mod tests;

pub use self::by_rename::vanish;
pub use self::lock::{Lock, LockOwner};
pub use self::output_folder::{EarlierWork, OutputFolder};
pub use self::parts::SplitParts;
