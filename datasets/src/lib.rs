//! Corpus formats: they read documents from files, and write the same records again, divided into kept and
//! removed. The traits of a format are in this file.
//!
//! Besides: packing of many small files (`pack`), files whose deflate streams are undone (`deflate`), and a synthetic
//! corpus (`synthetic.rs`). Foreign files are worked on in confined processes (`confined`). This crate uses
//! `operators` for records and `cluster` for bytes. It knows no method and no dataflow. A new format is one file
//! in `formats`, and a line there and in [`FORMATS`].

mod confined;
mod deflate;
mod error;
mod formats;
mod pack;
mod parts;
mod synthetic;
#[cfg(test)]
mod testing;
mod text;

pub use confined::{Bounds, EXTRACT, Extractors, serve};
pub use deflate::{DeflatePart, UndoneFile};
pub use error::{Error, MissingField};
pub use formats::csv::{CsvChar, CsvReading};
pub use formats::format_named;
pub use formats::sequence_file::Codec;
pub use formats::unknown::{UNKNOWN, unknown_format};
pub use pack::{Container, Content, PackReader, PackWriter, Packed};
pub use synthetic::{Synthetic, SyntheticDoc, SyntheticMixture, SyntheticPost, SyntheticPosts};
pub use text::contents::contents_bytes;
pub use text::encoding::{Encoding, RecognisedEncoding};
pub use text::head::FileHead;
pub use text::line_numbers::LineNumbers;
pub use text::shared_file::SharedFile;

use std::borrow::Cow;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use cluster::Blob;
use operators::DocBatch;
use serde::{Deserialize, Serialize};

/// Every format that can be read, in the order in which they are tried on a file.
pub static FORMATS: &[&dyn Format] = &[
    &formats::parquet::PARQUET,
    &formats::sequence_file::SEQUENCE_FILE,
    &formats::office::OFFICE,
    &formats::jsonl::array::JSON_ARRAY,
    &formats::jsonl::JSONL,
    &formats::csv::WEIBO_CSV,
    &formats::csv::CSV,
    &formats::csv::TSV,
    &formats::elements::SOGOUCS,
    &formats::elements::WIKIEXTRACTOR,
    &formats::elements::MEDIAWIKI,
    &formats::warc::WARC,
    &formats::tancorp::TANCORP,
    &formats::plain_lines::LINES,
];

/// Options of the user about how the records of a corpus become documents.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Field that holds the id, in formats with fields. `None` means `id` where that field exists, otherwise
    /// file and position.
    pub id: Option<String>,
    /// Field that holds the text. `None` means `text`.
    pub text: Option<String>,
    /// Whether a text may be a number, which is its text then.
    pub numbers: bool,
    /// Treatment of a null in the place of a text.
    pub null_text: NullText,
    /// Field that holds the priority: a finite number, without which a record is rejected. `None` if no keep order
    /// asks for it.
    pub priority: Option<String>,
    /// Encoding of formats that do not fix it. `None` means that it is recognised, file by file.
    pub encoding: Option<Encoding>,
    /// Treatment of a text with illegal bytes.
    pub bad_text: BadText,
    /// Length of the longest record, in bytes, both as stored and decompressed. A longer record is rejected,
    /// and never held in memory.
    pub max_record_bytes: usize,
    /// Memory for what contains records, in addition to the longest record: a window of Zstandard, a block of
    /// a SequenceFile, the pages of Parquet. It is given in bytes, and is at least
    /// [`Reading::LEAST_BLOCK_BYTES`].
    pub block_bytes: usize,
    /// Form of CSV.
    pub csv: CsvReading,
    /// Processes that read Word and PDF documents.
    pub extractors: Arc<Extractors>,
}

impl Default for Reading {
    fn default() -> Self {
        let bad_text = BadText::default();
        let extractors = Arc::default();
        let (max_record_bytes, block_bytes) = (Reading::MAX_RECORD_BYTES, Reading::BLOCK_BYTES);
        let (id, text, numbers, null_text, priority, encoding, csv) = Default::default();
        Reading {
            id,
            text,
            numbers,
            null_text,
            priority,
            encoding,
            bad_text,
            max_record_bytes,
            block_bytes,
            csv,
            extractors,
        }
    }
}

/// Treatment of a null in the place of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NullText {
    /// The record is rejected.
    #[default]
    Reject,
    /// The record is a document without text.
    Keep,
    /// The record is rejected for the [reason](operators::Reject::DROPPED) that the user wants it so.
    Drop,
}

/// Treatment of a text with bytes that its encoding does not allow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadText {
    /// The record is rejected.
    #[default]
    Reject,
    /// Each illegal sequence is read as U+FFFD, and the record is
    /// [counted](operators::DocBatch::push_decoded). The output still gets the record's own bytes.
    Replace,
}

impl Reading {
    /// Default length of the longest record, unless memory is limited.
    pub const MAX_RECORD_BYTES: usize = 128 << 20;
    /// Default of [`Reading::block_bytes`], unless memory is limited. It is the longest window that `zstd -d`
    /// accepts.
    pub const BLOCK_BYTES: usize = 128 << 20;
    /// Most [`Reading::block_bytes`]. It is the longest window that zstd makes.
    pub const MOST_BLOCK_BYTES: usize = 1 << 31;
    /// Least [`Reading::block_bytes`]. Blocks of Hadoop and pages of Parquet have about 1 MB.
    pub const LEAST_BLOCK_BYTES: usize = 2 << 20;

    /// Returns the binary logarithm of the longest Zstandard window that fits.
    pub(crate) fn window_log(&self) -> u32 {
        self.block_bytes.ilog2().min(Self::MOST_BLOCK_BYTES.ilog2())
    }

    /// Returns the field that holds the id, and whether a record without it is an error.
    pub fn id(&self) -> (&str, bool) {
        self.id.as_deref().map_or(("id", false), |id| (id, true))
    }

    /// Returns the field that holds the text.
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or("text")
    }
}

/// Returns the reason for which a record without a priority is rejected.
pub(crate) fn no_number(field: &str) -> String {
    format!("no number in the field \"{field}\"")
}

/// A range of bytes of one file, which one reader reads.
///
/// A record belongs to the piece in which it starts (by the format's own rule). So the pieces of a file,
/// whatever their number, give every record exactly once.
#[derive(Clone)]
pub struct Piece {
    /// The open file.
    pub blob: Arc<dyn Blob>,
    /// Path of the file below the input that named it, such as `Art/0001.txt`.
    pub name: String,
    /// Offset of the first byte.
    pub start: u64,
    /// Offset behind the last byte.
    pub end: u64,
    /// State that the pieces of the file share. It says whether the offsets are those of the decompressed
    /// contents.
    pub shared: Arc<SharedFile>,
}

impl Piece {
    /// Returns a whole file as one piece. `name`: its path below the input that named it.
    pub fn whole(blob: Arc<dyn Blob>, name: String) -> Self {
        let end = blob.bytes();
        Piece { blob, name, start: 0, end, shared: Arc::default() }
    }
}

/// Ways in which a file may be cut into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cuts {
    /// The file is always one piece.
    Nowhere,
    /// At any byte of the file.
    File,
    /// At any byte of its decompressed contents, whose pieces share a [`SharedFile::decompressed`].
    Contents,
}

/// Decision about a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// The document survives.
    Kept,
    /// The document survives without these parts of its text, which are ranges of bytes of the text as a [`Reader`]
    /// gives it. They are in order and do not overlap. Only formats that [cut texts](Format::cuts_texts) take this fate.
    Cut(Vec<Range<usize>>),
    /// The document has a near-duplicate that survives.
    Removed(Removal),
    /// All records lie together, and this one says what was decided about it. Only formats that [add fields](Format::adds_fields)
    /// take this fate.
    Annotated(Annotation),
    /// The record could not be read.
    Rejected,
}

/// Decision about a document, as the document says it where all records lie together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Annotation {
    /// Name of the cluster; `None` for a document that is in no cluster.
    pub cluster: Option<String>,
    /// Reason why the document goes; `None` if it stays.
    pub removal: Option<Removal>,
}

/// Reason why a document was removed.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Removal {
    /// Id of the removed document.
    pub id: String,
    /// Id of the kept document that it duplicates.
    pub duplicate_of: String,
    /// Similarity of the two, between 0 and 1. `None` where they were not compared with each other.
    pub similarity: Option<f64>,
    /// Smallest id of the cluster.
    pub cluster: String,
    /// One of `identical`, `similar` and `chain`; behind it `@` and the night of the kept document, if that is
    /// another one.
    pub reason: Cow<'static, str>,
}

/// A corpus format.
pub trait Format: Sync {
    /// Returns the name of the format, as in `--format`.
    fn name(&self) -> &'static str;
    /// Returns whether a file is in this format, by its name and its first bytes (up to 4 KiB).
    fn recognises(&self, path: &str, head: &[u8]) -> bool;
    /// Returns whether records have fields that [`Reading`] can name.
    fn has_fields(&self) -> bool {
        false
    }
    /// Returns whether a writer can give records more fields.
    fn adds_fields(&self) -> bool {
        self.has_fields()
    }
    /// Returns whether each file is exactly one record, a document or a reject. The output then has a file of
    /// the same name; other formats write parts that are named after splits.
    fn file_is_record(&self) -> bool {
        false
    }
    /// Returns whether the writer can cut parts out of the text of a record, and leave all else of it as it is.
    /// `field`: the field of the text, as the user has named it.
    fn cuts_texts(&self, _field: &str) -> bool {
        true
    }
    /// Returns how a file may be cut into pieces.
    fn cuts(&self, path: &str) -> Cuts;
    /// Returns how many bytes of records a byte of the file is expected to give. Splits are planned by it, so
    /// that a compressed file is cut into smaller pieces.
    fn expansion(&self, _path: &str) -> u64 {
        1
    }
    /// Opens a piece for reading documents.
    fn open(&self, piece: &Piece, reading: &Reading) -> Result<Box<dyn Reader>, Error>;
    /// Opens a piece to take out the files that are packed in it. The key or the field of the id is the name
    /// of a file, the value or the field of the text its contents. Returns `None` where the format holds no
    /// files.
    fn unpack(&self, _piece: &Piece, _reading: &Reading) -> Result<Option<Box<dyn PackReader>>, Error> {
        Ok(None)
    }
    /// Creates the writer of one split, for its kept and its removed records.
    fn writer<'a>(&self, parts: &'a dyn Parts, reading: &Reading) -> Box<dyn Writer + 'a>;

    /// Returns the line numbers of a whole file, where the format has lines.
    ///
    /// A piece in the middle of a file does not know the number of its first line. So the rejects of a file
    /// get their numbers together, when everything is read.
    fn line_numbers(&self, _file: &Piece, _reading: &Reading) -> Result<Option<LineNumbers>, Error> {
        Ok(None)
    }
}

/// Reader of the documents of a piece.
pub trait Reader: Send {
    /// Adds documents and rejects to `batch` until it is full. Returns `false` at the end of the piece.
    ///
    /// A record that cannot be read is a reject. An error means that nothing more of this piece can be read.
    /// The caller counts it as one more rejected record when it [is the data's fault](Error::is_data).
    fn fill(&mut self, batch: &mut DocBatch) -> Result<bool, Error>;

    /// Returns the missing field of the first record that was rejected because it lacks a requested field,
    /// in formats whose records have fields of their own. That record is already counted as a reject.
    fn without_field(&mut self) -> Option<MissingField> {
        None
    }

    /// Returns the encoding of the file that was read, if the user should know that it was recognised.
    fn recognised(&self) -> Option<RecognisedEncoding> {
        None
    }
}

/// Writer that reads pieces once more, and copies each record to the part where it belongs. Only a record whose text is
/// [cut](Fate::Cut) is changed.
pub trait Writer {
    /// Copies one piece. `fates` gives one fate for each record, in the order and number of [`Reader::fill`].
    ///
    /// Where an error of the data ended the reading, it ends this call too, after all records before it were
    /// copied. No fate is taken for the error.
    fn divide(&mut self, piece: &Piece, fates: &mut dyn Iterator<Item = Fate>) -> Result<(), Error>;
    /// Begins a kept part without records, in the form that the piece's records would have. So a corpus of
    /// which nothing is kept leaves an empty file of its format. Returns `false` for formats without such a
    /// file, such as folders of files.
    fn keep_none(&mut self, _piece: &Piece) -> Result<bool, Error> {
        Ok(false)
    }
    /// Finishes the files.
    fn finish(self: Box<Self>) -> Result<(), Error>;
}

/// Output files of one split.
pub trait Parts {
    /// Creates the split's next part in `folder` (`kept`, `removed`, `annotated` or `rejected`), such as `part-00000.jsonl.gz` for the
    /// extension `.jsonl.gz`.
    fn part(&self, folder: &str, extension: &str) -> Result<Box<dyn PartOutput>, Error>;
    /// Creates a file of this name below `folder`, for formats that are folders of files.
    fn named(&self, folder: &str, name: &str) -> Result<Box<dyn PartOutput>, Error>;
    /// Returns whether rejected records are written to `rejected`, as far as a writer can hold them.
    fn takes_rejected(&self) -> bool {
        false
    }
}

/// An output file that is being written. A file that is dropped without [`PartOutput::finish`] does not
/// belong to the output.
pub trait PartOutput: Write + Send {
    /// Ends the file. `records` is the number of its records, for the list of files that is kept with the
    /// output.
    fn finish(self: Box<Self>, records: u64) -> Result<(), cluster::Error>;
}
