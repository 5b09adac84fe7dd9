//! Tests of `chunk`: block-level deduplication.

mod compare;
mod store;
mod store_faults;
