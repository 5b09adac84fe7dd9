//! Word and PDF documents: their text, their limits, and hostile files.

mod page;
mod pages;
mod word;

use std::io::{Cursor, Write};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::extract::extract;
use super::*;
use crate::testing::{MemoryBlob, Record, corpus_file, divide, mutants, pieces, read};
use crate::{Fate, Removal};

const MAX_BYTES: usize = 1 << 20;
const WORD: &str = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";

/// Returns a ZIP archive of these entries.
fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        archive.start_file(*name, SimpleFileOptions::default()).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// Returns a Word document with this body.
fn docx(body: &str) -> Vec<u8> {
    zip(&[("[Content_Types].xml", b"<Types/>"), ("word/document.xml", xml(body).as_bytes())])
}

fn xml(body: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<w:document xmlns:w=\"{WORD}\" \
         xmlns:mc=\"http://schemas.openxmlformats.org/markup-compatibility/2006\" \
         xmlns:m=\"http://schemas.openxmlformats.org/officeDocument/2006/math\">\n \
         <w:body>{body}</w:body></w:document>"
    )
}

fn paragraph(text: &str) -> String {
    format!("<w:p><w:pPr><w:tabs><w:tab w:pos=\"9\"/></w:tabs></w:pPr> <w:r><w:t>{text}</w:t></w:r></w:p>")
}

fn text_of(document: Vec<u8>) -> Result<String, String> {
    extract(document, MAX_BYTES)
}

#[track_caller]
fn refused(document: Vec<u8>, word: &str) {
    let reason = text_of(document).unwrap_err();
    assert!(reason.contains(word), "\"{word}\" is not in \"{reason}\"");
}

/// Returns a PDF of these pages' instructions. `/F` is the font, and `fonts` are its objects, from number 3
/// on.
pub(super) fn pdf(fonts: &[&str], pages: &[&[u8]]) -> Vec<u8> {
    let first = 3 + fonts.len();
    let kids: String = (0..pages.len()).map(|page| format!("{} 0 R ", first + 2 * page)).collect();
    let mut objects = vec![b"<</Type/Catalog/Pages 2 0 R>>".to_vec()];
    objects.push(format!("<</Type/Pages/Count {}/Kids[{kids}]>>", pages.len()).into_bytes());
    objects.extend(fonts.iter().map(|font| font.as_bytes().to_vec()));
    for (number, page) in pages.iter().enumerate() {
        let contents = first + 2 * number + 1;
        let page_object = format!(
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents {contents} 0 R\
             /Resources<</Font<</F 3 0 R>>>>>>"
        );
        objects.push(page_object.into_bytes());
        let stream =
            [format!("<</Length {}>>stream\n", page.len()).as_bytes(), page, b"\nendstream"].concat();
        objects.push(stream);
    }
    let mut bytes = b"%PDF-1.4\n".to_vec();
    let mut offsets = String::new();
    for (object, number) in objects.iter().zip(1..) {
        offsets += &format!("{:010} 00000 n \n", bytes.len());
        bytes.extend([format!("{number} 0 obj").as_bytes(), object, b"\nendobj\n"].concat());
    }
    let count = objects.len() + 1;
    let start = bytes.len();
    let end = format!(
        "xref\n0 {count}\n0000000000 65535 f \n{offsets}trailer<</Size {count}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n"
    );
    bytes.extend_from_slice(end.as_bytes());
    bytes
}

const HELVETICA: &str = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>";

#[test]
fn files_are_recognised_by_name_or_magic_and_copied_whole() {
    for (path, head) in
        [("/a.DOCX", ""), ("/a.pdf", ""), ("/a", "%PDF-1.7"), ("/a", "PK\x03\x04"), ("/a.zip", "")]
    {
        assert!(OFFICE.recognises(path, head.as_bytes()), "{path} {head}");
    }
    assert!(!OFFICE.recognises("/a.txt", b"a"));
    let word = docx(&paragraph("a"));
    let page = pdf(&[HELVETICA], &[b"BT /F 9 Tf (a) Tj ET"]);
    let files = [("/x/1.docx", &word[..]), ("/x/2.docx", b"PK"), ("/x/3.pdf", &page)];
    let files = files.map(|(path, bytes)| pieces(&MemoryBlob::shared(path, bytes, 9), &[]).remove(0));
    let (records, failed) = read(&OFFICE, &files, &Reading::default());
    assert!(failed.is_none());
    assert!(matches!(&records[0], Record::Doc { id, text } if id == "x/1.docx" && text == "a\n"));
    assert!(matches!(&records[1], Record::Reject { offset: 0, .. }));
    let (parts, failed) = divide(&OFFICE, &files, &records, |id| match id {
        "x/1.docx" => Fate::Kept,
        id => Fate::Removed(Removal {
            id: id.to_owned(),
            duplicate_of: "x/1.docx".to_owned(),
            similarity: None,
            cluster: "x/1.docx".to_owned(),
            reason: "identical".into(),
        }),
    });
    assert!(failed.is_none());
    assert_eq!(parts.names(), ["kept/x/1.docx", "removed/_reasons/0.jsonl", "removed/x/3.pdf"]);
    assert!(parts.bytes("kept/x/1.docx") == word && parts.bytes("removed/x/3.pdf") == page);
}

#[test]
fn a_file_longer_than_the_longest_record_is_not_held() {
    let reading = Reading { max_record_bytes: 100, ..Reading::default() };
    let blob = MemoryBlob::shared("/a.pdf", &[b'%'; 101], 9);
    let (records, _) = read(&OFFICE, &pieces(&blob, &[]), &reading);
    assert!(
        matches!(&records[..], [Record::Reject { reason, .. }] if reason.contains("longer than 100 bytes"))
    );
}

#[test]
fn the_shared_controls_give_their_texts() {
    let text = |name: &str| corpus_file(&format!("hostile/{name}")).map(|bytes| text_of(bytes).unwrap());
    let Some(plain) = text("docx/ok_minimal.docx") else { return };
    assert!(plain.lines().count() == 3 && plain.starts_with("新华社北京电 国家统计局"), "{plain}");
    let Some(utf16) = text("docx/utf16_xml.docx") else { return };
    assert_eq!(utf16.lines().count(), 1);
    let Some(tracked) = text("docx/tracked_deleted.docx") else { return };
    assert!(tracked.ends_with("百分之五点二。INSbox\n") && tracked.lines().count() == 1, "{tracked}");
    assert_eq!(text("pdf/ok_minimal.pdf").as_deref(), Some("hello dev\n"));
}
