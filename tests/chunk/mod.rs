//! Tests of `chunk`: block-level deduplication.

pub mod clean;
mod clean_near;
mod compare;
mod export;
mod stats;
pub mod store;
mod store_disk;
mod store_faults;
mod store_servers;
mod unread;
