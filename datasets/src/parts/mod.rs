//! Parts of an output: where the writers of `formats` put kept and removed records.
//!
//! Knows no format; `formats` uses it.

pub(crate) mod part;
pub(crate) mod removal_log;
