//! Encodings of Chinese text, by the names that a user may give.

use std::fmt;
use std::str::FromStr;

use encoding_rs::{BIG5, UTF_8, UTF_16BE, UTF_16LE};

/// An encoding that a user may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding(pub(crate) &'static encoding_rs::Encoding);

/// GB18030, which includes GBK and GB2312.
pub(crate) const GB18030: Encoding = Encoding(encoding_rs::GB18030);

impl Encoding {
    /// Returns the name for messages, such as `GB18030`.
    pub fn name(self) -> &'static str {
        if self == GB18030 { "GB18030" } else { self.0.name() }
    }
}

impl FromStr for Encoding {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Ok(match name.to_ascii_lowercase().as_str() {
            "utf-8" => Encoding(UTF_8),
            "gb18030" | "gbk" => GB18030,
            "big5" => Encoding(BIG5),
            "utf-16le" => Encoding(UTF_16LE),
            "utf-16be" => Encoding(UTF_16BE),
            _ => return Err("expected one of utf-8, gb18030, gbk, big5, utf-16le, utf-16be".to_owned()),
        })
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
