//! The output folder of a run: readers see it whole or not at all, and a killed run is resumed.
//!
//! A run first takes the lock of the output, so that one run at a time writes there (`folder/lock.rs`). It
//! writes its files where no reader looks: on a file system into a folder of its own below `_temporary`, in a
//! bucket as uploads that are not completed, with small files in bundles (`folder/parts.rs`). Every finished
//! file is noted in a list (`files.rs`). When all files are written, the run writes the job manifest, which
//! holds this list and the text of `_SUCCESS`. The job manifest is the decision: before it exists, readers
//! see nothing of the run; once it exists, this run or the next one finishes the commit (`folder/commit.rs`).
//! `_SUCCESS` is written last, so a reader who sees it sees every file that it lists. A run that finds the
//! folder of a dead run takes it over (`folder/take_over.rs`).
//!
//! The other files hold rejected records, tables, the summary and the map output, and what the protocol needs
//! of them: keys, manifests, requests, sealed files, the text of `_SUCCESS`. This room uses `cli`, `launch`, `progress` and
//! `corpus`; all jobs that write an output use it.
//!
//! Example: run A is killed during its commit on a file system, and run B is started with the same options.
//! Run folders are named by the number of the lock and random digits.
//!
//! ```text
//! step                    below OUT/_temporary                        readers see below OUT
//! A takes the lock        lock-00000001                               nothing
//! A writes its files      + 00000001-9e..: key, map, parts, tasks     nothing
//! A decides               + 00000001-9e../job                         nothing
//! A moves clusters, dies  parts no longer has clusters                clusters, no _SUCCESS: no output
//! B takes the lock        lock-00000002, 00000002-51.. (A's folder)   clusters, no _SUCCESS: no output
//! B finishes the commit   removed                                     clusters, pairs, kept, _SUCCESS
//! ```
//!
//! Had A been killed before it decided, B would do only the splits that A has not finished. The order of all
//! steps and the reasons are in docs/design/commit.md and lock.md.

mod encoded;
mod file;
mod files;
mod folder;
mod key;
mod manifests;
pub mod map_output;
mod output_job;
pub mod rejects;
mod requests;
mod sealed_file;
mod sealed_text;
pub mod split_rejects;
mod success;
pub mod summary;
pub mod tables;

pub use self::encoded::each_encoded;
pub use self::file::{FileOutput, FileTargets};
pub use self::files::{Difference, FileList, OutputFile, found_below};
pub use self::folder::{Lock, LockOwner, OutputFolder, SplitParts, vanish};
pub use self::key::Key;
pub use self::manifests::{JobManifest, TaskManifest, Written};
pub use self::output_job::{BegunJob, JobEnd, JobSummary, OutputArgs, OutputJob, rejected_words};
pub use self::requests::{hash, put, read};
pub use self::sealed_file::{read_sealed, write_sealed};
pub use self::sealed_text::{seal, unsealed};
pub use self::success::SuccessList;
