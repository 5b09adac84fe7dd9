//! The clean set of a topic: which of its documents stay, as `dedup` of its export says.
//!
//! `asked_doc.rs` finds the matches of a document in the index, `greedy.rs` decides, and `clean_set.rs` holds what is decided.
//! `print.rs` is the tool `index view`. This room uses `topics` and the policies of `nightly`; the tools use it.

mod asked_doc;
mod clean_set;
mod greedy;
mod print;

pub(super) use asked_doc::AskedDoc;
pub(super) use clean_set::{CleanSet, similarity};
pub(super) use greedy::{NO_TEXTS, clean_set};
pub(super) use print::{ViewArgs, policy_of_index, print_view};
