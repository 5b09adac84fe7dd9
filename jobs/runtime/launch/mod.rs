//! Launching: finds out which process of a job this one is, and starts the others if it is the launcher.
//!
//! The launcher starts the processes of a hosts file; when one dies, it ends the others and starts the job
//! again. Under Slurm and Kubernetes the scheduler starts the processes. A watch ends a process together with
//! its launcher. Besides: the secret that processes share (`token.rs`), the hash of this program, by which a run
//! knows whether it may resume another (`build_identity.rs`), the work of child processes (`child_process.rs`), and deaths on demand for tests (`faults.rs`). This
//! room uses `cli`; `lib.rs`, `main.rs` and `output` use it.

pub mod build_identity;
pub mod child_process;
#[cfg(feature = "faults")]
pub mod faults;
pub mod hosts;
pub mod launcher;
pub mod parent_watch;
pub mod role;
pub mod scheduler;
pub mod token;
