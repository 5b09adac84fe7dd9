//! The command line: parsers of option values, the configuration that a run records, exit codes, what is printed
//! and to where, files that reports are written to, and the options of the allocator.
//!
//! This room uses no other room of `runtime`; every other room and job may use it.

pub mod allocator;
pub mod configuration;
pub mod exit;
pub mod headings;
pub mod piped;
pub mod report_file;
pub mod temporary;
pub mod terminal;
pub mod values;
