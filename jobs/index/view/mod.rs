//! The clean set of a topic: which of its documents stay, as `dedup` of its export says.
//!
//! `topic_docs.rs` reads the documents, `topic_matches.rs` finds their matches by the pipeline of `dedup`, `decided.rs` decides, and `clean_set.rs` holds what is decided.
//! `print.rs` is the tool `index view`, and `index_policy.rs` names the policies. This room uses `topics`, the pipeline and the policies of `nightly`; the tools and the views of a
//! server use it.

mod clean_set;
mod decided;
mod index_policy;
mod print;
mod topic_docs;
mod topic_matches;

pub(super) use clean_set::{CleanSet, similarity};
pub(super) use decided::clean_set;
pub(super) use index_policy::{name_of_policy, policy_of_index};
pub(super) use print::print_view;
pub(super) use topic_docs::{TopicDocs, key_rule};
pub(super) use topic_matches::TopicMatches;
