//! The live views of a served index: which documents of a topic stay, kept true while documents come and go.
//!
//! ```text
//! changes -> show -> shown groups -> view_thread: topic_view decides -> topic_state -> routes, feed
//! ```
//!
//! `build.rs` finds the matches with which a view begins by the pipeline of `dedup`. `topic_view.rs` finds those of later documents in
//! the index (`asked_doc.rs`, `crowded_keys.rs`, `text_sets.rs`) and decides by the live view of the engine; `followed_topic.rs` takes over what has changed,
//! and makes versions of it; `view_thread.rs` is the one thread that does so for all topics. `topic_state.rs` has
//! what requests see, `view_routes.rs` answers them, and `feed.rs` is the stream of changes. `what_ifs.rs` and `what_if_routes.rs` say what
//! would stay with another threshold or keep order. `newer.rs` finds what another process has changed.

mod asked_doc;
mod build;
mod crowded_keys;
mod feed;
mod followed_topic;
mod newer;
mod text_sets;
mod topic_state;
mod topic_view;
mod view_routes;
mod view_thread;
mod what_if_routes;
mod what_ifs;

pub(super) use newer::take_newer;
pub(super) use view_routes::view_routes;
pub(super) use view_thread::Views;
