//! Decoding of texts that may have illegal bytes.

use encoding_rs::DecoderResult;

use super::encoding::Encoding;

/// Result of decoding a text that is not simply valid.
pub(super) struct Decoded {
    /// Text with U+FFFD for each illegal sequence.
    pub text: String,
    /// Offset of the first illegal sequence, in bytes.
    pub first_illegal: Option<usize>,
    illegal: usize,
}

impl Decoded {
    pub fn reason(&self, encoding: Encoding, recognised: bool) -> String {
        let name = encoding.name();
        let how = if recognised { ", as which it was recognised" } else { "" };
        let illegal = self.illegal;
        let all = self.text.chars().count();
        format!("not valid {name}{how}: {illegal} of {all} characters are illegal")
    }
}

/// Decodes a text with any number of illegal sequences. Cost: a few ns a byte.
pub(super) fn decode_slowly(Encoding(encoding): Encoding, bytes: &[u8]) -> Decoded {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    // Two bytes of GBK become at most three of UTF-8. More is reserved only when needed.
    let text = String::with_capacity(bytes.len() + bytes.len() / 2 + 16);
    let mut decoded = Decoded { text, first_illegal: None, illegal: 0 };
    let mut read = 0;
    loop {
        let (result, more) =
            decoder.decode_to_string_without_replacement(&bytes[read..], &mut decoded.text, true);
        read += more;
        match result {
            DecoderResult::InputEmpty => return decoded,
            DecoderResult::OutputFull => decoded.text.reserve(decoded.text.capacity()),
            DecoderResult::Malformed(length, after) => {
                let offset = read.saturating_sub(usize::from(length) + usize::from(after));
                decoded.first_illegal.get_or_insert(offset);
                decoded.illegal += 1;
                decoded.text.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }
}
