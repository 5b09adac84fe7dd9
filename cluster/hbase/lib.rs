//! Tables of HBase, through its Thrift2 gateway.
//!
//! `gateway.thrift` has the calls that are made, and `gateway.rs` is what thrift-compiler 0.17 writes for it.
//! `address.rs` reads the name of a table, `connections.rs` keeps connections to the gateway and tries again what has
//! failed, and `table.rs` has the calls in our own words. This crate uses errors and retries of `cluster`.

mod address;
mod connections;
#[allow(
    clippy::all,
    clippy::allow_attributes_without_reason,
    clippy::unwrap_used,
    dead_code,
    missing_docs,
    reason = "thrift-compiler writes this file, with more than is called"
)]
mod gateway;
mod table;
#[cfg(test)]
mod tests;

pub use address::HBaseAddress;
pub use connections::GatewayLimits;
pub use table::{FAMILY, HBaseTable, TableCell, TableRow};
