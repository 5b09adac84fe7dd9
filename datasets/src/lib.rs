//! Corpus formats: bytes in, documents out, and the same records out again, sorted into kept and removed.
//!
//! Arrows: `datasets` uses `operators` for records and `cluster` for bytes; it knows no method and no dataflow.
//! A new format is one file here and one line in [`FORMATS`].

mod error;
mod formats;
mod pack;
mod parts;
mod synthetic;
#[cfg(test)]
mod testing;
mod text;

pub use error::Error;
pub use formats::office::{Bounds, EXTRACT, Extractors, serve};
pub use formats::sequence_file::Codec;
pub use formats::unknown::UNKNOWN;
pub use pack::{Container, Content, PackReader, PackWriter, Packed};
pub use synthetic::{Synthetic, SyntheticDoc};
pub use text::encoding::Encoding;
pub use text::line_reader::LineNumbers;

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;

use cluster::Blob;
use operators::DocBatch;
use serde::{Deserialize, Serialize};

/// Every format that can be read, in the order in which they are tried on a file.
pub static FORMATS: &[&dyn Format] = &[
    &formats::parquet::PARQUET,
    &formats::sequence_file::SEQUENCE_FILE,
    &formats::office::OFFICE,
    &formats::jsonl::JSONL,
    &formats::csv::WEIBO_CSV,
    &formats::csv::CSV,
    &formats::sogou::SOGOUCS,
    &formats::tancorp::TANCORP,
    &formats::plain_lines::LINES,
];

/// How records become documents: what a user may say about a corpus.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The field that holds the id, where the format has fields. `None`: `id` where there is one, else file and
    /// position.
    pub id: Option<String>,
    /// The field that holds the text. `None`: `text`.
    pub text: Option<String>,
    /// Of formats that do not fix it. `None`: recognised, file by file.
    pub encoding: Option<Encoding>,
    /// What becomes of a text with illegal bytes.
    pub bad_text: BadText,
    /// A record longer than this, in bytes as it is stored and once decompressed, is a reject and is never held.
    pub max_record_bytes: usize,
    /// What records lie in may take so much besides a longest record: a window of Zstandard, a block of a SequenceFile,
    /// the pages of Parquet. At least [`Reading::LEAST_BLOCK_BYTES`].
    pub block_bytes: usize,
    /// Who reads Word and PDF documents.
    pub extractors: Arc<Extractors>,
}

impl Default for Reading {
    fn default() -> Self {
        let bad_text = BadText::default();
        let extractors = Arc::default();
        let (max_record_bytes, block_bytes) = (Reading::MAX_RECORD_BYTES, Reading::BLOCK_BYTES);
        Reading { id: None, text: None, encoding: None, bad_text, max_record_bytes, block_bytes, extractors }
    }
}

/// What becomes of a text with bytes that its encoding does not allow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadText {
    /// Its record is rejected.
    #[default]
    Reject,
    /// Each illegal sequence is read as U+FFFD, and the record is [counted](operators::DocBatch::push_decoded);
    /// what is written is still the record's own bytes.
    Replace,
}

impl Reading {
    /// The longest record, unless the user says otherwise or memory is limited.
    pub const MAX_RECORD_BYTES: usize = 128 << 20;
    /// [`Reading::block_bytes`], unless memory is limited. It is the longest window that `zstd -d` takes.
    pub const BLOCK_BYTES: usize = 128 << 20;
    /// The least [`Reading::block_bytes`]: blocks of Hadoop and pages of Parquet have about 1 MB.
    pub const LEAST_BLOCK_BYTES: usize = 2 << 20;

    /// The longest window of Zstandard that fits, as the power of two that it is.
    pub(crate) fn window_log(&self) -> u32 {
        self.block_bytes.ilog2().min(Self::BLOCK_BYTES.ilog2())
    }

    /// The field that holds the id, and whether a record without it is an error.
    pub fn id(&self) -> (&str, bool) {
        self.id.as_deref().map_or(("id", false), |id| (id, true))
    }

    /// The field that holds the text.
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or("text")
    }
}

/// A range of bytes of one file: the unit that is read by one reader.
///
/// A record belongs to the piece in which it starts (by the format's own rule), so the pieces of a
/// file, whatever their number, give every record exactly once.
#[derive(Clone)]
pub struct Piece {
    /// The open file.
    pub blob: Arc<dyn Blob>,
    /// Where the file lies below the input that named it, such as `Art/0001.txt`.
    pub name: String,
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

/// What becomes of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// It survives.
    Kept,
    /// It has a near-duplicate that survives.
    Removed(Removal),
    /// It could not be read.
    Rejected,
}

/// Why a document was removed.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Removal {
    /// The removed document's id.
    pub id: String,
    /// The id of the kept document that it duplicates.
    pub duplicate_of: String,
    /// Between 0 and 1; `None` where the two were not compared with each other.
    pub similarity: Option<f64>,
    /// The smallest id of its cluster.
    pub cluster: String,
    /// `identical`, `similar` or `chain`.
    pub reason: Cow<'static, str>,
}

/// A corpus format.
pub trait Format: Sync {
    /// As in `--format`.
    fn name(&self) -> &'static str;
    /// Whether a file is in this format, by its name and its first bytes (up to 4 KiB).
    fn recognises(&self, path: &str, head: &[u8]) -> bool;
    /// Whether records have fields that [`Reading`] can name.
    fn has_fields(&self) -> bool {
        false
    }
    /// Whether the output has a file for each input file, of the same name, and not parts that are named after splits.
    fn keeps_names(&self) -> bool {
        false
    }
    /// Whether a file may be read as several pieces.
    fn splits(&self, path: &str) -> bool;
    /// Opens a piece for reading documents.
    fn open(&self, piece: &Piece, reading: &Reading) -> Result<Box<dyn Reader>, Error>;
    /// Opens a piece for taking out the files that are packed in it: the key or the field of the id is a file's name, the
    /// value or the field of the text what is in it. `None` where the format holds no files.
    fn unpack(&self, _piece: &Piece, _reading: &Reading) -> Result<Option<Box<dyn PackReader>>, Error> {
        Ok(None)
    }
    /// Opens the kept and the removed part of one split.
    fn writer<'a>(&self, parts: &'a dyn Parts, reading: &Reading) -> Box<dyn Writer + 'a>;

    /// The numbers of the lines of a whole file, where the format has lines.
    ///
    /// A piece in the middle of a file does not know its first line's number, so the rejects of a file get theirs
    /// together, when all is read.
    fn line_numbers(&self, _file: &Piece, _reading: &Reading) -> Result<Option<LineNumbers>, Error> {
        Ok(None)
    }
}

/// Reads the documents of a piece.
pub trait Reader: Send {
    /// Adds documents and rejects to `batch` until it is full; `false` at the end of the piece.
    ///
    /// A record that cannot be read is a reject. An error means that nothing more of this piece can be
    /// read; the caller counts it as one more rejected record when it [is the data's fault](Error::is_data).
    fn fill(&mut self, batch: &mut DocBatch) -> Result<bool, Error>;

    /// The [`Error::Field`] of the first record that was rejected because it lacks a field that was asked for, where each
    /// record has fields of its own. It is no news to the ledger: the record is a reject already.
    fn without_field(&mut self) -> Option<Error> {
        None
    }
}

/// Reads pieces once more and copies each record, untouched, to the part it belongs in.
pub trait Writer {
    /// Copies one piece. `fates` gives one fate per record, in the order and number of [`Reader::fill`].
    ///
    /// Where an error of the data ended the reading, it ends this too, after all that came before it has been
    /// copied; no fate is taken for it.
    fn divide(&mut self, piece: &Piece, fates: &mut dyn Iterator<Item = Fate>) -> Result<(), Error>;
    /// Begins a kept part without a record, as the piece's records would have it: a corpus of which nothing is kept leaves a file
    /// of its format behind. `false` where the format has no such file, as a folder of files has none.
    fn keep_none(&mut self, _piece: &Piece) -> Result<bool, Error> {
        Ok(false)
    }
    /// Finishes the files.
    fn finish(self: Box<Self>) -> Result<(), Error>;
}

/// Creates the output files of one split.
pub trait Parts {
    /// The split's next part in `folder` (`kept` or `removed`), such as `part-00000.jsonl.gz` for the
    /// extension `.jsonl.gz`.
    fn part(&self, folder: &str, extension: &str) -> Result<Box<dyn PartOutput>, Error>;
    /// A file of that name below `folder`, for formats that are folders of files.
    fn named(&self, folder: &str, name: &str) -> Result<Box<dyn PartOutput>, Error>;
}

/// A file of an output that is being written. Dropped without [`PartOutput::finish`], it does not belong to the output.
pub trait PartOutput: Write + Send {
    /// Ends the file. `records`: how many it holds, for the list of files that is kept with the output.
    fn finish(self: Box<Self>, records: u64) -> Result<(), cluster::Error>;
}
