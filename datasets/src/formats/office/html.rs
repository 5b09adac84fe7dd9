//! The text of a web page.

use encoding_rs::Encoding;
use html2text::config::with_decorator;
use html2text::render::TrivialDecorator;

use crate::BadText;
use crate::text::charset::Charset;

/// Number of bytes at the beginning of a page in which its encoding is declared (HTML Standard, section 4.2.5).
const HEAD_BYTES: usize = 1024;
/// Width of a line that no text exceeds, so that none is wrapped.
const WIDTH: usize = 1 << 30;
/// Beginnings of tags by which a page is known.
const TAGS: [&str; 8] = ["<!doctype html", "<html", "<head", "<body", "<title", "<meta", "<div", "<p>"];

/// Returns the text of a page, a line for each block, without scripts and styles, or why there is none.
///
/// The encoding is that of the byte order mark or of the declaration, unless the page has bytes that are illegal in it and legal in one
/// that is recognised. Illegal bytes are replaced, as browsers do.
pub(super) fn text(document: &[u8]) -> Result<String, String> {
    let page = decoded(document);
    if !begins_as_page(&page) {
        return Err("no web page: it has no tag of HTML at its beginning".to_owned());
    }
    let config = with_decorator(TrivialDecorator::new()).raw_mode(true).allow_width_overflow();
    let text = config.string_from_read(page.as_bytes(), WIDTH);
    text.map_err(|error| format!("the page cannot be read: {error}"))
}

/// Whether a document has a tag of HTML at its beginning. Cost: decodes the beginning.
pub(crate) fn is_html(document: &[u8]) -> bool {
    begins_as_page(&decoded(&document[..document.len().min(4 * HEAD_BYTES)]))
}

fn begins_as_page(page: &str) -> bool {
    let head: String = page.chars().take(HEAD_BYTES).collect::<String>().to_ascii_lowercase();
    TAGS.iter().any(|tag| head.contains(tag))
}

fn decoded(document: &[u8]) -> String {
    let declared = Encoding::for_bom(document).map(|(encoding, _)| encoding).or_else(|| declared(document));
    let (text, _, is_wrong) = declared.unwrap_or(encoding_rs::UTF_8).decode(document);
    if !is_wrong {
        return text.into_owned();
    }
    let charset = Charset::of(document, true, None);
    let mut buffer = Vec::new();
    let recognised = charset.decode(&document[charset.mark_bytes()..], BadText::Reject, &mut buffer);
    recognised.map_or_else(|_| text.into_owned(), |(recognised, _)| recognised.to_owned())
}

/// Returns the encoding that a page declares.
fn declared(document: &[u8]) -> Option<&'static Encoding> {
    let head = document[..document.len().min(HEAD_BYTES)].to_ascii_lowercase();
    let at = head.windows(8).position(|bytes| bytes == b"charset=")? + 8;
    let label = head[at..].iter().skip_while(|byte| matches!(byte, b'"' | b'\'' | b' '));
    let label: Vec<u8> =
        label.take_while(|byte| byte.is_ascii_alphanumeric() || b"-_:.".contains(byte)).copied().collect();
    // A page whose declaration can be read as ASCII is not in UTF-16.
    Encoding::for_label(&label).map(Encoding::output_encoding)
}
