//! Word and PDF documents: their text, their limits, and hostile files.

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

#[test]
fn each_paragraph_of_a_word_document_is_a_line() {
    let body = ["新华社北京电", "国家统计局", "&lt;a&gt; &amp; &#x4E00;&#19968;"].map(paragraph).concat();
    assert_eq!(text_of(docx(&body)).unwrap(), "新华社北京电\n国家统计局\n<a> & 一一\n");
    let run = "<w:p><w:r><w:t>a</w:t><w:tab/><w:t><![CDATA[<b>]]></w:t><w:br/><w:t>c</w:t></w:r></w:p>";
    assert_eq!(text_of(docx(run)).unwrap(), "a\t<b>\nc\n");
    let math = "<w:p><w:r><w:t>x </w:t></w:r><m:oMath><m:r><m:t>=1</m:t></m:r></m:oMath></w:p>";
    assert_eq!(text_of(docx(math)).unwrap(), "x =1\n");
}

#[test]
fn what_was_deleted_or_moved_away_is_no_text() {
    let body = "<w:p><w:r><w:t>stays</w:t></w:r><w:del><w:r><w:delText>goes</w:delText><w:t>too</w:t></w:r></w:del>\
                <w:moveFrom><w:r><w:t>was here</w:t><w:tab/></w:r></w:moveFrom>\
                <w:ins><w:r><w:t>, comes</w:t></w:r></w:ins><w:r><w:instrText>PAGE</w:instrText></w:r></w:p>";
    assert_eq!(text_of(docx(body)).unwrap(), "stays, comes\n");
}

#[test]
fn a_text_box_counts_once() {
    let text = |text: &str| format!("<w:txbxContent><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:txbxContent>");
    let body = format!(
        "<w:p><w:r><w:t>before</w:t><mc:AlternateContent><mc:Choice Requires=\"wps\">{}</mc:Choice>\
         <mc:Fallback>{}</mc:Fallback></mc:AlternateContent><w:t>after</w:t></w:r></w:p>",
        text("box"),
        text("the same box")
    );
    assert_eq!(text_of(docx(&body)).unwrap(), "before\nbox\nafter\n");
    let fallback = "<mc:AlternateContent><mc:Fallback><w:p><w:r><w:t>old</w:t></w:r></w:p></mc:Fallback>\
                    </mc:AlternateContent>";
    assert_eq!(text_of(docx(fallback)).unwrap(), "old\n");
}

#[test]
fn utf_16_strict_namespaces_and_other_prefixes_are_read() {
    let xml = xml(&paragraph("新华社"));
    for big in [false, true] {
        let bytes = |unit: u16| if big { unit.to_be_bytes() } else { unit.to_le_bytes() };
        let utf16: Vec<u8> = "\u{feff}".encode_utf16().chain(xml.encode_utf16()).flat_map(bytes).collect();
        assert_eq!(text_of(zip(&[("word/document.xml", &utf16)])).unwrap(), "新华社\n");
    }
    let strict = xml.replace(WORD, "http://purl.oclc.org/ooxml/wordprocessingml/main");
    assert_eq!(text_of(zip(&[("word/document.xml", strict.as_bytes())])).unwrap(), "新华社\n");
    let prefix = xml.replace("w:", "ns0:").replace("xmlns:w=", "xmlns:ns0=");
    assert_eq!(text_of(zip(&[("word/document.xml", prefix.as_bytes())])).unwrap(), "新华社\n");
    let foreign = xml.replace(WORD, "urn:another");
    refused(zip(&[("word/document.xml", foreign.as_bytes())]), "no text");
}

#[test]
fn what_a_word_document_may_not_be_is_said() {
    let entity = xml("<w:p><w:r><w:t>&x;</w:t></w:r></w:p>");
    let declared = entity.replacen('\n', "<!DOCTYPE x [<!ENTITY x SYSTEM \"file:///etc/hostname\">]>", 1);
    let body = |xml: &str| zip(&[("word/document.xml", xml.as_bytes())]);
    refused(body(&declared), "document type definition");
    refused(body(&entity), "entity &x;, which is not defined");
    refused(body(&xml(&"<w:p>".repeat(100_000))), "nested more than 1000 deep");
    refused(body(&xml("<w:p></w:r>")), "not well formed");
    refused(body(xml("").trim_end_matches("</w:document>")), "ends within an element");
    refused(zip(&[("word/document.xml", b"<a>\xff</a>")]), "neither UTF-8 nor UTF-16");
    refused(docx(&paragraph(&"重".repeat(MAX_BYTES / 3 + 1))), "longer than 1048576 bytes");
    let large = vec![b'a'; MAX_BYTES / 2];
    let body = xml(&paragraph("a"));
    let two = [("word/document.xml", body.as_bytes()), ("1.bmp", &large), ("2.bmp", &large)];
    assert!(text_of(zip(&two[..2])).is_ok());
    refused(zip(&two), "longer than 1048576 bytes");
    refused(zip(&[("a.txt", b"a")]), "unpack it");
    refused(zip(&[]), "unpack it");
    refused(docx("<w:p><w:r><w:drawing/></w:r></w:p>"), "no text: scanned or empty");
    refused(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1....".to_vec(), "OLE");
    refused(b"<html>".to_vec(), "neither a Word document nor a PDF");
}

#[test]
fn two_entries_of_one_name_are_refused() {
    let (first, second) = (xml(&paragraph("one")), xml(&paragraph("two")));
    let mut bytes = zip(&[("word/document.xml", first.as_bytes()), ("word/document.xm_", second.as_bytes())]);
    for at in 0..bytes.len() - 17 {
        if &bytes[at..at + 17] == b"word/document.xm_" {
            bytes[at + 16] = b'l';
        }
    }
    refused(bytes, "two entries of one name");
}

#[test]
fn the_checksum_of_every_entry_is_compared() {
    let body = xml(&paragraph("a"));
    let bytes = zip(&[("[Content_Types].xml", b"<Types/>"), ("word/document.xml", body.as_bytes())]);
    let directory = bytes.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    for (entry, name) in [(directory, "[Content_Types].xml"), (directory + 46 + 19, "word/document.xml")] {
        let mut bytes = bytes.clone();
        bytes[entry + 16] ^= 1;
        refused(bytes, &format!("{name} in the ZIP archive is damaged"));
    }
}

#[test]
fn a_damaged_word_document_gives_its_own_text_or_none() {
    let body = ["新华社北京电", "国家统计局十九日发布数据", "同比增长百分之五点二"].map(paragraph).concat();
    let bytes = docx(&body);
    let expected = text_of(bytes.clone()).unwrap();
    let mut whole = 0;
    for (mutant, damaged) in mutants(&bytes, 2_000) {
        match text_of(mutant) {
            Ok(text) => {
                assert_eq!(text, expected, "damaged at {damaged:?}");
                whole += 1;
            }
            Err(reason) => assert!(!reason.contains("the decoder gave up"), "{reason}"),
        }
    }
    assert!(whole > 0, "no mutant was read");
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
    let (mut bytes, mut offsets) = (b"%PDF-1.4\n".to_vec(), String::new());
    for (object, number) in objects.iter().zip(1..) {
        offsets += &format!("{:010} 00000 n \n", bytes.len());
        bytes.extend([format!("{number} 0 obj").as_bytes(), object, b"\nendobj\n"].concat());
    }
    let (count, start) = (objects.len() + 1, bytes.len());
    let end = format!(
        "xref\n0 {count}\n0000000000 65535 f \n{offsets}trailer<</Size {count}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n"
    );
    bytes.extend_from_slice(end.as_bytes());
    bytes
}

const HELVETICA: &str = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>";

#[test]
fn lines_words_and_pages_of_a_pdf_are_kept_apart() {
    let pages: [&[u8]; 2] = [
        b"BT /F 12 Tf 50 800 Td (hello dev) Tj 0 -20 Td [(two)-300(wo)10(rds)] TJ ET BT /F 12 Tf 50 700 Td (end) Tj ET",
        b"BT /F 12 Tf 1 0 0 1 50 800 Tm (page) Tj ET BT /F 12 Tf 1 0 0 1 90 800 Tm (2) Tj ET",
    ];
    assert_eq!(text_of(pdf(&[HELVETICA], &pages)).unwrap(), "hello dev\ntwo words\nend\npage 2\n");
}

#[test]
fn text_that_is_filled_and_stroked_counts_once() {
    let page = b"BT /F 12 Tf 2 Tr 50 800 Td (bold) Tj 1 Tr ( outline) Tj 3 Tr ( unseen) Tj ET";
    assert_eq!(text_of(pdf(&[HELVETICA], &[page])).unwrap(), "bold outline unseen\n");
}

/// Returns the objects of a Chinese font that is not embedded.
fn chinese(encoding: &str, more: &str) -> [String; 3] {
    [
        format!(
            "<</Type/Font/Subtype/Type0/BaseFont/SimSun/Encoding/{encoding}/DescendantFonts[4 0 R]{more}>>"
        ),
        "<</Type/Font/Subtype/CIDFontType0/BaseFont/SimSun/CIDSystemInfo<</Registry(Adobe)/Ordering(GB1)\
         /Supplement 2>>/DW 1000/FontDescriptor 5 0 R>>"
            .to_owned(),
        "<</Type/FontDescriptor/FontName/SimSun/Flags 4/FontBBox[0 -200 1000 900]/ItalicAngle 0/Ascent 850\
         /Descent -150/CapHeight 700/StemV 80>>"
            .to_owned(),
    ]
}

fn show(codes: &[u8]) -> Vec<u8> {
    let hex: String = codes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("BT /F 12 Tf 50 800 Td <{hex}> Tj ET").into_bytes()
}

#[test]
fn chinese_in_the_encodings_of_chinese_producers_is_read() {
    let text = "国家统计局，２０２６年";
    let ucs2: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let gbk = encoding_rs::GBK.encode(text).0;
    for (encoding, codes) in [("UniGB-UCS2-H", &ucs2[..]), ("UniGB-UTF16-H", &ucs2), ("GBK-EUC-H", &gbk)] {
        let fonts = chinese(encoding, "");
        let file = pdf(&fonts.each_ref().map(|font| &**font), &[&show(codes)]);
        assert_eq!(text_of(file).unwrap(), format!("{text}\n"), "{encoding}");
    }
    let vertical = chinese("UniGB-UCS2-V", "");
    let file = pdf(&vertical.each_ref().map(|font| &**font), &[&show(&ucs2)]);
    assert_eq!(text_of(file).unwrap().replace('︐', "，"), format!("{text}\n"));
}

#[test]
fn a_font_may_say_by_itself_which_characters_it_draws() {
    let map = "/CIDInit /ProcSet findresource begin 12 dict begin begincmap 1 begincodespacerange <0000> <ffff> \
               endcodespacerange 2 beginbfchar <0001> <56fd> <0002> <5bb6007e> endbfchar endcmap end end";
    let to_unicode = format!("<</Length {}>>stream\n{map}\nendstream", map.len());
    let fonts = chinese("Identity-H", "/ToUnicode 6 0 R");
    let fonts = [&fonts[0], &fonts[1], &fonts[2], &*to_unicode];
    assert_eq!(text_of(pdf(&fonts, &[&show(&[0, 1, 0, 2])])).unwrap(), "国家~\n");
    assert_eq!(text_of(pdf(&fonts, &[&show(&[0, 1, 0, 9, 0, 2])])).unwrap(), "国\u{fffd}家~\n");
    refused(pdf(&fonts, &[&show(&[0, 7, 0, 8, 0, 9])]), "do not say which characters");
}

#[test]
fn a_pdf_without_text_is_no_empty_document() {
    refused(pdf(&[HELVETICA], &[b"q 100 0 0 100 0 0 cm Q"]), "no text: scanned or empty");
    refused(pdf(&[HELVETICA], &[]), "no text: scanned or empty");
    refused(b"%PDF-1.4\n".to_vec(), "damaged beyond repair");
    refused(pdf(&[HELVETICA], &[&vec![b' '; MAX_BYTES + 1]]), "longer than 1048576 bytes");
    let page = format!("BT /F 12 Tf ({}) Tj ET", "a".repeat(60_000));
    assert!(extract(pdf(&[HELVETICA], &[page.as_bytes()]), 62_000).is_ok());
    let twice = [page.as_bytes(), page.as_bytes()];
    assert!(extract(pdf(&[HELVETICA], &twice), 62_000).unwrap_err().contains("its text is longer"));
}

#[test]
fn files_are_recognised_by_name_or_magic_and_copied_whole() {
    for (path, head) in
        [("/a.DOCX", ""), ("/a.pdf", ""), ("/a", "%PDF-1.7"), ("/a", "PK\x03\x04"), ("/a.zip", "")]
    {
        assert!(OFFICE.recognises(path, head.as_bytes()), "{path} {head}");
    }
    assert!(!OFFICE.recognises("/a.txt", b"a"));
    let (word, page) = (docx(&paragraph("a")), pdf(&[HELVETICA], &[b"BT /F 9 Tf (a) Tj ET"]));
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
