//! PDF documents.

use super::*;

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

/// Returns a page in a font that is named in an encoding, in which its codes are too, and which is not embedded.
fn named(encoding: &'static encoding_rs::Encoding, name: &str, text: &str, more: &str) -> Vec<u8> {
    let name: String = encoding.encode(name).0.iter().map(|byte| format!("#{byte:02X}")).collect();
    let widths = "500 ".repeat(256);
    let font = format!(
        "<</Type/Font/Subtype/TrueType/BaseFont/{name}/Encoding/WinAnsiEncoding/FirstChar 0/LastChar 255\
         /Widths[{widths}]{more}>>"
    );
    pdf(&[&font], &[&show(&encoding.encode(text).0)])
}

#[test]
fn a_font_that_is_named_in_an_encoding_has_its_codes_in_it() {
    for (encoding, name, text) in [
        (encoding_rs::GBK, "宋体", "关于印发2026年 (abc) 工作要点，镕"),
        (encoding_rs::GBK, "仿宋_GB2312,Bold", "各单位"),
        (encoding_rs::BIG5, "新細明體", "這是測試2026 abc，臺灣"),
        (encoding_rs::SHIFT_JIS, "ＭＳ 明朝", "これはテスト2026 abc、東京"),
        (encoding_rs::EUC_KR, "바탕체", "이것은 시험 2026 abc, 서울"),
    ] {
        // The maps of Adobe make an en space of a space that is half as wide as a character.
        let read = text_of(named(encoding, name, text, "")).unwrap().replace('\u{2002}', " ");
        assert_eq!(read, format!("{text}\n"), "{name}");
    }
    let to_unicode = named(encoding_rs::GBK, "宋体", "关于印发工作要点", "/ToUnicode 9 0 R");
    refused(to_unicode, "another encoding read as Western letters");
    let western = named(encoding_rs::WINDOWS_1252, "Café", "“déjà vu” 2026", "");
    assert_eq!(text_of(western).unwrap(), "“déjà vu” 2026\n");
}

#[test]
fn a_text_of_western_letters_that_are_bytes_of_another_encoding_is_none() {
    let misread: String =
        encoding_rs::GBK.encode("关于印发工作要点的通知").0.iter().map(|&b| b as char).collect();
    refused(docx(&paragraph(&misread)), "22 of 22 characters look like bytes of another encoding");
    assert!(
        text_of(docx(&["L’élève préféré a régénéré l’hétérogénéité", &misread[..4]].map(paragraph).concat()))
            .is_ok()
    );
}

#[test]
fn a_to_unicode_map_may_be_the_name_of_one() {
    for writing in ["H", "V"] {
        let text = "关于Abc";
        let codes: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let fonts = chinese(&format!("Identity-{writing}"), &format!("/ToUnicode/Identity-{writing}"));
        let fonts = fonts.map(|font| font.replace("GB1", "Identity"));
        let file = pdf(&fonts.each_ref().map(|font| &**font), &[&show(&codes)]);
        assert_eq!(text_of(file).unwrap(), format!("{text}\n"));
    }
}

#[test]
fn a_font_of_drawings_names_its_characters() {
    let font = "<</Type/Font/Subtype/Type3/FontBBox[0 0 10 10]/FontMatrix[.1 0 0 .1 0 0]/FirstChar 97/LastChar 98/Widths[5 5]\
                /Encoding<</Differences[97/uni5173/b]>>/CharProcs<</uni5173 4 0 R/b 4 0 R>>>>";
    let drawing = "<</Length 26>>stream\n5 0 0 0 5 5 d1 0 0 5 5 re f\nendstream";
    let page = b"BT /F 10 Tf 50 800 Td (ab) Tj 20 0 Td (b) Tj 8 0 Td (b) Tj ET";
    assert_eq!(text_of(pdf(&[font, drawing], &[page])).unwrap(), "关b b b\n");
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
