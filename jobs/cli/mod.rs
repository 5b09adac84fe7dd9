//! The command line: parsers of option values, the configuration that a run records, exit codes, what is printed
//! and to where, files that reports are written to, help topics, what other programs call things, and the options of the allocator.
//!
//! This room uses no other room of `jobs`; every other room may use it.

pub(crate) mod allocator;
pub(crate) mod configuration;
pub(crate) mod exit;
pub(crate) mod headings;
pub mod help_topics;
pub(crate) mod piped;
pub(crate) mod report_file;
pub mod suggestions;
pub(crate) mod temporary;
pub(crate) mod terminal;
pub(crate) mod values;
