//! A spill file that one thread writes while others read what is there.

use parking_lot::{Condvar, Mutex, RwLock};

use super::budget::{FRAME_BYTES, FrameFile, HEAD_BYTES, SpillBudget};
use crate::Error;

/// Bytes on disk to which one thread appends, and which any number of threads read at the same time. A reader
/// waits for bytes that are not there yet.
///
/// Memory: one block of 64 KiB, and one for each reader. The disk holds all bytes until the last owner is gone.
pub struct GrowingFile {
    spill: SpillBudget,
    frames: RwLock<Option<FrameFile>>,
    length: Mutex<Length>,
    grown: Condvar,
}

/// How much of the file is there.
#[derive(Default)]
struct Length {
    blocks: u64,
    ended: bool,
}

impl GrowingFile {
    /// Length of a block, in bytes. Only the last block may be shorter.
    pub const BLOCK_BYTES: usize = FRAME_BYTES;

    /// Makes an empty file in the folder of `spill`, which the first block creates.
    pub fn new(spill: &SpillBudget) -> Self {
        let (frames, length, grown) = Default::default();
        GrowingFile { spill: spill.clone(), frames, length, grown }
    }

    /// Appends a block.
    ///
    /// # Errors
    /// [`Error::DiskFull`] and [`Error::Spill`].
    pub fn append(&self, block: &[u8]) -> Result<(), Error> {
        let mut frames = self.frames.write();
        let file = match &mut *frames {
            Some(file) => file,
            none => none.insert(self.spill.frames()?),
        };
        file.append(block.len(), block.len(), |frame| frame.copy_from_slice(block))?;
        drop(frames);
        self.length.lock().blocks += 1;
        self.grown.notify_all();
        Ok(())
    }

    /// Says that nothing more will be appended.
    pub fn end(&self) {
        self.length.lock().ended = true;
        self.grown.notify_all();
    }

    /// Reads the block of this number. Waits until it is there, and returns `false` if the file has ended
    /// before it.
    ///
    /// # Errors
    /// [`Error::SpillLost`].
    pub fn read(&self, block: u64, bytes: &mut Vec<u8>) -> Result<bool, Error> {
        let mut length = self.length.lock();
        self.grown.wait_while(&mut length, |length| length.blocks <= block && !length.ended);
        let there = block < length.blocks;
        drop(length);
        match &*self.frames.read() {
            Some(file) if there => {
                file.read(block * (HEAD_BYTES + Self::BLOCK_BYTES) as u64, bytes).map(|_| true)
            }
            _ => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::super::budget::twins::Twin;
    use super::*;

    fn blocks() -> impl Iterator<Item = Vec<u8>> {
        let lengths = [GrowingFile::BLOCK_BYTES, GrowingFile::BLOCK_BYTES, 5];
        (0..).zip(lengths).map(|(number, bytes)| vec![number; bytes])
    }

    #[test]
    fn readers_wait_for_blocks_and_see_each_of_them() {
        let file = GrowingFile::new(&Twin::default().budget(None));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut bytes = Vec::new();
                    for (number, block) in (0..).zip(blocks()) {
                        assert!(file.read(number, &mut bytes).unwrap());
                        assert_eq!(bytes, block);
                    }
                    assert!(!file.read(3, &mut bytes).unwrap());
                });
            }
            blocks().for_each(|block| file.append(&block).unwrap());
            file.end();
        });
    }

    #[test]
    fn a_file_that_ends_before_its_first_block_is_empty() {
        let file = GrowingFile::new(&Twin::default().budget(None));
        file.end();
        assert!(!file.read(0, &mut Vec::new()).unwrap());
    }

    #[test]
    fn a_full_disk_and_damage_are_errors() {
        let file = GrowingFile::new(&Twin::full_after(GrowingFile::BLOCK_BYTES + 100).budget(None));
        let appended: Vec<bool> = blocks().map(|block| file.append(&block).is_ok()).collect();
        assert_eq!(appended, [true, false, true], "what is left of the disk has room for the third");
        let damaged = GrowingFile::new(&Twin { damaged: Some(1000), ..Twin::default() }.budget(None));
        blocks().for_each(|block| damaged.append(&block).unwrap());
        assert!(damaged.read(0, &mut Vec::new()).is_err());
        assert!(damaged.read(1, &mut Vec::new()).unwrap());
    }
}
