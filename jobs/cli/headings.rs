//! Headings of the options in the help.

/// What is read, and how.
pub(crate) const INPUT: &str = "Input";
/// Which documents are near-duplicates.
pub(crate) const METHOD: &str = "Method";
/// Which of them stay, and when a run is stopped.
pub(crate) const STAYS: &str = "What stays";
/// What is written.
pub(crate) const OUTPUT: &str = "Output";
/// Memory, disk and threads.
pub(crate) const RESOURCES: &str = "Resources";
/// Hosts and processes.
pub(crate) const PLACES: &str = "Where it runs";
/// What is shown of a running job.
pub(crate) const WATCHING: &str = "Watching";
