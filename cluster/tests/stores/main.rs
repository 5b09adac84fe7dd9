//! The stores against HDFS, S3Proxy and Azurite. They need `scripts/hadoop/build`, `scripts/s3/build` and
//! `scripts/azurite/build`.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod azure;
mod hdfs;
#[path = "../../../tests/random.rs"]
mod random;
mod s3;
#[path = "../../../tests/servers/mod.rs"]
mod servers;
mod writes;

use std::io::Read;
use std::sync::Arc;
use std::thread;

use cluster::{Blob, BlobReader, Store};

fn write(store: &dyn Store, path: &str, bytes: &[u8]) {
    let mut output = store.create(path).unwrap();
    output.write_all(bytes).unwrap();
    output.finish().unwrap();
}

fn read(store: &dyn Store, path: &str) -> Vec<u8> {
    read_blob(store.open(path).unwrap())
}

fn read_blob(blob: Arc<dyn Blob>) -> Vec<u8> {
    let mut bytes = Vec::new();
    BlobReader::new(blob, 0, u64::MAX).read_to_end(&mut bytes).unwrap();
    bytes
}

fn listed(store: &dyn Store, path: &str) -> Vec<String> {
    store.list(path).unwrap().into_iter().map(|entry| entry.path).collect()
}

/// Reads ranges of a file, alone and from several threads. `bytes`: what it contains, more than 20 MiB;
/// `block`: bytes of its blocks or parts.
fn ranges_are_read_right(blob: &Arc<dyn Blob>, bytes: &[u8], block: usize) {
    assert_eq!(blob.bytes(), bytes.len() as u64);
    let mut buffer = vec![0; 9 << 20];
    let ends = [bytes.len() - 1, bytes.len(), bytes.len() + 9];
    for start in [0, 1, 65_535, block - 1, block, (8 << 20) + 7].into_iter().chain(ends) {
        for length in [0, 1, 65_537, 9 << 20] {
            let read = blob.read_at(start as u64, &mut buffer[..length]).unwrap();
            let expected = &bytes[start.min(bytes.len())..];
            let most = expected.len().min(length);
            assert!(read == most || read == 8 << 20, "{read} of {most} at {start}");
            assert!(buffer[..read] == expected[..read], "{length} at {start}");
        }
    }
    assert_eq!(blob.read_at(u64::MAX, &mut buffer).unwrap(), 0);

    thread::scope(|scope| {
        for worker in 0..4u64 {
            scope.spawn(move || {
                let start = worker * (5 << 20);
                let end = (worker + 1) * (5 << 20);
                let mut read = Vec::new();
                BlobReader::new(Arc::clone(blob), start, end).read_to_end(&mut read).unwrap();
                assert!(read == bytes[start as usize..end as usize]);
            });
        }
    });
}
