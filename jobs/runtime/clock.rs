//! The time of this machine, as numbers that are stored.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the time in seconds since 1970.
pub fn seconds_now() -> u64 {
    milliseconds_now() / 1000
}

/// Returns the time in milliseconds since 1970.
pub fn milliseconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}
