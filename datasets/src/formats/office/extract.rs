//! The text of a document, by the kind that its first bytes show.

use super::{docx, html, misread, pdf};

pub(super) const ZIP: &[u8] = b"PK\x03\x04";
pub(super) const EMPTY_ZIP: &[u8] = b"PK\x05\x06";
pub(super) const OLE: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";
pub(super) const PDF: &[u8] = b"%PDF-";
/// Reason why a document without text is none.
pub(crate) const NO_TEXT: &str = "no text: scanned or empty";
/// Number of bytes at the beginning of a file in which its `%PDF-` may come, as in ISO 32000's implementation
/// notes.
const PDF_HEAD_BYTES: usize = 1024;

/// The text of a document, or why there is none.
pub(super) type ExtractedText = Result<String, String>;

/// Returns the text of a Word or PDF document, or why there is none. For foreign documents this must be called only in an
/// extractor.
pub(crate) fn extract(document: Vec<u8>, max_bytes: usize) -> Result<String, String> {
    let text = cluster::catch(|| {
        let head = &document[..document.len().min(PDF_HEAD_BYTES)];
        if head.starts_with(OLE) {
            Err("an OLE file, which is not read: a .doc, or an encrypted .docx".to_owned())
        } else if head.starts_with(ZIP) || head.starts_with(EMPTY_ZIP) {
            docx::text(&document, max_bytes)
        } else if head.windows(PDF.len()).any(|bytes| bytes == PDF) {
            pdf::text(document, max_bytes)
        } else {
            Err("neither a Word document nor a PDF".to_owned())
        }
    });
    checked(text.flatten()?)
}

/// Returns the texts of web pages, each as [`extract`] does. `pages`: in postcard's encoding, as is the result.
pub(crate) fn extract_pages(pages: &[u8]) -> Result<Vec<u8>, String> {
    let pages: Vec<&[u8]> = postcard::from_bytes(pages).map_err(|error| error.to_string())?;
    let texts: Vec<ExtractedText> = pages.iter().map(|page| extract_page(page)).collect();
    postcard::to_stdvec(&texts).map_err(|error| error.to_string())
}

/// Returns the text of a web page, as [`extract`] does.
pub(super) fn extract_page(page: &[u8]) -> ExtractedText {
    checked(cluster::catch(|| html::text(page)).flatten()?)
}

fn checked(text: String) -> Result<String, String> {
    // A document without text would be a near-duplicate of all others.
    if text.trim().is_empty() {
        return Err(NO_TEXT.to_owned());
    }
    match misread::refusal(&text) {
        Some(reason) => Err(reason),
        None => Ok(text),
    }
}
