//! Map outputs: what the map stage keeps of each split, one file a split (docs/formats.md).
//!
//! Sections of frames, each compressed and with a checksum, and at the end a footer that says where they lie. A file
//! is there whole or not at all, so whatever is found can be used.

use std::io::Write;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use cluster::{Blob, Cluster, Output, Store};
use operators::hash::Secret;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::say;

const MAGIC: [u8; 8] = *b"DDJMAP02";
/// Length and checksum of the footer, and the magic.
const TAIL_BYTES: usize = 8 + 8 + MAGIC.len();
/// A frame is written when a section has at least so many bytes.
const FRAME_BYTES: usize = 1 << 18;

/// The folder that map outputs are in.
#[derive(Clone)]
pub(crate) struct MapOutputs {
    store: Arc<dyn Store>,
    folder: String,
}

impl MapOutputs {
    /// In a folder of a store; it need not exist.
    pub fn new(store: Arc<dyn Store>, folder: String) -> Self {
        MapOutputs { store, folder }
    }

    /// The secret of the run, which is kept beside its map outputs. Process 0 makes or finds it.
    pub fn secret(&self, cluster: &Cluster) -> Result<Secret> {
        let path = format!("{}/secret", self.folder);
        let words = cluster.meet((), |_| -> Result<_> {
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

    /// One that a loss of power has cut is none: each map output tells whether it was made with the same.
    fn kept_secret(&self, path: &str) -> Result<Option<[u64; 2]>> {
        if !self.store.exists(path)? {
            return Ok(None);
        }
        let (blob, mut bytes) = (self.store.open(path)?, [0; 16]);
        let whole = blob.bytes() == 16 && blob.read_full_at(0, &mut bytes)? == 16;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        Ok(whole.then(|| [word(0), word(8)]))
    }

    fn path(&self, split: u32) -> String {
        format!("{}/{split:05}", self.folder)
    }

    /// Begins the map output of a split.
    pub fn create(&self, split: u32, sections: usize) -> Result<Writer> {
        let path = self.path(split);
        let output = self.store.create(&path)?;
        Ok(Writer { path, output, sections: vec![Vec::new(); sections], frames: Vec::new(), offset: 0 })
    }

    /// What is known of a split, if its map output is finished. One that is damaged, as by a loss of power, is removed.
    ///
    /// Cost: reads it once.
    pub fn finished<H: DeserializeOwned>(&self, split: u32) -> Result<Option<H>> {
        let path = self.path(split);
        if !self.store.exists(&path)? {
            return Ok(None);
        }
        match self.open(split).and_then(|(head, output)| output.check().map(|()| head)) {
            Ok(head) => Ok(Some(head)),
            Err(error) => {
                say(format_args!("warning: {error:#}; the split is mapped again"));
                self.store.remove(&path)?;
                Ok(None)
            }
        }
    }

    /// The map output of a split, which must be finished.
    pub fn open<H: DeserializeOwned>(&self, split: u32) -> Result<(H, MapOutput)> {
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
        let footer = postcard::from_bytes(&footer).map_err(|error| damaged(&error.to_string()))?;
        let Footer { head, frames } = footer;
        Ok((head, MapOutput { blob, frames }))
    }
}

#[derive(Deserialize, Serialize)]
struct Footer<H> {
    head: H,
    frames: Vec<Frame>,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
struct Frame {
    section: u32,
    offset: u64,
    /// Of the file.
    length: u32,
    /// Of the section.
    bytes: u32,
    /// Of what is in the file.
    checksum: u64,
}

/// A map output being written. Holds up to 256 KiB and a batch of each section.
pub(crate) struct Writer {
    path: String,
    output: Box<dyn Output>,
    sections: Vec<Vec<u8>>,
    frames: Vec<Frame>,
    offset: u64,
}

impl Writer {
    /// The sections, to append to.
    pub fn sections(&mut self) -> &mut [Vec<u8>] {
        &mut self.sections
    }

    /// Writes the sections that are long enough. What is in them now will not be cut.
    pub fn write(&mut self) -> Result<()> {
        self.write_from(FRAME_BYTES)
    }

    fn write_from(&mut self, least: usize) -> Result<()> {
        for (number, section) in (0..).zip(&mut self.sections).filter(|(_, section)| section.len() >= least) {
            let frame = lz4_flex::block::compress(section);
            self.frames.push(Frame {
                section: number,
                offset: self.offset,
                length: u32::try_from(frame.len())?,
                bytes: u32::try_from(section.len())?,
                checksum: xxh3_64(&frame),
            });
            let written = self.output.write_all(&frame);
            written.map_err(|error| cluster::Error::io(&self.path, "write", error))?;
            self.offset += frame.len() as u64;
            section.clear();
        }
        Ok(())
    }

    /// Writes the rest, with what is to be known of the split.
    pub fn finish(mut self, head: impl Serialize) -> Result<()> {
        self.write_from(1)?;
        let footer = postcard::to_stdvec(&Footer { head, frames: self.frames })?;
        let mut output = self.output;
        let numbers = [footer.len() as u64, xxh3_64(&footer)].map(u64::to_le_bytes);
        let written = [&footer, &numbers[0][..], &numbers[1][..], &MAGIC[..]]
            .into_iter()
            .try_for_each(|bytes| output.write_all(bytes));
        written.map_err(|error| cluster::Error::io(&self.path, "write", error))?;
        Ok(output.finish()?)
    }
}

/// A finished map output.
pub(crate) struct MapOutput {
    blob: Arc<dyn Blob>,
    frames: Vec<Frame>,
}

impl MapOutput {
    /// An error if a frame is not what was written.
    fn check(&self) -> Result<()> {
        let mut file = Vec::new();
        self.frames.iter().try_for_each(|frame| self.frame(frame, &mut file))
    }

    /// Reads a frame as it is in the file.
    fn frame(&self, frame: &Frame, file: &mut Vec<u8>) -> Result<()> {
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
            self.frame(frame, &mut file)?;
            bytes.resize(frame.bytes as usize, 0);
            let length = lz4_flex::block::decompress_into(&file, &mut bytes)?;
            each(&bytes[..length])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use cluster::Local;

    use super::*;

    #[test]
    fn sections_come_back_and_damage_anywhere_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let outputs = MapOutputs::new(Arc::new(Local), folder.path().to_str().unwrap().to_owned());
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
