//! The command line: parsers of option values, exit codes, and files that reports are written to.
//!
//! This room uses no other room of `jobs`; every other room may use it.

pub(crate) mod exit;
pub(crate) mod report_file;
pub(crate) mod terminal;
pub(crate) mod values;
