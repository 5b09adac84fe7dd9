//! The text of a Word document: the main part of a ZIP archive (ECMA-376, parts 1 and 2).

use std::borrow::Cow;
use std::io::{self, Cursor, Read};

use quick_xml::NsReader;
use quick_xml::events::{BytesRef, Event};
use quick_xml::name::{Namespace, ResolveResult};
use zip::ZipArchive;
use zip::result::ZipError;

use super::package::{RELATIONSHIPS, main_part};

/// Name of the main part of nearly all documents. It is taken where relationships name no part that is there.
const USUAL_MAIN_PART: &str = "word/document.xml";
/// Largest depth of nested elements. Word's own documents stay below 100.
const MAX_DEPTH: usize = 1000;

/// Namespaces of ECMA-376 for text, transitional and strict. Those of math and of compatibility (part 3)
/// follow.
const WORD: [&[u8]; 2] = [
    b"http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    b"http://purl.oclc.org/ooxml/wordprocessingml/main",
];
const MATH: [&[u8]; 2] = [
    b"http://schemas.openxmlformats.org/officeDocument/2006/math",
    b"http://purl.oclc.org/ooxml/officeDocument/math",
];
const COMPATIBILITY: &[u8] = b"http://schemas.openxmlformats.org/markup-compatibility/2006";

/// Returns the text of the body, with a newline after each paragraph. Text that was deleted or moved away is
/// left out, as are headers, footnotes and comments, which are other parts.
///
/// `max_bytes` bounds all entries of the archive together, once decompressed. Their checksums are compared,
/// and a wrong one is an error. Entries other than the body are neither held nor interpreted. Memory: up to
/// twice the body, three times for UTF-16. Errors say why there is no text.
pub(super) fn text(bytes: &[u8], max_bytes: usize) -> Result<String, String> {
    let body = body(bytes, max_bytes)?;
    read(&utf8(&body.xml, &body.name)?, &body.name)
}

/// The main part of a document.
struct MainPart {
    name: String,
    xml: Vec<u8>,
}

fn body(bytes: &[u8], max_bytes: usize) -> Result<MainPart, String> {
    let damaged = |error: ZipError| format!("the ZIP archive is damaged: {error}");
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
    // Programs differ in which of two entries of one name they read.
    if archive.has_duplicate_names() {
        return Err("the ZIP archive has two entries of one name".to_owned());
    }
    let body_index = body_index(&mut archive, max_bytes)?;
    let mut body = MainPart { name: String::new(), xml: Vec::new() };
    let mut read_bytes = 0;
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(damaged)?;
        let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
        let mut entry = entry.take(max_bytes as u64 + 1 - read_bytes);
        // The archive compares the checksum when an entry is read to its end.
        let read = match index == body_index {
            true => entry.read_to_end(&mut body.xml).map(|bytes| bytes as u64),
            false => io::copy(&mut entry, &mut io::sink()),
        };
        read_bytes += read.map_err(|error| format!("{name:.60} in the ZIP archive is damaged: {error}"))?;
        if read_bytes > max_bytes as u64 {
            return Err(format!("the document is longer than {max_bytes} bytes decompressed"));
        }
        if index == body_index {
            body.name = name;
        }
    }
    Ok(body)
}

/// Returns the index of the entry that is the main part: the one that the relationships of the package name, or else the
/// usual one.
fn body_index(archive: &mut ZipArchive<Cursor<&[u8]>>, max_bytes: usize) -> Result<usize, String> {
    let mut relationships = Vec::new();
    if let Some(index) = archive.index_for_name_raw(RELATIONSHIPS.as_bytes())
        && let Ok(entry) = archive.by_index(index)
    {
        // Damage is reported when all entries are read.
        let _ = entry.take(max_bytes as u64).read_to_end(&mut relationships);
    }
    let named = utf8(&relationships, RELATIONSHIPS).ok().and_then(|xml| main_part(&xml));
    // Names of parts are equal whatever the case of their ASCII letters.
    let index = |name: &str| archive.file_names_raw().position(|of| of.eq_ignore_ascii_case(name.as_bytes()));
    let known = named.as_deref().and_then(index).or_else(|| index(USUAL_MAIN_PART));
    let name = named.as_deref().unwrap_or(USUAL_MAIN_PART);
    known.ok_or_else(|| format!("a ZIP archive without {name:.60}, which is not read: unpack it"))
}

/// Decodes the XML of a document, which is in UTF-8 or in UTF-16 with a byte order mark (ECMA-376 part 2).
fn utf8<'a>(xml: &'a [u8], part: &str) -> Result<Cow<'a, str>, String> {
    let (text, wrong) = match xml {
        [0xff, 0xfe, rest @ ..] => encoding_rs::UTF_16LE.decode_without_bom_handling(rest),
        [0xfe, 0xff, rest @ ..] => encoding_rs::UTF_16BE.decode_without_bom_handling(rest),
        _ => encoding_rs::UTF_8.decode_with_bom_removal(xml),
    };
    if wrong { Err(format!("{part} is neither UTF-8 nor UTF-16")) } else { Ok(text) }
}

/// Role of an element.
#[derive(Clone, Copy, PartialEq)]
enum DocxElement {
    Paragraph,
    Run,
    /// Its characters belong to the text.
    Text,
    /// Only one branch of this element counts. `met` says whether that branch has come.
    Alternatives {
        met: bool,
    },
    /// The element and everything in it is skipped.
    Skipped,
    Other,
}

/// Returns the text of the XML of a main part. `part`: its name.
fn read(xml: &str, part: &str) -> Result<String, String> {
    let mut reader = NsReader::from_str(xml);
    let mut stack: Vec<DocxElement> = Vec::new();
    let mut text = String::new();
    loop {
        let (namespace, event) =
            reader.read_resolved_event().map_err(|error| format!("{part} is not well formed: {error}"))?;
        let is_word = matches!(namespace, ResolveResult::Bound(Namespace(name)) if WORD.contains(&name));
        if stack.is_empty() && !is_word && matches!(event, Event::Start(_) | Event::Empty(_)) {
            return Err(format!("no text: {part:.60} is no Word document"));
        }
        match event {
            Event::Start(start) => {
                if stack.len() == MAX_DEPTH {
                    return Err(format!("{part} has elements nested more than {MAX_DEPTH} deep"));
                }
                let element = opened(&namespace, start.local_name().as_ref(), &mut stack, &mut text);
                stack.push(element);
            }
            Event::Empty(start) => {
                let element = opened(&namespace, start.local_name().as_ref(), &mut stack, &mut text);
                closed(element, &mut text);
            }
            Event::End(_) => closed(stack.pop().unwrap_or(DocxElement::Other), &mut text),
            Event::Text(part) if stack.last() == Some(&DocxElement::Text) => {
                text.push_str(&part.xml10_content().map_err(|error| error.to_string())?);
            }
            Event::CData(part) if stack.last() == Some(&DocxElement::Text) => {
                text.push_str(&part.xml10_content().map_err(|error| error.to_string())?);
            }
            Event::GeneralRef(reference) => {
                let character = character(&reference, part)?;
                if stack.last() == Some(&DocxElement::Text) {
                    text.push(character);
                }
            }
            Event::DocType(_) => {
                return Err(format!("{part} has a document type definition, which is refused"));
            }
            Event::Eof if stack.is_empty() => return Ok(text),
            Event::Eof => return Err(format!("{part} ends within an element")),
            _ => {}
        }
    }
}

/// Handles the start of an element: writes the text that it stands for, and returns its role.
fn opened(
    namespace: &ResolveResult<'_>,
    name: &[u8],
    stack: &mut [DocxElement],
    text: &mut String,
) -> DocxElement {
    let ResolveResult::Bound(Namespace(namespace)) = namespace else {
        return inherited(stack.last());
    };
    let word = WORD.contains(namespace);
    let parent = stack.last_mut();
    if parent.as_deref() == Some(&DocxElement::Skipped) {
        return DocxElement::Skipped;
    }
    match name {
        // A choice for programs that know an extension, and a fallback for others, hold the same text twice.
        b"Choice" | b"Fallback" if *namespace == COMPATIBILITY => match parent {
            Some(DocxElement::Alternatives { met: met @ false }) => {
                *met = true;
                DocxElement::Other
            }
            _ => DocxElement::Skipped,
        },
        b"AlternateContent" if *namespace == COMPATIBILITY => DocxElement::Alternatives { met: false },
        b"t" if word || MATH.contains(namespace) => DocxElement::Text,
        b"p" if word => DocxElement::Paragraph,
        b"r" if word => DocxElement::Run,
        b"del" | b"moveFrom" if word => DocxElement::Skipped,
        // A text box lies in the middle of a paragraph.
        b"txbxContent" if word => {
            close_line(text);
            DocxElement::Other
        }
        // Outside of a run, `tab` is a tab stop and not a character.
        b"tab" | b"ptab" if word && parent.as_deref() == Some(&DocxElement::Run) => {
            text.push('\t');
            DocxElement::Other
        }
        b"br" | b"cr" if word && parent.as_deref() == Some(&DocxElement::Run) => {
            text.push('\n');
            DocxElement::Other
        }
        b"noBreakHyphen" if word => {
            text.push('-');
            DocxElement::Other
        }
        _ => DocxElement::Other,
    }
}

fn inherited(parent: Option<&DocxElement>) -> DocxElement {
    if parent == Some(&DocxElement::Skipped) { DocxElement::Skipped } else { DocxElement::Other }
}

fn closed(element: DocxElement, text: &mut String) {
    if element == DocxElement::Paragraph {
        text.push('\n');
    }
}

fn close_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// Returns the character of a reference: a number, or one of the five names that XML itself defines.
fn character(reference: &BytesRef<'_>, part: &str) -> Result<char, String> {
    let name = reference.decode().map_err(|error| error.to_string())?;
    let number =
        reference.resolve_char_ref().map_err(|_| format!("{part} refers to no character by &{name};"))?;
    match (number, &*name) {
        (Some(character), _) => Ok(character),
        (None, "lt") => Ok('<'),
        (None, "gt") => Ok('>'),
        (None, "amp") => Ok('&'),
        (None, "quot") => Ok('"'),
        (None, "apos") => Ok('\''),
        (None, _) => Err(format!("{part} refers to the entity &{name};, which is not defined")),
    }
}
