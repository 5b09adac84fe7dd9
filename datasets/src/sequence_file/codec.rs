//! The codecs of compressed SequenceFiles.

use std::io::{self, Write};

use flate2::write::{GzEncoder, ZlibEncoder};
use flate2::{Compression, Decompress, FlushDecompress, Status};

/// How compressed values or blocks are compressed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Codec {
    /// Hadoop's DefaultCodec.
    Zlib,
    /// Hadoop's GzipCodec.
    Gzip,
}

impl Codec {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name.strip_prefix("org.apache.hadoop.io.compress.")? {
            "DefaultCodec" | "DeflateCodec" => Codec::Zlib,
            "GzipCodec" => Codec::Gzip,
            _ => return None,
        })
    }

    /// Appends `input`, compressed, to `out`. The same bytes come out on every machine and in every run.
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
        }
        Ok(())
    }
}

/// Decompresses values and blocks, with the state of the codec kept from one to the next.
pub(super) struct Decompressor {
    codec: Codec,
    inflater: Decompress,
}

impl Decompressor {
    pub(super) fn new(codec: Codec) -> Self {
        Decompressor { codec, inflater: inflater(codec) }
    }

    /// Puts what `input` holds into `out`, which grows as the data comes, to no more than `limit` bytes.
    ///
    /// # Errors
    /// When `input` is damaged, cut short or longer than `limit` once decompressed.
    pub(super) fn decompress(&mut self, input: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), String> {
        out.clear();
        match self.codec {
            Codec::Zlib | Codec::Gzip => self.inflate(input, limit, out),
        }
    }

    fn inflate(&mut self, mut input: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), String> {
        self.reset();
        loop {
            if out.len() == out.capacity() {
                // One byte more than the limit, so that going over it shows.
                let more = out.len().max(4 * input.len()).max(1 << 10);
                out.reserve_exact(more.min(limit + 1 - out.len()));
            }
            let (read, written) = (self.inflater.total_in(), out.len());
            let status = self.inflater.decompress_vec(input, out, FlushDecompress::None);
            let read = (self.inflater.total_in() - read) as usize;
            input = &input[read..];
            // Before all else, for how much room there was must not show in what is said.
            if out.len() > limit {
                return Err(format!("more than {limit} bytes decompressed"));
            }
            match status {
                Ok(Status::StreamEnd) if input.is_empty() => return Ok(()),
                // Hadoop reads streams that follow each other as one.
                Ok(Status::StreamEnd) => self.reset(),
                Ok(_) if read > 0 || out.len() > written || out.len() == out.capacity() => {}
                Ok(_) => return Err("compressed data ends too early".to_owned()),
                Err(_) => return Err("compressed data is damaged".to_owned()),
            }
        }
    }

    fn reset(&mut self) {
        match self.codec {
            Codec::Zlib => self.inflater.reset(true),
            // A reset would make it expect zlib's header.
            Codec::Gzip => self.inflater = inflater(self.codec),
        }
    }
}

fn inflater(codec: Codec) -> Decompress {
    match codec {
        Codec::Zlib => Decompress::new(true),
        Codec::Gzip => Decompress::new_gzip(15),
    }
}
