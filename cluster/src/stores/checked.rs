//! Verified reads: what a job reads again is compared with what it read before.
//!
//! A job reads its input several times, and the records that it writes must be those that it compared. So each
//! reading is compared with the one before, in this process or in one that resumes its work. A local file may
//! be overwritten meanwhile, and its length and times set back. A remote file crosses software that is not
//! ours, where a fault can give wrong bytes without an error. For example, no checksum of HDFS covers a
//! packet header, and a damaged one shifts what is read.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::error::Error;
use super::remote::Backoff;
use super::store::{Blob, Store};
use super::sums::{CELL_BYTES, Noted, Sums};

/// Number of cells at the ends of ranges that an open file keeps for the neighbouring range; 512 KiB in all.
const KEPT_CELLS: usize = 8;
/// Number of times a cell is read before its bytes count as changed.
const ATTEMPTS: u32 = 4;

/// A file whose bytes are compared, at every read, with those read there before.
///
/// The file is read in whole cells. When a cell differs, a newly opened blob reads it again, because this
/// reading may be the faulty one. A cell that keeps differing is an error.
pub(crate) struct Checked {
    store: Arc<dyn Store>,
    /// Path for messages.
    path: String,
    /// Path for the store.
    file: String,
    bytes: u64,
    read_ahead_bytes: usize,
    blob: Mutex<Arc<dyn Blob>>,
    sums: Arc<Sums>,
    noted: Option<Arc<Noted>>,
    kept: Mutex<VecDeque<(u64, Arc<[u8]>)>>,
}

impl Checked {
    /// Opens a file. `shown`: its name for messages, if that is not its path. The cells that are read are added to `noted`.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Changed`] when the file does not have the length and the version that
    /// `sums` were made for.
    pub(crate) fn open(
        store: &Arc<dyn Store>,
        (path, shown): (&str, Option<&str>),
        sums: &Arc<Sums>,
        noted: Option<Arc<Noted>>,
    ) -> Result<Self, Error> {
        let blob = Self::open_as_planned(store, path, sums)?;
        Ok(Checked {
            store: Arc::clone(store),
            path: shown.unwrap_or(blob.path()).to_owned(),
            file: path.to_owned(),
            bytes: blob.bytes(),
            read_ahead_bytes: blob.read_ahead_bytes(),
            blob: Mutex::new(blob),
            sums: Arc::clone(sums),
            noted,
            kept: Mutex::default(),
        })
    }

    fn open_as_planned(store: &Arc<dyn Store>, path: &str, sums: &Sums) -> Result<Arc<dyn Blob>, Error> {
        let blob = store.open(path)?;
        let changed = |reason: String| Error::Changed { path: blob.path().to_owned(), reason };
        if blob.bytes() != sums.bytes {
            return Err(changed(format!("it had {} bytes and has {}", sums.bytes, blob.bytes())));
        }
        if !blob.version()?.agrees(&sums.version) {
            return Err(changed("it was written anew or replaced".to_owned()));
        }
        Ok(blob)
    }

    fn changed(&self, reason: String) -> Error {
        Error::Changed { path: self.path.clone(), reason }
    }

    fn fetch(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let blob = Arc::clone(&self.blob.lock());
        match blob.read_full_at(offset, buffer)? == buffer.len() {
            true => Ok(()),
            false => Err(self.changed("it is shorter than it was".to_owned())),
        }
    }

    /// Reads whole cells. `buffer` must end at the end of a cell or of the file.
    fn read_cells(&self, first: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.fetch(first * CELL_BYTES as u64, buffer)?;
        for (index, cell) in (first..).zip(buffer.chunks_mut(CELL_BYTES)) {
            let offset = index * CELL_BYTES as u64;
            let mut backoff = Backoff::new(ATTEMPTS);
            while !self.sums.agree(index, cell) {
                let reason = format!("its bytes from {offset} on differ from those read before");
                // This reading may be the faulty one.
                let passing = Error::io(&self.path, "read", io::Error::other("it differs"));
                backoff.wait_after(passing).map_err(|_| self.changed(reason))?;
                let blob = Self::open_as_planned(&self.store, &self.file, &self.sums)?;
                *self.blob.lock() = blob;
                self.fetch(offset, cell)?;
            }
        }
        if let Some(Noted(cells)) = self.noted.as_deref() {
            let count = buffer.len().div_ceil(CELL_BYTES) as u64;
            cells.lock().extend(first..first + count);
        }
        Ok(())
    }

    fn cell(&self, index: u64, bytes: usize) -> Result<Arc<[u8]>, Error> {
        let kept = |cells: &VecDeque<(u64, Arc<[u8]>)>| {
            cells.iter().find(|(at, _)| *at == index).map(|(_, cell)| Arc::clone(cell))
        };
        if let Some(cell) = kept(&self.kept.lock()) {
            return Ok(cell);
        }
        let mut cell = vec![0; bytes];
        self.read_cells(index, &mut cell)?;
        let cell: Arc<[u8]> = cell.into();
        let mut cells = self.kept.lock();
        cells.truncate(KEPT_CELLS - 1);
        cells.push_front((index, Arc::clone(&cell)));
        Ok(cell)
    }
}

impl Blob for Checked {
    fn path(&self) -> &str {
        &self.path
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Ends at the end of a cell where possible, so that a sequential reader requests whole cells.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let left = self.bytes.saturating_sub(offset);
        let wanted = left.min(buffer.len() as u64) as usize;
        if wanted == 0 {
            return Ok(0);
        }
        let index = offset / CELL_BYTES as u64;
        let skip = offset as usize % CELL_BYTES;
        let cell_bytes = CELL_BYTES.min(left as usize + skip);
        if skip == 0 && wanted >= cell_bytes {
            let most = wanted.min(self.read_ahead_bytes.max(CELL_BYTES));
            let whole = if most as u64 == left { most } else { most - most % CELL_BYTES };
            self.read_cells(index, &mut buffer[..whole])?;
            return Ok(whole);
        }
        let cell = self.cell(index, cell_bytes)?;
        let part = &cell[skip..(skip + wanted).min(cell_bytes)];
        buffer[..part.len()].copy_from_slice(part);
        Ok(part.len())
    }

    fn read_ahead_bytes(&self) -> usize {
        self.read_ahead_bytes
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::store::{BlobReader, Entry, Output, Showing, Version};
    use super::*;

    /// A file in memory that returns wrong bytes for some readings.
    #[derive(Default)]
    struct Liar {
        bytes: Vec<u8>,
        /// Each `(reading, offset)` makes that reading of the byte at `offset` wrong. Readings are counted
        /// from 0.
        lies: Vec<(usize, u64)>,
        version: Version,
        /// Number of readings of each cell.
        readings: Mutex<std::collections::BTreeMap<u64, usize>>,
        opened: AtomicUsize,
    }

    struct LiarBlob(Arc<Liar>);

    impl Blob for LiarBlob {
        fn path(&self) -> &str {
            "liar:/x"
        }

        fn bytes(&self) -> u64 {
            self.0.bytes.len() as u64
        }

        fn version(&self) -> Result<Version, Error> {
            Ok(self.0.version)
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
            assert_eq!(offset as usize % CELL_BYTES, 0, "not on the grid");
            let end = offset + buffer.len() as u64;
            assert!((end as usize).is_multiple_of(CELL_BYTES) || end == self.bytes(), "not on the grid");
            buffer.copy_from_slice(&self.0.bytes[offset as usize..end as usize]);
            let mut readings = self.0.readings.lock();
            for (i, cell) in buffer.chunks_mut(CELL_BYTES).enumerate() {
                let cell_offset = offset + (i * CELL_BYTES) as u64;
                let reading = readings.entry(cell_offset).or_default();
                for (_, lie) in self.0.lies.iter().filter(|(at, _)| at == reading) {
                    let at = lie.wrapping_sub(cell_offset) as usize;
                    cell.get_mut(at).into_iter().for_each(|byte| *byte ^= 1);
                }
                *reading += 1;
            }
            Ok(buffer.len())
        }

        fn read_ahead_bytes(&self) -> usize {
            1 << 20
        }
    }

    struct LiarStore(Arc<Liar>);

    impl Store for LiarStore {
        fn prefix(&self) -> &str {
            "liar:"
        }

        fn open(&self, _path: &str) -> Result<Arc<dyn Blob>, Error> {
            self.0.opened.fetch_add(1, Ordering::Relaxed);
            Ok(Arc::new(LiarBlob(Arc::clone(&self.0))))
        }

        fn children_and_hidden(&self, _path: &str, _hidden: &mut Vec<String>) -> Result<Vec<Entry>, Error> {
            unreachable!()
        }

        fn create(&self, _path: &str) -> Result<Box<dyn Output>, Error> {
            unreachable!()
        }

        fn create_new(&self, _path: &str, _contents: &[u8]) -> Result<bool, Error> {
            unreachable!()
        }

        fn create_dir(&self, _path: &str) -> Result<(), Error> {
            unreachable!()
        }

        fn exists(&self, _path: &str) -> Result<bool, Error> {
            unreachable!()
        }

        fn remove(&self, _path: &str) -> Result<(), Error> {
            unreachable!()
        }

        fn everything(&self, _path: &str) -> Result<Vec<Entry>, Error> {
            unreachable!()
        }

        fn showing(&self) -> Showing<'_> {
            unreachable!()
        }
    }

    fn sums(bytes: usize) -> Sums {
        Sums::new(bytes as u64, Version::default())
    }

    /// Returns bytes that differ from place to place.
    fn content(bytes: usize) -> Vec<u8> {
        (0..bytes as u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
    }

    /// Reads the file from `start` to its end, once for each result, each time newly opened.
    fn read<const N: usize>(liar: &Arc<Liar>, start: u64) -> [Result<Vec<u8>, String>; N] {
        let store: Arc<dyn Store> = Arc::new(LiarStore(Arc::clone(liar)));
        let sums = Arc::new(sums(liar.bytes.len()));
        std::array::from_fn(|_| {
            let mut bytes = Vec::new();
            let blob = Arc::new(Checked::open(&store, ("/x", None), &sums, None).unwrap());
            let read = BlobReader::new(blob, start, u64::MAX).read_to_end(&mut bytes);
            read.map(|_| bytes).map_err(|error| format!("{:?}", error.downcast::<Error>().unwrap()))
        })
    }

    #[test]
    fn any_range_has_the_bytes_of_the_file() {
        let liar = Arc::new(Liar { bytes: content(300_000), ..Liar::default() });
        let store: Arc<dyn Store> = Arc::new(LiarStore(Arc::clone(&liar)));
        let sums = Arc::new(sums(300_000));
        let blob = Checked::open(&store, ("/x", None), &sums, None).unwrap();
        let mut buffer = vec![0; 300_100];
        for start in [0, 1, 65_535, 65_536, 65_537, 131_072, 262_144, 299_999, 300_000, 300_001] {
            for length in [0, 1, 37_856, 65_535, 65_536, 65_537, 131_072, 200_000, 300_100] {
                let read = blob.read_full_at(start as u64, &mut buffer[..length]).unwrap();
                let expected = &liar.bytes[start.min(300_000)..(start + length).min(300_000)];
                assert!(buffer[..read] == *expected, "{length} at {start}");
            }
        }
        assert_eq!(blob.read_at(u64::MAX, &mut buffer).unwrap(), 0);
    }

    #[test]
    fn a_sequential_reader_reads_each_cell_once() {
        let liar = Arc::new(Liar { bytes: content(5 << 20), ..Liar::default() });
        let [read] = read(&liar, 100_000);
        assert!(read.unwrap() == liar.bytes[100_000..]);
        assert!(liar.readings.lock().values().all(|&readings| readings == 1));
        // Windows may end anywhere.
        let liar = Arc::new(Liar { bytes: content(5 << 20), ..Liar::default() });
        let store: Arc<dyn Store> = Arc::new(LiarStore(Arc::clone(&liar)));
        let blob = Checked::open(&store, ("/x", None), &Arc::new(sums(5 << 20)), None).unwrap();
        for start in (7..5_000_000).step_by(250_000) {
            blob.read_full_at(start, &mut vec![0; 250_000]).unwrap();
        }
        assert!(liar.readings.lock().values().all(|&readings| readings == 1));
    }

    #[test]
    fn a_later_reading_that_differs_is_made_again() {
        let lies = vec![(1, 0), (1, 70_000), (2, 70_001), (1, 299_999)];
        let liar = Arc::new(Liar { bytes: content(300_000), lies, ..Liar::default() });
        let [one, two, three] = read(&liar, 0);
        for read in [one, two, three] {
            assert!(read.unwrap() == liar.bytes);
        }
        assert!(liar.opened.load(Ordering::Relaxed) > 3, "it was not opened anew");
    }

    #[test]
    fn a_first_reading_that_was_wrong_ends_in_an_error_that_says_where() {
        let liar = Arc::new(Liar { bytes: content(300_000), lies: vec![(0, 140_000)], ..Liar::default() });
        let [one, two] = read(&liar, 0);
        assert!(one.unwrap() != liar.bytes);
        let error = two.unwrap_err();
        assert!(error.contains("from 131072 on differ") && error.contains("liar:/x"), "{error}");
    }

    #[test]
    fn a_file_of_another_length_is_an_error() {
        let store: Arc<dyn Store> = Arc::new(LiarStore(Arc::default()));
        let open = |sums| Checked::open(&store, ("/x", None), &Arc::new(sums), None).map(drop);
        assert!(matches!(open(sums(1)), Err(Error::Changed { .. })));
        open(sums(0)).unwrap();
    }

    #[test]
    fn a_file_of_another_version_is_an_error() {
        let version = |modified, tag| Version { modified, tag };
        let liar = Arc::new(Liar { version: version(Some(7), Some(8)), ..Liar::default() });
        let store: Arc<dyn Store> = Arc::new(LiarStore(liar));
        let open =
            |version| Checked::open(&store, ("/x", None), &Arc::new(Sums::new(0, version)), None).is_ok();
        assert!(open(version(Some(7), Some(8))) && open(version(Some(6), Some(8))));
        assert!(open(version(Some(7), None)) && open(version(None, None)));
        assert!(!open(version(Some(7), Some(9))) && !open(version(Some(6), None)));
    }

    #[test]
    fn what_a_dead_process_has_read_is_compared_with_what_is_read_now() {
        let bytes = content(300_000);
        let liar = Arc::new(Liar { bytes: bytes.clone(), ..Liar::default() });
        let store: Arc<dyn Store> = Arc::new(LiarStore(liar));
        let before = Arc::new(sums(300_000));
        let noted = Arc::new(Noted::default());
        let blob = Checked::open(&store, ("/x", None), &before, Some(Arc::clone(&noted))).unwrap();
        blob.read_full_at(70_000, &mut [0; 100_000]).unwrap();
        let kept = noted.take(&before);
        assert_eq!(kept.iter().map(|cell| cell.0).collect::<Vec<_>>(), [1, 2]);
        assert!(noted.take(&before).is_empty());

        let mut bytes = bytes;
        bytes[131_072] ^= 1;
        let store: Arc<dyn Store> = Arc::new(LiarStore(Arc::new(Liar { bytes, ..Liar::default() })));
        let now = Arc::new(sums(300_000));
        assert!(now.restore(&kept));
        let blob = Checked::open(&store, ("/x", None), &now, None).unwrap();
        blob.read_full_at(0, &mut [0; 131_072]).unwrap();
        assert!(matches!(blob.read_full_at(131_072, &mut [0; 10]), Err(Error::Changed { .. })));
        assert!(!sums(70_000).restore(&kept), "there is no third cell");
        let other = sums(300_000);
        assert!(other.restore(&[(1, 5)]) && !other.restore(&kept), "the first reading was another");
    }
}
