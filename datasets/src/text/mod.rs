//! The way from bytes to text: decompression, encodings and how they are detected, lines, and JSON.
//!
//! This room knows no format; `parts` and `formats` use it.

pub(crate) mod background;
pub(crate) mod charset;
pub(crate) mod compression;
pub(crate) mod contents;
mod decode;
pub(crate) mod detect;
pub(crate) mod encoding;
pub(crate) mod gb18030;
pub(crate) mod head;
pub(crate) mod json;
pub(crate) mod line_numbers;
pub(crate) mod line_reader;
pub(crate) mod record_starts;
pub(crate) mod shared_file;
