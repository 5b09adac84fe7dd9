//! Launching: which process of a job this one is, and the launcher that starts the others and looks after them.
//!
//! Uses `cli`; only `lib.rs` and `main.rs` use it.

pub(crate) mod build_identity;
#[cfg(feature = "faults")]
pub mod faults;
pub(crate) mod hosts;
pub(crate) mod launcher;
pub(crate) mod parent_watch;
pub(crate) mod role;
pub(crate) mod scheduler;
pub(crate) mod token;
