//! Facts about an object that the service tells.

use object_store::ObjectMeta;
use xxhash_rust::xxh3::xxh3_64;

use crate::stores::store::{Entry, Version};

/// Returns the version of an object, with its time in whole seconds, because a listing may be more exact than
/// a request for the object itself.
pub(super) fn version(object: &ObjectMeta) -> Version {
    let seconds = u64::try_from(object.last_modified.timestamp()).ok();
    // Azure omits the quotes in listings.
    let tag = object.e_tag.as_ref().map(|tag| xxh3_64(tag.trim_matches('"').as_bytes()));
    Version { modified: seconds.map(|seconds| seconds * 1000), tag }
}

/// Returns an object as a file with this path.
pub(super) fn entry(path: String, object: &ObjectMeta) -> Entry {
    Entry { path, bytes: object.size, version: version(object), directory: false }
}
