//! JSON files with a hash on their last line.

use anyhow::{Context, Result};
use cluster::Store;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::output::{put, read, seal, unsealed};

/// Writes `value` in one step, and makes it durable. `settle`: the folder of the file.
pub(super) fn write_sealed(
    store: &dyn Store,
    path: &str,
    settle: &str,
    value: &impl Serialize,
) -> Result<()> {
    put(store, path, &seal(serde_json::to_vec(value)?))?;
    Ok(store.settle(settle)?)
}

/// Reads what [`write_sealed`] has written; `None` if there is no file.
///
/// # Errors
/// When the hash is wrong, or the contents are of another version.
pub(super) fn read_sealed<T: DeserializeOwned>(store: &dyn Store, path: &str) -> Result<Option<T>> {
    let Some(text) = read(store, path)? else { return Ok(None) };
    let body = unsealed(&text).with_context(|| format!("\"{path}\" is damaged: its hash is wrong"))?;
    let value = serde_json::from_slice(body);
    Ok(Some(value.with_context(|| format!("\"{path}\" is of another version of this program"))?))
}
