//! Launching: finds out which process of a job this one is, and starts the others if it is the launcher.
//!
//! The launcher starts the processes of a hosts file; when one dies, it ends the others and starts the job
//! again. Under Slurm and Kubernetes the scheduler starts the processes. A watch ends a process together with
//! its launcher. Besides: the secret that processes share (`token.rs`), the hash of this program, by which a run
//! knows whether it may resume another (`build_identity.rs`), and deaths on demand for tests (`faults.rs`). This
//! room uses `cli`; `lib.rs`, `main.rs` and `output` use it.

pub(crate) mod build_identity;
#[cfg(feature = "faults")]
pub mod faults;
pub(crate) mod hosts;
pub(crate) mod launcher;
pub(crate) mod parent_watch;
pub(crate) mod role;
pub(crate) mod scheduler;
pub(crate) mod token;
