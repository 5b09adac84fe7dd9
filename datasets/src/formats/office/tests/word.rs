//! Word documents.

use super::*;

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
fn relationships_say_which_part_is_the_main_one() {
    let (body, other) = (xml(&paragraph("main")), xml(&paragraph("other")));
    let read = |target: &str, name: &str| {
        let kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument";
        let xml = format!(
            "<?xml version=\"1.0\"?><Relationships><Relationship Type=\"{kind}\" Target=\"{target}\"/></Relationships>"
        );
        let entries = [
            ("_rels/.rels", xml.as_bytes()),
            ("word/document.xml", other.as_bytes()),
            (name, body.as_bytes()),
        ];
        text_of(zip(if name.is_empty() { &entries[..2] } else { &entries }))
    };
    for (target, name) in [
        ("word/document2.xml", "word/document2.xml"),
        ("/word/document2.xml", "word/document2.xml"),
        ("/Content/Main.xml", "content/main.xml"),
        ("/word/%E6%96%87.xml", "word/文.xml"),
    ] {
        assert_eq!(read(target, name).unwrap(), "main\n", "{target}");
    }
    assert_eq!(read("/word/document.xml", "").unwrap(), "other\n");
    assert_eq!(read("/word/missing.xml", "").unwrap(), "other\n");
    let book = b"<workbook xmlns=\"urn:x\"/>";
    let only = |target: &str| {
        let kind = "http://purl.oclc.org/ooxml/officeDocument/relationships/officeDocument";
        let xml =
            format!("<Relationships><Relationship Type=\"{kind}\" Target=\"{target}\"/></Relationships>");
        zip(&[("_rels/.rels", xml.as_bytes()), ("xl/workbook.xml", book)])
    };
    refused(only("xl/workbook.xml"), "xl/workbook.xml is no Word document");
    refused(only("word/document3.xml"), "a ZIP archive without word/document3.xml");
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
