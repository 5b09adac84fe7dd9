//! Reading of a file from its beginning to its end, for the benchmarks.

use cluster::Stores;
use datasets::{FORMATS, Piece, Reading};
use operators::DocBatch;

/// Reads a file as one piece, gives every batch to `each`, and returns the number of records.
pub fn read(file: &str, format: &str, mut each: impl FnMut(&DocBatch)) -> u64 {
    let found = Stores::new().expand(&[file]).expect("a file").remove(0);
    let blob = found.store.open(&found.path).expect("a file");
    let piece = Piece::whole(blob, found.name.to_string());
    let format = FORMATS.iter().find(|known| known.name() == format).expect("a format");
    let mut reader = format.open(&piece, &Reading::default()).expect("a file of the format");
    let (mut records, mut more) = (0, true);
    while more {
        let mut batch = DocBatch::new(0, records);
        more = reader.fill(&mut batch).expect("a whole file");
        records = batch.next_record();
        each(&batch);
    }
    records
}
