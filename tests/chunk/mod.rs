//! Tests of `chunk`: block-level deduplication.

mod clean;
mod compare;
mod store;
mod store_faults;
