//! Tests of the job `chunk`.

mod clean;
