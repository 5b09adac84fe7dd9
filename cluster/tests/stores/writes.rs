//! Rules that every object store follows when it writes a small file.

use cluster::{Bucket, Store, Uploads};

/// A small file is written where there is none or over the file that it replaces, and over no other.
pub fn a_small_file_replaces_only_what_it_is_to_replace(store: &Bucket) {
    let path = "/kept/part-00000";
    let length = || store.open(path).map(|blob| blob.bytes()).ok();
    store.write(path, b"first", None).unwrap();
    let first = store.tag(path).unwrap();
    // The same write again is fine: the answer to an earlier request may have been lost.
    store.write(path, b"first", None).unwrap();
    assert!(store.write(path, b"other", None).is_err());
    assert_eq!((store.tag(path).unwrap(), length()), (first.clone(), Some(5)));

    store.write(path, b"second", first.as_deref()).unwrap();
    assert_ne!(store.tag(path).unwrap(), first);
    store.write(path, b"second", first.as_deref()).unwrap();
    // A late request, after others have replaced the file, is refused.
    assert!(store.write(path, b"too late", first.as_deref()).is_err());
    assert_eq!(length(), Some(6));
    store.remove(path).unwrap();
    assert!(store.write(path, b"too late", first.as_deref()).is_err());
    assert_eq!(length(), None);
}
