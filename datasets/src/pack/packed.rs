//! Packed files record by record: what writes and reads them.

use crate::Error;

/// Kind of the packed contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// UTF-8, as values of the class Text or a column of strings.
    Text,
    /// Any bytes, as values of the class BytesWritable or a column of binaries.
    Bytes,
    /// Fingerprints of 64 bits, given as eight bytes, the highest first: values of the class LongWritable, or a column
    /// `fingerprint` of unsigned numbers.
    Fingerprint,
}

/// Writer of one packed file.
///
/// Memory: a block of 1 MB for a SequenceFile, up to 32 MiB of compressed rows for Parquet, and the largest
/// file.
pub trait PackWriter {
    /// Adds a file. `bytes` must be UTF-8 where the content is [`Content::Text`].
    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error>;
    /// Finishes the file.
    fn finish(self: Box<Self>) -> Result<(), Error>;
}

/// Content of a packed file at the place of one record.
#[derive(Debug, PartialEq, Eq)]
pub enum Packed<'a> {
    /// A file.
    File {
        /// Offset of its record, as in rejects.
        offset: u64,
        /// Name as stored in the record. It may be anything, whatever program wrote it.
        name: &'a str,
        /// Contents of the file.
        bytes: &'a [u8],
    },
    /// A record, or a range of records, that cannot be read.
    Lost {
        /// Offset, as in rejects.
        offset: u64,
        /// Reason in lower case, without a full stop.
        reason: String,
        /// First bytes of the record.
        head: &'a [u8],
    },
}

/// Reader of the packed files of a piece.
pub trait PackReader {
    /// Returns the next file or lost record, or `None` at the end of the piece.
    ///
    /// An error means that nothing more of this piece can be read, as for [`crate::Reader::fill`].
    fn next(&mut self) -> Result<Option<Packed<'_>>, Error>;
}
