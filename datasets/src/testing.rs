//! Files in memory for unit tests, and checks of the properties that every format has.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use cluster::Blob;
use operators::{DocBatch, Priority, SpillBudget};
use parking_lot::Mutex;

use crate::text::compression::{Compression, Encoder};
use crate::{Cuts, Error, Fate, Format, PartOutput, Parts, Piece, Reading, SharedFile};

#[path = "../../tests/random.rs"]
mod random;
pub(crate) use random::Random;

/// A file that is read in small steps, so that records lie across them.
pub(crate) struct MemoryBlob {
    path: String,
    bytes: Vec<u8>,
    read_ahead_bytes: usize,
}

impl MemoryBlob {
    pub fn shared(path: &str, bytes: &[u8], read_ahead_bytes: usize) -> Arc<dyn Blob> {
        Arc::new(MemoryBlob { path: path.to_owned(), bytes: bytes.to_vec(), read_ahead_bytes })
    }
}

impl Blob for MemoryBlob {
    fn path(&self) -> &str {
        &self.path
    }

    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, cluster::Error> {
        let rest = &self.bytes[self.bytes.len().min(offset as usize)..];
        // Stores may return fewer bytes than requested.
        let read = rest.len().min(buffer.len()).min(self.read_ahead_bytes.max(1000));
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn read_ahead_bytes(&self) -> usize {
        self.read_ahead_bytes
    }
}

type Files = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// Output files by `folder/name`. Parts are `folder/0.ext`, `folder/1.ext` and so on, in order of creation.
#[derive(Default)]
pub(crate) struct MemoryParts {
    files: Files,
    parts: Mutex<BTreeMap<String, usize>>,
    takes_rejected: bool,
}

impl MemoryParts {
    /// Returns parts that take rejected records, too.
    pub fn with_rejected() -> Self {
        MemoryParts { takes_rejected: true, ..MemoryParts::default() }
    }

    pub fn names(&self) -> Vec<String> {
        self.files.lock().keys().cloned().collect()
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        self.files.lock().get(name).cloned().unwrap_or_default()
    }

    /// Returns all files.
    pub fn take(self) -> BTreeMap<String, Vec<u8>> {
        std::mem::take(&mut self.files.lock())
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }
}

impl Parts for MemoryParts {
    fn part(&self, folder: &str, extension: &str) -> Result<Box<dyn PartOutput>, Error> {
        let mut parts = self.parts.lock();
        let next = parts.entry(format!("{folder}{extension}")).or_default();
        let name = format!("{next}{extension}");
        *next += 1;
        self.named(folder, &name)
    }

    fn named(&self, folder: &str, name: &str) -> Result<Box<dyn PartOutput>, Error> {
        let name = format!("{folder}/{name}");
        Ok(Box::new(MemoryOutput { files: self.files.clone(), name, bytes: Vec::new() }))
    }

    fn takes_rejected(&self) -> bool {
        self.takes_rejected
    }
}

struct MemoryOutput {
    files: Files,
    name: String,
    bytes: Vec<u8>,
}

impl Write for MemoryOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl PartOutput for MemoryOutput {
    fn finish(self: Box<Self>, _records: u64) -> Result<(), cluster::Error> {
        let replaced = self.files.lock().insert(self.name, self.bytes);
        assert!(replaced.is_none(), "a file was written twice");
        Ok(())
    }
}

/// One record as it was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    Doc { id: String, text: String },
    Reject { offset: u64, reason: String },
}

/// Returns the record of a document.
pub(crate) fn doc(id: &str, text: &str) -> Record {
    Record::Doc { id: id.to_owned(), text: text.to_owned() }
}

/// Cuts a file at the given offsets, which are in order. Leaves out empty pieces, except that of an empty
/// file.
pub(crate) fn pieces(blob: &Arc<dyn Blob>, cuts: &[u64]) -> Vec<Piece> {
    let whole = Piece::whole(blob.clone(), blob.path().trim_start_matches('/').to_owned());
    cut(&whole, cuts, blob.bytes())
}

/// Cuts the decompressed contents of a file at the given offsets.
pub(crate) fn pieces_of_contents(blob: &Arc<dyn Blob>, cuts: &[u64]) -> Vec<Piece> {
    let name = blob.path().trim_start_matches('/').to_owned();
    let shared = Arc::new(SharedFile::decompressed(&SpillBudget::unused()));
    cut(&Piece { shared, ..Piece::whole(blob.clone(), name) }, cuts, u64::MAX)
}

fn cut(whole: &Piece, cuts: &[u64], end: u64) -> Vec<Piece> {
    let mut bounds = vec![0];
    bounds.extend_from_slice(cuts);
    bounds.push(end);
    bounds.dedup();
    bounds.resize(bounds.len().max(2), 0);
    bounds.windows(2).map(|bounds| Piece { start: bounds[0], end: bounds[1], ..whole.clone() }).collect()
}

/// Returns every record of the pieces in order, and the error that ended a piece, if any.
pub(crate) fn read(format: &dyn Format, pieces: &[Piece], reading: &Reading) -> (Vec<Record>, Option<Error>) {
    let mut records = Vec::new();
    let mut failed = None;
    for piece in pieces {
        let mut reader = format.open(piece, reading).unwrap();
        let mut more = true;
        while more {
            let mut batch = DocBatch::new(0, 0);
            more = reader.fill(&mut batch).unwrap_or_else(|error| {
                failed = Some(error);
                false
            });
            let mut slots: BTreeMap<u64, Record> = BTreeMap::new();
            for doc in batch.docs() {
                let record = Record::Doc { id: doc.id.to_owned(), text: doc.text.to_owned() };
                slots.insert(doc.doc.record(), record);
            }
            for reject in batch.take_rejects() {
                let record = Record::Reject { offset: reject.offset, reason: reject.reason };
                slots.insert(reject.doc.record(), record);
            }
            assert_eq!(slots.len() as u64, batch.next_record());
            records.extend(slots.into_values());
        }
    }
    (records, failed)
}

/// Reads a file that is one piece.
pub(crate) fn read_file(format: &dyn Format, path: &str, bytes: &[u8], reading: &Reading) -> Vec<Record> {
    read(format, &pieces(&MemoryBlob::shared(path, bytes, 9), &[]), reading).0
}

/// Returns for each record of a file its priority by a field, or the reason why it is rejected.
pub(crate) fn priorities(
    format: &dyn Format,
    blob: Arc<dyn Blob>,
    field: &str,
) -> Result<Vec<Result<Priority, String>>, Error> {
    let reading = Reading { priority: Some(field.to_owned()), ..Reading::default() };
    let mut batch = DocBatch::new(0, 0);
    format.open(&Piece::whole(blob, String::new()), &reading)?.fill(&mut batch)?;
    let rejects = batch.take_rejects().into_iter().map(|reject| (reject.doc, Err(reject.reason)));
    let docs = batch.docs().map(|doc| (doc.doc, Ok(doc.priority)));
    Ok(docs.chain(rejects).collect::<BTreeMap<_, _>>().into_values().collect())
}

/// Divides the pieces by the fates of `records`. `fate` decides those of documents.
pub(crate) fn divide(
    format: &dyn Format,
    pieces: &[Piece],
    records: &[Record],
    fate: impl Fn(&str) -> Fate,
) -> (MemoryParts, Option<Error>) {
    let parts = MemoryParts::default();
    let mut fates = records.iter().map(|record| match record {
        Record::Doc { id, .. } => fate(id),
        Record::Reject { .. } => Fate::Rejected,
    });
    let mut writer = format.writer(&parts, &Reading::default());
    let mut failed = None;
    for piece in pieces {
        failed = writer.divide(piece, &mut fates).err().or(failed);
    }
    assert!(fates.next().is_none(), "the writer saw fewer records than the reader");
    writer.finish().unwrap();
    (parts, failed)
}

/// Checks that the file gives the same records, and the same kept ones byte for byte, however it is cut: into
/// 1, 2, 3, 7 and 64 pieces, and into two at every byte. Returns the records.
pub(crate) fn check_splits(format: &dyn Format, path: &str, bytes: &[u8], kept: &[u8]) -> Vec<Record> {
    let reading = Reading::default();
    let blob = MemoryBlob::shared(path, bytes, 7);
    let length = bytes.len() as u64;
    let even = [1, 2, 3, 7, 64].map(|n| (1..n).map(|i| length * i / n).collect::<Vec<u64>>());
    let every = (0..=length).map(|cut| vec![cut]);
    let (expected, failed) = read(format, &pieces(&blob, &[]), &reading);
    assert!(failed.is_none(), "{failed:?}");
    for cuts in even.into_iter().chain(every) {
        let pieces = pieces(&blob, &cuts);
        let (records, failed) = read(format, &pieces, &reading);
        assert!(failed.is_none(), "{failed:?}");
        assert_eq!(records, expected, "cut at {cuts:?}");
        let (parts, failed) = divide(format, &pieces, &records, |_| Fate::Kept);
        assert!(failed.is_none(), "{failed:?}");
        let copied: Vec<u8> = parts.names().iter().flat_map(|name| parts.bytes(name)).collect();
        assert_eq!(copied, kept, "cut at {cuts:?}");
    }
    for compression in [Compression::None, Compression::Gzip, Compression::Zstd, Compression::Bzip2] {
        check_contents(format, &format!("{path}{}", compression.suffix()), compression, bytes, kept);
    }
    expected
}

/// Checks that the file, compressed so, gives the same records and the same kept ones however its contents are
/// cut, if they may be.
fn check_contents(format: &dyn Format, path: &str, compression: Compression, bytes: &[u8], kept: &[u8]) {
    if format.cuts(path) != Cuts::Contents {
        return;
    }
    let parts = MemoryParts::default();
    let mut encoder = Encoder::new(compression, parts.named("", "file").unwrap()).unwrap();
    encoder.write(bytes).unwrap();
    encoder.into_output().unwrap().finish(0).unwrap();
    let file = parts.bytes(&parts.names()[0]);
    let reading = Reading::default();
    let length = bytes.len() as u64;
    let blob = MemoryBlob::shared(path, &file, 7);
    let (expected, _) = read(format, &pieces(&blob, &[]), &reading);
    let cuts = (1..=40).map(|at| vec![length * at / 40]).chain([(0..length).step_by(5).collect()]);
    for cuts in cuts.chain([vec![0, length, length + 7]]) {
        let pieces = pieces_of_contents(&blob, &cuts);
        let (records, failed) = read(format, &pieces, &reading);
        assert!(failed.is_none(), "{failed:?}");
        assert_eq!(records, expected, "{path} cut at {cuts:?}");
        let (parts, failed) = divide(format, &pieces, &records, |_| Fate::Kept);
        assert!(failed.is_none(), "{failed:?}");
        let mut copied = Vec::new();
        for name in parts.names() {
            let part = io::Cursor::new(parts.bytes(&name));
            compression
                .decode(part, Reading::default().window_log())
                .unwrap()
                .read_to_end(&mut copied)
                .unwrap();
        }
        assert!(copied == kept, "{path} cut at {cuts:?}");
    }
}

/// Checks that damage of a compressed file is one failure, and costs the same records, however its contents of
/// `length` bytes are cut.
pub(crate) fn check_damaged_contents(format: &dyn Format, path: &str, file: &[u8], length: u64) {
    for (mutant, damage) in mutants(file, 60).filter(|(mutant, _)| mutant.len() > 8) {
        let blob = MemoryBlob::shared(path, &mutant, 1000);
        let (whole, failures) = read_as_jobs_do(format, &pieces_of_contents(&blob, &[]));
        let (_, failed) = read(format, &pieces(&blob, &[]), &Reading::default());
        assert_eq!(failures, usize::from(failed.is_some()), "{path}, {damage:?}");
        for count in [2, 7, 40] {
            let cuts: Vec<u64> = (1..count).map(|piece| length * piece / count).collect();
            let (records, failures_of_pieces) = read_as_jobs_do(format, &pieces_of_contents(&blob, &cuts));
            assert!(records == whole, "{path}, {damage:?}, {count} pieces");
            assert_eq!(failures_of_pieces, failures, "{path}, {damage:?}, {count} pieces");
        }
    }
}

/// Returns every record of the pieces, and the number of failures that jobs report: a piece that cannot be
/// opened is one only if it is the first.
fn read_as_jobs_do(format: &dyn Format, pieces: &[Piece]) -> (Vec<Record>, usize) {
    let mut records = Vec::new();
    let mut failures = 0;
    for piece in pieces {
        match format.open(piece, &Reading::default()) {
            Ok(_) => {
                let (more, failed) = read(format, std::slice::from_ref(piece), &Reading::default());
                records.extend(more);
                failures += usize::from(failed.is_some());
            }
            Err(error) => {
                assert!(error.is_data(), "{error}");
                failures += usize::from(piece.start == 0);
            }
        }
    }
    (records, failures)
}

/// Returns `count` damaged copies of a valid file, the same in every run: one byte is changed, or the file is
/// cut.
///
/// Each copy comes with the range of damaged bytes. A cut damages everything behind it.
pub(crate) fn mutants(bytes: &[u8], count: usize) -> impl Iterator<Item = (Vec<u8>, Range<usize>)> {
    let mut random = Random(20);
    (0..count).map(move |number| {
        let mut mutant = bytes.to_vec();
        let at = random.below(bytes.len());
        if number % 8 == 0 {
            mutant.truncate(at);
            (mutant, at..bytes.len())
        } else {
            mutant[at] ^= 1 + random.below(255) as u8;
            (mutant, at..at + 1)
        }
    })
}

/// Returns a file of the shared test data. Without that data, prints a line and returns `None`.
pub(crate) fn corpus_file(name: &str) -> Option<Vec<u8>> {
    let Some(folder) = std::env::var_os("DEDUP_TEST_DATA") else {
        eprintln!("skipped: DEDUP_TEST_DATA is not set, so \"{name}\" was not read");
        return None;
    };
    Some(std::fs::read(std::path::Path::new(&folder).join(name)).unwrap())
}

/// Returns every file in the subfolders of a folder of the shared test data, with its path.
pub(crate) fn corpus_files(name: &str) -> Option<Vec<(String, Vec<u8>)>> {
    let Some(folder) = std::env::var_os("DEDUP_TEST_DATA") else {
        eprintln!("skipped: DEDUP_TEST_DATA is not set, so \"{name}\" was not read");
        return None;
    };
    let mut files = Vec::new();
    for category in std::fs::read_dir(std::path::Path::new(&folder).join(name)).unwrap() {
        for file in std::fs::read_dir(category.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            files.push((path.to_str().unwrap().to_owned(), std::fs::read(&path).unwrap()));
        }
    }
    Some(files)
}
