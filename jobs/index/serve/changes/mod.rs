//! The changes of a served index: `change_task.rs` does the work for one a while at a time, `task_queues.rs` lets topics
//! take turns, and `group_commit.rs` is the thread that makes them and makes them durable together. This room uses
//! `deadline`; the index that many requests share uses it.

mod change_task;
mod group_commit;
mod task_queues;

pub(super) use change_task::{Refused, WriteReply, WriteRequest};
pub(super) use group_commit::GroupCommit;
