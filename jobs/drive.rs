//! The worker loop that every reading of the corpus shares.

use anyhow::Result;
use datasets::{Error, Fields};
use operators::DocBatch;

use crate::plan::{Plan, Split};
use crate::progress::Progress;

/// The splits that a worker reads: every `peers`-th from its own number on.
pub(crate) fn splits_of(plan: &Plan, index: usize, peers: usize) -> impl Iterator<Item = (u32, &Split)> {
    (0u32..).zip(&plan.splits).skip(index).step_by(peers)
}

/// Reads a split batch by batch. A file whose data ends the reading of it is one more rejected record.
pub(crate) fn read(
    number: u32,
    split: &Split,
    fields: &Fields,
    progress: &Progress,
    mut each: impl FnMut(&mut DocBatch),
) -> Result<()> {
    let mut next = 0;
    for part in &split.pieces {
        let piece = part.open()?;
        let mut reader = None;
        let mut more = true;
        while more {
            let mut batch = DocBatch::new(number, next);
            let filled = match &mut reader {
                Some(reader) => fill(reader, &mut batch),
                none => match split.format.open(&piece, fields) {
                    Ok(opened) => fill(none.insert(opened), &mut batch),
                    Err(error) => Err(error),
                },
            };
            more = match filled {
                Ok(more) => more,
                Err(Error::Data { path, offset, reason }) => {
                    batch.reject(&path, offset, reason, b"");
                    false
                }
                Err(error) => return Err(error.into()),
            };
            next = batch.next_record();
            progress.read(batch.docs().len() as u64, batch.text_bytes() as u64);
            each(&mut batch);
        }
        progress.done(part.bytes());
    }
    Ok(())
}

fn fill(reader: &mut Box<dyn datasets::Reader>, batch: &mut DocBatch) -> Result<bool, Error> {
    reader.fill(batch)
}
