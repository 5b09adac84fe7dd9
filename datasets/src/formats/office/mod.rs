//! Folders of Word documents, PDF files and web pages. Their texts are read by `docx`, `pdf` and `html`, in processes that can do nothing
//! else (`crate::confined`).

mod docx;
mod extract;
mod html;
mod misread;
mod named_fonts;
mod package;
mod pages;
mod pdf;

use std::sync::Arc;

use operators::{DocBatch, Reject};

use self::extract::{EMPTY_ZIP, OLE, PDF, ZIP};
pub(crate) use self::extract::{NO_TEXT, extract, extract_pages};
pub(crate) use self::html::is_html;
pub(crate) use self::pages::texts_of_pages;
use super::tree::{TreeWriter, read_file};
use super::unknown::advice;
use crate::confined::{Bounds, ConfinedTask, Extractors};
use crate::text::compression::has_suffix;
use crate::{Cuts, Error, Format, Parts, Piece, Reader, Reading, Writer};

/// Word (`.docx`) and PDF files and web pages (`.html`), each one document.
///
/// The id is the file's path below the input; the text is that of the body, or of the pages; that of a web page has a line for each block,
/// menus included, and no scripts. A file is a
/// reject if it has no text but only images, is damaged or encrypted, or is longer than the longest record,
/// as stored or decompressed. `.doc` files and ZIP archives are recognised only to be rejected one by one.
/// Files are copied whole, to the same path below `kept` or `removed`.
///
/// Sources: ECMA-376 (Office Open XML), ISO 32000-1 (PDF), the HTML Standard.
pub struct Office;

/// The one value of [`Office`].
pub static OFFICE: Office = Office;

impl Format for Office {
    fn name(&self) -> &'static str {
        "office"
    }

    /// Recognises by extension, or by the first bytes.
    fn recognises(&self, path: &str, head: &[u8]) -> bool {
        if advice(path).is_some() && !has_suffix(path, ".zip") {
            return false;
        }
        let named = [".docx", ".pdf", ".doc", ".zip"].iter().any(|suffix| has_suffix(path, suffix));
        named || is_page(path) || [ZIP, EMPTY_ZIP, OLE, PDF].iter().any(|magic| head.starts_with(magic))
    }

    fn file_is_record(&self) -> bool {
        true
    }

    /// A document is not made again of its text.
    fn cuts_texts(&self, _field: &str) -> bool {
        false
    }

    fn cuts(&self, _path: &str) -> Cuts {
        Cuts::Nowhere
    }

    fn open(&self, piece: &Piece, reading: &Reading) -> Result<Box<dyn Reader>, Error> {
        let extractors = reading.extractors.clone();
        let bounds = Bounds::of(reading);
        Ok(Box::new(DocumentReader { piece: piece.clone(), extractors, bounds }))
    }

    fn writer<'a>(&self, parts: &'a dyn Parts, reading: &Reading) -> Box<dyn Writer + 'a> {
        Box::new(TreeWriter::new(parts, reading))
    }
}

/// Whether a file is a web page by its name. A document that is called otherwise and holds HTML is damaged.
fn is_page(path: &str) -> bool {
    [".html", ".htm", ".xhtml"].iter().any(|suffix| has_suffix(path, suffix))
}

/// Reader of the one document of a piece that begins where its file does.
struct DocumentReader {
    piece: Piece,
    extractors: Arc<Extractors>,
    bounds: Bounds,
}

impl Reader for DocumentReader {
    fn fill(&mut self, batch: &mut DocBatch) -> Result<bool, Error> {
        if self.piece.start > 0 {
            return Ok(false);
        }
        let (blob, path) = (&self.piece.blob, self.piece.blob.path());
        let max_bytes = self.bounds.max_bytes;
        let (bytes, too_long) = read_file(blob, max_bytes)?;
        let head = bytes[..bytes.len().min(Reject::HEAD_BYTES)].to_vec();
        if too_long {
            batch.reject(path, 0, format!("the file is longer than {max_bytes} bytes"), &head);
            return Ok(false);
        }
        let text = match is_page(path) {
            true => texts_of_pages(&[bytes], (&self.extractors, self.bounds), path)?.remove(0),
            false => self.text(bytes, path)?,
        };
        match text {
            Ok(text) => batch.push(&self.piece.name, &text),
            Err(reason) => batch.reject(path, 0, reason, &head),
        }
        Ok(false)
    }
}

impl DocumentReader {
    /// Returns the text of a Word or PDF document, or why there is none.
    fn text(&self, document: Vec<u8>, path: &str) -> Result<Result<String, String>, Error> {
        let answer = self.extractors.ask(ConfinedTask::ExtractText, document, self.bounds);
        let answer = answer.map_err(|error| cluster::Error::io(path, "extract the text of", error))?;
        let utf8 = |text| String::from_utf8(text).map_err(|_| "the extractor's answer is no text".to_owned());
        Ok(answer.and_then(utf8))
    }
}

#[cfg(test)]
mod tests;
