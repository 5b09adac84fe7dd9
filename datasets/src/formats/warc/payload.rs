//! The text or the page that a record of a WARC file holds.

use std::borrow::Cow;
use std::io::{self, Read};

use encoding_rs::{Encoding, UTF_8};
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use httparse::{EMPTY_HEADER, Header, ParserConfig, Response, Status};

use super::records::WarcHead;
use crate::formats::office::is_html;

/// A line that the parser takes before the headers.
const STATUS_LINE: &[u8] = b"HTTP/1.1 200 OK\r\n";
/// Most headers of a response.
const HEADERS: usize = 256;
/// Types of web pages.
const PAGES: [&str; 2] = ["text/html", "application/xhtml+xml"];

/// The contents of a record.
pub(super) enum Payload<'b> {
    /// No text.
    None,
    /// A text, and the encoding that its type names.
    Text { bytes: Cow<'b, [u8]>, charset: Option<&'static Encoding> },
    /// A web page.
    Page(Vec<u8>),
}

impl<'b> Payload<'b> {
    /// Returns what a record holds. `most`: the length of the longest payload, decompressed.
    ///
    /// # Errors
    /// The reason why that cannot be told.
    pub fn of(head: &WarcHead, body: &'b [u8], most: usize) -> Result<Self, String> {
        let content_type = head.value("Content-Type").unwrap_or_default();
        match head.value("WARC-Type").unwrap_or_default().to_ascii_lowercase().as_str() {
            // Programs that make texts may leave the type out.
            "conversion" if content_type.is_empty() => {
                Ok(Payload::Text { bytes: body.into(), charset: Some(UTF_8) })
            }
            "conversion" | "resource" => Ok(Payload::of_type(content_type, body.into())),
            "response" if is_http(content_type) => Payload::of_response(body, most),
            _ => Ok(Payload::None),
        }
    }

    fn of_response(response: &'b [u8], most: usize) -> Result<Self, String> {
        if response.is_empty() {
            return Ok(Payload::None);
        }
        let Some(line) = memchr::memchr(b'\n', response) else {
            return Err("the HTTP response is cut short in its header".to_owned());
        };
        // Crawlers write `HTTP/2 200`, which the parser does not know, and the status says nothing about the text.
        let known = [STATUS_LINE, &response[line + 1..]].concat();
        let mut headers = [EMPTY_HEADER; HEADERS];
        let mut parsed = Response::new(&mut headers);
        let mut config = ParserConfig::default();
        config
            .ignore_invalid_headers_in_responses(true)
            .allow_spaces_after_header_name_in_responses(true)
            .allow_obsolete_multiline_headers_in_responses(true);
        let length = match config.parse_response(&mut parsed, &known) {
            Ok(Status::Complete(length)) => length - STATUS_LINE.len() + line + 1,
            Ok(Status::Partial) => return Err("the HTTP response is cut short in its header".to_owned()),
            Err(error) => return Err(format!("the HTTP response is damaged: {error}")),
        };
        let content_type = header(parsed.headers, "Content-Type").unwrap_or_default();
        if response.len() == length || matches!(Payload::of_type(content_type, Cow::default()), Payload::None)
        {
            return Ok(Payload::None);
        }
        let mut body = Cow::Borrowed(&response[length..]);
        // Some crawlers take the chunks apart and leave the header, so what is not chunked is taken as it is.
        if header(parsed.headers, "Transfer-Encoding")
            .is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"))
            && let Ok(whole) = limited(chunked_transfer::Decoder::new(&body[..]), most)
        {
            body = whole.into();
        }
        let codings = header(parsed.headers, "Content-Encoding").unwrap_or_default();
        for coding in codings.rsplit(',').map(str::trim).filter(|coding| !coding.is_empty()) {
            body = decoded(&coding.to_ascii_lowercase(), body, most)?;
        }
        Ok(Payload::of_type(content_type, body))
    }

    fn of_type(content_type: &str, bytes: Cow<'b, [u8]>) -> Self {
        let mut parts = content_type.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let label = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']))
        });
        let charset = label.and_then(|label| Encoding::for_label(label.as_bytes()));
        let is_page = PAGES.contains(&kind.as_str());
        if is_page && (bytes.is_empty() || is_html(&bytes)) {
            return Payload::Page(page(bytes, charset));
        }
        // Servers call other texts pages, too.
        if is_page || kind.starts_with("text/") && kind != "text/css" && kind != "text/javascript" {
            return Payload::Text { bytes, charset };
        }
        Payload::None
    }
}

fn is_http(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/http")
}

fn header<'h>(headers: &[Header<'h>], name: &str) -> Option<&'h str> {
    let header = headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
    str::from_utf8(header.value).ok().map(str::trim)
}

/// Returns a page in UTF-8 with a byte order mark, if the response names another encoding, in which the page has no illegal bytes. The encoding
/// of any other page is found out from the page.
fn page(bytes: Cow<[u8]>, charset: Option<&'static Encoding>) -> Vec<u8> {
    // Bytes that are legal in UTF-8 and not all ASCII are UTF-8, whatever a server says.
    let may_be_other = bytes.is_ascii() || simdutf8::basic::from_utf8(&bytes).is_err();
    let named =
        charset.filter(|charset| *charset != UTF_8 && may_be_other && Encoding::for_bom(&bytes).is_none());
    if let Some(charset) = named
        && let Some(text) = charset.decode_without_bom_handling_and_without_replacement(&bytes)
    {
        return ["\u{feff}", &text].concat().into_bytes();
    }
    bytes.into_owned()
}

/// Undoes a content coding.
fn decoded<'b>(coding: &str, body: Cow<'b, [u8]>, most: usize) -> Result<Cow<'b, [u8]>, String> {
    let failed = |error: io::Error| format!("its content is damaged as {coding}: {error}");
    let bytes = &body[..];
    let decoded = match coding {
        "identity" => return Ok(body),
        // Some crawlers decompress the content and leave the header.
        "gzip" | "x-gzip" if !bytes.starts_with(&[0x1f, 0x8b]) => return Ok(body),
        "gzip" | "x-gzip" => limited(MultiGzDecoder::new(bytes), most),
        // Servers send it with the header of zlib and without.
        "deflate" => {
            limited(ZlibDecoder::new(bytes), most).or_else(|_| limited(DeflateDecoder::new(bytes), most))
        }
        "br" => limited(brotli::Decompressor::new(bytes, 1 << 16), most),
        "zstd" => zstd::Decoder::new(bytes).and_then(|decoder| limited(decoder, most)),
        _ => return Err(format!("its content is coded as {coding}, which is not read")),
    };
    Ok(decoded.map_err(failed)?.into())
}

/// Reads all bytes.
///
/// # Errors
/// Those of the reader, and when there are more than `most`.
fn limited(reader: impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(most as u64 + 1).read_to_end(&mut bytes)?;
    match bytes.len() > most {
        true => Err(io::Error::other(format!("longer than the {most} bytes that a record may have"))),
        false => Ok(bytes),
    }
}
