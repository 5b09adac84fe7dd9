//! Values in postcard's encoding, one behind the other.

use anyhow::Result;
use serde::Deserialize;

/// Calls `each` with every value of bytes that hold one encoded value behind the other.
pub fn each_encoded<'a, T: Deserialize<'a>>(
    mut encoded: &'a [u8],
    mut each: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    while !encoded.is_empty() {
        let (value, rest) = postcard::take_from_bytes(encoded)?;
        encoded = rest;
        each(value)?;
    }
    Ok(())
}
