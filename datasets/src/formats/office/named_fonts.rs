//! Fonts of a PDF that are named in a Chinese, Japanese or Korean encoding, and whose texts are in that encoding too,
//! whatever the font says.
//!
//! Programs on Chinese Windows have written such fonts: the name is 宋体 in GBK, the encoding is said to be
//! WinAnsiEncoding, no font is embedded, and there is no ToUnicode map. Viewers find the font by its name and take the
//! codes as GBK. Source: <https://github.com/mozilla/pdf.js/issues/20781>.
//!
//! ```text
//! <</Type/Font/Subtype/TrueType/BaseFont/#CB#CE#CC#E5/Encoding/WinAnsiEncoding …>>       as written
//! <</Subtype/Type0/Encoding/GBK-EUC-H/DescendantFonts[<<…>>]>>                           as it is read
//! ```

use std::ops::Range;

use encoding_rs::{BIG5, EUC_KR, Encoding, GBK, SHIFT_JIS};
use hayro_interpret::hayro_syntax::Pdf;
use hayro_interpret::hayro_syntax::object::{Dict, MaybeRef, Name, Object};

/// Depth to which dictionaries and lists within an object are searched for fonts.
const DEPTH: usize = 8;

/// An encoding of the names of fonts.
struct NamedEncoding {
    encoding: &'static Encoding,
    /// Parts of the names of fonts, by which a name in this encoding is known.
    parts: &'static [&'static str],
    /// Name of the map from codes to the characters of a collection of Adobe.
    map: &'static str,
    /// The first and the last of the characters of that collection that are half as wide as the others.
    half_width: (u32, u32),
}

/// The encodings, in the order in which they are tried. No name of a font in GBK has one of the parts of the first three.
static ENCODINGS: [NamedEncoding; 4] = [
    NamedEncoding {
        encoding: BIG5,
        parts: &["明體", "楷體", "黑體", "隸書", "圓體", "宋體", "仿宋體", "華康", "全真", "文鼎"],
        map: "ETen-B5-H",
        half_width: (13648, 13742),
    },
    NamedEncoding {
        encoding: SHIFT_JIS,
        parts: &["明朝", "ゴシック", "メイリオ", "行書体", "教科書体", "楷書体", "ヒラギノ"],
        map: "90ms-RKSJ-H",
        half_width: (231, 632),
    },
    NamedEncoding {
        encoding: EUC_KR,
        parts: &["바탕", "굴림", "돋움", "궁서", "명조", "고딕", "신명", "휴먼", "한양"],
        map: "KSCms-UHC-H",
        half_width: (1, 100),
    },
    NamedEncoding {
        encoding: GBK,
        parts: &[
            "宋", "黑", "楷", "仿", "隶", "圆", "华文", "方正", "汉仪", "文鼎", "等线", "魏碑", "行书",
            "简体",
        ],
        map: "GBK-EUC-H",
        half_width: (814, 939),
    },
];

/// Returns the file with such fonts as they are read; `None` if it has none, or none that can be changed in its place.
///
/// Fonts within compressed objects stay as they are. Cost: every object is looked at; memory for the file once more if it
/// has such a font.
pub(super) fn with_readable_fonts(pdf: &Pdf) -> Option<Vec<u8>> {
    let bytes: &[u8] = pdf.data().as_ref();
    let mut changes = Vec::new();
    for object in pdf.objects() {
        find(object, DEPTH, &mut |font| changes.extend(change(bytes, font)));
    }
    if changes.is_empty() {
        return None;
    }
    let mut changed = bytes.to_vec();
    for (range, font) in changes {
        let (written, rest) = changed[range].split_at_mut(font.len());
        written.copy_from_slice(font.as_bytes());
        rest.fill(b' ');
    }
    Some(changed)
}

/// Calls `each` with every dictionary of a font within an object.
fn find(object: Object<'_>, depth: usize, each: &mut impl FnMut(&Dict<'_>)) {
    let is_direct = |object| if let MaybeRef::NotRef(object) = object { Some(object) } else { None };
    if depth == 0 {
        return;
    }
    match object {
        Object::Dict(dict) => {
            if dict.get::<Name<'_>>("Type").is_some_and(|kind| &*kind == b"Font") {
                each(&dict);
            }
            let inner = dict.entries().filter_map(|(_, inner)| is_direct(inner));
            inner.for_each(|inner| find(inner, depth - 1, each));
        }
        Object::Stream(stream) => find(Object::Dict(stream.dict().clone()), depth, each),
        Object::Array(array) => {
            array.raw_iter().filter_map(is_direct).for_each(|inner| find(inner, depth - 1, each));
        }
        _ => {}
    }
}

/// Returns the place of a font in the file and what it is read as, if it is named in an encoding and says too little about
/// its codes.
fn change(bytes: &[u8], font: &Dict<'_>) -> Option<(Range<usize>, String)> {
    let is_simple = [&b"TrueType"[..], b"Type1", b"MMType1"].contains(&&*font.get::<Name<'_>>("Subtype")?);
    let descriptor = font.get::<Dict<'_>>("FontDescriptor").unwrap_or_else(Dict::empty);
    let is_embedded = ["FontFile", "FontFile2", "FontFile3"].iter().any(|file| descriptor.contains_key(file));
    // Such a list names characters one by one.
    let has_list =
        font.get::<Dict<'_>>("Encoding").is_some_and(|encoding| encoding.contains_key("Differences"));
    if !is_simple || is_embedded || has_list || font.contains_key("ToUnicode") {
        return None;
    }
    let NamedEncoding { map, half_width: (first, last), .. } =
        encoding_of(&font.get::<Name<'_>>("BaseFont")?)?;
    let read_as = format!("<</Subtype/Type0/Encoding/{map}/DescendantFonts[<</W[{first} {last} 500]>>]>>");
    let start = font.data().as_ptr().addr().checked_sub(bytes.as_ptr().addr())?;
    let range = start..start + font.data().len();
    (range.end <= bytes.len() && read_as.len() <= range.len()).then_some((range, read_as))
}

/// Returns the encoding of the name of a font, if it is that of a known font in one of the encodings.
fn encoding_of(name: &[u8]) -> Option<&'static NamedEncoding> {
    if name.is_ascii() || str::from_utf8(name).is_ok() {
        return None;
    }
    ENCODINGS.iter().find(|of| {
        let decoded = of.encoding.decode_without_bom_handling_and_without_replacement(name);
        decoded.is_some_and(|name| of.parts.iter().any(|part| name.contains(part)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_of_a_name_is_known_by_the_fonts_of_its_system() {
        for (encoding, names) in [
            (BIG5, &["細明體", "新細明體", "標楷體", "微軟正黑體", "華康儷中黑"][..]),
            (SHIFT_JIS, &["ＭＳ 明朝", "ＭＳ Ｐゴシック", "メイリオ", "HG正楷書体-PRO"]),
            (EUC_KR, &["바탕", "굴림체", "돋움", "맑은 고딕", "궁서체", "HY신명조"]),
            (
                GBK,
                &[
                    "宋体",
                    "宋体,Bold",
                    "黑体",
                    "仿宋_GB2312",
                    "楷体_GB2312",
                    "新宋体",
                    "隶书",
                    "方正小标宋简体",
                ],
            ),
        ] {
            for name in names {
                let found = encoding_of(&encoding.encode(name).0).map(|of| of.encoding);
                assert_eq!(found, Some(encoding), "{name}");
            }
        }
        for name in [&b"SimSun"[..], "宋体".as_bytes(), b"Caf\xe9-Roman", b"\xff\xff", b"\xcb"] {
            assert!(encoding_of(name).is_none(), "{name:?}");
        }
    }
}
