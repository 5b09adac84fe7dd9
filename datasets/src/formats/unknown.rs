//! Files of an unknown format.

use operators::DocBatch;

use crate::{Cuts, Error, Fate, Format, Parts, Piece, Reader, Reading, Writer};

/// Format of a file that no other format recognises, in an input where others are recognised. Such a file is
/// one reject. An empty file, such as a reducer with nothing to write leaves, is no record.
pub static UNKNOWN: Unknown = Unknown;

/// The type of [`UNKNOWN`], which `--format` cannot name.
pub struct Unknown;

impl Format for Unknown {
    fn name(&self) -> &'static str {
        "unknown"
    }

    fn recognises(&self, _path: &str, _head: &[u8]) -> bool {
        false
    }

    fn cuts(&self, _path: &str) -> Cuts {
        Cuts::Nowhere
    }

    fn open(&self, piece: &Piece, _reading: &Reading) -> Result<Box<dyn Reader>, Error> {
        refuse_contents(piece)?;
        Ok(Box::new(NoReader))
    }

    fn writer<'a>(&self, _parts: &'a dyn Parts, _reading: &Reading) -> Box<dyn Writer + 'a> {
        Box::new(NoWriter)
    }
}

/// A reader of an empty file.
struct NoReader;

impl Reader for NoReader {
    fn fill(&mut self, _batch: &mut DocBatch) -> Result<bool, Error> {
        Ok(false)
    }
}

/// A writer that refuses every piece but empty ones.
struct NoWriter;

impl Writer for NoWriter {
    fn divide(&mut self, piece: &Piece, _fates: &mut dyn Iterator<Item = Fate>) -> Result<(), Error> {
        refuse_contents(piece)
    }

    fn finish(self: Box<Self>) -> Result<(), Error> {
        Ok(())
    }
}

fn refuse_contents(piece: &Piece) -> Result<(), Error> {
    match piece.blob.bytes() {
        0 => Ok(()),
        _ => Err(Error::data(piece.blob.path(), 0, unknown_format(piece.blob.path()))),
    }
}

/// Endings of files that other programs make readable, and how.
const OTHERS: [(&str, &str); 18] = [
    (".xz", "compressed by xz, which is not read: decompress it by xz -d, or compress it by zstd"),
    (".lzma", "compressed by xz, which is not read: decompress it by xz -d, or compress it by zstd"),
    (".lz4", "compressed by lz4, which is not read: decompress it by lz4 -d, or compress it by zstd"),
    (
        ".snappy",
        "compressed by Snappy in Hadoop's frames, which are not read: hdfs dfs -text decompresses them",
    ),
    (".deflate", "compressed by Hadoop's deflate, which is not read: hdfs dfs -text decompresses it"),
    (".br", "compressed by Brotli, which is not read: decompress it by brotli -d"),
    (".zip", "a ZIP archive, which is not read: unpack it, and name the folder"),
    (".tar", "a tar archive, which is not read: unpack it, and name the folder"),
    (".tar.gz", "a tar archive, which is not read: unpack it, and name the folder"),
    (".tar.zst", "a tar archive, which is not read: unpack it, and name the folder"),
    (".tar.bz2", "a tar archive, which is not read: unpack it, and name the folder"),
    (".tgz", "a tar archive, which is not read: unpack it, and name the folder"),
    (".rar", "a RAR archive, which is not read: unpack it, and name the folder"),
    (".7z", "a 7z archive, which is not read: unpack it, and name the folder"),
    (".xlsx", "a spreadsheet, which is not read: save it as CSV"),
    (".xls", "a spreadsheet, which is not read: save it as CSV"),
    (".avro", "of Avro, which is not read: Spark writes it as Parquet"),
    (".orc", "of ORC, which is not read: Spark writes it as Parquet"),
];

/// Returns what a file is by its name, and what makes it readable, if it is of a format that is not read.
pub(super) fn advice(path: &str) -> Option<&'static str> {
    let lower = path.to_ascii_lowercase();
    OTHERS.iter().find(|(ending, _)| lower.ends_with(ending)).map(|(_, advice)| *advice)
}

/// Returns the reason why a file of an unknown format is not read, and what to do about it, by its name.
pub fn unknown_format(path: &str) -> &'static str {
    advice(path).unwrap_or("of no format known; name it with --format")
}
