//! JSON values that are not one on each line, as lines.

use std::io::{self, Read};

/// Layout of the records in a file of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordLayout {
    /// They begin where lines do.
    Lines,
    /// They are JSON values, which [`JsonValues`] makes lines of.
    JsonValues,
}

impl RecordLayout {
    /// Returns what to read to get lines.
    pub fn lines(self, input: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        match self {
            Self::Lines => input,
            Self::JsonValues => Box::new(JsonValues::new(input)),
        }
    }
}

/// Reader of JSON values as JSON lines: the elements of an array, or values one after the other, which may span lines.
///
/// Each byte stays at its place, so offsets are those of the file: the comma between two elements is read as a newline, the brackets
/// of the array and newlines within values as spaces.
///
/// A newline within a string is illegal in JSON, and ends it. Where the value has begun on the same line, it ends there too; in a value
/// that spans lines, the newline is read as a carriage return, which is illegal too. So in files with newlines a string without an end spoils
/// no more than its own value.
///
/// Cost: one look at each byte. Memory: none. The text must be ASCII or UTF-8.
///
/// # Errors
/// [`io::ErrorKind::UnexpectedEof`] when the array or a value does not end.
pub(crate) struct JsonValues<R> {
    input: R,
    /// Number of brackets and braces that are open within a value.
    depth: u64,
    array: ArrayState,
    /// Whether the value has had a newline.
    spans_lines: bool,
    is_string: bool,
    is_escaped: bool,
}

/// Whether the values are the elements of an array.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ArrayState {
    /// No value has begun.
    Unknown,
    Open,
    /// There is none, or it has ended.
    None,
}

impl<R: Read> JsonValues<R> {
    /// Begins to read.
    pub fn new(input: R) -> Self {
        let depth = 0;
        let array = ArrayState::Unknown;
        JsonValues { input, depth, array, spans_lines: false, is_string: false, is_escaped: false }
    }

    /// Returns the byte that stands for the next one.
    fn next(&mut self, byte: u8) -> u8 {
        if self.is_string {
            let is_newline = byte == b'\n';
            self.is_string = !is_newline && (self.is_escaped || byte != b'"');
            self.is_escaped = byte == b'\\' && !self.is_escaped;
            if is_newline && self.spans_lines {
                return b'\r';
            }
            if is_newline {
                self.depth = 0;
            }
            return byte;
        }
        let is_outside = self.depth == 0;
        match byte {
            b'"' => (self.is_string, self.is_escaped) = (true, false),
            b'[' if self.array == ArrayState::Unknown => {
                self.array = ArrayState::Open;
                return b' ';
            }
            b'{' | b'[' => {
                self.spans_lines &= !is_outside;
                self.depth += 1;
            }
            b']' if is_outside && self.array == ArrayState::Open => {
                self.array = ArrayState::None;
                return b' ';
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b',' if is_outside && self.array == ArrayState::Open => return b'\n',
            b'\n' | b'\r' if !is_outside || self.array == ArrayState::Open => {
                self.spans_lines = true;
                return b' ';
            }
            _ => {}
        }
        if self.array == ArrayState::Unknown && matches!(byte, b'{' | b'"' | b'-' | b'0'..=b'9' | b'a'..=b'z')
        {
            self.array = ArrayState::None;
        }
        byte
    }
}

impl<R: Read> Read for JsonValues<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        for byte in &mut buffer[..read] {
            *byte = self.next(*byte);
        }
        let is_within = self.depth > 0 || self.is_string;
        if read == 0 && !buffer.is_empty() && (is_within || self.array == ArrayState::Open) {
            let what = if self.array == ArrayState::Open { "the JSON array" } else { "the last JSON value" };
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!(
                    "{what} does not end: the file is cut short, or a bracket, a brace or a quote is missing"
                ),
            ));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> (String, bool) {
        let mut made = String::new();
        let mut ends = true;
        // Every byte comes alone, so every state is kept from one call to the next.
        let mut input = JsonValues::new(text.as_bytes());
        let mut byte = [0];
        let mut bytes = Vec::new();
        loop {
            match input.read(&mut byte) {
                Ok(0) => break,
                Ok(_) => bytes.push(byte[0]),
                Err(_) => {
                    ends = false;
                    break;
                }
            }
        }
        made.push_str(str::from_utf8(&bytes).unwrap());
        assert_eq!(made.len(), text.len());
        (made, ends)
    }

    #[test]
    fn values_become_lines_at_their_places() {
        for (text, made) in [
            ("[{\"a\":1},{\"a\":2}]", " {\"a\":1}\n{\"a\":2} "),
            (
                "\n[\n  {\n \"a\": \"x,y]\\\"}\"\r\n }\n,\n{}\n]\n",
                "\n    {  \"a\": \"x,y]\\\"}\"   } \n {}  \n",
            ),
            ("[[1,2],3,\"4,5\"]", " [1,2]\n3\n\"4,5\" "),
            ("[]", "  "),
            ("{\n\"a\":[1,\n2]}\n{\"b\":{}}\n", "{ \"a\":[1, 2]}\n{\"b\":{}}\n"),
            ("{\"a\":1},\n", "{\"a\":1},\n"),
            ("[{\"a\":\"b\n},\n{\"c\":\"\\\\\"}]", " {\"a\":\"b\n}\n {\"c\":\"\\\\\"} "),
            ("[{\n\"a\":\"b\n},{}]", " { \"a\":\"b\r}\n{} "),
            ("", ""),
        ] {
            assert_eq!(lines(text), (made.to_owned(), true), "{text:?}");
        }
        for text in ["[{\"a\":1}", "[", "{\"a\":", "[\"a", "{\"a\":\"b}"] {
            assert!(!lines(text).1, "{text:?}");
        }
    }
}
