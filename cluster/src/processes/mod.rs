//! The processes of a job: how they connect, run the engine together, and notice the loss of one of them.
//!
//! This room uses the errors of `stores` alone. docs/design/processes.md give the reasons.

mod channel;
mod control;
mod data;
mod frame;
mod group;
mod handshake;
mod membership;
mod start;
#[cfg(test)]
mod tests;

pub(crate) use self::control::Control;
pub use self::group::Group;
pub use self::membership::{Limits, Membership};
