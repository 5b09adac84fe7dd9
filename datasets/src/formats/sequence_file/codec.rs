//! The codecs of compressed SequenceFiles.

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use flate2::write::{GzEncoder, ZlibEncoder};
use flate2::{Compression, Decompress, FlushDecompress, Status};
use zstd::stream::raw::{CParameter, DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::framed::{DAMAGED, FrameCodec, SHORT};
use crate::text::compression::window_too_long;

/// Codec of the values or blocks of a SequenceFile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Hadoop's DefaultCodec, which every Hadoop reads.
    Zlib,
    /// Hadoop's GzipCodec: zlib with another frame.
    Gzip,
    /// Hadoop's BZip2Codec: the smallest output, and many times slower.
    Bzip2,
    /// Hadoop's SnappyCodec: larger output than zlib, and faster.
    Snappy,
    /// Hadoop's Lz4Codec: larger output than zlib, and faster.
    Lz4,
    /// Hadoop's ZStandardCodec: smaller output than zlib, and faster. Hadoop needs its native library for it.
    Zstd,
}

impl Codec {
    /// Every codec that is read and written, with its name on the command line and the end of its class's
    /// name.
    const ALL: [(Codec, &str, &str); 6] = [
        (Codec::Zlib, "default", "DefaultCodec"),
        (Codec::Gzip, "gzip", "GzipCodec"),
        (Codec::Bzip2, "bzip2", "BZip2Codec"),
        (Codec::Snappy, "snappy", "SnappyCodec"),
        (Codec::Lz4, "lz4", "Lz4Codec"),
        (Codec::Zstd, "zstd", "ZStandardCodec"),
    ];
    const PACKAGE: &str = "org.apache.hadoop.io.compress.";

    pub(super) fn named(name: &str) -> Option<Self> {
        let name = name.strip_prefix(Self::PACKAGE)?;
        // DeflateCodec is another name of the same codec.
        let name = if name == "DeflateCodec" { "DefaultCodec" } else { name };
        Self::ALL.iter().find(|(.., class)| *class == name).map(|(codec, ..)| *codec)
    }

    /// Returns the name of its class in Hadoop.
    pub(super) fn class(self) -> String {
        let (.., class) = Self::ALL[self as usize];
        format!("{}{class}", Self::PACKAGE)
    }

    /// Returns the names of all classes that are read, for messages.
    pub(super) fn classes() -> String {
        Self::ALL.map(|(.., class)| class).join(", ")
    }

    /// Appends `input`, compressed, to `out`. The output is the same on every machine and in every run.
    pub(super) fn compress(self, input: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Codec::Zlib => {
                let mut encoder = ZlibEncoder::new(out, Compression::default());
                encoder.write_all(input)?;
                encoder.finish()?;
            }
            Codec::Gzip => {
                let mut encoder = GzEncoder::new(out, Compression::default());
                encoder.write_all(input)?;
                encoder.finish()?;
            }
            Codec::Bzip2 => {
                // This is Hadoop's level, which has the largest block.
                let mut encoder = bzip2::write::BzEncoder::new(out, bzip2::Compression::best());
                encoder.write_all(input)?;
                encoder.finish()?;
            }
            Codec::Snappy => FrameCodec::Snappy.compress(input, out)?,
            Codec::Lz4 => FrameCodec::Lz4.compress(input, out)?,
            Codec::Zstd => {
                let mut compressor = zstd::bulk::Compressor::new(zstd::DEFAULT_COMPRESSION_LEVEL)?;
                // Without a checksum, damage could pass for text. The zstd library, which Hadoop uses too,
                // verifies it.
                compressor.set_parameter(CParameter::ChecksumFlag(true))?;
                out.extend_from_slice(&compressor.compress(input)?);
            }
        }
        Ok(())
    }
}

impl FromStr for Codec {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(_, known, _)| *known == name);
        let known = || Self::ALL.map(|(_, known, _)| known).join(", ");
        found.map(|(codec, ..)| *codec).ok_or_else(|| format!("expected one of {}", known()))
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Self::ALL.iter().find(|(codec, ..)| codec == self);
        f.write_str(known.map_or("", |(_, name, _)| name))
    }
}

/// Decompressor of values and blocks. It keeps the state of the codec from one to the next.
pub(super) struct Decompressor {
    codec: Codec,
    /// Binary logarithm of the longest window of Zstandard.
    window_log: u32,
    state: CodecState,
}

enum CodecState {
    Inflate(Decompress),
    Bzip2(bzip2::Decompress),
    FrameCodec(FrameCodec),
    /// Decoder. `None` before the first use, because its creation can fail.
    Zstd(Option<Decoder<'static>>),
}

impl Decompressor {
    pub(super) fn new(codec: Codec, window_log: u32) -> Self {
        Decompressor { codec, window_log, state: CodecState::new(codec) }
    }

    /// Decompresses `input` to the start of `out`, and returns the length.
    ///
    /// `out` grows as the data comes, to no more than a byte over `limit`, and never shrinks: clearing it
    /// costs as much as decompressing into it where values are short. An empty `input` holds nothing, as some
    /// of Hadoop's codecs have written it.
    ///
    /// # Errors
    /// When `input` is damaged, cut short, or longer than `limit` once decompressed.
    pub(super) fn decompress(
        &mut self,
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize, String> {
        if input.is_empty() {
            return Ok(0);
        }
        cluster::catch(|| match &self.state {
            CodecState::FrameCodec(frames) => frames.decompress(input, limit, out),
            _ => self.stream(input, limit, out),
        })
        .unwrap_or_else(|reason| {
            self.state = CodecState::new(self.codec);
            Err(reason)
        })
    }

    fn stream(&mut self, mut input: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<usize, String> {
        // One byte more than the limit shows that the data exceeds it.
        let most = limit.saturating_add(1);
        let mut written = 0;
        self.restart()?;
        loop {
            if written == out.len().min(most) {
                let more = written.max(4 * input.len()).max(1 << 10);
                let bytes = (written + more).min(most);
                out.reserve_exact(bytes - written);
                out.resize(bytes, 0);
            }
            let room = out.len().min(most);
            let (read, wrote, ended) = self.step(input, &mut out[written..room])?;
            written += wrote;
            if written > limit {
                return Err(format!("more than {limit} bytes decompressed"));
            }
            input = &input[read..];
            match ended {
                true if input.is_empty() => return Ok(written),
                // Hadoop reads streams that follow each other as one.
                true => self.restart()?,
                false if read > 0 || wrote > 0 || written == room => {}
                false => return Err(SHORT.to_owned()),
            }
        }
    }

    /// Continues a stream. Returns how much was read and written, and whether the stream has ended. Output of
    /// a damaged stream does not count, because it would depend on the length of `room`.
    fn step(&mut self, input: &[u8], room: &mut [u8]) -> Result<(usize, usize, bool), String> {
        let damaged = || DAMAGED.to_owned();
        match &mut self.state {
            CodecState::Inflate(inflater) => {
                let (read, written) = (inflater.total_in(), inflater.total_out());
                let status =
                    inflater.decompress(input, room, FlushDecompress::Finish).map_err(|_| damaged())?;
                let (read, written) = (inflater.total_in() - read, inflater.total_out() - written);
                Ok((read as usize, written as usize, status == Status::StreamEnd))
            }
            CodecState::Bzip2(decoder) => {
                let (read, written) = (decoder.total_in(), decoder.total_out());
                let status = decoder.decompress(input, room).map_err(|_| damaged())?;
                let (read, written) = (decoder.total_in() - read, decoder.total_out() - written);
                Ok((read as usize, written as usize, status == bzip2::Status::StreamEnd))
            }
            CodecState::Zstd(decoder) => {
                let (mut input, mut room) = (InBuffer::around(input), OutBuffer::around(room));
                let decoder = decoder.as_mut().ok_or_else(damaged)?;
                let hint = decoder.run(&mut input, &mut room).map_err(|error| {
                    window_too_long(&error.to_string(), self.window_log).unwrap_or_else(damaged)
                })?;
                Ok((input.pos(), room.pos(), hint == 0))
            }
            CodecState::FrameCodec(_) => Err(damaged()),
        }
    }

    /// Prepares for the beginning of a stream.
    fn restart(&mut self) -> Result<(), String> {
        match (&mut self.state, self.codec) {
            (CodecState::Inflate(inflater), Codec::Zlib) => inflater.reset(true),
            (CodecState::Zstd(Some(decoder)), _) => decoder.reinit().map_err(|error| error.to_string())?,
            (CodecState::Zstd(decoder), _) => {
                let mut new = Decoder::new().map_err(|error| error.to_string())?;
                let set = new.set_parameter(DParameter::WindowLogMax(self.window_log));
                set.map_err(|error| error.to_string())?;
                *decoder = Some(new);
            }
            // A reset would make an inflater expect zlib's header, and bzip2 has no reset.
            _ => self.state = CodecState::new(self.codec),
        }
        Ok(())
    }
}

impl CodecState {
    fn new(codec: Codec) -> Self {
        match codec {
            Codec::Zlib => CodecState::Inflate(Decompress::new(true)),
            Codec::Gzip => CodecState::Inflate(Decompress::new_gzip(15)),
            Codec::Bzip2 => CodecState::Bzip2(bzip2::Decompress::new(false)),
            Codec::Snappy => CodecState::FrameCodec(FrameCodec::Snappy),
            Codec::Lz4 => CodecState::FrameCodec(FrameCodec::Lz4),
            Codec::Zstd => CodecState::Zstd(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::mutants;

    fn compressed(codec: Codec, input: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        codec.compress(input, &mut out).unwrap();
        out
    }

    #[test]
    fn every_codec_is_found_by_its_name_and_by_its_class() {
        for (codec, name, _) in Codec::ALL {
            assert_eq!((Codec::named(&codec.class()), name.parse()), (Some(codec), Ok(codec)));
        }
    }

    #[test]
    fn what_is_compressed_comes_out_again_from_one_state() {
        let long: Vec<u8> = (0..700_000u32).map(|i| (i.wrapping_mul(i) >> 9) as u8).collect();
        for (codec, ..) in Codec::ALL {
            let mut decompressor = Decompressor::new(codec, 27);
            for input in [&b""[..], b"x", &"新华社".as_bytes().repeat(9), &long, &[7; 500_000], b"y"] {
                let bytes = compressed(codec, input);
                let mut out = vec![9; 3];
                let read = decompressor.decompress(&bytes, input.len(), &mut out);
                assert_eq!(read, Ok(input.len()), "{codec:?}");
                assert!(out[..input.len()] == *input, "{codec:?}");
                let twice = [&bytes[..], &bytes].concat();
                let read = decompressor.decompress(&twice, 2 * input.len(), &mut out);
                assert_eq!(read, Ok(2 * input.len()), "{codec:?}: one stream after the other");
                assert!(out[..2 * input.len()] == [input, input].concat(), "{codec:?}");
            }
        }
    }

    #[test]
    fn no_more_than_the_limit_is_decompressed() {
        for (codec, ..) in Codec::ALL {
            let bytes = compressed(codec, &[7; 5 << 20]);
            for limit in [0, 1, 1 << 20, (5 << 20) - 1] {
                let mut decompressor = Decompressor::new(codec, 27);
                let mut out = Vec::new();
                let error = decompressor.decompress(&bytes, limit, &mut out).unwrap_err();
                assert_eq!(error, format!("more than {limit} bytes decompressed"), "{codec:?}");
                assert!(out.capacity() <= limit + 1, "{codec:?}: {} for {limit}", out.capacity());
            }
        }
    }

    #[test]
    fn a_stream_that_is_cut_is_an_error_wherever_it_is_cut() {
        for (codec, ..) in Codec::ALL {
            let mut decompressor = Decompressor::new(codec, 27);
            let bytes = compressed(codec, "国家统计局十九日发布数据".repeat(40).as_bytes());
            for length in 1..bytes.len() {
                let error = decompressor.decompress(&bytes[..length], 1 << 20, &mut Vec::new()).unwrap_err();
                assert_eq!(error, SHORT, "{codec:?} cut after {length} of {}", bytes.len());
            }
        }
    }

    #[test]
    fn damage_is_no_panic_and_no_other_text_and_costs_no_later_stream() {
        let text = "国家统计局十九日发布数据".repeat(40);
        for (codec, ..) in Codec::ALL {
            let mut decompressor = Decompressor::new(codec, 27);
            let bytes = compressed(codec, text.as_bytes());
            let mut out = Vec::new();
            for (mutant, _) in mutants(&bytes, 300).filter(|(mutant, _)| !mutant.is_empty()) {
                let read = decompressor.decompress(&mutant, 1 << 20, &mut out);
                // Snappy and lz4 have no checksum that could show the damage.
                if let (Ok(read), false) = (read, matches!(codec, Codec::Snappy | Codec::Lz4)) {
                    assert_eq!(&out[..read], text.as_bytes(), "{codec:?}: damage passed for text");
                }
                let read = decompressor.decompress(&bytes, 1 << 20, &mut out);
                assert_eq!(read, Ok(text.len()), "{codec:?}");
                assert_eq!(&out[..text.len()], text.as_bytes(), "{codec:?}");
            }
        }
    }
}
