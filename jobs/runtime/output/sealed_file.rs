//! JSON files with a hash on their last line.

use anyhow::{Context, Result};
use cluster::Store;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::requests::read;
use super::sealed_text::{seal, unsealed};

/// Writes `value` in one step, in the place of what is there, and makes it durable. `folder`: the folder of the file.
///
/// The contents are durable before the file has its name. Else a loss of power could leave the new name without contents,
/// and the earlier contents gone.
pub fn write_sealed(store: &dyn Store, path: &str, folder: &str, value: &impl Serialize) -> Result<()> {
    let mut file = store.replace(path)?;
    let text = seal(serde_json::to_vec(value)?);
    file.write_all(&text).map_err(|error| cluster::Error::of_write(path, error))?;
    file.finish_durably()?;
    Ok(store.settle(folder)?)
}

/// Reads what [`write_sealed`] has written; `None` if there is no file.
///
/// # Errors
/// When the hash is wrong, or the contents are of another version.
pub fn read_sealed<T: DeserializeOwned>(store: &dyn Store, path: &str) -> Result<Option<T>> {
    let Some(text) = read(store, path)? else { return Ok(None) };
    let body = unsealed(&text).with_context(|| format!("\"{path}\" is damaged: its hash is wrong"))?;
    let value = serde_json::from_slice(body);
    Ok(Some(value.with_context(|| format!("\"{path}\" is of another version of this program"))?))
}
