//! The commands of the program `dedup-job`, but for the jobs that are crates of their own: `batch`, `nightly`, `index` and
//! `chunk`.
//!
//! The rooms use each other in one direction, from low to high: `help`, `commands`, `reproduce`. No algorithm lives here.

pub mod commands;
pub mod help;
pub mod reproduce;
