//! Kinds of files.

/// Longest extension that is a kind of file.
const MOST_EXTENSION_CHARS: usize = 8;

/// Returns the kind of a file by its name: its extension in lower case, or `other`.
pub(super) fn kind_of(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or_default();
    let extension = last.rsplit_once('.').map_or("", |(_, extension)| extension);
    let is_kind = !extension.is_empty()
        && extension.len() <= MOST_EXTENSION_CHARS
        && extension.chars().all(|c| c.is_ascii_alphanumeric());
    if is_kind { extension.to_lowercase() } else { "other".to_owned() }
}
