//! Frames, the messages of a control connection.

use std::io::{self, ErrorKind, Read, Write};

use bytes::Bytes;

/// One message. On the wire, a frame is one byte for the kind, 8 bytes for the length (little-endian), and
/// the contents.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Part of a gather or a broadcast.
    Bytes(Bytes),
    /// The job cannot go on. A frame to process 0 has the sender's reason; one from process 0 has the line to
    /// show.
    Failure(String),
    /// The sender has done all its work.
    Goodbye,
}

impl Frame {
    /// Returns whether this is the last frame of its sender.
    pub(super) fn last(&self) -> bool {
        matches!(self, Frame::Failure(_) | Frame::Goodbye)
    }

    pub(super) fn write(&self, mut to: impl Write) -> io::Result<()> {
        let (kind, bytes) = match self {
            Frame::Bytes(bytes) => (0, &bytes[..]),
            Frame::Failure(reason) => (1, reason.as_bytes()),
            Frame::Goodbye => (2, &[][..]),
        };
        let mut head = [kind; 9];
        head[1..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        to.write_all(&head)?;
        to.write_all(bytes)
    }

    /// Reads a frame. Its length is trusted, because a channel returns only bytes from a process of the job.
    pub(super) fn read(mut from: impl Read) -> io::Result<Frame> {
        let mut head = [0; 9];
        from.read_exact(&mut head)?;
        let [kind, length @ ..] = head;
        let length = u64::from_le_bytes(length);
        let mut bytes = Vec::with_capacity(length as usize);
        from.take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        match kind {
            0 => Ok(Frame::Bytes(bytes.into())),
            1 => Ok(Frame::Failure(String::from_utf8_lossy(&bytes).into_owned())),
            2 => Ok(Frame::Goodbye),
            _ => Err(ErrorKind::InvalidData.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in() {
        let frames =
            [Frame::Bytes(Bytes::from_static(b"x\0y")), Frame::Failure("why".to_owned()), Frame::Goodbye];
        let mut wire = Vec::new();
        frames.iter().for_each(|frame| frame.write(&mut wire).unwrap());
        let mut rest = &wire[..];
        frames.iter().for_each(|frame| assert_eq!(Frame::read(&mut rest).unwrap(), *frame));
        assert!(rest.is_empty());
    }

    #[test]
    fn a_frame_that_ends_early_is_an_error() {
        let mut wire = Vec::new();
        Frame::Failure("why".to_owned()).write(&mut wire).unwrap();
        for end in 0..wire.len() {
            let error = Frame::read(&wire[..end]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{end} bytes");
        }
    }
}
