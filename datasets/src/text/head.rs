//! The first bytes of a file, and the properties of it that they tell.

use super::charset::Charset;
use super::compression::Compression;
use crate::BadText;

/// Properties of a file that its first bytes tell.
pub struct FileHead {
    /// Ending of files that are compressed so, such as `.gz`; empty if it is not compressed.
    pub compression: &'static str,
    /// Whether its text is UTF-16.
    pub is_utf16: bool,
    /// Beginning of its text.
    pub text: String,
}

impl FileHead {
    /// Number of bytes that tell enough.
    pub const BYTES: usize = Charset::HEAD_BYTES;

    /// Endings of compressed files.
    pub const COMPRESSIONS: [&str; 3] =
        [Compression::Gzip.suffix(), Compression::Zstd.suffix(), Compression::Bzip2.suffix()];

    /// Reads the first bytes of the file with a name.
    pub fn of(name: &str, head: &[u8]) -> Self {
        let compression = Compression::of(name, head);
        let plain = match compression {
            Compression::None => head.to_vec(),
            _ => compression.decode_head(head),
        };
        let charset = Charset::of(&plain, false, None);
        let text = &plain[charset.mark_bytes()..];
        let mut buffer = Vec::new();
        let decoded = charset.of_one(text).decode(text, BadText::Replace, &mut buffer);
        let text = decoded.map_or_else(|_| String::new(), |(text, _)| text.to_owned());
        FileHead { compression: compression.suffix(), is_utf16: charset.unit() == 2, text }
    }
}
