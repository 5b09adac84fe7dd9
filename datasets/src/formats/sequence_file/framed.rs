//! The framing that Hadoop puts around codecs without streams of their own: Snappy and LZ4.
//!
//! Data is a sequence of frames. A frame is the length of its data (a big-endian `u32`), then chunks until
//! that much has come. A chunk is the length of its compressed bytes (a big-endian `u32`), then these bytes.
//!
//! Source: org.apache.hadoop.io.compress.BlockCompressorStream and BlockDecompressorStream of Hadoop 3.4.1.

use std::io;

/// Reason for rejecting data that ends too early.
pub(super) const SHORT: &str = "compressed data ends too early";
/// Reason for rejecting damaged data.
pub(super) const DAMAGED: &str = "compressed data is damaged";

/// Compression of the chunks of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FrameCodec {
    Snappy,
    Lz4,
}

/// Length of the data of a chunk that we write, in bytes. Hadoop's readers have buffers of 256 KiB for a
/// chunk, compressed and not, and incompressible data grows by up to a sixth.
const CHUNK_BYTES: usize = 192 << 10;
/// Largest number of bytes that one compressed byte stands for. Each further byte of a length of LZ4 adds up
/// to 255.
const MOST_FOR_A_BYTE: usize = 255;

impl FrameCodec {
    /// Appends one frame of `input` to `out`.
    pub(super) fn compress(self, input: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let bytes = u32::try_from(input.len()).map_err(|_| io::Error::other("4 GiB in a block"))?;
        out.extend_from_slice(&bytes.to_be_bytes());
        for chunk in input.chunks(CHUNK_BYTES) {
            let length_at = out.len();
            let most = match self {
                FrameCodec::Snappy => snap::raw::max_compress_len(chunk.len()),
                FrameCodec::Lz4 => lz4_flex::block::get_maximum_output_size(chunk.len()),
            };
            out.resize(length_at + 4 + most, 0);
            let room = &mut out[length_at + 4..];
            let written = match self {
                FrameCodec::Snappy => snap::raw::Encoder::new().compress(chunk, room)?,
                FrameCodec::Lz4 => lz4_flex::block::compress_into(chunk, room).map_err(io::Error::other)?,
            };
            out[length_at..length_at + 4].copy_from_slice(&(written as u32).to_be_bytes());
            out.truncate(length_at + 4 + written);
        }
        Ok(())
    }

    /// Decompresses `input` to the start of `out`, and returns the length. `out` grows if needed, to at most
    /// `limit` bytes and never to more than `input` could fill.
    pub(super) fn decompress(
        self,
        mut input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize, String> {
        let mut done = 0;
        while !input.is_empty() {
            let frame = number(&mut input)?;
            if frame > limit - done {
                return Err(format!("more than {limit} bytes decompressed"));
            }
            if frame / MOST_FOR_A_BYTE > input.len() {
                return Err(SHORT.to_owned());
            }
            let end = done + frame;
            if out.len() < end {
                out.reserve_exact(end - out.len());
                out.resize(end, 0);
            }
            while done < end {
                let bytes = number(&mut input)?;
                let chunk = input.split_off(..bytes).ok_or(SHORT)?;
                done += self.chunk(chunk, &mut out[done..end]).ok_or(DAMAGED)?;
            }
        }
        Ok(done)
    }

    fn chunk(self, chunk: &[u8], room: &mut [u8]) -> Option<usize> {
        match self {
            FrameCodec::Snappy => snap::raw::Decoder::new().decompress(chunk, room).ok(),
            FrameCodec::Lz4 => lz4_flex::block::decompress_into(chunk, room).ok(),
        }
    }
}

/// Takes a big-endian number off the front.
fn number(input: &mut &[u8]) -> Result<usize, &'static str> {
    let (number, rest) = input.split_first_chunk().ok_or(SHORT)?;
    *input = rest;
    Ok(u32::from_be_bytes(*number) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn frames_of_several_chunks_and_several_frames_are_one_text() {
        // Hadoop writes a value that is longer than its buffer like this: one frame, some chunks, and an
        // empty frame.
        let a = vec![1; 300];
        let b = b"bcd";
        for frames in [FrameCodec::Snappy, FrameCodec::Lz4] {
            let chunk = |input: &[u8]| {
                let mut frame = Vec::new();
                frames.compress(input, &mut frame).unwrap();
                frame.split_off(4)
            };
            let file = [&303u32.to_be_bytes()[..], &chunk(&a), &chunk(b), &[0; 4]].concat();
            let mut out = Vec::new();
            assert_eq!(frames.decompress(&file, 303, &mut out), Ok(303));
            assert_eq!(out[..303], [&a[..], b].concat());
        }
    }

    #[test]
    fn chunks_fit_into_hadoops_buffers() {
        // Noise makes a chunk longer by compression.
        let noise = Random(1).bytes(1 << 20);
        for frames in [FrameCodec::Snappy, FrameCodec::Lz4] {
            let mut file = Vec::new();
            frames.compress(&noise, &mut file).unwrap();
            let mut rest = &file[4..];
            let mut chunks = 0;
            while !rest.is_empty() {
                let bytes = number(&mut rest).unwrap();
                assert!(bytes <= 256 << 10, "{bytes}");
                rest = &rest[bytes..];
                chunks += 1;
            }
            assert_eq!(chunks, noise.len().div_ceil(CHUNK_BYTES));
        }
    }

    #[test]
    fn a_length_is_not_believed_before_there_are_bytes_for_it() {
        for frames in [FrameCodec::Snappy, FrameCodec::Lz4] {
            let mut out = Vec::new();
            let file = [&(1u32 << 30).to_be_bytes()[..], &[0, 0, 0, 9], &[0; 9]].concat();
            assert!(frames.decompress(&file, 1 << 30, &mut out).is_err());
            assert_eq!(out.capacity(), 0);
        }
    }
}
