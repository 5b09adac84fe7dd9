//! What every object store must do of a small file.

use cluster::{Bucket, Store, Uploads};

/// A small file is written where there is none, or in place of the one that it is to replace, and of no other.
pub fn a_small_file_replaces_only_what_it_is_to_replace(store: &Bucket) {
    let path = "/kept/part-00000";
    let length = || store.open(path).map(|blob| blob.bytes()).ok();
    store.write(path, b"first", None).unwrap();
    let first = store.tag(path).unwrap();
    // The same again: the answer to the request before may have been lost.
    store.write(path, b"first", None).unwrap();
    assert!(store.write(path, b"other", None).is_err());
    assert_eq!((store.tag(path).unwrap(), length()), (first.clone(), Some(5)));

    store.write(path, b"second", first.as_deref()).unwrap();
    assert_ne!(store.tag(path).unwrap(), first);
    store.write(path, b"second", first.as_deref()).unwrap();
    // A request that comes late, after others have replaced the file.
    assert!(store.write(path, b"too late", first.as_deref()).is_err());
    assert_eq!(length(), Some(6));
    store.remove(path).unwrap();
    assert!(store.write(path, b"too late", first.as_deref()).is_err());
    assert_eq!(length(), None);
}
