//! Encodings of text, by the names that a user may give.

use std::fmt;
use std::str::FromStr;

use encoding_rs::{
    BIG5, EUC_JP, EUC_KR, KOI8_R, SHIFT_JIS, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1251, WINDOWS_1252,
};

/// An encoding that a user may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding(pub(crate) &'static encoding_rs::Encoding);

/// Encoding of a file that was recognised, and that is none of those that Chinese text is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecognisedEncoding {
    /// Path of the file.
    pub path: String,
    /// The encoding.
    pub encoding: Encoding,
    /// Certainty that it is this one, such as `99.9 %`.
    pub percent: String,
}

/// GB18030, which includes GBK and GB2312.
pub(crate) const GB18030: Encoding = Encoding(encoding_rs::GB18030);

/// The encodings that a user may name.
const NAMED: [(&str, Encoding); 13] = [
    ("utf-8", Encoding(UTF_8)),
    ("gb18030", GB18030),
    ("gbk", GB18030),
    ("gb2312", GB18030),
    ("big5", Encoding(BIG5)),
    ("utf-16le", Encoding(UTF_16LE)),
    ("utf-16be", Encoding(UTF_16BE)),
    ("shift_jis", Encoding(SHIFT_JIS)),
    ("euc-jp", Encoding(EUC_JP)),
    ("euc-kr", Encoding(EUC_KR)),
    ("windows-1251", Encoding(WINDOWS_1251)),
    ("windows-1252", Encoding(WINDOWS_1252)),
    ("koi8-r", Encoding(KOI8_R)),
];

impl Encoding {
    /// Returns the name for messages, such as `GB18030`.
    pub fn name(self) -> &'static str {
        if self == GB18030 { "GB18030" } else { self.0.name() }
    }
}

impl FromStr for Encoding {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let plain = |name: &str| name.to_ascii_lowercase().replace(['-', '_'], "");
        let named = NAMED.into_iter().find(|(known, _)| plain(known) == plain(name));
        let names = || NAMED.map(|(known, _)| known).join(", ");
        named.map(|(_, encoding)| encoding).ok_or_else(|| format!("expected one of {}", names()))
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
