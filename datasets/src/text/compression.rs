//! Files that are compressed as a whole: gzip, Zstandard and bzip2.

use std::io::{self, BufWriter, Read, Write};

use bzip2::write::BzEncoder;
use cluster::BlobReader;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

use crate::{Cuts, Error, PartOutput, Reading};

/// Expected number of bytes of records in a byte of a compressed file.
pub(crate) const COMPRESSED: u64 = 3;

/// Compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    /// Any number of gzip members, one after the other.
    Gzip,
    /// Any number of Zstandard frames, one after the other.
    Zstd,
    /// Any number of bzip2 streams, one after the other.
    Bzip2,
}

impl Compression {
    /// Splits a path into its name without the suffix of a compression, and that compression.
    pub fn named(path: &str) -> (&str, Self) {
        for compression in [Self::Gzip, Self::Zstd, Self::Bzip2] {
            let suffix = compression.suffix();
            if has_suffix(path, suffix) {
                return (&path[..path.len() - suffix.len()], compression);
            }
        }
        (path, Self::None)
    }

    /// Finds the compression by the file's name, otherwise by its first bytes. A `.gz` without gzip's magic
    /// is damaged, and not a text.
    pub fn of(path: &str, head: &[u8]) -> Self {
        match Self::named(path).1 {
            Self::None if head.starts_with(&[0x1f, 0x8b]) => Self::Gzip,
            Self::None if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) => Self::Zstd,
            // After the magic comes the first byte of a block, or of the end of an empty stream.
            Self::None if matches!(head, [b'B', b'Z', b'h', b'1'..=b'9', 0x31 | 0x17, ..]) => Self::Bzip2,
            named => named,
        }
    }

    /// Returns the expected number of bytes of records in a byte of a file.
    pub fn expansion(self) -> u64 {
        if self == Self::None { 1 } else { COMPRESSED }
    }

    /// Returns how a file of lines with this compression may be cut into pieces.
    pub fn cuts(self) -> Cuts {
        if self == Self::None { Cuts::File } else { Cuts::Contents }
    }

    /// Returns the suffix of file names with this compression.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
            Self::Bzip2 => ".bz2",
        }
    }

    /// Returns the name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "plain",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Bzip2 => "bzip2",
        }
    }

    /// Decompresses `input` while it is read. `window_log` is the binary logarithm of the longest window that
    /// a Zstandard frame may require.
    pub fn decode(
        self,
        input: impl io::BufRead + Send + 'static,
        window_log: u32,
    ) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::None => Box::new(input),
            Self::Gzip => Box::new(GzipMembers(Some(GzDecoder::new(input)))),
            Self::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(input)?;
                decoder.window_log_max(window_log)?;
                Box::new(decoder)
            }
            Self::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(input)),
        })
    }

    /// Decompresses the first bytes of a file as far as they go, up to 4 KiB.
    pub fn decode_head(self, head: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        if let Ok(input) = self.decode(io::Cursor::new(head.to_vec()), Reading::default().window_log()) {
            // The head is cut anywhere, so an error at its end is expected. The bytes before it are kept.
            let _cut = input.take(4096).read_to_end(&mut text);
        }
        text
    }

    /// Decompresses a whole file while it is read from its first byte.
    pub fn decode_file(
        self,
        path: &str,
        blob: BlobReader,
        reading: &Reading,
    ) -> Result<Box<dyn Read + Send>, Error> {
        self.decode(blob, reading.window_log()).map_err(|error| Error::reading(path, 0, error))
    }
}

/// The members of a gzip file, one after the other. Zeros behind a member are passed over, as `gzip` does: some writers fill a
/// block with them.
struct GzipMembers<R>(Option<GzDecoder<R>>);

impl<R: io::BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let Some(mut rest) = self.0.take().map(GzDecoder::into_inner) else { break };
            while rest.fill_buf()?.first() == Some(&0) {
                rest.consume(1);
            }
            if !rest.fill_buf()?.is_empty() {
                self.0 = Some(GzDecoder::new(rest));
            }
        }
        Ok(0)
    }
}

/// Returns what the user can do, if Zstandard's message `error` is about a window that is too long.
pub(crate) fn window_too_long(error: &str, window_log: u32) -> Option<String> {
    // The library has no type for its errors.
    error.contains("requires too much memory").then(|| {
        let mebibytes = (1_u64 << window_log) >> 20;
        format!(
            "its Zstandard window is longer than the {mebibytes} MiB that are held; compress it again with zstd \
             --long={window_log}, or give more --memory: an eighth of it, divided by the workers, may be a window, so 16G and \
             --workers 1 read what zstd --long=31 wrote"
        )
    })
}

/// Returns whether `path` ends with the lower-case `suffix`, in any case.
pub(crate) fn has_suffix(path: &str, suffix: &str) -> bool {
    let from = path.len().wrapping_sub(suffix.len());
    path.as_bytes().get(from..).is_some_and(|end| end.eq_ignore_ascii_case(suffix.as_bytes()))
}

/// An output file that compresses what is written to it.
pub(crate) struct Encoder {
    compression: Compression,
    /// `None` only while it is replaced.
    frame: Option<EncodedFrame>,
}

type BufferedOutput = BufWriter<Box<dyn PartOutput>>;

/// Contents that are being written: bytes as they are, or a gzip member, a frame or a stream.
enum EncodedFrame {
    Plain(BufferedOutput),
    Gzip(GzEncoder<BufferedOutput>),
    Zstd(zstd::Encoder<'static, BufferedOutput>),
    Bzip2(BzEncoder<BufferedOutput>),
}

impl EncodedFrame {
    fn begin(compression: Compression, output: BufferedOutput) -> io::Result<Self> {
        Ok(match compression {
            Compression::None => Self::Plain(output),
            Compression::Gzip => Self::Gzip(GzEncoder::new(output, flate2::Compression::new(6))),
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(output, 3)?;
                // The zstd program adds a checksum, too. Without one, damage can pass for other text.
                encoder.include_checksum(true)?;
                Self::Zstd(encoder)
            }
            Compression::Bzip2 => Self::Bzip2(BzEncoder::new(output, bzip2::Compression::best())),
        })
    }

    fn end(self) -> io::Result<BufferedOutput> {
        match self {
            Self::Plain(output) => Ok(output),
            Self::Gzip(output) => output.finish(),
            Self::Zstd(output) => output.finish(),
            Self::Bzip2(output) => output.finish(),
        }
    }
}

impl Encoder {
    /// Number of bytes that are given to the store at once.
    const BUFFER_BYTES: usize = 1 << 18;

    pub fn new(compression: Compression, output: Box<dyn PartOutput>) -> io::Result<Self> {
        let output = BufWriter::with_capacity(Self::BUFFER_BYTES, output);
        Ok(Encoder { compression, frame: Some(EncodedFrame::begin(compression, output)?) })
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.compression != Compression::None && matches!(self.frame, Some(EncodedFrame::Plain(_))) {
            let output = self.take()?.end()?;
            self.frame = Some(EncodedFrame::begin(self.compression, output)?);
        }
        match &mut self.frame {
            Some(EncodedFrame::Plain(output)) => output.write_all(bytes),
            Some(EncodedFrame::Gzip(output)) => output.write_all(bytes),
            Some(EncodedFrame::Zstd(output)) => output.write_all(bytes),
            Some(EncodedFrame::Bzip2(output)) => output.write_all(bytes),
            None => Err(failed_before()),
        }
    }

    /// Ends the member, frame or stream, so that what is written next can be decompressed by itself.
    pub fn end_frame(&mut self) -> io::Result<()> {
        let output = self.take()?.end()?;
        self.frame = Some(EncodedFrame::Plain(output));
        Ok(())
    }

    /// Writes what is buffered and returns the file, which is not yet finished.
    pub fn into_output(mut self) -> io::Result<Box<dyn PartOutput>> {
        self.take()?.end()?.into_inner().map_err(io::IntoInnerError::into_error)
    }

    fn take(&mut self) -> io::Result<EncodedFrame> {
        self.frame.take().ok_or_else(failed_before)
    }
}

/// Returns the error of a file that an error has left without an end.
fn failed_before() -> io::Error {
    io::Error::other("an earlier write has failed")
}
