//! Small JSON files with a hash on their last line.

use anyhow::{Context, Result, bail};
use cluster::Store;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Largest length of such a file, in bytes.
const MOST_BYTES: u64 = 1 << 30;

/// Writes `value` as JSON with its hash on the last line, in one step, and makes it durable. `settle`: the folder of the
/// file.
pub(super) fn write_sealed(
    store: &dyn Store,
    path: &str,
    settle: &str,
    value: &impl Serialize,
) -> Result<()> {
    let mut text = serde_json::to_vec(value)?;
    let hash = blake3::hash(&text).to_hex();
    text.push(b'\n');
    text.extend(hash.as_bytes());
    text.push(b'\n');
    let mut output = store.create(path)?;
    output.write_all(&text).with_context(|| format!("could not write \"{path}\""))?;
    output.finish()?;
    Ok(store.settle(settle)?)
}

/// Reads what [`write_sealed`] has written; `None` if there is no file.
///
/// # Errors
/// When the hash is wrong, or the contents are of another version.
pub(super) fn read_sealed<T: DeserializeOwned>(store: &dyn Store, path: &str) -> Result<Option<T>> {
    let blob = match store.open(path) {
        Err(cluster::Error::NotFound { .. }) => return Ok(None),
        blob => blob?,
    };
    let mut text = vec![0; blob.bytes().min(MOST_BYTES) as usize];
    let read = blob.read_full_at(0, &mut text)?;
    text.truncate(read);
    let body = text.strip_suffix(b"\n").and_then(|text| {
        let line = text.iter().rposition(|&byte| byte == b'\n')?;
        (blake3::hash(&text[..line]).to_hex().as_bytes() == &text[line + 1..]).then_some(&text[..line])
    });
    let Some(body) = body else { bail!("\"{path}\" is damaged: its hash is wrong") };
    let value = serde_json::from_slice(body);
    Ok(Some(value.with_context(|| format!("\"{path}\" is of another version of this program"))?))
}
