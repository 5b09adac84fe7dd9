//! Finds where deflate streams may begin in a file.

use memchr::memmem;

/// Signature of the header before each member of a ZIP archive. Source: APPNOTE, section 4.3.7.
const MEMBER: &[u8] = b"PK\x03\x04";
/// Number of bytes of that header before the name.
const HEADER_BYTES: usize = 30;
/// Number of deflate in that header.
const DEFLATE: u16 = 8;
/// Keyword before each stream of a PDF. Source: ISO 32000-1, section 7.3.8.
const STREAM: &[u8] = b"stream";
const PDF: &[u8] = b"%PDF-";
/// Number of bytes at the beginning of a file in which its `%PDF-` may come.
const PDF_HEAD_BYTES: usize = 1024;

/// Returns whether a file is a ZIP archive or a PDF, by its first bytes.
pub(crate) fn has_streams(file: &[u8]) -> bool {
    file.starts_with(MEMBER) || memmem::find(&file[..file.len().min(PDF_HEAD_BYTES)], PDF).is_some()
}

/// The places where streams may begin, in order. That a place is one does not mean that a stream is there.
pub(super) struct StreamScan<'a> {
    file: &'a [u8],
    finder: memmem::Finder<'static>,
    is_zip: bool,
    at: usize,
}

impl<'a> StreamScan<'a> {
    pub fn new(file: &'a [u8]) -> Self {
        let is_zip = file.starts_with(MEMBER);
        StreamScan { file, finder: memmem::Finder::new(if is_zip { MEMBER } else { STREAM }), is_zip, at: 0 }
    }

    /// Goes on from a place: nothing before it is looked at.
    pub fn skip_to(&mut self, at: usize) {
        self.at = at;
    }

    /// Returns where the next stream may begin.
    pub fn next(&mut self) -> Option<usize> {
        loop {
            let found = self.at + self.finder.find(self.file.get(self.at..)?)?;
            self.at = found + 1;
            let start = if self.is_zip { self.member(found) } else { self.zlib(found) };
            if let Some(start) = start.filter(|start| *start < self.file.len()) {
                return Some(start);
            }
        }
    }

    /// Returns where the data of the member with this header begins, if it is deflated.
    fn member(&self, header: usize) -> Option<usize> {
        let word = |at: usize| {
            let bytes = self.file.get(header + at..header + at + 2)?;
            Some(u16::from_le_bytes([bytes[0], bytes[1]]))
        };
        let (compression, name, extra) = (word(8)?, word(26)?, word(28)?);
        (compression == DEFLATE).then_some(header + HEADER_BYTES + usize::from(name) + usize::from(extra))
    }

    /// Returns where deflate begins behind the keyword, if there is a line break and the header of zlib (RFC 1950).
    fn zlib(&self, keyword: usize) -> Option<usize> {
        let rest = &self.file[keyword + STREAM.len()..];
        let line = rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n"))?;
        let (&[head, flags], deflate) = line.split_first_chunk()?;
        let is_zlib =
            head & 0x0F == 8 && flags & 0x20 == 0 && u16::from_be_bytes([head, flags]).is_multiple_of(31);
        is_zlib.then(|| self.file.len() - deflate.len())
    }
}
