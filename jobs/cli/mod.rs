//! The command line: values of options, exit codes, and files that reports are written to.
//!
//! Uses nothing else of `jobs`; every other room uses it.

pub(crate) mod exit;
pub(crate) mod report_file;
pub(crate) mod terminal;
pub(crate) mod values;
