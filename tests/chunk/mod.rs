//! Tests of `chunk`: block-level deduplication.

mod clean;
mod clean_near;
mod compare;
mod export;
mod stats;
mod store;
mod store_disk;
mod store_faults;
mod store_kills;
mod store_servers;
mod unread;
