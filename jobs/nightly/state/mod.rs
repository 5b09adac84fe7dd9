//! The state of nightly runs: what is remembered of all documents so far, in sorted runs on any store.
//!
//! `table.rs` says what the tables hold, `manifest.rs` which files make up a version of the state, and
//! `state_folder.rs` opens and commits versions, and `claim.rs` locks the state and puts in order what a killed run
//! has left. `unnamed_runs.rs` removes what a run has written that lost the state. `reader.rs` looks documents up, `writer.rs` writes the
//! rows of a night, `tiers.rs` merges runs, and `check.rs` compares everything with its checksums. This room
//! uses `cluster::runs`, `corpus` and `output`; the job `nightly` and its tools use it, and `index` reads states.

mod check;
mod claim;
mod manifest;
mod night_commit;
mod night_state;
mod reader;
mod state_folder;
mod table;
mod tiers;
mod unnamed_runs;
mod writer;

pub(crate) use self::check::{StateCheck, check_state, faults_of_tables};
pub(crate) use self::claim::stamp_of;
pub use self::manifest::{NightEntry, Pinned, RunEntry, StateManifest, StatisticsFile};
pub use self::night_commit::NightCommit;
pub(crate) use self::night_state::NightState;
pub use self::reader::{EarlierDocs, found};
pub use self::state_folder::{CommittedVersion, StateFolder};
pub(crate) use self::table::{GOES, HAS_TEXT, NO_MEMBER, NO_PARENT, merit_of};
pub use self::table::{OF_TEXT, StateTable, doc_of, key_of_id, number_of};
pub use self::tiers::compact;
pub use self::writer::Numbering;
pub(crate) use self::writer::{RunsOfNight, TableWriter};
