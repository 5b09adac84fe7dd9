//! Spill files: files without a name in a local folder, for what does not fit into memory.
//!
//! This is the one file of the crate that opens files. A spill file disappears with the process, however that
//! ends.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::Error;
use crate::record::Record;

/// A local folder, and the bytes of memory that one holder may fill before it spills to the folder. Clones
/// share the counters of what was spilled.
#[derive(Clone)]
pub struct SpillBudget {
    disk: Arc<dyn Disk>,
    folder: Arc<Path>,
    budget: Option<usize>,
    spilled: Arc<SpillCounters>,
}

#[derive(Debug, Default)]
struct SpillCounters {
    bytes: AtomicU64,
    files: AtomicU64,
}

/// Counts of what was spilled to a [`SpillBudget`] and its clones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spilled {
    /// Bytes as they were written: with checksums, and again each time that runs were merged to runs.
    pub bytes: u64,
    /// Number of files, one for each holder that spilled.
    pub files: u64,
}

impl SpillBudget {
    /// Makes a budget that spills to a folder. `budget`: in bytes; with `None` memory is unlimited, and what
    /// has a budget never uses the folder.
    pub fn new(folder: &Path, budget: Option<usize>) -> Self {
        SpillBudget::on(Arc::new(folder.to_path_buf()), folder, budget)
    }

    /// Makes an unlimited budget, which never spills.
    pub fn unused() -> Self {
        SpillBudget::new(&std::env::temp_dir(), None)
    }

    pub(crate) fn on(disk: Arc<dyn Disk>, folder: &Path, budget: Option<usize>) -> Self {
        SpillBudget { disk, folder: folder.into(), budget, spilled: Arc::default() }
    }

    /// Returns the budget of each of `holders` that hold records at the same time: an equal part of this one.
    pub fn shared_by(&self, holders: usize) -> Self {
        SpillBudget { budget: self.budget.map(|bytes| bytes / holders), ..self.clone() }
    }

    /// Returns this budget reduced by `bytes`, which something else holds.
    pub fn without(&self, bytes: usize) -> Self {
        SpillBudget { budget: self.budget.map(|budget| budget.saturating_sub(bytes)), ..self.clone() }
    }

    /// Returns this budget, limited to `bytes`.
    pub fn at_most(&self, bytes: usize) -> Self {
        SpillBudget { budget: Some(self.budget.map_or(bytes, |budget| budget.min(bytes))), ..self.clone() }
    }

    /// Returns the budget in bytes.
    pub fn budget(&self) -> Option<usize> {
        self.budget
    }

    /// Returns what was spilled so far.
    pub fn spilled(&self) -> Spilled {
        Spilled {
            bytes: self.spilled.bytes.load(Ordering::Relaxed),
            files: self.spilled.files.load(Ordering::Relaxed),
        }
    }

    /// Makes a new spill file.
    pub(crate) fn frames(&self) -> Result<FrameFile, Error> {
        let file = self.disk.create().map_err(|cause| failed(&self.folder, 0, cause))?;
        self.spilled.files.fetch_add(1, Ordering::Relaxed);
        Ok(FrameFile { file, spill: self.clone(), end: 0, frame: Vec::new() })
    }
}

/// Disk that files are made on. Implemented by a folder, and in tests by a disk that is full or forgets.
pub(crate) trait Disk: Send + Sync {
    fn create(&self) -> io::Result<Box<dyn Spill>>;
}

/// Spill file. Implemented by a file, and in tests by memory.
pub(crate) trait Spill: Send + Sync {
    fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;
}

impl Disk for PathBuf {
    fn create(&self) -> io::Result<Box<dyn Spill>> {
        Ok(Box::new(tempfile::tempfile_in(self)?))
    }
}

impl Spill for File {
    fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, offset)
    }

    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, bytes, offset)
    }
}

/// Length that a frame should have, in bytes. A frame is read at once.
pub(crate) const FRAME_BYTES: usize = 64 << 10;
/// Length of the checksum and the length of a frame, which come before its payload, in bytes.
pub(super) const HEAD_BYTES: usize = 16;

/// A file of frames of bytes. The checksum of a frame is seeded with its offset, so a frame in another place
/// is not taken for it. Holds one frame in memory.
pub(crate) struct FrameFile {
    file: Box<dyn Spill>,
    spill: SpillBudget,
    end: u64,
    frame: Vec<u8>,
}

impl FrameFile {
    /// Returns the offset at which the next frame will begin.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Appends a frame of `bytes` bytes, which `fill` writes. `whole`: the number of bytes that are being
    /// spilled with this frame as a part of them, which the error of a full disk names.
    pub fn append(&mut self, bytes: usize, whole: usize, fill: impl FnOnce(&mut [u8])) -> Result<(), Error> {
        self.frame.resize(HEAD_BYTES + bytes, 0);
        let (head, payload) = self.frame.split_at_mut(HEAD_BYTES);
        fill(payload);
        head[..8].copy_from_slice(&xxh3_64_with_seed(payload, self.end).to_le_bytes());
        head[8..].copy_from_slice(&(bytes as u64).to_le_bytes());
        let written = self.file.write_all_at(&self.frame, self.end);
        written.map_err(|cause| failed(&self.spill.folder, whole, cause))?;
        self.end += self.frame.len() as u64;
        self.spill.spilled.bytes.fetch_add(self.frame.len() as u64, Ordering::Relaxed);
        self.frame.truncate(FRAME_BYTES);
        self.frame.shrink_to(2 * FRAME_BYTES);
        Ok(())
    }

    /// Reads the frame at `offset` into `payload`. Returns the offset of the next frame.
    pub fn read(&self, offset: u64, payload: &mut Vec<u8>) -> Result<u64, Error> {
        let lost = |cause| Error::SpillLost {
            folder: self.spill.folder.to_path_buf(),
            offset,
            cause: Arc::new(cause),
        };
        let damaged = || lost(io::Error::new(io::ErrorKind::InvalidData, "its checksum does not match"));
        let mut head = [0; HEAD_BYTES];
        self.file.read_exact_at(&mut head, offset).map_err(lost)?;
        let [checksum, bytes] = [&head[..8], &head[8..]].map(<u64 as Record>::read);
        let start = offset + HEAD_BYTES as u64;
        let next = start.checked_add(bytes).filter(|&next| next <= self.end).ok_or_else(damaged)?;
        payload.resize(bytes as usize, 0);
        self.file.read_exact_at(payload, start).map_err(lost)?;
        if xxh3_64_with_seed(payload, offset) == checksum { Ok(next) } else { Err(damaged()) }
    }
}

fn failed(folder: &Path, bytes: usize, cause: io::Error) -> Error {
    let folder = folder.to_path_buf();
    match cause.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            Error::DiskFull { folder, bytes }
        }
        _ => Error::Spill { folder, cause: Arc::new(cause) },
    }
}

#[cfg(test)]
pub(crate) mod twins {
    //! Disks that fail, for tests.

    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// A disk in memory.
    #[derive(Clone)]
    pub struct Twin {
        /// Number of bytes that are left on the disk, for all files.
        pub room: Arc<AtomicUsize>,
        /// Offset of the byte of each file that changes when it is written.
        pub damaged: Option<usize>,
        /// Offset at which each file ends when it is read.
        pub cut: usize,
        /// Number of bytes that were read from all files.
        pub read: Arc<AtomicUsize>,
    }

    impl Default for Twin {
        fn default() -> Self {
            Twin {
                room: Arc::new(AtomicUsize::new(usize::MAX)),
                damaged: None,
                cut: usize::MAX,
                read: Arc::default(),
            }
        }
    }

    impl Twin {
        pub fn full_after(bytes: usize) -> Self {
            Twin { room: Arc::new(AtomicUsize::new(bytes)), ..Twin::default() }
        }

        pub fn budget(self, budget: impl Into<Option<usize>>) -> SpillBudget {
            SpillBudget::on(Arc::new(self), Path::new("/twin"), budget.into())
        }
    }

    impl Disk for Twin {
        fn create(&self) -> io::Result<Box<dyn Spill>> {
            Ok(Box::new((self.clone(), Vec::new())))
        }
    }

    impl Spill for (Twin, Vec<u8>) {
        fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
            let (twin, file) = self;
            assert_eq!(offset, file.len() as u64);
            let taken = |room: usize| room.checked_sub(bytes.len());
            let room = twin.room.fetch_update(Ordering::SeqCst, Ordering::SeqCst, taken);
            room.map_err(|_| io::ErrorKind::StorageFull)?;
            file.extend_from_slice(bytes);
            if let Some(byte) =
                twin.damaged.and_then(|at| file[offset as usize..].get_mut(at.checked_sub(offset as usize)?))
            {
                *byte ^= 4;
            }
            Ok(())
        }

        fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
            let (twin, file) = self;
            twin.read.fetch_add(bytes.len(), Ordering::Relaxed);
            let file = &file[..file.len().min(twin.cut)];
            let from = file.get(offset as usize..).and_then(|rest| rest.get(..bytes.len()));
            bytes.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let spill = SpillBudget::new(folder.path(), Some(0));
        let mut frames = spill.clone().frames().unwrap();
        frames.append(3, 3, |bytes| bytes.copy_from_slice(b"abc")).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(spill.spilled(), Spilled { bytes: 19, files: 1 });
        let mut payload = Vec::new();
        assert_eq!(frames.read(0, &mut payload).unwrap(), frames.end());
        assert_eq!(payload, b"abc");
    }

    #[test]
    fn a_folder_that_cannot_be_written_to_is_named() {
        let error = SpillBudget::new(Path::new("/no/such"), Some(0)).frames().map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), "could not spill to \"/no/such\"");
    }

    #[test]
    fn a_full_disk_is_named_with_what_had_to_be_written() {
        let full = |bytes| failed(Path::new("/tmp"), bytes, io::ErrorKind::StorageFull.into()).to_string();
        assert_eq!(full(64 << 20), "the disk of \"/tmp\" is full: could not spill 64 MiB");
        assert_eq!(full(1025), "the disk of \"/tmp\" is full: could not spill 2 KiB");
    }

    #[test]
    fn a_frame_in_another_place_is_not_taken_for_the_one_that_was_there() {
        let mut frames = twins::Twin::default().budget(0).frames().unwrap();
        for text in [b"abc", b"def"] {
            frames.append(3, 3, |bytes| bytes.copy_from_slice(text)).unwrap();
        }
        let second = frames.read(0, &mut Vec::new()).unwrap();
        let mut bytes = vec![0; 38];
        frames.file.read_exact_at(&mut bytes, 0).unwrap();
        bytes.copy_within(second as usize.., 0);
        let mut swapped = twins::Twin::default().budget(0).frames().unwrap();
        swapped.file.write_all_at(&bytes, 0).unwrap();
        swapped.end = 38;
        assert!(swapped.read(0, &mut Vec::new()).is_err());
        assert!(swapped.read(second, &mut Vec::new()).is_ok());
    }
}
