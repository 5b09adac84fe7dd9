//! Parts of an output: where the writers of `formats` put kept and removed records.
//!
//! This room knows no format; `formats` uses it.

pub(crate) mod copies;
pub(crate) mod part;
pub(crate) mod removal_log;
