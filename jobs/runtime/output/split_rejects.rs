//! The rejected records of one split, as they are read from its map output.

use std::collections::VecDeque;

use anyhow::Result;
use operators::{DocId, Reject};
use xxhash_rust::xxh3::xxh3_64;

use super::encoded::each_encoded;
use super::map_output::{MapOutput, MapOutputs};

/// Rejected records of a split, in order. Holds one frame.
pub struct SplitRejects {
    output: MapOutput,
    /// Number of the frame that is read next.
    next_frame: usize,
    file: Vec<u8>,
    bytes: Vec<u8>,
    /// Positions of the records of the frame that was read last, without those that are passed.
    positions: VecDeque<DocId>,
}

impl MapOutputs {
    /// Returns the rejected records of a split, whose map output must be finished.
    pub fn open_rejects(&self, split: u32) -> Result<SplitRejects> {
        let output = self.reject_frames(split)?;
        let (file, bytes, positions) = (Vec::new(), Vec::new(), VecDeque::new());
        Ok(SplitRejects { output, next_frame: 0, file, bytes, positions })
    }
}

impl SplitRejects {
    /// Calls `each` with every record, until it fails.
    pub fn read(mut self, mut each: impl FnMut(Reject) -> Result<()>) -> Result<()> {
        while self.frame(&mut each)? {}
        Ok(())
    }

    /// Returns whether the record at `doc` is rejected, and passes it if so. Must be called in ascending
    /// order, from the first record of the split on.
    pub fn pass(&mut self, doc: DocId) -> Result<bool> {
        while self.positions.back().is_none_or(|&last| last < doc) {
            let mut positions = VecDeque::new();
            let more = self.frame(|reject| {
                positions.push_back(reject.doc);
                Ok(())
            })?;
            self.positions = positions;
            if !more {
                return Ok(false);
            }
        }
        // The caller may leave out records.
        while self.positions.front().is_some_and(|&position| position < doc) {
            self.positions.pop_front();
        }
        let found = self.positions.front() == Some(&doc);
        self.positions.drain(..usize::from(found));
        Ok(found)
    }

    /// Returns a hash of all rejected records.
    pub fn hash(&self) -> u64 {
        let checksums = self.output.frames.iter().flat_map(|frame| frame.checksum.to_le_bytes());
        xxh3_64(&checksums.collect::<Vec<u8>>())
    }

    /// Reads the next frame; `false` if there is none.
    fn frame(&mut self, each: impl FnMut(Reject) -> Result<()>) -> Result<bool> {
        let Some(frame) = self.output.frames.get(self.next_frame) else { return Ok(false) };
        self.next_frame += 1;
        each_encoded(self.output.read_frame(frame, &mut self.file, &mut self.bytes)?, each)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cluster::Local;

    use super::*;

    #[test]
    fn rejects_come_back_frame_by_frame_and_are_passed_one_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let outputs = MapOutputs::new(Arc::new(Local), folder.path().to_str().unwrap().to_owned());
        let of = |position: u64| Reject {
            doc: DocId(position),
            path: "/in/a".to_owned(),
            offset: 7 * position,
            reason: "damaged".repeat(100),
            head: "坏".to_owned(),
        };
        let mut writer = outputs.create(3, 1).unwrap();
        for position in (0..3000).step_by(3) {
            writer.sections()[0].push(1);
            writer.reject(&of(position)).unwrap();
            writer.write().unwrap();
        }
        writer.finish("head").unwrap();
        let mut next = 0;
        let rejects = outputs.open_rejects(3).unwrap();
        assert!(rejects.output.frames.len() > 2);
        rejects
            .read(|reject| {
                assert_eq!(reject, of(next));
                next += 3;
                Ok(())
            })
            .unwrap();
        assert_eq!(next, 3000);
        let mut rejects = outputs.open_rejects(3).unwrap();
        for position in (0..4000).filter(|position| position % 2 == 0) {
            assert_eq!(
                rejects.pass(DocId(position)).unwrap(),
                position % 3 == 0 && position < 3000,
                "{position}"
            );
        }
    }
}
