//! Headings of the options in the help.

/// Options about the input and how it is read.
pub const INPUT: &str = "Input";
/// Options by which documents are near-duplicates.
pub const METHOD: &str = "Method";
/// Options by which documents stay and runs are stopped.
pub const STAYS: &str = "What stays";
/// Options about what is written.
pub const OUTPUT: &str = "Output";
/// Options about memory, disk and threads.
pub const RESOURCES: &str = "Resources";
/// Options about hosts and processes.
pub const PLACES: &str = "Where it runs";
/// Options about what a running job shows.
pub(crate) const WATCHING: &str = "Watching";
