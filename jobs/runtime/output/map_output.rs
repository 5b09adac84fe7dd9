//! Map outputs: what the map stage keeps of each split, one file a split (docs/formats.md).
//!
//! A file has sections, each of which is a sequence of frames with checksums. The footer at its end says where
//! the frames lie. A file is there whole or not at all, so a later run can use every file that it finds.
//!
//! ```text
//! frame of section 0     some 256 KiB of records, in LZ4 where that is shorter
//! frame of section 1
//! frame of section 0
//! footer                 section, offset, lengths and checksum of each frame; what is known of the split
//! tail                   length of the footer, checksum of the footer, "DDJMAP05"
//! ```

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use cluster::{Blob, Group, Output, Store};
use operators::Reject;
use operators::hash::Secret;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: [u8; 8] = *b"DDJMAP05";
/// Length of the tail: length and checksum of the footer, and the magic bytes.
const TAIL_BYTES: usize = 8 + 8 + MAGIC.len();
/// Number of the section of rejected records, which every map output can have.
const REJECTS: u32 = u32::MAX;
/// Length at which the bytes of a section are written as a frame.
const FRAME_BYTES: usize = 1 << 18;
/// Length of an input, in bytes, up to which local map outputs are not compressed. The job takes seconds, in
/// which they need not leave the page cache, and compressing them would be a twelfth of its CPU time.
const SMALL_INPUT_BYTES: u64 = 1 << 30;

/// Folder of map outputs.
#[derive(Clone)]
pub struct MapOutputs {
    store: Arc<dyn Store>,
    folder: String,
    compress: bool,
}

impl MapOutputs {
    /// Names a folder of a store, which need not exist.
    pub fn new(store: Arc<dyn Store>, folder: String) -> Self {
        MapOutputs { store, folder, compress: true }
    }

    /// Returns the folder of that name inside this one.
    pub fn inside(&self, folder: &str) -> Self {
        MapOutputs { folder: format!("{}/{folder}", self.folder), ..self.clone() }
    }

    /// Returns the same folder for the map outputs of an input of that length in bytes.
    pub fn of_input(self, bytes: u64) -> Self {
        let compress = bytes > SMALL_INPUT_BYTES || !self.store.prefix().is_empty();
        MapOutputs { compress, ..self }
    }

    /// Returns the secret of the run, which is kept beside its map outputs. Process 0 makes or finds it.
    pub fn secret(&self, group: &Group) -> Result<Secret> {
        let path = format!("{}/secret", self.folder);
        let words = group.all_reduce((), |_| -> Result<_> {
            if let Some(words) = self.kept_secret(&path)? {
                return Ok(words);
            }
            let words = Secret::random().words();
            let mut output = self.store.create(&path)?;
            let written = output.write_all(&words.map(u64::to_le_bytes).concat());
            written.map_err(|error| cluster::Error::io(&path, "write", error))?;
            output.finish()?;
            Ok(words)
        })?;
        Ok(Secret::of_words(words))
    }

    /// Reads the secret that an earlier run has kept. One that a loss of power has cut short counts as
    /// absent: each map output tells whether it was made with the same secret.
    fn kept_secret(&self, path: &str) -> Result<Option<[u64; 2]>> {
        if !self.store.exists(path)? {
            return Ok(None);
        }
        let blob = self.store.open(path)?;
        let mut bytes = [0; 16];
        let whole = blob.bytes() == 16 && blob.read_full_at(0, &mut bytes)? == 16;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        Ok(whole.then(|| [word(0), word(8)]))
    }

    /// Returns the paths of the map outputs of some splits.
    pub fn paths(&self, splits: Range<u32>) -> Vec<String> {
        splits.map(|split| self.path(split)).collect()
    }

    fn path(&self, split: u32) -> String {
        format!("{}/{split:05}", self.folder)
    }

    /// Begins the map output of a split.
    pub fn create(&self, split: u32, sections: usize) -> Result<MapOutputWriter> {
        let path = self.path(split);
        let output = self.store.create(&path)?;
        let sections = vec![Vec::new(); sections];
        let compress = self.compress;
        let (rejects, frames) = Default::default();
        Ok(MapOutputWriter { path, output, compress, sections, rejects, frames, offset: 0 })
    }

    /// Opens the frames with the rejected records of a split, whose map output must be finished.
    pub(super) fn reject_frames(&self, split: u32) -> Result<MapOutput> {
        let (blob, footer) = self.footer(split)?;
        let damaged = |error| anyhow!("\"{}\" is damaged: {error}", blob.path());
        let (mut frames, _): (Vec<MapFrame>, _) = postcard::take_from_bytes(&footer).map_err(damaged)?;
        frames.retain(|frame| frame.section == REJECTS);
        Ok(MapOutput { blob, frames })
    }

    /// Returns what is known of a split if its map output is finished. A damaged map output, as after a loss
    /// of power, is removed.
    ///
    /// Cost: reads the map output once.
    pub fn finished<H: DeserializeOwned>(&self, split: u32) -> Result<Option<H>> {
        let path = self.path(split);
        if !self.store.exists(&path)? {
            return Ok(None);
        }
        match self.open(split).and_then(|(head, output)| output.check().map(|()| head)) {
            Ok(head) => Ok(Some(head)),
            Err(error) => {
                log::warn!("{error:#}; the split is mapped again");
                self.store.remove(&path)?;
                Ok(None)
            }
        }
    }

    /// Opens the map output of a split, which must be finished.
    pub fn open<H: DeserializeOwned>(&self, split: u32) -> Result<(H, MapOutput)> {
        let (blob, footer) = self.footer(split)?;
        let damaged = |error| anyhow!("\"{}\" is damaged: {error}", blob.path());
        let MapFooter { frames, head } = postcard::from_bytes(&footer).map_err(damaged)?;
        Ok((head, MapOutput { blob, frames }))
    }

    /// Reads the footer of a map output, and checks it.
    fn footer(&self, split: u32) -> Result<(Arc<dyn Blob>, Vec<u8>)> {
        let blob = self.store.open(&self.path(split))?;
        let damaged = |what: &str| anyhow!("\"{}\" is damaged: {what}", blob.path());
        let end = blob.bytes();
        let mut tail = [0; TAIL_BYTES];
        let at = end.checked_sub(TAIL_BYTES as u64).ok_or_else(|| damaged("it is too short"))?;
        blob.read_full_at(at, &mut tail)?;
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| tail[at + i]));
        let (length, checksum) = (number(0), number(8));
        let at = at.checked_sub(length).filter(|_| tail.ends_with(&MAGIC));
        let mut footer = vec![0; length as usize * usize::from(at.is_some())];
        blob.read_full_at(at.ok_or_else(|| damaged("it is no map output"))?, &mut footer)?;
        if xxh3_64(&footer) != checksum {
            bail!(damaged("the checksum of its footer is wrong"));
        }
        Ok((blob, footer))
    }
}

#[derive(Deserialize, Serialize)]
struct MapFooter<H> {
    frames: Vec<MapFrame>,
    head: H,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
pub(super) struct MapFrame {
    section: u32,
    offset: u64,
    /// Length of the frame in the file, in bytes. It is compressed if this is less than `bytes`.
    length: u32,
    /// Length of its part of the section, in bytes.
    bytes: u32,
    /// Checksum of the frame in the file.
    pub(super) checksum: u64,
}

/// Map output that is being written. Holds up to 256 KiB and a batch of each section.
pub struct MapOutputWriter {
    path: String,
    output: Box<dyn Output>,
    compress: bool,
    sections: Vec<Vec<u8>>,
    rejects: Vec<u8>,
    frames: Vec<MapFrame>,
    offset: u64,
}

impl MapOutputWriter {
    /// Returns the sections, to append to.
    pub fn sections(&mut self) -> &mut [Vec<u8>] {
        &mut self.sections
    }

    /// Writes the sections that are long enough for a frame. A record that is whole in its section now is
    /// never cut.
    pub fn write(&mut self) -> Result<()> {
        self.write_from(FRAME_BYTES)
    }

    /// Adds a rejected record.
    pub fn reject(&mut self, reject: &Reject) -> Result<()> {
        self.rejects = postcard::to_extend(reject, std::mem::take(&mut self.rejects))?;
        Ok(())
    }

    /// Writes each section of `least` bytes or more as a frame.
    fn write_from(&mut self, least: usize) -> Result<()> {
        let sections = (0..).zip(&mut self.sections).chain([(REJECTS, &mut self.rejects)]);
        for (number, section) in sections.filter(|(_, section)| section.len() >= least) {
            let compressed = self.compress.then(|| lz4_flex::block::compress(section));
            let shorter = compressed.filter(|compressed| compressed.len() < section.len());
            let frame = shorter.as_deref().unwrap_or(section);
            self.frames.push(MapFrame {
                section: number,
                offset: self.offset,
                length: u32::try_from(frame.len())?,
                bytes: u32::try_from(section.len())?,
                checksum: xxh3_64(frame),
            });
            let written = self.output.write_all(frame);
            written.map_err(|error| cluster::Error::io(&self.path, "write", error))?;
            self.offset += frame.len() as u64;
            section.clear();
        }
        Ok(())
    }

    /// Writes the rest, and `head`, which is what is known of the split.
    pub fn finish(mut self, head: impl Serialize) -> Result<()> {
        self.write_from(1)?;
        let footer = postcard::to_stdvec(&MapFooter { frames: self.frames, head })?;
        let mut output = self.output;
        let numbers = [footer.len() as u64, xxh3_64(&footer)].map(u64::to_le_bytes);
        let written = [&footer, &numbers[0][..], &numbers[1][..], &MAGIC[..]]
            .into_iter()
            .try_for_each(|bytes| output.write_all(bytes));
        written.map_err(|error| cluster::Error::io(&self.path, "write", error))?;
        Ok(output.finish()?)
    }
}

/// Finished map output.
pub struct MapOutput {
    blob: Arc<dyn Blob>,
    pub(super) frames: Vec<MapFrame>,
}

impl MapOutput {
    /// Returns an error if a frame is not what was written.
    fn check(&self) -> Result<()> {
        let mut file = Vec::new();
        self.frames.iter().try_for_each(|frame| self.frame(frame, &mut file))
    }

    /// Reads a frame as it is in the file, and checks it.
    fn frame(&self, frame: &MapFrame, file: &mut Vec<u8>) -> Result<()> {
        file.resize(frame.length as usize, 0);
        let read = self.blob.read_full_at(frame.offset, file)?;
        if read < file.len() || xxh3_64(file) != frame.checksum {
            bail!("\"{}\" is damaged: the checksum at byte {} is wrong", self.blob.path(), frame.offset);
        }
        Ok(())
    }

    /// Calls `each` with every frame of a section, until it fails.
    pub fn read(&self, section: usize, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let (mut file, mut bytes) = (Vec::new(), Vec::new());
        for frame in self.frames.iter().filter(|frame| frame.section as usize == section) {
            each(self.read_frame(frame, &mut file, &mut bytes)?)?;
        }
        Ok(())
    }

    /// Reads a frame and returns its part of the section, which lies in one of the buffers.
    pub(super) fn read_frame<'a>(
        &self,
        frame: &MapFrame,
        file: &'a mut Vec<u8>,
        bytes: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]> {
        self.frame(frame, file)?;
        if frame.length >= frame.bytes {
            return Ok(file);
        }
        bytes.resize(frame.bytes as usize, 0);
        let length = lz4_flex::block::decompress_into(file, bytes)?;
        Ok(&bytes[..length])
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use cluster::Local;

    use super::*;

    #[test]
    fn sections_come_back_and_damage_anywhere_is_found() {
        for input_bytes in [0, u64::MAX] {
            check_damage(input_bytes);
        }
    }

    fn check_damage(input_bytes: u64) {
        let folder = tempfile::tempdir().unwrap();
        let outputs = MapOutputs::new(Arc::new(Local), folder.path().to_str().unwrap().to_owned());
        let outputs = outputs.of_input(input_bytes);
        let text = "重复文本检测".repeat(1000).into_bytes();
        let mut writer = outputs.create(7, 2).unwrap();
        for _ in 0..30 {
            writer.sections()[0].extend_from_slice(&text);
            writer.sections()[1].push(3);
            writer.write().unwrap();
        }
        assert_eq!(outputs.finished::<u64>(7).unwrap(), None);
        writer.finish(99_u64).unwrap();

        let whole = |number: u64, output: &MapOutput| -> Result<bool> {
            let mut sections = [vec![], vec![]];
            for (section, to) in sections.iter_mut().enumerate() {
                output.read(section, |frame| {
                    to.extend_from_slice(frame);
                    Ok(())
                })?;
            }
            Ok(number == 99 && sections[0] == text.repeat(30) && sections[1] == [3; 30])
        };
        let (number, output) = outputs.open(7).unwrap();
        assert!(whole(number, &output).unwrap() && output.frames.len() > 2);
        assert_eq!(output.frames[0].length < output.frames[0].bytes, input_bytes > 0);

        let path = folder.path().join("00007");
        let good = fs::read(&path).unwrap();
        for at in (0..good.len()).step_by(good.len() / 150).chain(good.len() - 200..good.len()) {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            fs::write(&path, &bad).unwrap();
            let read = outputs.open(7).and_then(|(number, output)| whole(number, &output));
            assert!(read.is_err(), "byte {at} of {}", good.len());
        }
        fs::write(&path, &good[..good.len() / 2]).unwrap();
        assert_eq!(outputs.finished::<u64>(7).unwrap(), None);
        assert!(!path.exists());
    }
}
