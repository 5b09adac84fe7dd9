//! The package of a Word document: which part of the archive is the main one (ECMA-376, part 2).

use percent_encoding::percent_decode_str;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

/// Name of the part that holds the relationships of the package.
pub(super) const RELATIONSHIPS: &str = "_rels/.rels";
/// Types of the relationship to the main part, transitional and strict.
const MAIN_PART: [&str; 2] = [
    "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument",
    "http://purl.oclc.org/ooxml/officeDocument/relationships/officeDocument",
];

/// Returns the name of the main part, as the relationships of the package give it; `None` if they name none or are no XML.
///
/// A target is relative to the root of the package, with or without a slash in front:
///
/// ```text
/// word/document2.xml    /word/document2.xml    ./word/../word/document2.xml    word%2Fdocument2.xml
/// ```
pub(super) fn main_part(relationships: &str) -> Option<String> {
    let mut reader = Reader::from_str(relationships);
    loop {
        match reader.read_event().ok()? {
            Event::Start(element) | Event::Empty(element)
                if element.local_name().as_ref() == b"Relationship" =>
            {
                let of_main_part =
                    attribute(&element, b"Type").is_some_and(|kind| MAIN_PART.contains(&&*kind));
                let is_external = attribute(&element, b"TargetMode").is_some_and(|mode| mode == "External");
                if of_main_part && !is_external {
                    return attribute(&element, b"Target").map(|target| part_name(&target));
                }
            }
            Event::Eof | Event::DocType(_) => return None,
            _ => {}
        }
    }
}

fn attribute(element: &BytesStart<'_>, name: &[u8]) -> Option<String> {
    let attribute = element.try_get_attribute(name).ok()??;
    Some(attribute.normalized_value(XmlVersion::Implicit1_0).ok()?.into_owned())
}

/// Returns the name of the part that a target names, as the archive has it.
fn part_name(target: &str) -> String {
    let target = percent_decode_str(target).decode_utf8_lossy().replace('\\', "/");
    let mut segments: Vec<&str> = Vec::new();
    for segment in target.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    segments.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_names_of_parts_however_they_are_written() {
        for target in [
            "word/document2.xml",
            "/word/document2.xml",
            "./word/x/../document2.xml",
            "word%2fdocument2.xml",
            "\\word\\document2.xml",
        ] {
            assert_eq!(part_name(target), "word/document2.xml", "{target}");
        }
        assert_eq!(part_name("../100%/%4"), "100%/%4");
    }

    #[test]
    fn only_an_internal_relationship_to_a_main_part_counts() {
        let relationships = |more: &str| {
            format!(
                "<r:Relationships xmlns:r=\"urn:x\"><r:Relationship Type=\"{0}/thumbnail\" Target=\"a.png\"/>\
                 <r:Relationship {more} Type=\"{1}\" Target=\"/a&amp;b.xml\"></r:Relationship></r:Relationships>",
                MAIN_PART[0], MAIN_PART[1]
            )
        };
        assert_eq!(main_part(&relationships("")).as_deref(), Some("a&b.xml"));
        assert_eq!(main_part(&relationships("TargetMode=\"External\"")), None);
        assert_eq!(main_part("<Relationships>"), None);
        assert_eq!(main_part("<"), None);
    }
}
