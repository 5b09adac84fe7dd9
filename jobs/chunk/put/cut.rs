//! Cuts files into chunks.

use std::io::{self, Read};
use std::ops::Range;

use anyhow::{Context, Result};
use blake3::Hasher;
use cluster::{BlobReader, Error};
use datasets::{DeflatePart, Extractors, UndoneFile};
use fastcdc::v2020::FastCDC;

use super::input::PutFile;
use crate::store::{ChunkId, SnapshotFile};

/// A file that is longer than this is not held in memory, and its streams are not undone.
pub(super) const LONG_FILE_BYTES: u64 = 16 << 20;
/// Number of bytes of a long file that are looked at together.
const WINDOW_BYTES: usize = 8 << 20;
/// Number of first bytes of a file that tell whether it is text.
const HEAD_BYTES: usize = 1 << 13;

/// The least, the mean and the greatest length of chunks.
#[derive(Clone, Copy)]
struct ChunkLengths(usize, usize, usize);

/// Lengths for text and for what streams hold. Shorter chunks save less than their names take (docs/design/chunk-store.md).
const OF_TEXT: ChunkLengths = ChunkLengths(1 << 10, 1 << 12, 1 << 15);
/// Lengths for everything else, such as images and films.
const OF_MEDIA: ChunkLengths = ChunkLengths(1 << 14, 1 << 16, 1 << 19);

/// A file that is cut into chunks.
pub(super) struct CutFile {
    pub bytes: u64,
    /// BLAKE3 hash of the file.
    pub hash: [u8; 32],
    /// Its parts, if its streams are undone.
    pub parts: Vec<DeflatePart>,
    /// The file, or what its streams hold, their corrections, and its other bytes.
    pub contents: Vec<u8>,
    pub chunks: Vec<CutChunk>,
}

/// A chunk of the contents of a file.
pub(super) struct CutChunk {
    pub id: ChunkId,
    pub range: Range<usize>,
}

/// Result of the look at a file.
pub(super) enum LookedAt {
    /// It is what it was in an earlier snapshot.
    Unchanged,
    Cut(CutFile),
    /// It is long, which it may have become since it was listed.
    Long,
    /// It cannot be read.
    Unread(Error),
}

/// Reads a file and cuts it, unless it is what it was `before`. If its streams can be undone, what each of them holds is cut
/// for itself.
///
/// # Errors
/// When no process can be started.
pub(super) fn cut_file(
    file: &PutFile,
    before: Option<&SnapshotFile>,
    extractors: &Extractors,
) -> Result<LookedAt> {
    if file.bytes > LONG_FILE_BYTES {
        let before = before.filter(|before| before.bytes == file.bytes);
        // An error of reading it is reported when it is cut.
        let is_unchanged = before.is_some_and(|before| hash_of(file).is_ok_and(|hash| hash == before.hash));
        return Ok(if is_unchanged { LookedAt::Unchanged } else { LookedAt::Long });
    }
    let contents = match read_file(file) {
        Ok(contents) => contents,
        Err(error) => return Ok(LookedAt::Unread(error)),
    };
    if contents.len() as u64 > LONG_FILE_BYTES {
        return Ok(LookedAt::Long);
    }
    let bytes = contents.len() as u64;
    let hash = *blake3::hash(&contents).as_bytes();
    if before.is_some_and(|before| before.hash == hash) {
        return Ok(LookedAt::Unchanged);
    }
    let undone = UndoneFile::of_foreign(&contents, extractors);
    let undone = undone.with_context(|| format!("could not undo the compression of \"{}\"", file.path))?;
    let mut chunks = Vec::new();
    let Some(undone) = undone else {
        let lengths = lengths_of(&contents);
        cut(&contents, 0, lengths, &mut chunks);
        return Ok(LookedAt::Cut(CutFile { bytes, hash, parts: Vec::new(), contents, chunks }));
    };
    let mut at = 0;
    for part in &undone.parts {
        let end = at + part.plain as usize;
        cut(&undone.plain[at..end], at, OF_TEXT, &mut chunks);
        at = end;
    }
    let UndoneFile { parts, plain: mut contents, corrections, raw } = undone;
    for rest in [corrections, raw] {
        cut(&rest, contents.len(), OF_TEXT, &mut chunks);
        contents.extend(rest);
    }
    Ok(LookedAt::Cut(CutFile { bytes, hash, parts, contents, chunks }))
}

/// Reads a file, and one byte more than a file may have that is held in memory.
fn read_file(file: &PutFile) -> Result<Vec<u8>, Error> {
    let mut contents = Vec::new();
    let blob = file.store.open(&file.path)?;
    let read = BlobReader::new(blob, 0, u64::MAX).take(LONG_FILE_BYTES + 1).read_to_end(&mut contents);
    read.map_err(|error| reading(file, error))?;
    Ok(contents)
}

/// Returns the hash of a file without holding it.
fn hash_of(file: &PutFile) -> Result<[u8; 32]> {
    let mut hasher = Hasher::new();
    hasher.update_reader(BlobReader::new(file.store.open(&file.path)?, 0, u64::MAX))?;
    Ok(*hasher.finalize().as_bytes())
}

/// Returns the error of a file that cannot be read to its end.
fn reading(file: &PutFile, error: io::Error) -> Error {
    Error::of(&file.path, "read", error)
}

/// Cuts a piece of the contents of a file that begins at `start`.
fn cut(piece: &[u8], start: usize, lengths: ChunkLengths, chunks: &mut Vec<CutChunk>) {
    for range in ranges(piece, lengths) {
        let id = ChunkId::of(&piece[range.clone()]);
        chunks.push(CutChunk { id, range: start + range.start..start + range.end });
    }
}

/// Cuts a file without holding it, and calls `each` with its chunks in order. Returns the error of a file that cannot be read.
///
/// # Errors
/// Those of `each`.
pub(super) fn cut_long_file(
    file: &PutFile,
    mut each: impl FnMut(ChunkId, &[u8]) -> Result<()>,
) -> Result<Option<Error>> {
    let blob = match file.store.open(&file.path) {
        Ok(blob) => blob,
        Err(error) => return Ok(Some(error)),
    };
    let mut reader = BlobReader::new(blob, 0, u64::MAX);
    let mut window = Vec::new();
    let mut lengths = None;
    loop {
        let read = reader.by_ref().take((WINDOW_BYTES - window.len()) as u64).read_to_end(&mut window);
        if let Err(error) = read {
            return Ok(Some(reading(file, error)));
        }
        let is_end = window.len() < WINDOW_BYTES;
        let lengths = *lengths.get_or_insert_with(|| lengths_of(&window));
        let mut done = 0;
        for range in ranges(&window, lengths) {
            // The last one would be longer if the window were.
            if !is_end && range.end == window.len() {
                break;
            }
            each(ChunkId::of(&window[range.clone()]), &window[range.clone()])?;
            done = range.end;
        }
        window.drain(..done);
        if is_end {
            return Ok(None);
        }
    }
}

/// Returns where the chunks of some bytes are. They lie behind each other.
///
/// Source: Xia et al., "FastCDC: a Fast and Efficient Content-Defined Chunking Approach for Data Deduplication", USENIX ATC
/// 2016, as the crate fastcdc has it.
fn ranges(bytes: &[u8], ChunkLengths(least, mean, most): ChunkLengths) -> impl Iterator<Item = Range<usize>> {
    FastCDC::new(bytes, least, mean, most).map(|chunk| chunk.offset..chunk.offset + chunk.length)
}

fn lengths_of(bytes: &[u8]) -> ChunkLengths {
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    // Text of every encoding but UTF-16 has no zero byte.
    if head.contains(&0) { OF_MEDIA } else { OF_TEXT }
}
