//! Tests of `chunk`: block-level deduplication.

mod store;
mod store_faults;
